"""The janitor: heartbeats, take-over of orphans, repair, retention.

Theory. This process is alive in the store's eyes until its last heartbeat runs out. Every third of a lease the janitor
renews it and looks for orphans: tasks in SUBMITTED or WORKING whose worker is dead or that have none. A task that never
started is started; one whose handler said that it may be run again is run again; any other becomes FAILED with a plain
message. So no task stays WORKING for longer than two leases after the death of its worker, also after a restart of a
single process (design, invariant 7).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from dragoman.errors import StoreError
from dragoman.model import TaskState
from dragoman.ports.clock import Clock
from dragoman.ports.store import TaskStore
from dragoman.protocol.lifecycle import ACTIVE
from dragoman.runtime.limits import Limits
from dragoman.runtime.live import LiveTask
from dragoman.runtime.registry import Registry

logger = logging.getLogger("dragoman.runtime")

LOST_TEXT = "The process that worked on this task was lost, and the work is not safe to repeat."
UNSAVED_TEXT = "The work on this task could not be stored."
GROUP = 100


class Janitor:
    """Keeps a runtime's tasks from being stuck."""

    def __init__(
        self,
        registry: Registry,
        store: TaskStore,
        clock: Clock,
        limits: Limits,
        *,
        agent: str = "",
        rerun: Callable[[LiveTask], bool],
        purged: Callable[[], None],
    ) -> None:
        self._registry = registry
        self._store = store
        self._clock = clock
        self._limits = limits
        self._agent = agent
        self._rerun = rerun
        self._purged = purged
        self._stubborn: set[str] = set()
        self._former: set[str] = set()
        self._task: asyncio.Task[None] | None = None
        self.leaving = False
        """True from the moment of shutdown on: nothing is taken over any more."""

    async def start(self) -> None:
        """First heartbeat and first round, then go on in the background."""
        await self._beat()
        await self._attempt(self._take_over)
        self._task = asyncio.create_task(self._work(), name="dragoman-janitor")

    async def stop(self) -> None:
        """End the rounds and declare this worker gone."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None
        await self._attempt(lambda: self._store.retire(self._registry.worker))

    async def _work(self) -> None:
        while True:
            await asyncio.sleep(self._limits.lease / 3)
            for step in (self._beat, self._repair, self._take_over, self._purge):
                await self._attempt(step)

    async def _attempt(self, step: Callable[[], Awaitable[None]]) -> None:
        try:
            await step()
        except StoreError:
            logger.exception("The store failed in the janitor's round; it will be tried again")
        except Exception:
            # Without its heartbeats this worker would lose every task that it has.
            logger.exception("The janitor's round failed; it will be tried again")

    async def _beat(self) -> None:
        if not len(self._registry):
            self._former.clear()
        until = self._clock.now_ms() + int(self._limits.lease * 1000)
        for worker in (self._registry.worker, *self._former):
            await self._store.heartbeat(worker, until)

    async def renew(self) -> None:
        """Work under a new name: there may be a copy of this process that has the old one.

        Tasks that are live now are still held under the old name, which is kept alive for as long as there are any.
        """
        worker = self._clock.new_id()
        await self._store.heartbeat(worker, self._clock.now_ms() + int(self._limits.lease * 1000))
        if len(self._registry):
            self._former.add(self._registry.worker)
        self._registry.worker = worker

    async def _take_over(self) -> None:
        while not self.leaving and (orphans := await self._store.orphans(self._clock.now_ms(), GROUP, self._agent)):
            adopted = [await self._adopt(task_id) for task_id in orphans]
            if len(orphans) < GROUP or not any(adopted):
                return

    async def _adopt(self, task_id: str) -> bool:
        """Take over one orphan; one that cannot be read must not keep the others waiting."""
        try:
            live = await self._registry.adopt(task_id)
        except StoreError:
            logger.exception("Task %s could not be taken over; it will be tried again", task_id)
            return False
        if live is None:
            return False
        try:
            self.recover(live)
        finally:
            live.unhold()
        return True

    def recover(self, live: LiveTask) -> None:
        """Decide on a task that was claimed from a lost worker: it is run again, or it is over."""
        if live.state in ACTIVE and not self.leaving and not self._rerun(live):
            logger.warning("Task %s was left in %s by a lost worker", live.task_id, live.state.value)
            live.move(TaskState.FAILED, LOST_TEXT)

    async def _repair(self) -> None:
        """Tasks whose writes failed: those that are in the store and still active end there.

        The first that cannot be repaired ends the round, since the store may be down, and comes last in the next one.
        """
        doubtful = self._registry.doubtful
        for task_id in sorted(doubtful, key=self._stubborn.__contains__):
            self._stubborn.add(task_id)
            stored = await self._store.task(task_id, None)
            if stored is not None and stored.task.status.state in ACTIVE:
                await self._fail(task_id)
            doubtful.discard(task_id)
            self._stubborn.discard(task_id)

    async def _fail(self, task_id: str) -> None:
        live = await self._registry.adopt(task_id)
        if live is None:
            return
        if live.state in ACTIVE:
            live.move(TaskState.FAILED, UNSAVED_TEXT)
        live.unhold()

    async def _purge(self) -> None:
        if self._limits.retention is None:
            return
        before = self._clock.now_ms() - int(self._limits.retention * 1000)
        removed = GROUP
        while removed >= GROUP:
            removed = await self._store.purge(before, GROUP, self._agent)
            if removed:
                self._purged()
