"""Streams between 0.3 and 1.0: two pure machines.

Theory. A stream of 1.0 begins with the task and ends when the connection closes. One of 0.3 begins with whatever its
server likes and says itself where it ends: ``final`` on a status update. So:

* *Downstream*, for readers of 0.3: they end on a Message, on a first Task that is settled, or on exactly one update
  that is ``final``, which nothing follows. They cannot take a second Task (V03-P16): what it has to say that was not
  said is told by updates. To know that, the machine folds what it has sent.
* *Upstream*, for our callers: they get a Task first, made up of ids and state when the server sent none, and are let go
  at ``final`` even when the server leaves the connection open.

Spec: v0.3 §2.4, §7.6, V03-P06, V03-P07, V03-P16, V03-P17.
"""

from __future__ import annotations

from collections.abc import Iterable

from dragoman.compat.v03 import types as v03
from dragoman.compat.v03.downward import (
    FINAL,
    down_artifact_update,
    down_message,
    down_status_update,
    down_task,
)
from dragoman.compat.v03.upward import up_artifact_update, up_message, up_status_update, up_task
from dragoman.model import (
    Artifact,
    Message,
    StreamResponse,
    Task,
    TaskArtifactUpdateEvent,
    TaskState,
    TaskStatus,
    TaskStatusUpdateEvent,
)
from dragoman.protocol.lifecycle import TaskFold, copy_task, is_settled

_Update = TaskStatusUpdateEvent | TaskArtifactUpdateEvent


class Downstream:
    """1.0 events in, 0.3 events out, for one stream.

    When ``ended``, close the 1.0 stream and the answer: nothing may follow. The task goes on, and so do others who
    watch it. The events that are given are not changed and may be shared.
    """

    def __init__(self) -> None:
        self.ended = False
        self._fold: TaskFold | None = None

    def feed(self, event: StreamResponse) -> list[v03.StreamResponse]:
        """What to send for an event: nothing after the end, else mostly one event.

        A status or artifact update always makes the same event, so that readers may share its JSON.
        """
        if self.ended:
            return []
        if event.status_update is not None:
            self._apply(event, event.status_update)
            return [self._status(event.status_update)]
        if event.artifact_update is not None:
            self._apply(event, event.artifact_update)
            return [_artifact(event.artifact_update)]
        if event.task is not None:
            return self._snapshot(event.task) if self._fold is not None else [self._first(event.task)]
        return [self._message(event.message)] if event.message is not None else []

    def finish(self) -> list[v03.StreamResponse]:
        """What to send when the 1.0 stream ended by itself: the last status as the final one, unless that was sent."""
        if self.ended or self._fold is None:
            return []
        self.ended = True
        task = self._fold.task
        made = down_status_update(
            TaskStatusUpdateEvent(task_id=task.id, context_id=task.context_id, status=task.status)
        )
        made.final = True
        return [v03.StreamResponse(status_update=made)]

    def _apply(self, event: StreamResponse, update: _Update) -> None:
        if self._fold is None:
            self._fold = TaskFold(_task_of(update, None))
        self._fold.apply_event(event)

    def _status(self, update: TaskStatusUpdateEvent) -> v03.StreamResponse:
        made = down_status_update(update)
        self.ended = made.final
        return v03.StreamResponse(status_update=made)

    def _first(self, task: Task) -> v03.StreamResponse:
        self._fold = TaskFold(copy_task(task))
        self.ended = task.status.state in FINAL
        return v03.StreamResponse(task=down_task(task))

    def _snapshot(self, task: Task) -> list[v03.StreamResponse]:
        assert self._fold is not None
        known = self._fold.task
        made = [_artifact(update) for update in _missing(known, task)]
        update = TaskStatusUpdateEvent(
            task_id=task.id,
            context_id=task.context_id,
            status=task.status,
            metadata=task.metadata if task.metadata != known.metadata else None,
        )
        self._fold = TaskFold(copy_task(task))
        return [*made, self._status(update)]

    def _message(self, message: Message) -> v03.StreamResponse:
        """A direct answer, which ends the stream. 1.0 has none about a task; one that came would be said in passing."""
        if self._fold is None:
            self.ended = True
            return v03.StreamResponse(msg=down_message(message))
        task = self._fold.task
        status = TaskStatus(state=task.status.state, message=message, timestamp=task.status.timestamp)
        return self._status(TaskStatusUpdateEvent(task_id=task.id, context_id=task.context_id, status=status))


