"""A store in this process's memory: fast, complete, and gone when the process ends."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from heapq import heappop, heappush

from dragoman.errors import StaleLeaseError, StoreError
from dragoman.ports.push import DeadLetter, DueWebhook, Kept, Settlement, Webhook
from dragoman.ports.store import Append, NewTask, Record, Scope, StoredTask, TaskPage, TaskQuery
from dragoman.protocol.lifecycle import TERMINAL
from dragoman.stores.entries import Entry, listed
from dragoman.stores.outbox import Outbox
from dragoman.stores.refusing import find_conflict, find_fault, unknown_task
from dragoman.stores.shelves import Key, Shelves, find_page, merge_pages


class MemoryStore:
    """A :class:`~dragoman.ports.store.TaskStore` in memory.

    Its methods never suspend, so each runs as one step of the event loop. One event loop only. The records it
    returns are the ones it was given: events and messages in them are read only for both sides.
    """

    durable = False

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}
        self._shelves: dict[Scope, Shelves] = {}
        self._held: dict[str, Entry] = {}
        self._finished: dict[str, list[Key]] = {}
        self._workers: dict[str, int] = {}
        self._secrets: dict[str, bytes] = {}
        self._outboxes: dict[str, Outbox] = {}

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
        entry = self._entries[append.task_id] = Entry(append, facts, shelves)
        self._hold(entry, append.worker)
        shelves.add(entry)
        self._note_end(entry)
        if facts.webhook is not None:
            self._outbox(facts.scope.agent).begin(entry.id, facts.webhook, append.timestamp_ms)

    def _extend(self, entry: Entry, append: Append) -> StoreError | None:
        conflict = find_conflict(append, entry.fence, entry.number)
        if conflict is not None:
            return conflict
        entry.add(append.records)
        if append.worker != entry.worker:
            self._hold(entry, append.worker)
        if append.timestamp_ms != entry.key[0] or append.state is not entry.state:
            entry.key = (append.timestamp_ms, entry.id)
            entry.state = append.state
            entry.shelves.note(entry)
            self._note_end(entry)
            if append.state in TERMINAL:
                entry.finish()
        outbox = self._outboxes.get(entry.facts.scope.agent)
        if outbox is not None and append.records:
            outbox.wake(entry.id, append.timestamp_ms)
        return None

    def _hold(self, entry: Entry, worker: str | None) -> None:
        entry.worker = worker
        if worker is None:
            self._held.pop(entry.id, None)
        else:
            self._held[entry.id] = entry

    def _note_end(self, entry: Entry) -> None:
        if entry.state in TERMINAL:
            heappush(self._finished.setdefault(entry.facts.scope.agent, []), entry.key)

    # Reading.

    async def task(self, task_id: str, scope: Scope | None) -> StoredTask | None:
        """A copy of the task, or None."""
        entry = self._entries.get(task_id)
        if entry is None or (scope is not None and not scope.covers(entry.facts.scope)):
            return None
        return entry.stored()

    async def records(self, task_id: str, after: int, limit: int) -> list[Record]:
        """Records after a number, shared with the log."""
        entry = self._entries.get(task_id)
        return [] if entry is None else entry.records(after, limit)

    async def page(self, query: TaskQuery) -> TaskPage:
        """One page, by two binary searches."""
        found = [
            find_page(self._shelf(shelves, query), query.page_size, query.since_ms, query.after)
            for shelves in self._reached(query.scope)
        ]
        keys, total, more = found[0] if len(found) == 1 else merge_pages(found, query.page_size)
        tasks = [listed(self._entries[key[1]].task(), query) for key in keys]
        return TaskPage(tasks=tasks, total=total, next=keys[-1] if more else None)

    def _reached(self, scope: Scope) -> list[Shelves]:
        if not scope.is_wide:
            shelves = self._shelves.get(scope)
            return [] if shelves is None else [shelves]
        if scope.everybody:
            return [shelves for owned, shelves in self._shelves.items() if scope.covers(owned)]
        owners = {scope.owner, *scope.others}
        owned = (self._shelves.get(Scope(scope.tenant, owner, scope.agent)) for owner in owners)
        return [shelves for shelves in owned if shelves is not None]

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

    async def orphans(self, now_ms: int, limit: int, agent: str = "") -> list[str]:
        """Ids of the agent's tasks that a dead worker holds, oldest status first."""
        held = (entry for entry in self._held.values() if entry.facts.scope.agent == agent)
        found = (e for e in held if e.worker is not None and not self._is_alive(e.worker, now_ms))
        return [entry.id for entry in sorted(found, key=lambda entry: entry.key)[:limit]]

    async def claim(self, task_id: str, worker: str, now_ms: int) -> StoredTask | None:
        """Take the lease of a task that nobody alive holds."""
        entry = self._entries.get(task_id)
        if entry is None or (entry.worker not in (None, worker) and self._is_alive(entry.worker, now_ms)):
            return None
        entry.fence += 1
        self._hold(entry, worker)
        return entry.stored()

    # Retention.

    async def purge(self, before_ms: int, limit: int, agent: str = "") -> int:
        """Remove up to ``limit`` terminal tasks of the agent with a status older than ``before_ms``."""
        removed = 0
        finished = self._finished.get(agent, [])
        while removed < limit and finished and finished[0][0] < before_ms:
            key = heappop(finished)
            entry = self._entries.get(key[1])
            if entry is not None and entry.key == key and entry.state in TERMINAL:
                self._remove(entry)
                removed += 1
        return removed

    def _remove(self, entry: Entry) -> None:
        del self._entries[entry.id]
        self._outbox(entry.facts.scope.agent).forget(entry.id)
        self._held.pop(entry.id, None)
        entry.shelves.remove(entry)
        if not entry.shelves.size:
            del self._shelves[entry.facts.scope]

    # Webhooks: the contract is that of WebhookStore.

    def _outbox(self, agent: str) -> Outbox:
        outbox = self._outboxes.get(agent)
        if outbox is None:
            outbox = self._outboxes[agent] = Outbox(self._last)
        return outbox

    def _outbox_of(self, task_id: str) -> Outbox:
        entry = self._entries.get(task_id)
        return _NO_OUTBOX if entry is None else self._outbox(entry.facts.scope.agent)

    def _last(self, task_id: str) -> int | None:
        entry = self._entries.get(task_id)
        return None if entry is None else entry.number

    def watch_webhooks(self, call: Callable[[], None], agent: str = "") -> None:
        """Call this whenever something of the agent's is due by a write."""
        self._outbox(agent).notice = call

    async def keep_webhook(
        self, task_id: str, webhook: Webhook, *, most: int, now_ms: int, snapshot_in: Sequence[int] = ()
    ) -> Kept:
        """Add a webhook to a task, or renew it."""
        entry = self._entries.get(task_id)
        if entry is None:
            return "unknown"
        snapshot = entry.state.number in snapshot_in
        outbox = self._outbox(entry.facts.scope.agent)
        kept = outbox.keep(task_id, webhook, most=most, position=entry.number, snapshot=snapshot, now_ms=now_ms)
        return "kept" if kept else "full"

    async def webhook(self, task_id: str, webhook_id: str) -> Webhook | None:
        """The webhook, or None."""
        return self._outbox_of(task_id).find(task_id, webhook_id)

    async def webhooks(self, task_id: str, after: int, limit: int) -> list[tuple[int, Webhook]]:
        """Webhooks of the task with keys above ``after``."""
        return self._outbox_of(task_id).page(task_id, after, limit)

    async def remove_webhook(self, task_id: str, webhook_id: str) -> None:
        """Remove it, if it is there."""
        self._outbox_of(task_id).remove(task_id, webhook_id)

    async def claim_webhooks(self, now_ms: int, until_ms: int, limit: int, agent: str = "") -> list[DueWebhook]:
        """Claim webhooks of the agent's tasks that are due."""
        return self._outbox(agent).claim(now_ms, until_ms, limit)

    async def next_due(self, agent: str = "") -> int | None:
        """When the agent's next webhook is due."""
        return self._outbox(agent).next_due()

    async def settle_webhooks(self, settlements: Sequence[Settlement], now_ms: int) -> Sequence[bool]:
        """Write down how far webhooks were told."""
        return [self._outbox_of(settlement.task_id).settle(settlement, now_ms) for settlement in settlements]

    async def dead_letters(self, after: str, limit: int, agent: str = "") -> list[DeadLetter]:
        """Dead letters of the agent in order of their ids."""
        return self._outbox(agent).letters(after, limit)

    async def remove_dead_letters(self, before_ms: int, limit: int, agent: str = "") -> int:
        """Remove those of the agent that failed before."""
        return self._outbox(agent).forget_letters(before_ms, limit)


_NO_OUTBOX = Outbox(lambda task_id: None)
"""That of tasks that are not there: nothing is ever put into it."""
