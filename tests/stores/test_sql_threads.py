"""One SQL store, many threads and loops."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from dragoman.ports.store import Scope, TaskQuery
from dragoman.stores.sql import SqlStore
from dragoman.testing.sample_task import SampleTask


@pytest.mark.req("B103")
async def test_twenty_threads_that_save_the_first_task_of_an_owner_at_once_save_twenty(tmp_path: Path) -> None:
    store = SqlStore(f"sqlite:///{tmp_path}/tasks.db")
    await store.open()
    owner, together = Scope("", "new owner"), threading.Barrier(20)

    def save(n: int) -> None:
        together.wait(10)
        outcomes = asyncio.run(_append(store, SampleTask(f"task-{n}", scope=owner)))
        assert outcomes == [None]

    with ThreadPoolExecutor(20) as pool:
        await asyncio.gather(*(asyncio.get_running_loop().run_in_executor(pool, save, n) for n in range(20)))

    page = await store.page(TaskQuery(scope=owner))
    assert {task.id for task in page.tasks} == {f"task-{n}" for n in range(20)}
    assert page.total == 20
    await store.close()


async def _append(store: SqlStore, sample: SampleTask) -> list[object]:
    return list(await store.append([sample.take()]))


async def test_two_stores_on_one_file_see_each_other(tmp_path: Path) -> None:
    stores = [SqlStore(f"sqlite:///{tmp_path}/tasks.db") for _ in range(2)]
    await asyncio.gather(*(store.open() for store in stores))
    samples = [SampleTask(f"task-{n}") for n in range(40)]

    await asyncio.gather(*(stores[n % 2].append([sample.take()]) for n, sample in enumerate(samples)))

    secrets = [await store.secret("key") for store in stores]
    assert secrets[0] == secrets[1]
    for store in stores:
        assert (await store.page(TaskQuery(scope=Scope()))).total == 40
        await store.close()


async def test_stores_on_several_new_files_can_be_opened_at_once(tmp_path: Path) -> None:
    stores = [SqlStore(f"sqlite:///{tmp_path}/tasks-{n}.db") for n in range(6)]
    await asyncio.gather(*(store.open() for store in stores))
    for store in stores:
        assert await store.append([SampleTask().take()]) == [None]
        await store.close()


async def test_closing_finishes_what_was_accepted(tmp_path: Path) -> None:
    store = SqlStore(f"sqlite:///{tmp_path}/tasks.db")
    await store.open()
    writes = [asyncio.ensure_future(store.append([SampleTask(f"task-{n}").take()])) for n in range(30)]
    await asyncio.sleep(0)

    await store.close()

    assert [list(await write) for write in writes] == [[None]] * 30
    again = SqlStore(f"sqlite:///{tmp_path}/tasks.db")
    await again.open()
    assert (await again.page(TaskQuery(scope=Scope()))).total == 30
    await again.close()
