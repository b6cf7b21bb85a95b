"""What the front looks at before a call gets anywhere: rights, headers, the rate, the session id.

Spec: AC-F-03, AC-F-05, AC-F-07, AC-F-11; agentcore 3.1.
"""

from __future__ import annotations

from collections.abc import Callable

from dragoman.ports.clock import Clock
from dragoman.testing.agentcore_front.headers import SESSION_ID, USER_ID, check_allow_list, too_long
from dragoman.testing.agentcore_front.rate import RateLimiter
from dragoman.testing.agentcore_front.recording import Recorded
from dragoman.testing.agentcore_front.refusals import Fault, Refusal
from dragoman.testing.agentcore_front.routes import Kind
from dragoman.testing.agentcore_front.settings import LONGEST_ID, SHORTEST_ID, FrontSettings

LONGEST_USER = 1_024


class Admission:
    """Lets calls of authenticated callers in. ``takes_users``: whether callers may name a user at all.

    Raises ConfigurationError for an allow-list that the service refuses.
    """

    def __init__(self, settings: FrontSettings, clock: Clock, now: Callable[[], float], *, takes_users: bool) -> None:
        self.allowed = check_allow_list(settings.allow_list)
        self._settings = settings
        self._clock = clock
        self._takes_users = takes_users
        self._rate = RateLimiter(settings.limits.rate, now)

    def admit(self, kind: Kind, record: Recorded) -> str:
        """The session id of a call. Raises Refusal."""
        self._check_rights(kind, record)
        self._check_user(record.headers.get(USER_ID))
        if too_long(record.headers, self.allowed):
            raise Refusal(Fault.VALIDATION)
        if not self._rate.admit():
            raise Refusal(Fault.THROTTLED)
        return self._session_id(kind, record.headers.get(SESSION_ID))

    def _check_rights(self, kind: Kind, record: Recorded) -> None:
        """What the caller may do, however well it has shown who it is."""
        if kind is Kind.CARD and not self._settings.may_read_card:
            raise _lacks("GetAgentCard")
        if USER_ID in record.headers and not self._settings.may_name_users:
            raise _lacks("InvokeAgentRuntimeForUser")

    def _check_user(self, user: str | None) -> None:
        if user is not None and (not self._takes_users or len(user) > LONGEST_USER):
            raise Refusal(Fault.VALIDATION)

    def _session_id(self, kind: Kind, given: str | None) -> str:
        """The id that the caller gave, or a new one; only who stops a session has to name it."""
        if given is None and kind is not Kind.STOP:
            return self._clock.new_id()
        if given is None or not SHORTEST_ID <= len(given) <= LONGEST_ID:
            rule = f"the session id must have {SHORTEST_ID} to {LONGEST_ID} characters"
            raise Refusal(Fault.VALIDATION, f"Validation error - {rule}")
        return given


def _lacks(action: str) -> Refusal:
    return Refusal(Fault.ACCESS_DENIED, f"The caller is not authorized to perform: bedrock-agentcore:{action}")
