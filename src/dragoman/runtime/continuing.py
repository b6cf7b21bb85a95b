"""Going on with tasks: messages to tasks that exist, and runs that were lost.

Spec: CTX-13 to CTX-16, SEND-06, SEND-07, SEND-19, B075, B079, design invariant 7.
"""

from __future__ import annotations

from collections.abc import Callable

from dragoman.errors import RateLimitedError, UnavailableError
from dragoman.model import SendMessageRequest, TaskState
from dragoman.ports.agent import Handler
from dragoman.ports.operations import CallContext
from dragoman.protocol.lifecycle import ACTIVE, Command, check_command
from dragoman.runtime.contexts import bad_context
from dragoman.runtime.limits import Limits
from dragoman.runtime.live import LiveTask
from dragoman.runtime.registry import Registry
from dragoman.runtime.runs import Runs
from dragoman.runtime.turns import Turns
from dragoman.runtime.webhooks import Webhooks


class Continuing:
    """Delivers messages to tasks. ``recover`` decides on a task whose run was lost."""

    def __init__(
        self,
        handler: Handler,
        registry: Registry,
        runs: Runs,
        turns: Turns,
        limits: Limits,
        recover: Callable[[LiveTask], None],
        webhooks: Webhooks,
    ) -> None:
        self._handler = handler
        self._registry = registry
        self._runs = runs
        self._turns = turns
        self._limits = limits
        self._recover = recover
        self._webhooks = webhooks

    async def accept(self, request: SendMessageRequest, call: CallContext) -> tuple[LiveTask, int]:
        """Give a message to the task that it names; the task, held, and the number of the record that has it.

        Raises TaskNotFoundError, InvalidParamsError (another context), UnsupportedOperationError (the task is over),
        RateLimitedError and UnavailableError.
        """
        message = request.message
        live = await self._registry.hold(message.task_id, call.scope)
        try:
            if message.context_id and message.context_id != live.context_id:
                raise bad_context("is not the context of the task")
            check_command(Command.MESSAGE, live.state, live.task_id)
            await self.take_lease(live)
            await self._webhooks.accept(request, call, live.task_id)
            check_command(Command.MESSAGE, live.state, live.task_id)
            self._check_alive(live)
            return live, self._deliver(live, request, call)
        except BaseException:
            live.unhold()
            raise

    async def take_lease(self, live: LiveTask) -> None:
        """Become the writer of a held task. Raises UnavailableError when somebody else is."""
        if live.task_id in self._registry.doubtful:  # once it has a lease, it could not be repaired
            self._check_alive(live)
        await self._registry.lease(live)
        if self._is_lost(live):  # the lease was that of a dead worker, and this process is who takes over now
            self._recover(live)

    def _is_lost(self, live: LiveTask) -> bool:
        return live.state in ACTIVE and live.run is None and not self._runs.is_waiting(live)

    def _check_alive(self, live: LiveTask) -> None:
        """A task whose run was lost is the janitor's to decide on; a message must not start the work again."""
        if self._is_lost(live):
            raise UnavailableError("The task is being recovered; try again", retry_after=self._limits.lease / 3)

    def _deliver(self, live: LiveTask, request: SendMessageRequest, call: CallContext) -> int:
        """Record a message and see that a run takes it."""
        if self._unread(live) >= self._limits.queued_messages:
            raise RateLimitedError("Too many messages wait for this task; try again later", retry_after=1)
        number = live.accept(request.message)
        if call.plan is not None:
            call.plan.taken(live.task_id)
        if live.run is None and live.state is not TaskState.SUBMITTED:
            self._runs.start(self._turns.go_on(live, request, call), live)
        elif not self._handler.resident:
            live.queue.append((request, call))
        return number

    def _unread(self, live: LiveTask) -> int:
        """Messages that the task has taken and no run has."""
        if live.run is None or not self._handler.resident:
            return len(live.queue)
        return len(live.user_messages) - 1 - live.run.turn.answered

    def rerun(self, live: LiveTask) -> bool:
        """Start a run for an orphan if that is safe; False when it is not. Invariant 7."""
        fresh = live.state is TaskState.SUBMITTED
        if not (fresh or self._handler.rerun) or not live.user_messages:
            return False
        if fresh and not self._handler.resident:
            live.queue = [self._turns.asked_again(live, number) for number in range(len(live.user_messages))]
        turn = self._turns.following(live)
        turn.recovered = not fresh
        if fresh and self._runs.is_full:
            self._runs.enqueue(turn, live)
            return True
        if fresh:
            live.move(TaskState.WORKING)
        self._runs.start(turn, live)
        return True
