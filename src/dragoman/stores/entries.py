"""A task in memory: its log, and the fold of it."""

from __future__ import annotations

from copy import copy

from dragoman.model import StreamResponse, Task
from dragoman.ports.store import Append, NewTask, Record, StoredTask, TaskQuery
from dragoman.protocol.lifecycle import TaskFold, copy_task
from dragoman.stores.shelves import Shelved, Shelves


class Entry(Shelved):
    """A task: its log, who holds it, and the fold of the log as far as somebody asked for it."""

    __slots__ = ("_folded", "_task", "facts", "fence", "id", "log", "memos", "shelves", "worker")

    def __init__(self, append: Append, facts: NewTask, shelves: Shelves) -> None:
        super().__init__(facts.context_id, (append.timestamp_ms, append.task_id), append.state)
        self.id = append.task_id
        self.facts = facts
        self.shelves = shelves
        self.fence = append.fence
        self.worker: str | None = None
        self.memos: dict[str, bytes] | None = None
        first = append.records[0]
        self.log: list[Record] = [_own_first(first), *append.records[1:]]
        self._task: Task | None = None
        self._folded = 0

    def task(self) -> Task:
        """The fold of the whole log; not to be handed out without a copy."""
        if self._folded == len(self.log):
            assert self._task is not None
            return self._task
        task = self._task or self.log[0].event.task
        assert task is not None
        fold = TaskFold(task)
        for record in self.log[self._folded :]:
            fold.apply(record)
        self._task = fold.task
        self._folded = len(self.log)
        return fold.task

    def stored(self) -> StoredTask:
        """What the store gives out: a copy."""
        return StoredTask(
            task=_handed_out(self.task()),
            number=len(self.log),
            scope=self.facts.scope,
            fence=self.fence,
            worker=self.worker,
            agent=self.facts.agent,
            wire_version=self.facts.wire_version,
        )


def _own_first(record: Record) -> Record:
    """Record 1 with a task of its own: the giver's may go on living."""
    task = record.event.task
    assert task is not None
    event = StreamResponse(task=_handed_out(task))
    return Record(1, event, message=record.message, event_json=record.encoded)


def _handed_out(task: Task) -> Task:
    own = copy_task(task)
    own.status = copy(task.status)
    own.metadata = None if task.metadata is None else dict(task.metadata)
    return own


def listed(task: Task, query: TaskQuery) -> Task:
    """A copy of a task with what the query asks for."""
    if query.with_artifacts:
        own = _handed_out(task)
        if not query.with_history:
            own.history = []
        return own
    return Task(
        id=task.id,
        context_id=task.context_id,
        status=copy(task.status),
        history=list(task.history) if query.with_history else [],
        metadata=None if task.metadata is None else dict(task.metadata),
    )
