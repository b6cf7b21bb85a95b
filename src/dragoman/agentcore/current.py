"""What a handler finds without being given it: the call that it serves, and the health of its process.

Theory. A context variable is set at the start of each run of the handler, in the run's own context: not in that of the
request, from which a task that waited for a slot does not start. Threads that are started with a copy of the context
(``asyncio.to_thread``, plain functions as handlers) have it too; for others there is :func:`of`.

Spec: AC-S-40, AC-S-43, AC-S-66.
"""

from __future__ import annotations

from contextvars import ContextVar

from dragoman.agentcore.headers import AgentCoreContext, HasParameters
from dragoman.agentcore.health import Health
from dragoman.agentcore.holding import Hold
from dragoman.model import Message
from dragoman.ports.agent import Handler, Turn

_CALL: ContextVar[AgentCoreContext | None] = ContextVar("dragoman-agentcore-call", default=None)
_RUNNING: list[Health] = []
"""The health of the hosted agents of this process; there is one, or in tests a few."""


def of(call: HasParameters) -> AgentCoreContext:
    """What AgentCore says beside the call that a handler's context stands for. Spec: AC-S-40."""
    claims = getattr(getattr(call, "caller", None), "claims", None)
    return AgentCoreContext(call.parameters, claims)


def current() -> AgentCoreContext:
    """The same for the handler that is running, in its task and in threads that have a copy of its context.

    Raises LookupError outside of a handler of a hosted agent.
    """
    found = _CALL.get()
    if found is None:
        raise LookupError("there is no call here: this is not the handler of an agent that agentcore.app hosts")
    return found


def hold(name: str = "", *, most: float | None = None) -> Hold:
    """A hold on the microVM of this process; see :meth:`Health.hold`. Without a hosted agent it does nothing."""
    return Hold(_health, name, most)


def _health() -> Health | None:
    return _RUNNING[-1] if _RUNNING else None


def enter(health: Health) -> None:
    """A hosted agent begins."""
    _RUNNING.append(health)


def leave(health: Health) -> None:
    """A hosted agent ends. Safe to call twice."""
    if health in _RUNNING:
        _RUNNING.remove(health)


class HostedHandler:
    """A handler whose runs know their call; implements :class:`~dragoman.ports.agent.Handler`."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler
        self.opening = handler.opening
        self.resident = handler.resident
        self.rerun = handler.rerun

    async def run(self, turn: Turn) -> Message | None:
        """Do the work."""
        token = _CALL.set(of(turn.call))
        try:
            return await self._handler.run(turn)
        finally:
            _CALL.reset(token)
