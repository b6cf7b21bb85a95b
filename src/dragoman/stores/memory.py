"""A store in this process's memory: fast, complete, and gone when the process ends."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from copy import copy
from heapq import heappop, heappush

from dragoman.errors import StaleLeaseError, StoreError
from dragoman.model import StreamResponse, Task
from dragoman.ports.store import Append, NewTask, Record, Scope, StoredTask, TaskPage, TaskQuery
from dragoman.protocol.lifecycle import TERMINAL, TaskFold, copy_task
from dragoman.stores.refusing import find_conflict, find_fault, unknown_task
from dragoman.stores.shelves import Key, Shelved, Shelves, find_page


class _Entry(Shelved):
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


def _listed(task: Task, query: TaskQuery) -> Task:
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


class MemoryStore:
    """A :class:`~dragoman.ports.store.TaskStore` in memory.

    Its methods never suspend, so each runs as one step of the event loop. One event loop only. The records it
    returns are the ones it was given: events and messages in them are read only for both sides.
    """

    durable = False

    def __init__(self) -> None:
        self._entries: dict[str, _Entry] = {}
        self._shelves: dict[Scope, Shelves] = {}
        self._held: dict[str, _Entry] = {}
        self._finished: list[Key] = []
        self._workers: dict[str, int] = {}
        self._secrets: dict[str, bytes] = {}

    async def open(self) -> None:
        """Nothing to do."""

    async def close(self) -> None:
        """Nothing to do; what is stored stays as long as the object does."""

    # Writing.

    async def append(self, batch: Sequence[Append]) -> Sequence[StoreError | None]:
        """Write a group; one outcome for each append, in order."""
        outcomes: list[StoreError | None] = []
        refused: set[str] = set()
        for append in batch:
            outcome = self._append(append) if append.task_id not in refused else unknown_task(append.task_id)
            if outcome is not None:
                refused.add(append.task_id)
            outcomes.append(outcome)
        return outcomes

    def _append(self, append: Append) -> StoreError | None:
        fault = find_fault(append)
        if fault is not None:
            return fault
        entry = self._entries.get(append.task_id)
        if entry is not None:
            return self._extend(entry, append)
        if append.new is None:
            return unknown_task(append.task_id)
        self._create(append, append.new)
        return None

    def _create(self, append: Append, facts: NewTask) -> None:
        shelves = self._shelves.get(facts.scope)
        if shelves is None:
            shelves = self._shelves[facts.scope] = Shelves()
        entry = self._entries[append.task_id] = _Entry(append, facts, shelves)
        self._hold(entry, append.worker)
        shelves.add(entry)
        self._note_end(entry)

    def _extend(self, entry: _Entry, append: Append) -> StoreError | None:
        conflict = find_conflict(append, entry.fence, len(entry.log))
        if conflict is not None:
            return conflict
        entry.log += append.records
        if append.worker != entry.worker:
            self._hold(entry, append.worker)
        if append.timestamp_ms != entry.key[0] or append.state is not entry.state:
            entry.key = (append.timestamp_ms, entry.id)
            entry.state = append.state
            entry.shelves.note(entry)
            self._note_end(entry)
        return None

    def _hold(self, entry: _Entry, worker: str | None) -> None:
        entry.worker = worker
        if worker is None:
            self._held.pop(entry.id, None)
        else:
            self._held[entry.id] = entry

    def _note_end(self, entry: _Entry) -> None:
        if entry.state in TERMINAL:
            heappush(self._finished, entry.key)

    # Reading.

    async def task(self, task_id: str, scope: Scope | None) -> StoredTask | None:
        """A copy of the task, or None."""
        entry = self._entries.get(task_id)
        if entry is None or (scope is not None and entry.facts.scope != scope):
            return None
        return self._stored(entry)

    def _stored(self, entry: _Entry) -> StoredTask:
        return StoredTask(
            task=_handed_out(entry.task()),
            number=len(entry.log),
            scope=entry.facts.scope,
            fence=entry.fence,
            worker=entry.worker,
            agent=entry.facts.agent,
            wire_version=entry.facts.wire_version,
        )

    async def records(self, task_id: str, after: int, limit: int) -> list[Record]:
        """Records after a number, shared with the log."""
        entry = self._entries.get(task_id)
        return [] if entry is None else entry.log[after : after + limit]

    async def page(self, query: TaskQuery) -> TaskPage:
        """One page, by two binary searches."""
        shelves = self._shelves.get(query.scope)
        shelf = [] if shelves is None else self._shelf(shelves, query)
        keys, total, more = find_page(shelf, query.page_size, query.since_ms, query.after)
        tasks = [_listed(self._entries[key[1]].task(), query) for key in keys]
        return TaskPage(tasks=tasks, total=total, next=keys[-1] if more else None)

    def _shelf(self, shelves: Shelves, query: TaskQuery) -> list[Key]:
        if not query.context_id:
            return shelves.shelf(query.state or "")
        shelf = shelves.shelf(query.context_id)
        if query.state is None:
            return shelf
        return [key for key in shelf if self._entries[key[1]].state is query.state]

    # Memos and secrets.

    async def memo(self, task_id: str, key: str) -> bytes | None:
        """What was remembered, or None."""
        entry = self._entries.get(task_id)
        return None if entry is None or entry.memos is None else entry.memos.get(key)

    async def remember(self, task_id: str, fence: int, key: str, value: bytes) -> bytes:
        """Keep a value once."""
        entry = self._entries.get(task_id)
        if entry is None:
            raise unknown_task(task_id)
        if entry.fence != fence:
            raise StaleLeaseError(f"Task {task_id} has fence {entry.fence}, the memo came with {fence}")
        if entry.memos is None:
            entry.memos = {}
        return entry.memos.setdefault(key, value)

    async def secret(self, name: str) -> bytes:
        """32 random bytes for the life of this store."""
        return self._secrets.setdefault(name, secrets.token_bytes(32))

    # Leases.

    async def heartbeat(self, worker: str, until_ms: int) -> None:
        """This worker is alive before that moment."""
        self._workers[worker] = until_ms

    async def retire(self, worker: str) -> None:
        """This worker is gone."""
        self._workers.pop(worker, None)

    def _is_alive(self, worker: str, now_ms: int) -> bool:
        return self._workers.get(worker, now_ms) > now_ms

    async def orphans(self, now_ms: int, limit: int) -> list[str]:
        """Ids of tasks that a dead worker holds, oldest status first."""
        found = (e for e in self._held.values() if e.worker is not None and not self._is_alive(e.worker, now_ms))
        return [entry.id for entry in sorted(found, key=lambda entry: entry.key)[:limit]]

    async def claim(self, task_id: str, worker: str, now_ms: int) -> StoredTask | None:
        """Take the lease of a task that nobody alive holds."""
        entry = self._entries.get(task_id)
        if entry is None or (entry.worker is not None and self._is_alive(entry.worker, now_ms)):
            return None
        entry.fence += 1
        self._hold(entry, worker)
        return self._stored(entry)

    # Retention.

    async def purge(self, before_ms: int, limit: int) -> int:
        """Remove up to ``limit`` terminal tasks with a status older than ``before_ms``."""
        removed = 0
        while removed < limit and self._finished and self._finished[0][0] < before_ms:
            key = heappop(self._finished)
            entry = self._entries.get(key[1])
            if entry is not None and entry.key == key and entry.state in TERMINAL:
                self._remove(entry)
                removed += 1
        return removed

    def _remove(self, entry: _Entry) -> None:
        del self._entries[entry.id]
        self._held.pop(entry.id, None)
        entry.shelves.remove(entry)
        if not entry.shelves.size:
            del self._shelves[entry.facts.scope]