def _artifact(update: TaskArtifactUpdateEvent) -> v03.StreamResponse:
    return v03.StreamResponse(artifact_update=down_artifact_update(update))


def _missing(known: Task, task: Task) -> Iterable[TaskArtifactUpdateEvent]:
    """The updates that bring one who has ``known`` to the artifacts of ``task``."""
    by_id = {artifact.artifact_id: artifact for artifact in known.artifacts}
    for artifact in task.artifacts:
        sent = by_id.get(artifact.artifact_id)
        if sent == artifact:
            continue
        more = _continuation(sent, artifact) if sent is not None else None
        yield TaskArtifactUpdateEvent(
            task_id=task.id,
            context_id=task.context_id,
            artifact=more or artifact,
            append=more is not None,
            last_chunk=True,
        )


def _continuation(sent: Artifact, artifact: Artifact) -> Artifact | None:
    """What is to be appended to ``sent``; None when it has to be replaced."""
    count = len(sent.parts)
    if len(artifact.parts) <= count or artifact.parts[:count] != sent.parts or not _same_about(sent, artifact):
        return None
    return Artifact(artifact_id=artifact.artifact_id, parts=artifact.parts[count:])


def _same_about(one: Artifact, other: Artifact) -> bool:
    return (one.name, one.description, one.metadata, one.extensions) == (
        other.name,
        other.description,
        other.metadata,
        other.extensions,
    )


class Upstream:
    """0.3 events in, 1.0 events out, for one stream.

    When ``ended``, the stream is over for the caller: close the connection, whether the server does or not.
    """

    def __init__(self) -> None:
        self.ended = False
        self._task: Task | None = None
        self._settled = False

    def lacks_task(self, event: v03.StreamResponse) -> bool:
        """Whether the stream begins with this event, which is about a task that the server did not send first.

        Who wants more than ids and a state asks for the task and calls :meth:`open` before :meth:`feed`.
        """
        update = event.status_update or event.artifact_update
        return self._task is None and not self.ended and update is not None

    def open(self, task: Task) -> list[StreamResponse]:
        """Begin the stream with a task that was asked for; returns what the caller gets."""
        self._note(task)
        return [StreamResponse(task=task)]

    def feed(self, event: v03.StreamResponse) -> list[StreamResponse]:
        """What the caller gets for an event: nothing after the end, two when the task had to be made up."""
        if self.ended:
            return []
        if event.status_update is not None:
            return self._status(event.status_update)
        if event.artifact_update is not None:
            update = up_artifact_update(event.artifact_update)
            return [*self._opening(update, None), StreamResponse(artifact_update=update)]
        if event.task is not None:
            return self.open(up_task(event.task))
        if event.msg is None:
            return []
        self.ended = True
        return [StreamResponse(message=up_message(event.msg))]

    def finish(self) -> bool:
        """The connection closed: whether that was a normal end. False: it was cut, subscribe again."""
        return self.ended or self._settled

    def _note(self, task: Task) -> None:
        self._task = task
        self._settled = is_settled(task.status.state)

    def _status(self, event: v03.TaskStatusUpdateEvent) -> list[StreamResponse]:
        update = up_status_update(event)
        opening = self._opening(update, update.status)
        self._settled = is_settled(update.status.state)
        self.ended = event.final
        return [*opening, StreamResponse(status_update=update)]

    def _opening(self, update: _Update, status: TaskStatus | None) -> list[StreamResponse]:
        """The task, when it has to be made up. Ids that the update lacks are filled in."""
        if self._task is None:
            return self.open(_task_of(update, status))
        update.task_id = update.task_id or self._task.id
        update.context_id = update.context_id or self._task.context_id
        return []


def _task_of(update: _Update, status: TaskStatus | None) -> Task:
    """A task of which only an update is known. The message of the status comes with the update."""
    return Task(
        id=update.task_id,
        context_id=update.context_id,
        status=TaskStatus(
            state=status.state if status else TaskState.UNSPECIFIED, timestamp=status.timestamp if status else None
        ),
    )
