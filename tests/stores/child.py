"""What the tests of crashes and of bad disks run in a process of its own: ``python child.py VERB FILE``."""

from __future__ import annotations

import asyncio
import os
import resource
import sys
import tempfile
from collections.abc import Awaitable, Callable

from dragoman.errors import StoreError
from dragoman.stores.sql import SqlStore
from dragoman.testing.sample_task import SampleTask

NOBODY = 65534


def say(*words: object) -> None:
    """One line to the parent, at once."""
    print(*words, flush=True)


async def write_for_ever(path: str) -> None:
    """Write tasks that grow, in groups; say what was acknowledged, and nothing else."""
    store = SqlStore(f"sqlite:///{path}")
    await store.open()
    round = 0
    while True:
        round += 1
        samples = [SampleTask(f"{os.getpid()}-{round}-{n}") for n in range(4)]
        for length in range(1, 9):
            for sample in samples[: 1 + length % 4]:
                sample.chunk(f"chunk {length}")
            assert not any(await store.append([sample.take() for sample in samples]))
            say(*(f"{sample.id}={sample.number}" for sample in samples))


async def fill_the_disk(path: str) -> None:
    """Write until a limit of the size of files stops it; then lift the limit and write again."""
    store = SqlStore(f"sqlite:///{path}")
    await store.open()
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, hard))
    sample, written = SampleTask(), 0
    await store.append([sample.take()])
    try:
        while True:
            await store.append([sample.chunk("x" * 50_000).take()])
            written = sample.number
    except StoreError as error:
        say("refused", error)
    stored = await store.task(sample.id, None)
    say("read", stored is not None and stored.number == written)
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    say("written", await store.append([SampleTask("task-2").take()]))
    await store.close()


async def import_everything() -> None:
    """Python itself may lie where other users cannot read."""
    with tempfile.TemporaryDirectory() as folder:
        store = SqlStore(f"sqlite:///{folder}/warm.db")
        await store.open()
        await store.close()


async def write_without_permission(path: str) -> None:
    """Open and write as a user who may only read."""
    if os.getuid() == 0:
        await import_everything()
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    store = SqlStore(f"sqlite:///{path}", busy_timeout=0.1)
    try:
        await store.open()
        say("outcome", await store.append([SampleTask("task-2").take()]))
    except StoreError as error:
        say("refused", error)


VERBS: dict[str, Callable[[str], Awaitable[None]]] = {
    "write": write_for_ever,
    "fill": fill_the_disk,
    "trespass": write_without_permission,
}


async def main(verb: str, path: str) -> None:
    """Do what the verb says."""
    await VERBS[verb](path)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
