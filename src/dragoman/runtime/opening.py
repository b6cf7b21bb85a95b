"""Opening tasks: what becomes of a message that names none.

Spec: CTX-10, SEND-02, SEND-03, DATA-22, B077.
"""

from __future__ import annotations

import asyncio

from dragoman.errors import InternalError, InvalidAgentResponseError, UnavailableError
from dragoman.model import Message, SendMessageRequest, TaskState
from dragoman.ports.operations import CallContext
from dragoman.runtime.beginning import encode_beginning
from dragoman.runtime.live import LiveTask
from dragoman.runtime.registry import Registry
from dragoman.runtime.replying import agent_failed, checked_reply, is_cancelled
from dragoman.runtime.runs import Runs
from dragoman.runtime.turn import LiveTurn
from dragoman.runtime.turns import Turns
from dragoman.runtime.webhooks import Webhooks


class Opening:
    """Makes tasks and starts, or queues, their runs. A task that it returns is held for the caller."""

    def __init__(self, registry: Registry, runs: Runs, turns: Turns, webhooks: Webhooks) -> None:
        self._registry = registry
        self._runs = runs
        self._turns = turns
        self._webhooks = webhooks

    def open(self, request: SendMessageRequest, call: CallContext, context_id: str) -> LiveTask:
        """A task for a message: WORKING at once, or SUBMITTED until there is a slot. Raises UnavailableError."""
        turn = self._turns.begin(request, call, context_id)
        live = self._queue(turn) if self._runs.is_full else self._start(turn)
        live.hold()
        return live

    def _start(self, turn: LiveTurn) -> LiveTask:
        live = self._new_live(turn)
        self._runs.start(turn, live)  # before the record is staged, so that a quick handler shares its write
        self._begin_log(live, turn, TaskState.WORKING)
        return live

    def _queue(self, turn: LiveTurn) -> LiveTask:
        if not self._runs.has_room:
            raise UnavailableError("Too many tasks are waiting; try again later", retry_after=5)
        live = self._new_live(turn)
        self._begin_log(live, turn, TaskState.SUBMITTED)
        self._runs.enqueue(turn, live)
        return live

    def _new_live(self, turn: LiveTurn) -> LiveTask:
        plan = turn.call.plan
        task_id = plan.task_id if plan is not None and plan.task_id else self._registry.new_id()
        live = LiveTask(self._registry, task_id, turn.context_id, turn.call.scope.own)
        turn.attach(live)
        self._registry.add(live)
        if plan is not None:
            plan.taken(task_id)
        return live

    def _begin_log(self, live: LiveTask, turn: LiveTurn, state: TaskState) -> None:
        kept = encode_beginning(turn.request, turn.call)
        webhook = self._webhooks.seal(turn.request, turn.call, live.task_id)
        live.begin(turn.request.message, state, kept, turn.call.wire, webhook)

    async def decide(self, request: SendMessageRequest, call: CallContext, context_id: str) -> Message | LiveTask:
        """Run a handler that decides by what it does first: its direct reply, or the task that it opened."""
        if self._runs.is_full:
            raise UnavailableError("Too many messages are being handled; try again later", retry_after=5)
        run = self._runs.start(self._turns.begin(request, call, context_id, self._open_decided), None)
        run.decision = asyncio.get_running_loop().create_future()
        try:
            begun = await run.decision
        except asyncio.CancelledError:
            if run.decision.cancelled() and not is_cancelled():
                raise InternalError("The agent was interrupted") from None
            _leave_decision(run.decision)
            raise
        except Exception as error:
            raise agent_failed(error) from error
        return checked_reply(begun, context_id) if isinstance(begun, Message) else begun

    async def _open_decided(self, turn: LiveTurn) -> LiveTask:
        """The task of a run that decided for one."""
        run = turn.run
        if run is None:
            raise InvalidAgentResponseError("The handler has ended and can open no task")
        live = self._new_live(turn)
        self._begin_log(live, turn, TaskState.WORKING)
        run.live, live.run = live, run
        if run.decision is not None and not run.decision.done():
            live.hold()
            run.decision.set_result(live)
        return live


def _leave_decision(decision: asyncio.Future[Message | LiveTask]) -> None:
    """The caller left at the very moment of the decision: what it was given is not needed."""
    if decision.cancelled() or not decision.done() or decision.exception() is not None:
        return
    begun = decision.result()
    if isinstance(begun, LiveTask):
        begun.unhold()
