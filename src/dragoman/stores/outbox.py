"""Webhooks and dead letters in memory, for :class:`~dragoman.stores.memory.MemoryStore`.

Theory. What is due lies in a heap by time. An entry of the heap whose time is not the webhook's any more is stale, and
is dropped when it comes up.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Callable
from heapq import heappop, heappush

from dragoman.ports.push import DeadLetter, DueWebhook, Settlement, Webhook


class _Kept:
    """A webhook and how far it was told."""

    __slots__ = ("claim", "due_ms", "failures", "key", "position", "snapshot", "state", "webhook")

    def __init__(self, webhook: Webhook, key: int, position: int) -> None:
        self.webhook = webhook
        self.key = key
        self.position = position
        self.snapshot = False
        self.state = 0
        self.failures = 0
        self.claim = 0
        self.due_ms: int | None = None


class Outbox:
    """The webhooks of a store's tasks. ``last`` gives the number of a task's last record, None when it is gone."""

    def __init__(self, last: Callable[[str], int | None]) -> None:
        self._last = last
        self._tasks: dict[str, dict[str, _Kept]] = {}
        self._heap: list[tuple[int, str, str]] = []
        self._letters: list[tuple[str, DeadLetter]] = []
        self.notice: Callable[[], None] | None = None

    def _set_due(self, task_id: str, kept: _Kept, due_ms: int) -> None:
        kept.due_ms = due_ms
        heappush(self._heap, (due_ms, task_id, kept.webhook.id))

    def _tell(self) -> None:
        if self.notice is not None:
            self.notice()

    # The task's side.

    def begin(self, task_id: str, webhook: Webhook, due_ms: int) -> None:
        """A new task came with a webhook."""
        kept = _Kept(webhook, 1, 0)
        self._tasks[task_id] = {webhook.id: kept}
        self._set_due(task_id, kept, due_ms)
        self._tell()

    def wake(self, task_id: str, due_ms: int) -> None:
        """Records were added to a task."""
        hooks = self._tasks.get(task_id)
        if hooks is None:
            return
        for kept in hooks.values():
            if kept.due_ms is None:
                self._set_due(task_id, kept, due_ms)
        self._tell()

    def forget(self, task_id: str) -> None:
        """The task is removed."""
        self._tasks.pop(task_id, None)

    # The configuration's side.

    def keep(self, task_id: str, webhook: Webhook, *, most: int, position: int, snapshot: bool, now_ms: int) -> bool:
        """Add or renew a webhook; False when there are too many."""
        hooks = self._tasks.setdefault(task_id, {})
        kept = hooks.get(webhook.id)
        if kept is not None:
            kept.webhook, kept.failures = webhook, 0
            kept.claim += 1
        elif len(hooks) >= most:
            return False
        else:
            key = max((other.key for other in hooks.values()), default=0) + 1
            kept = hooks[webhook.id] = _Kept(webhook, key, position)
        kept.snapshot = kept.snapshot or snapshot
        if snapshot or kept.due_ms is not None:
            self._set_due(task_id, kept, now_ms)
            self._tell()
        return True

    def find(self, task_id: str, webhook_id: str) -> Webhook | None:
        """The webhook, or None."""
        kept = self._tasks.get(task_id, {}).get(webhook_id)
        return None if kept is None else kept.webhook

    def page(self, task_id: str, after: int, limit: int) -> list[tuple[int, Webhook]]:
        """Webhooks with keys above ``after``."""
        found = sorted(self._tasks.get(task_id, {}).values(), key=lambda kept: kept.key)
        return [(kept.key, kept.webhook) for kept in found if kept.key > after][:limit]

    def remove(self, task_id: str, webhook_id: str) -> None:
        """Remove a webhook, if it is there."""
        hooks = self._tasks.get(task_id)
        if hooks is None:
            return
        hooks.pop(webhook_id, None)
        if not hooks:
            del self._tasks[task_id]

    # Deliveries.

    def _top(self) -> tuple[int, str, _Kept] | None:
        """The webhook that is due first."""
        while self._heap:
            due_ms, task_id, webhook_id = self._heap[0]
            kept = self._tasks.get(task_id, {}).get(webhook_id)
            if kept is not None and kept.due_ms == due_ms:
                return due_ms, task_id, kept
            heappop(self._heap)
        return None

    def next_due(self) -> int | None:
        """When the first one is due."""
        top = self._top()
        return None if top is None else top[0]

    def claim(self, now_ms: int, until_ms: int, limit: int) -> list[DueWebhook]:
        """Claim what is due."""
        found: list[tuple[str, _Kept]] = []
        while len(found) < limit and (top := self._top()) is not None and top[0] <= now_ms:
            heappop(self._heap)
            _, task_id, kept = top
            kept.due_ms = None  # so that it is not found again
            found.append((task_id, kept))
        return [self._claimed(task_id, kept, until_ms) for task_id, kept in found]

    def _claimed(self, task_id: str, kept: _Kept, until_ms: int) -> DueWebhook:
        kept.claim += 1
        self._set_due(task_id, kept, until_ms)
        return DueWebhook(
            task_id=task_id,
            webhook=kept.webhook,
            position=kept.position,
            last=self._last(task_id) or 0,
            snapshot=kept.snapshot,
            state=kept.state,
            failures=kept.failures,
            claim=kept.claim,
        )

    def settle(self, given: Settlement, now_ms: int) -> bool:
        """Write down how far a webhook was told."""
        kept = self._tasks.get(given.task_id, {}).get(given.webhook_id)
        if kept is None or kept.claim != given.claim:
            return False
        for letter in given.letters:
            insort(self._letters, (letter.id, letter), key=lambda item: item[0])
        if given.gone:
            self.remove(given.task_id, given.webhook_id)
            return True
        kept.position, kept.state, kept.failures = given.position, given.state, given.failures
        kept.snapshot = given.snapshot
        if given.due_ms is not None:
            self._set_due(given.task_id, kept, given.due_ms)
        elif (self._last(given.task_id) or 0) > given.position:
            self._set_due(given.task_id, kept, now_ms)
        else:
            kept.due_ms = None
        return True

    # Dead letters.

    def letters(self, after: str, limit: int) -> list[DeadLetter]:
        """Dead letters in order of their ids."""
        start = bisect_right(self._letters, after, key=lambda item: item[0])
        return [letter for _, letter in self._letters[start : start + limit]]

    def forget_letters(self, before_ms: int, limit: int) -> int:
        """Remove old ones."""
        old = {letter.id for _, letter in self._letters if letter.failed_ms < before_ms}
        gone = set(sorted(old)[:limit])
        self._letters = [item for item in self._letters if item[0] not in gone]
        return len(gone)
