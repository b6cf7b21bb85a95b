"""The client of an agent on AgentCore: the usual one, which also knows its sessions.

Spec: AC-C-10, AC-C-12, AC-C-14, AC-C-15.
"""

from __future__ import annotations

from collections.abc import Callable

from dragoman.agentcore.sessions import Sessions, SessionState
from dragoman.agentcore.stopping import SessionStopper
from dragoman.client import Client
from dragoman.client.calls import Calls
from dragoman.model import AgentInterface, Task


class RuntimeClient(Client):
    """An agent on AgentCore, to be called. Comes from :func:`dragoman.agentcore.connect`.

    Everything of :class:`dragoman.Client`. Errors of the service are :class:`~dragoman.agentcore.AgentCoreError`.
    """

    def __init__(
        self, calls: Calls, interface: Callable[[], AgentInterface], sessions: Sessions, stopper: SessionStopper
    ) -> None:
        super().__init__(calls, interface)
        self._sessions = sessions
        self._stopper = stopper

    @property
    def session_id(self) -> str:
        """The session of everything new; empty as long as the service is still to allocate one."""
        return self._sessions.current

    def session_of(self, task: Task | str) -> str:
        """The session in which a task was made, empty when this client does not know it."""
        return self._sessions.of_task(task if isinstance(task, str) else task.id)

    def export_sessions(self) -> SessionState:
        """What another process needs to go on in the same sessions: ``connect(…, state=…)``. Spec: AC-C-14."""
        return self._sessions.export()

    async def stop_session(self, session_id: str = "") -> None:
        """Stop a session (default that of everything new): its process ends, and what was in its memory is gone.

        One that is not there counts as stopped. The id may be used again, for a new process. Raises AgentCoreError.
        Spec: AC-C-15.
        """
        wanted = session_id or self._sessions.current
        if wanted:
            await self._stopper.stop(wanted)
