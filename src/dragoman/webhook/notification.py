"""What a webhook was told: :class:`Notification`."""

from __future__ import annotations

import msgspec

from dragoman.model import (
    Message,
    StreamResponse,
    Task,
    TaskArtifactUpdateEvent,
    TaskState,
    TaskStatusUpdateEvent,
)
from dragoman.protocol.lifecycle import is_settled

Event = Task | Message | TaskStatusUpdateEvent | TaskArtifactUpdateEvent


class Notification(msgspec.Struct, frozen=True, kw_only=True):
    """A genuine notification, of whichever version of the protocol.

    * ``event``: what it says, in the types of the current version; a sender of 0.3 sends whole tasks;
    * ``task_id``: of the task that it is about;
    * ``id``: the same each time it is sent, so that work can be done once for it; made of the content where the sender
      gives none (Spec: PUSH-12, PUSH-18);
    * ``wire``: the version of the protocol that it came in, ``"1.0"`` or ``"0.3"``;
    * ``sequence``: its number in the order of its task, None when the sender does not say;
    * ``sent_ms``: when it was sent, in milliseconds since the epoch, None when the sender does not say;
    * ``signed``: whether its signature was verified.
    """

    event: Event
    task_id: str
    id: str
    wire: str = "1.0"
    sequence: int | None = None
    sent_ms: int | None = None
    signed: bool = False

    @property
    def state(self) -> TaskState | int | None:
        """The state of the task that it says, None when it says none."""
        return self.event.status.state if isinstance(self.event, Task | TaskStatusUpdateEvent) else None

    @property
    def settled(self) -> bool:
        """Whether the task is over, or waits for its caller, as far as this says."""
        return self.state is not None and is_settled(self.state)

    @property
    def response(self) -> StreamResponse:
        """The event in the form of the current version."""
        return wrap(self.event)


def wrap(event: Event) -> StreamResponse:
    """The StreamResponse that holds an event."""
    if isinstance(event, Task):
        return StreamResponse(task=event)
    if isinstance(event, Message):
        return StreamResponse(message=event)
    if isinstance(event, TaskStatusUpdateEvent):
        return StreamResponse(status_update=event)
    return StreamResponse(artifact_update=event)


def unwrap(response: StreamResponse) -> Event | None:
    """The one event of a StreamResponse; None when there is none, or more than one."""
    members = (response.task, response.message, response.status_update, response.artifact_update)
    found = [member for member in members if member is not None]
    return found[0] if len(found) == 1 else None


def task_of(event: Event) -> str:
    """The id of the task that an event is about, empty when it names none."""
    return event.id if isinstance(event, Task) else event.task_id
