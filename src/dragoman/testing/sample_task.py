"""A task that writes its own log, as a runtime would: for tests of stores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.model import (
    Artifact,
    Message,
    Part,
    Role,
    StreamResponse,
    Task,
    TaskArtifactUpdateEvent,
    TaskState,
    TaskStatus,
    TaskStatusUpdateEvent,
    Timestamp,
    encode_json,
)
from dragoman.ports.store import Append, NewTask, Record, Scope
from dragoman.protocol.lifecycle import TaskFold, copy_task, is_terminal

START_MS = 1_700_000_000_000


class SampleTask:
    """Stages events and hands them over as appends; knows what the task must look like after them.

    The first event is staged by the constructor. ``at`` is the time of the status in milliseconds since the epoch and
    stays until :meth:`move` sets it. ``fence`` and ``worker`` may be set between appends.
    """

    def __init__(
        self,
        task_id: str = "task-1",
        *,
        context_id: str = "context-1",
        scope: Scope | None = None,
        at: int = START_MS,
        state: TaskState = TaskState.WORKING,
        worker: str | None = "worker-1",
        fence: int = 1,
        metadata: Mapping[str, Any] | None = None,
        request: bytes = b"",
    ) -> None:
        self.id = task_id
        self.request = request
        self.context_id = context_id
        self.scope = scope or Scope()
        self.worker = worker
        self.fence = fence
        self.number = 0
        self.records: list[Record] = []
        self._staged: list[Record] = []
        self._fold: TaskFold | None = None
        status = TaskStatus(state=state, timestamp=Timestamp.from_ms(at))
        history = [self.message("Do something", f"{task_id}-question")]
        notes = None if metadata is None else dict(metadata)
        task = Task(id=task_id, context_id=context_id, status=status, history=history, metadata=notes)
        self._stage(StreamResponse(task=task))

    @property
    def task(self) -> Task:
        """What the task must be once everything staged is stored."""
        assert self._fold is not None
        return copy_task(self._fold.task)

    def message(self, text: str, message_id: str, role: Role = Role.USER) -> Message:
        """A message of this task."""
        return Message(
            message_id=message_id,
            context_id=self.context_id,
            task_id=self.id,
            role=role,
            parts=[Part(text=text)],
        )

    def chunk(self, text: str, artifact_id: str = "artifact-1", *, append: bool = True) -> SampleTask:
        """Stage a piece of an artifact."""
        artifact = Artifact(artifact_id=artifact_id, parts=[Part(text=text)])
        update = TaskArtifactUpdateEvent(task_id=self.id, context_id=self.context_id, artifact=artifact, append=append)
        return self._stage(StreamResponse(artifact_update=update))

    def move(
        self,
        state: TaskState,
        at: int | None = None,
        *,
        said: str = "",
        heard: str = "",
        metadata: Mapping[str, Any] | None = None,
    ) -> SampleTask:
        """Stage a status: what the agent ``said`` with it, and what the user said that led to it."""
        number = self.number + 1
        reply = self.message(said, f"{self.id}-said-{number}", Role.AGENT) if said else None
        timestamp = self.task.status.timestamp if at is None else Timestamp.from_ms(at)
        status = TaskStatus(state=state, message=reply, timestamp=timestamp)
        update = TaskStatusUpdateEvent(
            task_id=self.id,
            context_id=self.context_id,
            status=status,
            metadata=None if metadata is None else dict(metadata),
        )
        message = self.message(heard, f"{self.id}-heard-{number}") if heard else None
        return self._stage(StreamResponse(status_update=update), message)

    def _stage(self, event: StreamResponse, message: Message | None = None) -> SampleTask:
        self.number += 1
        record = Record(self.number, event, message=message)
        if self._fold is None:
            assert event.task is not None
            self._fold = TaskFold(event.task)
        self._fold.apply(record)
        self.records.append(record)
        self._staged.append(record)
        return self

    def take(self, *, snapshot: bool = False) -> Append:
        """All that is staged, as one append. A task that is over gives up its lease."""
        records, self._staged = self._staged, []
        status = self.task.status
        assert isinstance(status.state, TaskState)
        assert status.timestamp is not None
        if is_terminal(status.state):
            self.worker = None
        is_new = bool(records) and records[0].number == 1
        return Append(
            task_id=self.id,
            fence=self.fence,
            records=records,
            state=status.state,
            timestamp_ms=status.timestamp.ms,
            status=status,
            worker=self.worker,
            new=self._facts() if is_new else None,
            snapshot=encode_json(self.task) if snapshot else None,
        )

    def _facts(self) -> NewTask:
        return NewTask(context_id=self.context_id, scope=self.scope, request=self.request)
