"""Put a task together from the events of its stream, as the server does. Pure.

Tolerates peers that start without a Task, or send messages beside one. Spec: AMB-04, AMB-57, B061, B071, B089.
"""

from __future__ import annotations

from dragoman.client.result import Result
from dragoman.model import Message, StreamResponse, Task, TaskState, TaskStatus
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

    def apply(self, response: StreamResponse) -> None:
        """Take the next event."""
        if response.message is not None:
            self._messages.append(response.message)
        elif self._fold is not None:
            self._fold.apply_event(response)
        elif response.task is not None:
            self._fold = TaskFold(copy_task(response.task))
        else:
            self._begin(response)

    def _begin(self, response: StreamResponse) -> None:
        """A stream that starts in the middle: make the task that the event is about."""
        update = response.status_update or response.artifact_update
        if update is not None:
            status = TaskStatus(state=TaskState.WORKING)
            self._fold = TaskFold(Task(id=update.task_id, context_id=update.context_id, status=status))
            self._fold.apply_event(response)

    def result(self) -> Result:
        """What there is so far."""
        if self._fold is not None:
            return Result(task=self._fold.task, messages=tuple(self._messages))
        return Result(message=self._messages[-1] if self._messages else None, messages=tuple(self._messages[:-1]))
