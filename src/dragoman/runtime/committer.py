"""Group commit: many tasks' new records, one write.

While one write is on its way the tasks that get new records queue up; the next write takes them all. Each task is
in the queue at most once and hands over all its unsaved records when its turn comes, so there is at most one write of
a task at a time, in order.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from typing import Protocol

from dragoman.errors import StoreError
from dragoman.ports.store import Append, TaskStore

logger = logging.getLogger("dragoman.runtime")

MAX_GROUP = 256


class Source(Protocol):
    """A task with unsaved records."""

    def take_append(self) -> Append | None:
        """All unsaved records as one append; None when there are none any more."""
        ...

    def committed(self, outcome: StoreError | None) -> None:
        """The append that was taken is stored (None), or is not."""
        ...


class Committer:
    """The one path from the runtime to the store's log."""

    def __init__(self, store: TaskStore) -> None:
        self._store = store
        self._queue: deque[Source] = deque()
        self._wake: asyncio.Future[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        self._stopping = False

    def start(self) -> None:
        """Begin to write. Must run inside the event loop. Safe to call twice."""
        if self._task is not None:
            return
        self._loop = asyncio.get_running_loop()
        self._task = self._loop.create_task(self._write_for_ever(), name="dragoman-committer")

    def submit(self, source: Source) -> None:
        """Queue a task. It must not be in the queue already."""
        self._queue.append(source)
        self._wake_up()

    def _wake_up(self) -> None:
        wake, self._wake = self._wake, None
        if wake is not None and not wake.done():
            wake.set_result(None)

    async def stop(self) -> None:
        """Write what is queued, then end."""
        self._stopping = True
        self._wake_up()
        if self._task is not None:
            await self._task
            self._task = None

    async def _write_for_ever(self) -> None:
        assert self._loop is not None
        while self._queue or not self._stopping:
            if self._queue:
                await self._write_group()
            else:
                self._wake = self._loop.create_future()
                await self._wake
                await asyncio.sleep(0)  # handlers that were started with this write in the same round share it

    async def _write_group(self) -> None:
        queue = self._queue
        taken = [(source, _take(source)) for source in [queue.popleft() for _ in range(min(len(queue), MAX_GROUP))]]
        group = [(source, append) for source, append in taken if append is not None]
        if group:
            outcomes = await self._append([append for _, append in group])
            for (source, _), outcome in zip(group, outcomes, strict=True):
                _tell(source, outcome)

    async def _append(self, batch: Sequence[Append]) -> Sequence[StoreError | None]:
        try:
            outcomes = await self._store.append(batch)
        except StoreError as error:
            return [error] * len(batch)
        except Exception as error:
            logger.exception("The store raised an unexpected error")
            return [_translated(error)] * len(batch)
        if len(outcomes) != len(batch):
            logger.error("The store gave %d outcomes for %d appends", len(outcomes), len(batch))
            return [StoreError("the store did not say what it wrote")] * len(batch)
        return outcomes


def _translated(error: Exception) -> StoreError:
    translated = StoreError("the store raised an unexpected error")
    translated.__cause__ = error
    return translated


def _take(source: Source) -> Append | None:
    """One task that cannot be written must not end the loop that writes for all."""
    try:
        return source.take_append()
    except Exception as error:
        logger.exception("A task's records could not be put together")
        _tell(source, _translated(error))
        return None


def _tell(source: Source, outcome: StoreError | None) -> None:
    """One task's trouble must not end the loop that writes for all."""
    try:
        source.committed(outcome)
    except Exception:
        logger.exception("A task could not take note of a write")
