"""A task in memory: its log, and the fold of it.

Theory. The log of a task at work is a list of records as they came. When the task is over its log is packed into few
byte strings, in the form that the SQL stores use: it takes a fraction of the room, and the garbage collector has
nothing to walk through however many finished tasks there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy

from dragoman.errors import StoreError
from dragoman.model import EncodingError, StreamResponse, Task
from dragoman.ports.store import Append, NewTask, Record, StoredTask, TaskQuery
from dragoman.protocol.lifecycle import TERMINAL, TaskFold, copy_task
from dragoman.stores.segments import decode_segment, encode_segment, fold_task
from dragoman.stores.shelves import Shelved, Shelves

BLOCK = 256
"""Records in one packed byte string."""


class Entry(Shelved):
    """A task: its log, who holds it, and the fold of the log as far as somebody asked for it."""

    __slots__ = ("_folded", "_log", "_packed", "_task", "facts", "fence", "id", "memos", "number", "shelves", "worker")

    def __init__(self, append: Append, facts: NewTask, shelves: Shelves) -> None:
        super().__init__(facts.context_id, (append.timestamp_ms, append.task_id), append.state)
        self.id = append.task_id
        self.facts = facts
        self.shelves = shelves
        self.fence = append.fence
        self.worker: str | None = None
        self.memos: dict[str, bytes] | None = None
        self.number = len(append.records)
        self._log: list[Record] = list(append.records)
        self._packed: tuple[bytes, ...] = ()
        self._task: Task | None = None
        self._folded = 0
        if append.state in TERMINAL:
            self.finish()
        if not self._packed:
            self._log[0] = _own_first(self._log[0])

    def add(self, records: Sequence[Record]) -> None:
        """Append records to the log."""
        if self._packed:
            self._log, self._packed = self.records(0, self.number), ()
        self._log += records
        self.number += len(records)

    def finish(self) -> None:
        """The task is over: pack its log. What cannot be written as JSON stays as it is."""
        try:
            starts = range(0, len(self._log), BLOCK)
            self._packed = tuple([encode_segment(self._log[start : start + BLOCK]) for start in starts])
        except EncodingError:
            return
        self._log = []
        self._task = None
        self._folded = 0

    def records(self, after: int, limit: int) -> list[Record]:
        """Records with numbers above ``after``."""
        if not self._packed:
            return self._log[after : after + limit]
        found: list[Record] = []
        block = after // BLOCK
        while len(found) < limit and block < len(self._packed):
            records = decode_segment(self._packed[block], block * BLOCK + 1)
            found += [record for record in records if record.number > after]
            block += 1
        return found[:limit]

    def task(self) -> Task:
        """The fold of the whole log; not to be handed out without a copy."""
        if self._packed:
            return self._unpacked()
        if self._folded == self.number:
            assert self._task is not None
            return self._task
        task = self._task or self._log[0].event.task
        assert task is not None
        fold = TaskFold(task)
        for record in self._log[self._folded :]:
            fold.apply(record)
        self._task = fold.task
        self._folded = self.number
        return fold.task

    def _unpacked(self) -> Task:
        task = fold_task(None, self.records(0, self.number))
        if task is None:
            raise StoreError(f"The log of task {self.id} is missing")
        return task

    def stored(self) -> StoredTask:
        """What the store gives out: a copy."""
        return StoredTask(
            task=self._unpacked() if self._packed else _handed_out(self.task()),
            number=self.number,
            scope=self.facts.scope,
            fence=self.fence,
            worker=self.worker,
            wire_version=self.facts.wire_version,
            request=self.facts.request,
        )


def _own_first(record: Record) -> Record:
    """Record 1 with a task of its own: the giver's may go on living."""
    task = record.event.task
    assert task is not None
    return Record(1, StreamResponse(task=_handed_out(task)), record.message, record.encoded)


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
