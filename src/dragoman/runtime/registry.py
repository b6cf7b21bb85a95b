"""Registry: the live tasks of this process, and how a stored one becomes live.

A task is live once at most. Whoever needs one that is not live loads it; two who need it at the same moment share the
load. The scope is checked here, for live and stored tasks alike, so that somebody else's task is a task that does not
exist (Spec: ERR-06, ERR-09, ERR-10, CANCEL-05, AUTH-10).
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter

from dragoman.errors import StaleLeaseError, StoreError, TaskNotFoundError, UnavailableError
from dragoman.model import Timestamp
from dragoman.ports.clock import Clock
from dragoman.ports.store import Scope, StoredTask, TaskStore
from dragoman.runtime.committer import Committer
from dragoman.runtime.live import LiveTask

logger = logging.getLogger("dragoman.runtime")


def not_found(task_id: str) -> TaskNotFoundError:
    """The one answer for tasks that do not exist and tasks of others."""
    return TaskNotFoundError("Task not found", metadata={"taskId": task_id[:256]})


class Registry:
    """Live tasks by id; the :class:`~dragoman.runtime.live.Host` of each."""

    def __init__(self, store: TaskStore, committer: Committer, clock: Clock, worker: str) -> None:
        self.worker = worker
        self.doubtful: set[str] = set()
        self._store = store
        self._committer = committer
        self._clock = clock
        self._now_ms = 0
        self._now = Timestamp.from_ms(0)
        self._live: dict[str, LiveTask] = {}
        self._loading: Counter[str] = Counter()
        self._left: Counter[str] = Counter()
        self._claiming = asyncio.Lock()

    # Host.

    def submit(self, live: LiveTask) -> None:
        """Queue a task for the next write."""
        self._committer.submit(live)

    def now(self) -> Timestamp:
        """The moment; the same object within one millisecond."""
        ms = self._clock.now_ms()
        if ms != self._now_ms:
            self._now_ms, self._now = ms, Timestamp.from_ms(ms)
        return self._now

    def new_id(self) -> str:
        """A fresh id."""
        return self._clock.new_id()

    def forget(self, live: LiveTask) -> None:
        """Drop a live task that nothing needs; the store has it."""
        if self._live.get(live.task_id) is live:
            del self._live[live.task_id]
            if live.fence and live.task_id in self._loading:  # without a lease it wrote nothing
                self._left[live.task_id] += 1

    def lost(self, live: LiveTask, error: StoreError) -> None:
        """A write failed: stop the handler, and let the janitor see what the store knows of the task."""
        if isinstance(error, StaleLeaseError):
            logger.warning("Task %s was taken over by another worker", live.task_id)
        else:
            logger.error("Task %s could not be stored", live.task_id, exc_info=error)
            self.doubtful.add(live.task_id)
        self.forget(live)
        if live.run is not None and live.run.task is not None:
            live.run.task.cancel()

    # Finding.

    def __len__(self) -> int:
        return len(self._live)

    def all(self) -> list[LiveTask]:
        """Every live task."""
        return list(self._live.values())

    def add(self, live: LiveTask) -> None:
        """A new task."""
        self._live[live.task_id] = live

    def find(self, task_id: str, scope: Scope) -> LiveTask | None:
        """The task if it is live and stored; raises TaskNotFoundError for one that is live and out of scope."""
        live = self._live.get(task_id)
        if live is None:
            return None
        if not scope.covers(live.scope):
            raise not_found(task_id)
        return live if live.is_stored else None

    async def hold(self, task_id: str, scope: Scope) -> LiveTask:
        """The task, live and held (call ``unhold`` when done). Raises TaskNotFoundError."""
        live = self._live.get(task_id) or await self._load(task_id, scope)
        if live is None or not scope.covers(live.scope):
            raise not_found(task_id)
        live.hold()
        return live

    async def _load(self, task_id: str, scope: Scope) -> LiveTask | None:
        """Read the task and make it live. Nothing is awaited between the last look at ``_live`` and the return.

        Within the scope, so that a task of somebody else costs no more time than one that does not exist. A task that
        was live and left memory while it was read may be newer than what was read: then it is read again.
        """
        self._loading[task_id] += 1
        try:
            while True:
                left = self._left[task_id]
                stored = await self._store.task(task_id, scope)
                live = self._live.get(task_id)
                if live is not None or stored is None:
                    return live
                if left == self._left[task_id]:
                    return self._enliven(stored)
        finally:
            self._loading[task_id] -= 1
            if not self._loading[task_id]:
                del self._loading[task_id]
                self._left.pop(task_id, None)

    def _enliven(self, stored: StoredTask) -> LiveTask:
        live = self._live[stored.task.id] = LiveTask.load(self, stored)
        return live

    async def lease(self, live: LiveTask) -> None:
        """Make this process the writer of a held task. Raises UnavailableError when another living worker is."""
        if live.fence:
            return
        async with self._claiming:
            if live.fence:
                return
            claimed = await self._claim(live.task_id)
            if claimed is None:
                raise UnavailableError("The task is handled elsewhere now; try again", retry_after=1)
            live.take_lease(claimed)

    async def adopt(self, task_id: str) -> LiveTask | None:
        """Claim a task that nobody works on, and hold it; None when that is not so any more."""
        async with self._claiming:
            live = self._live.get(task_id)
            if live is not None and live.fence:
                return None
            claimed = await self._claim(task_id)
            if claimed is None:
                return None
            live = self._live.get(task_id) or self._enliven(claimed)
            live.take_lease(claimed)
            live.hold()
            return live

    async def _claim(self, task_id: str) -> StoredTask | None:
        try:
            return await self._store.claim(task_id, self.worker, self._clock.now_ms())
        except (asyncio.CancelledError, StoreError):
            self.doubtful.add(task_id)  # it may be ours all the same, and then nobody else would take it over
            raise
