"""Stop a session: its process and its memory end.

Spec: AC-C-15; sections 2 and 3.2 of the register.
"""

from __future__ import annotations

import contextlib

import msgspec

from dragoman.agentcore.errors import RuntimeNotFound
from dragoman.agentcore.failures import service_error
from dragoman.agentcore.gate import Gate
from dragoman.agentcore.headers import SESSION_ID
from dragoman.agentcore.repeating import RuntimeRepeater
from dragoman.agentcore.runtime_address import RuntimeAddress
from dragoman.agentcore.sessions import Sessions, new_session_id
from dragoman.bindings import jsonrpc
from dragoman.errors import A2AError, InvalidAgentResponseError
from dragoman.http.client import Answer, HttpClient
from dragoman.http.guard import shown
from dragoman.model import CANCEL_TASK

_LIMIT = 60.0


class SessionStopper:
    """Stops sessions of one runtime."""

    def __init__(
        self,
        http: HttpClient,
        address: RuntimeAddress,
        repeater: RuntimeRepeater,
        sessions: Sessions,
        gate: Gate,
    ) -> None:
        self._http = http
        self._address = address
        self._repeater = repeater
        self._sessions = sessions
        self._gate = gate

    async def stop(self, session_id: str) -> None:
        """Stop a session; one that is not there counts as stopped. Raises AgentCoreError."""
        body = msgspec.json.encode({"clientToken": new_session_id()})  # the same for every attempt

        async def attempt(limit: float | None) -> None:
            headers = {"content-type": "application/json", SESSION_ID: session_id}
            url = self._address.stop
            _check(await self._http.fetch("POST", url, headers=headers, body=body, timeout=limit))

        with contextlib.suppress(RuntimeNotFound):
            await self._repeater.persist(attempt, session_id=session_id, limit=_LIMIT, safe=True)
        self._sessions.note_stopped(session_id)
        self._gate.close(session_id)


def _check(answer: Answer) -> None:
    if answer.status < 300:
        return
    try:
        # The forms of errors are those of calls; which call it was makes no difference to them.
        jsonrpc.decode_result(CANCEL_TASK, answer.status, answer.headers, answer.body, url=shown(answer.url))
    except A2AError as error:
        raise service_error(error, safe=True) or error from None
    raise InvalidAgentResponseError(f"The answer of {shown(answer.url)} cannot be understood: HTTP {answer.status}")
