"""Fills a store with finished tasks, without a server: ``python -m bench.seeding FILE FIRST END``."""

from __future__ import annotations

import asyncio
import sys

from dragoman import open_store
from dragoman.model import TaskState
from dragoman.ports.store import TaskStore
from dragoman.testing.sample_task import START_MS, SampleTask

BATCH = 500


def finished_task(number: int) -> SampleTask:
    """Asked, answered with one artifact, completed; each in a context of its own, a millisecond after the last."""
    at = START_MS + number
    sample = SampleTask(f"task-{number:08d}", context_id=f"context-{number:08d}", at=at)
    return sample.chunk(f"You said: {number}", append=False).move(TaskState.COMPLETED, at)


async def seed(store: TaskStore, first: int, end: int) -> None:
    """Write the tasks with these numbers."""
    for begin in range(first, end, BATCH):
        numbers = range(begin, min(begin + BATCH, end))
        refused = [error for error in await store.append([finished_task(one).take() for one in numbers]) if error]
        if refused:
            raise refused[0]


async def main(file: str, first: str, end: str) -> None:
    """Seed a file."""
    store = open_store(file)
    await store.open()
    try:
        await seed(store, int(first), int(end))
    finally:
        await store.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
