"""What a stream has told of a task so far: where it stands, whether it was cut, where to go on. Pure.

Spec: AMB-03, AMB-04, AMB-05, B061, B069, B071.
"""

from __future__ import annotations

from dragoman.model import (
    Message,
    StreamResponse,
    Task,
    TaskArtifactUpdateEvent,
    TaskState,
    TaskStatusUpdateEvent,
)
from dragoman.ports.operations import Event
from dragoman.protocol.lifecycle import is_settled, is_terminal

StreamEvent = Task | Message | TaskStatusUpdateEvent | TaskArtifactUpdateEvent
"""What a stream yields."""


def event_of(response: StreamResponse) -> StreamEvent | None:
    """The one event in a StreamResponse, None when it is empty."""
    return response.artifact_update or response.status_update or response.task or response.message


def as_response(event: StreamEvent) -> StreamResponse:
    """The StreamResponse that holds an event."""
    if isinstance(event, TaskArtifactUpdateEvent):
        return StreamResponse(artifact_update=event)
    if isinstance(event, TaskStatusUpdateEvent):
        return StreamResponse(status_update=event)
    return StreamResponse(task=event) if isinstance(event, Task) else StreamResponse(message=event)


class Progress:
    """Where the task of a stream stands.

    * ``task_id``: empty as long as no event named one;
    * ``state``: None before the first that says it;
    * ``number``: of the last event, None when the peer sends none;
    * ``answered``: whether a Message came;
    * ``moved``: whether ``state`` is news, and not just what a snapshot at the beginning said of the time before. Give
      ``known=True`` when the stream is about a task that was there before.
    """

    __slots__ = ("answered", "moved", "number", "state", "task_id")

    def __init__(self, task_id: str = "", *, known: bool = False) -> None:
        self.task_id = task_id
        self.state: TaskState | int | None = None
        self.number: int | None = None
        self.answered = False
        self.moved = not known

    def note(self, event: Event) -> None:
        """Take account of an event."""
        if event.number is not None:
            self.number = event.number
        response = event.response
        if response.artifact_update is not None:
            self.task_id = response.artifact_update.task_id or self.task_id
        elif response.status_update is not None:
            self.task_id = response.status_update.task_id or self.task_id
            self._enter(response.status_update.status.state, moved=True)
        elif response.task is not None:
            self.task_id = response.task.id or self.task_id
            self._enter(response.task.status.state, moved=self.state is not None)
        elif response.message is not None:
            self.answered = True

    def _enter(self, state: TaskState | int, *, moved: bool) -> None:
        self.moved = self.moved or moved
        self.state = state

    @property
    def over(self) -> bool:
        """Whether nothing can follow: the task ended."""
        return self.state is not None and is_terminal(self.state)

    @property
    def settled(self) -> bool:
        """Whether the task ended or waits for the client."""
        return self.state is not None and is_settled(self.state)

    @property
    def complete(self) -> bool:
        """Whether a stream that ends now ended well. Otherwise it was cut. Spec: AMB-03."""
        if self.state is None:
            return self.answered and not self.task_id
        return self.settled
