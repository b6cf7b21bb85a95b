"""Turns: what a run of the handler is given to work with."""

from __future__ import annotations

from dragoman.model import SendMessageRequest
from dragoman.ports.agent import Handler
from dragoman.ports.operations import CallContext, Caller
from dragoman.ports.store import TaskStore
from dragoman.runtime.beginning import begin_again
from dragoman.runtime.limits import Limits
from dragoman.runtime.live import LiveTask
from dragoman.runtime.registry import Registry
from dragoman.runtime.turn import Create, LiveTurn

Asked = tuple[SendMessageRequest, CallContext]


class Turns:
    """Makes the turns of one runtime."""

    def __init__(self, handler: Handler, registry: Registry, store: TaskStore, limits: Limits) -> None:
        self._handler = handler
        self._registry = registry
        self._store = store
        self._limits = limits

    def begin(
        self, request: SendMessageRequest, call: CallContext, context_id: str, create: Create | None = None
    ) -> LiveTurn:
        """The turn of a message that names no task; ``create`` opens the task of a run that decides for one."""
        return self._turn(request, call, context_id, create=create)

    def go_on(self, live: LiveTask, request: SendMessageRequest, call: CallContext) -> LiveTurn:
        """The turn of a run on a task that exists. A resident handler begins with the task's first message again."""
        resident = self._handler.resident
        if resident:
            request, call = begin_again(live.kept, live.user_messages[0], call)
        return self._turn(request, call, live.context_id, live=live, recovered=resident)

    def following(self, live: LiveTask) -> LiveTurn:
        """The turn for the next message that waits, or for the last one again."""
        if live.queue:
            return self.go_on(live, *live.queue.pop(0))
        return self.go_on(live, *self.asked_again(live, len(live.user_messages) - 1))

    def asked_again(self, live: LiveTask, number: int) -> Asked:
        """A message of the task's history as it may have come; of the first one more is known."""
        caller = Caller(id=live.scope.owner)
        kept = b"" if number else live.kept
        return begin_again(kept, live.user_messages[number], CallContext(caller=caller, tenant=live.scope.tenant))

    def _turn(
        self,
        request: SendMessageRequest,
        call: CallContext,
        context_id: str,
        *,
        live: LiveTask | None = None,
        create: Create | None = None,
        recovered: bool = False,
    ) -> LiveTurn:
        return LiveTurn(
            request,
            call,
            context_id,
            live=live,
            create=create,
            store=self._store,
            now=self._registry.now,
            new_id=self._registry.new_id,
            most_unsaved=self._limits.unsaved_events,
            recovered=recovered,
        )
