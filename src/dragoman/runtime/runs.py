"""Runs: agents' code at work, within slots and times.

Theory. A run executes a handler for one message, or, when the handler is resident, for all messages of one task. It
holds one of ``limits.running_tasks`` slots, except while it waits for an answer. How it ends decides what the
runtime adds to the log, see :meth:`Runs._conclude`; every end passes through there, also that of a run which was
canceled before its first step.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable

from dragoman.errors import A2AError, InvalidAgentResponseError
from dragoman.model import Message, TaskState
from dragoman.ports.agent import Handler
from dragoman.ports.deadlines import Deadlines
from dragoman.ports.observing import OBSERVER, WorkObserver
from dragoman.protocol.lifecycle import ACTIVE, INTERRUPTED, TERMINAL
from dragoman.runtime.limits import Limits
from dragoman.runtime.live import LiveTask
from dragoman.runtime.turn import LiveTurn

logger = logging.getLogger("dragoman.runtime")

FAILED_TEXT = "The agent failed while it worked on this task."
NO_END_TEXT = "The agent ended without a result."
SHUTDOWN_TEXT = "The agent was shut down while it worked on this task."


class Run:
    """One execution of the handler."""

    __slots__ = ("canceled", "decision", "live", "overran", "parked", "slot", "task", "turn")

    def __init__(self, turn: LiveTurn, live: LiveTask | None) -> None:
        self.turn = turn
        self.live = live
        self.task: asyncio.Task[Message | None] | None = None
        self.decision: asyncio.Future[Message | LiveTask] | None = None
        self.canceled = False
        self.overran = False
        self.parked = False
        self.slot = False

    def overrun(self) -> None:
        """The run took too long: interrupt it."""
        self.overran = True
        assert self.task is not None
        self.task.cancel()


class Runs:
    """All runs of a runtime. ``observer`` is told when they are at work."""

    def __init__(
        self,
        handler: Handler,
        limits: Limits,
        next_turn: Callable[[LiveTask], LiveTurn],
        observer: WorkObserver | None = None,
    ) -> None:
        self._handler = handler
        self._limits = limits
        self._next_turn = next_turn
        self._observer = observer
        self._active: set[Run] = set()
        self._waiting: dict[LiveTask, LiveTurn] = {}
        self._suspended: OrderedDict[Run, None] = OrderedDict()
        self._deadlines = Deadlines(limits.run_time)
        self._running = 0
        self._idle: asyncio.Event | None = None
        self.stopping = False

    # Beginning.

    @property
    def is_full(self) -> bool:
        """Whether a new task has to wait for a slot."""
        return self._running >= self._limits.running_tasks

    @property
    def has_room(self) -> bool:
        """Whether a new task may at least wait."""
        return len(self._waiting) < self._limits.waiting_tasks

    def start(self, turn: LiveTurn, live: LiveTask | None) -> Run:
        """Run the handler at once."""
        run = Run(turn, live)
        turn.run, turn.runs = run, self
        if live is not None:
            live.run = run
        loop = asyncio.get_running_loop()
        self._active.add(run)
        self._take_slot(run)
        run.task = loop.create_task(_execute(self._handler, turn, self._observer))
        run.task.add_done_callback(lambda _: self._finished(run))
        return run

    def enqueue(self, turn: LiveTurn, live: LiveTask) -> None:
        """Run the handler when a slot is free. The task is SUBMITTED until then."""
        live.hold()
        self._waiting[live] = turn
        if self._observer is not None:
            self._observer.begun(live)

    def is_waiting(self, live: LiveTask) -> bool:
        """Whether the task is queued for a slot."""
        return live in self._waiting

    def dequeue(self, live: LiveTask) -> None:
        """The task does not wait any more, because it was canceled."""
        if self._waiting.pop(live, None) is not None:
            self._leave_queue(live)

    def _leave_queue(self, live: LiveTask) -> None:
        live.unhold()
        if self._observer is not None:
            self._observer.ended(live)

    def _start_waiting(self) -> None:
        while self._waiting and not self.is_full and not self.stopping:
            live = next(iter(self._waiting))
            turn = self._waiting.pop(live)
            if live.state is TaskState.SUBMITTED and live.failure is None:
                live.move(TaskState.WORKING)
                self.start(turn, live)
            self._leave_queue(live)

    # Slots and times.

    def _take_slot(self, run: Run) -> None:
        run.slot = True
        self._running += 1
        self._deadlines.begin(run, run.overrun)
        if self._observer is not None:
            self._observer.begun(run)

    def _give_slot(self, run: Run) -> None:
        self._deadlines.end(run)
        if run.slot:
            run.slot = False
            self._running -= 1
            if self._waiting:
                self._start_waiting()

    def suspend(self, run: Run) -> None:
        """The run waits for an answer: its slot is free for others."""
        self._give_slot(run)
        if self._observer is not None:
            self._observer.paused(run)
        run.canceled = False  # whoever asks has not taken the cancel for an end: the next one is a new one
        self._suspended[run] = None
        if self.stopping:
            self.cancel(run)
        elif len(self._suspended) > self._limits.suspended_tasks:
            self._park(next(iter(self._suspended)))

    def resume(self, run: Run) -> None:
        """The run goes on, also when that makes one more than there are slots."""
        self._suspended.pop(run, None)
        if not run.task or not run.task.done():
            self._take_slot(run)

    def _park(self, run: Run) -> None:
        """Stop a run that only waits; the answer will run the handler again."""
        self._suspended.pop(run, None)
        run.parked = True
        assert run.task is not None
        run.task.cancel()

    # Ending.

    def cancel(self, run: Run) -> None:
        """Interrupt the handler: CancelledError arrives where it waits."""
        assert run.task is not None
        run.task.cancel()

    def _finished(self, run: Run) -> None:
        self._active.discard(run)
        self._give_slot(run)
        live = run.live
        if live is None:
            _decide(run)
        else:
            live.run = None
            if live.failure is None:
                self._conclude(run, live)
            else:
                _log_late(live, _error(run))
            live.release_if_idle()
        if self._observer is not None:
            self._tell_end(self._observer, run)
        run.turn.run = None  # the two would keep each other, and all that hangs on them, until the collector comes
        if self._idle is not None and not self._active:
            self._idle.set()

    @staticmethod
    def _tell_end(observer: WorkObserver, run: Run) -> None:
        if run.live is not None and run.live.state in INTERRUPTED:
            observer.paused(run)
        observer.ended(run)

    def _conclude(self, run: Run, live: LiveTask) -> None:
        """Add to the log what the end of the run means."""
        assert run.task is not None
        error = _error(run)
        if live.state in TERMINAL:
            _log_late(live, error)
        elif run.task.cancelled():
            self._conclude_interrupted(run, live)
        elif error is not None:
            logger.error("The agent raised on task %s", live.task_id, exc_info=error)
            live.move(TaskState.FAILED, FAILED_TEXT)
        else:
            self._conclude_returned(run, live)

    def _conclude_interrupted(self, run: Run, live: LiveTask) -> None:
        if live.canceling:
            live.move(TaskState.CANCELED)
        elif run.overran:
            logger.error("The agent took more than %g s on task %s", self._limits.run_time, live.task_id)
            live.move(TaskState.FAILED, f"The agent took longer than {self._limits.run_time:g} s.")
        elif self.stopping:
            self._conclude_stopped(live)
        elif run.parked:
            if live.state not in INTERRUPTED:
                self._restart(live)
        else:
            logger.error("The agent raised CancelledError of its own on task %s", live.task_id)
            live.move(TaskState.FAILED, FAILED_TEXT)

    def _conclude_returned(self, run: Run, live: LiveTask) -> None:
        assert run.task is not None
        if run.task.result() is not None:
            logger.error("The agent returned a direct message although task %s was open", live.task_id)
            live.move(TaskState.FAILED, NO_END_TEXT)
        elif live.canceling and live.state not in INTERRUPTED:
            live.move(TaskState.CANCELED)
        elif live.queue and self.stopping:
            self._conclude_stopped(live)
        elif live.queue:
            if live.state in INTERRUPTED:
                live.move(TaskState.WORKING)
            self._restart(live)
        elif live.state not in INTERRUPTED:
            logger.error("The agent ended and left task %s in state %s", live.task_id, live.state.value)
            live.move(TaskState.FAILED, NO_END_TEXT)

    def _conclude_stopped(self, live: LiveTask) -> None:
        """What may be run again, or goes on with an answer, is left as it is for the next process."""
        if live.state not in INTERRUPTED and not self._handler.rerun:
            live.move(TaskState.FAILED, SHUTDOWN_TEXT)

    def _restart(self, live: LiveTask) -> None:
        self.start(self._next_turn(live), live)

    # Shutdown.

    def is_worked_on(self, live: LiveTask) -> bool:
        """Whether the handler is at work on a task, and not just waiting for an answer."""
        return live.run is not None and live.run.slot

    async def stop(self, grace: float) -> None:
        """Let running handlers end within ``grace`` seconds, then interrupt them and wait for what they record."""
        self.stopping = True
        for run in list(self._suspended):
            if run.live is not None and run.live.state in INTERRUPTED:  # else its answer has just come
                self.cancel(run)
        for live in list(self._waiting):
            self.dequeue(live)
        await self._wait_idle(grace)
        for run in list(self._active):
            self.cancel(run)
        await self._wait_idle(max(grace, 5.0) if self._limits.interrupt_wait is None else self._limits.interrupt_wait)
        if self._active:
            logger.error("%d handlers did not react to their interruption", len(self._active))
            self._give_up()

    def _give_up(self) -> None:
        """Record the end of what did not react: its process is about to go."""
        for run in self._active:
            if run.live is not None and run.live.failure is None and run.live.state in ACTIVE:
                self._conclude_stopped(run.live)

    async def _wait_idle(self, seconds: float) -> None:
        self._idle = asyncio.Event()
        if not self._active:
            return
        try:
            async with asyncio.timeout(seconds):
                await self._idle.wait()
        except TimeoutError:
            return


async def _execute(handler: Handler, turn: LiveTurn, observer: WorkObserver | None) -> Message | None:
    """The handler, with an exit of the interpreter turned into an ordinary fault."""
    if observer is not None:
        OBSERVER.set(observer)
    try:
        return await handler.run(turn)
    except SystemExit as exit:
        raise RuntimeError("the agent called sys.exit") from exit


def _decide(run: Run) -> None:
    """The run of an agent that decides ended without a task: its reply, or its error, is the answer."""
    decision, task = run.decision, run.task
    assert task is not None
    error = _error(run)
    if decision is None or decision.done():
        if error is not None:
            logger.error("The agent raised after its caller had left", exc_info=error)
    elif task.cancelled():
        decision.cancel()
    elif error is not None:
        decision.set_exception(error)
    elif (reply := task.result()) is not None:
        decision.set_result(reply)
    else:
        decision.set_exception(InvalidAgentResponseError("The agent neither replied nor opened a task"))


def _error(run: Run) -> BaseException | None:
    """What the handler raised; looked at in any case, since asyncio complains of what nobody looks at."""
    assert run.task is not None
    return None if run.task.cancelled() else run.task.exception()


def _log_late(live: LiveTask, error: BaseException | None) -> None:
    if error is None or error is live.failure:
        return
    if isinstance(error, A2AError):
        logger.error("The agent broke a rule on task %s after its end: %s", live.task_id, error)
    else:
        logger.error("The agent raised on task %s after its end", live.task_id, exc_info=error)
