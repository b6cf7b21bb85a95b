"""Watching tasks: the streams of SendStreamingMessage and SubscribeToTask.

Spec: STREAM-04, STREAM-05, SUB-01 to SUB-06, AMB-05, AMB-07, AMB-08.
"""

from __future__ import annotations

from typing import cast

from dragoman.model import SubscribeToTaskRequest, Task, TaskState
from dragoman.ports.deadlines import Deadlines
from dragoman.ports.operations import CallContext
from dragoman.ports.store import TaskStore
from dragoman.protocol.extensions import RESUMABLE_STREAMS
from dragoman.protocol.lifecycle import Command, check_command, copy_task
from dragoman.runtime.limits import Limits
from dragoman.runtime.live import LiveTask
from dragoman.runtime.registry import Registry
from dragoman.runtime.runs import Runs
from dragoman.runtime.streams import TaskStream


class Watching:
    """Opens streams on tasks. ``ends_at`` are interrupted states at which the stream of a send closes."""

    def __init__(
        self, registry: Registry, runs: Runs, store: TaskStore, limits: Limits, ends_at: frozenset[TaskState]
    ) -> None:
        self._registry = registry
        self._runs = runs
        self._store = store
        self._limits = limits
        self._ends_at = ends_at
        self._idle = Deadlines(limits.stream_idle)

    async def subscribe(self, request: SubscribeToTaskRequest, context: CallContext) -> TaskStream:
        """A stream that begins with the task as it is now, or where a resuming reader was."""
        live = await self._registry.hold(request.id, context.scope)
        try:
            resume = context.last_event_id if RESUMABLE_STREAMS in context.activated else None
            if resume is not None and resume < live.number:
                return self._open(live, position=resume)
            if live.is_stored:
                check_command(Command.SUBSCRIBE, cast(TaskState, live.task.status.state), live.task_id)
            if resume is not None and resume == live.number:
                return self._open(live, position=resume)
            if live.is_stored:
                return self._open(live, position=live.number, first=copy_task(live.task))
            return self._open(live, position=live.staged_number, first=live.staged_task())
        finally:
            live.unhold()

    def follow(self, live: LiveTask, number: int, *, is_new: bool, history: int | None) -> TaskStream:
        """The stream of a message that is record ``number``: from the task as it took the message."""
        position, first = (0, None) if is_new else (number, live.staged_task())
        return self._open(live, position=position, first=first, ends_at=self._ends_at, history=history)

    def _open(
        self,
        live: LiveTask,
        *,
        position: int,
        first: Task | None = None,
        ends_at: frozenset[TaskState] = frozenset(),
        history: int | None = None,
    ) -> TaskStream:
        return TaskStream(
            live,
            self._store,
            self._limits,
            position=position,
            first=first,
            ends_at=ends_at,
            history=history,
            stopping=self._is_left_alone,
            idle=self._idle,
        )

    def _is_left_alone(self, live: LiveTask) -> bool:
        return self._runs.stopping and not self._runs.is_worked_on(live) and not live.backlog
