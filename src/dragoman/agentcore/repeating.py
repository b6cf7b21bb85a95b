"""The repeater of a client of AgentCore: attempts, waits and the gate around one call.

Spec: AC-C-50 to AC-C-56.
"""

from __future__ import annotations

from typing import TypeVar

from dragoman.agentcore.errors import AgentFailed, ServiceError, SessionBusy, Throttled
from dragoman.agentcore.failures import note, service_error
from dragoman.agentcore.gate import Gate
from dragoman.agentcore.headers import SESSION_ID
from dragoman.agentcore.retrying import Attempts, Passing, Retry
from dragoman.agentcore.sessions import Sessions
from dragoman.agentcore.timing import Timing
from dragoman.client.repeating import REPEATABLE, Attempt
from dragoman.errors import A2AError, ClientError, ConnectError, ConnectionLostError, DragomanError
from dragoman.model import SUBSCRIBE_TO_TASK, Operation
from dragoman.ports.operations import CallContext

SAFE = (*REPEATABLE, SUBSCRIBE_TO_TASK)
"""Operations without side effects."""

T = TypeVar("T")


class RuntimeRepeater:
    """Makes calls as often as it takes. ``unary_limit``: seconds for a call that has no limit of its own, or None."""

    def __init__(
        self, sessions: Sessions, *, retry: Retry, gate: Gate, timing: Timing, unary_limit: float | None
    ) -> None:
        self._sessions = sessions
        self._retry = retry
        self._gate = gate
        self._timing = timing
        self._unary_limit = unary_limit

    async def repeat(self, op: Operation, context: CallContext, attempt: Attempt[T]) -> T:
        """See :class:`~dragoman.client.repeating.Repeater`."""
        limit = context.timeout
        if limit is None and not op.streaming:
            limit = self._unary_limit
        session_id = context.parameters.get(SESSION_ID) or self._sessions.current
        return await self.persist(attempt, session_id=session_id, limit=limit, safe=op in SAFE)

    async def persist(self, attempt: Attempt[T], *, session_id: str, limit: float | None, safe: bool) -> T:
        """Make attempts until one succeeds, or none makes sense any more; ``limit`` in seconds bounds it all."""
        now = self._timing.monotonic()
        attempts = Attempts(self._retry, safe=safe, started=now, deadline=None if limit is None else now + limit)
        async with self._gate.passing(session_id, limit) as passage:
            while True:
                attempts.begin()
                try:
                    result = await attempt(attempts.left(self._timing.monotonic()))
                except DragomanError as error:
                    failure = service_error(error, safe=safe) or error
                    note(failure, session_id=session_id or self._sessions.current, attempts=attempts.made)
                    passage.answered = _is_answer(failure)
                    wait = self._wait(attempts, failure)
                    if wait is None:
                        raise failure from (None if failure is error else error)
                else:
                    passage.answered = True
                    return result
                await self._timing.sleep(wait)

    def _wait(self, attempts: Attempts, failure: DragomanError) -> float | None:
        asked = failure.retry_after or 0.0 if isinstance(failure, A2AError) else 0.0
        now, chance = self._timing.monotonic(), self._timing.chance()
        return attempts.wait(_kind(failure), now, asked=asked, chance=chance)


def _kind(failure: DragomanError) -> Passing | None:
    if isinstance(failure, SessionBusy):
        return Passing.BUSY
    if isinstance(failure, Throttled):
        return Passing.THROTTLED
    if isinstance(failure, AgentFailed | ServiceError | ConnectError | ConnectionLostError):
        return Passing.FAILED
    return None


def _is_answer(failure: DragomanError) -> bool:
    """Whether the session stands, as far as a failure tells: somebody answered, and not that it is busy."""
    origin = failure.origin if isinstance(failure, A2AError | ClientError) else None
    return origin is not None and origin.status is not None and not isinstance(failure, SessionBusy)
