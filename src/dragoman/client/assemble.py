"""Put a task together from the events of its stream, as the server does. Pure.

Tolerates peers that start without a Task, or send messages beside one. Spec: AMB-04, AMB-57, B061, B071, B089.
"""

from __future__ import annotations

from dragoman.client.progress import StreamEvent, as_response
from dragoman.client.result import Result
from dragoman.model import (
    Message,
    Task,
    TaskArtifactUpdateEvent,
    TaskState,
    TaskStatus,
    TaskStatusUpdateEvent,
)
from dragoman.protocol.lifecycle import TaskFold, copy_task


class Assembly:
    """Events in, a :class:`Result` out. What it is given is never changed."""

    def __init__(self) -> None:
        self._fold: TaskFold | None = None
        self._messages: list[Message] = []

    @property
    def state(self) -> TaskState | int | None:
        """The task's state, None as long as there is no task."""
        return self._fold.task.status.state if self._fold is not None else None

    @property
    def task_id(self) -> str:
        """Id of the task, empty as long as there is none."""
        return self._fold.task.id if self._fold is not None else ""

    def apply(self, event: StreamEvent) -> None:
        """Take the next event."""
        if isinstance(event, Message):
            self._messages.append(event)
        elif isinstance(event, Task):
            self._fold = TaskFold(copy_task(event))
        else:
            fold = self._fold or self._begin(event)
            fold.apply_event(as_response(event))

    def _begin(self, update: TaskStatusUpdateEvent | TaskArtifactUpdateEvent) -> TaskFold:
        """A stream that starts in the middle: make the task that the event is about."""
        status = TaskStatus(state=TaskState.WORKING)
        self._fold = TaskFold(Task(id=update.task_id, context_id=update.context_id, status=status))
        return self._fold

    def result(self) -> Result:
        """What there is so far."""
        if self._fold is not None:
            return Result(task=self._fold.task, messages=tuple(self._messages))
        return Result(message=self._messages[-1] if self._messages else None, messages=tuple(self._messages[:-1]))
