"""A store whose n-th write fails, over real HTTP: an error in bounded time, no half of a task, and repair."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

import dragoman
from dragoman import Agent, App, Client, Task
from dragoman.errors import InternalError, StoreError, StreamInterruptedError
from dragoman.ports.store import Append
from dragoman.runtime.janitor import UNSAVED_TEXT
from dragoman.testing.crashes import tasks_in
from dragoman.testing.serving import serving
from dragoman.testing.witness import Witness
from tests.runtime.running import FaultyStore, S, database, limits, reaches, said, texts, until, within

WORDS = [f"word-{number} " for number in range(30)]
BOUND = 3.0

agent = Agent(
    "Slow", description="Says thirty words, each stored before the next.", extensions=(dragoman.RESUMABLE_STREAMS,)
)


class NthWriteFails(FaultyStore):
    """Counts and fails writes of the agent's work only, not those that repair what failed before."""

    async def append(self, batch: Sequence[Append]) -> Sequence[StoreError | None]:
        if all(append.state is S.FAILED for append in batch):
            return await self.inner.append(batch)
        return await super().append(batch)


@agent.task
async def say(ctx):
    for word in WORDS:
        yield word
        await ctx._turn._live.drain(0)


async def blocking(client: Client) -> None:
    await client.send("go")


async def streaming(client: Client, witness: Witness) -> None:
    async for _ in witness.follow(client.stream("go")):
        pass


@pytest.mark.req("B081", "B179", "B033")
@pytest.mark.parametrize("binding", ["JSONRPC", "HTTP+JSON"])
async def test_whichever_write_fails_every_caller_is_told_so_and_the_task_is_whole(binding: str, tmp_path) -> None:
    store, witness = NthWriteFails(database(tmp_path)), Witness()
    app = App(agent, store=store, limits=limits(lease=0.6))
    async with serving(app) as url, dragoman.connect(url, bindings=(binding,)) as client:
        for number in range(1, 31):
            store.fail_append(number)
            with pytest.raises((InternalError, StreamInterruptedError)):
                await within(streaming(client, witness) if number % 2 else blocking(client), BOUND)
            store.heal()

        await until(lambda: not app.runtime._registry.doubtful)
        listed = (await client.list_tasks(include_artifacts=True, page_size=100)).tasks
        failed = [await reaches(client, task, S.FAILED) for task in listed]
        assert sorted(len(texts(task)) for task in failed) == list(range(1, 30))  # of the first write nothing is left
        for task in failed:
            assert said(task) == UNSAVED_TEXT
            assert texts(task) == WORDS[: len(texts(task))]
            witness.told(task)
        assert await tasks_in(store, agent.name, S.WORKING, S.SUBMITTED) == []
        assert await witness.compare(store) == []
        assert texts(await within(client.send("again"))) == WORDS


@pytest.mark.req("B081")
async def test_all_who_wait_for_a_task_are_told_when_its_write_fails(tmp_path) -> None:
    store, witness = NthWriteFails(database(tmp_path)), Witness()
    app = App(agent, store=store, limits=limits(lease=0.6))
    async with serving(app) as url, dragoman.connect(url) as client:
        for number in (3, 11, 24):
            store.hold()
            sending = asyncio.create_task(client.send("go", wait=False))
            await within(store.held.wait())
            store.fail_append(number)
            store.release()
            task = await within(sending)
            assert isinstance(task, Task)
            followers = [asyncio.create_task(follow(client, witness, task.id)) for _ in range(3)]

            ends = await within(asyncio.gather(*followers), BOUND)

            assert set(ends) == {"FAILED"}
            assert said(await reaches(client, task, S.FAILED)) == UNSAVED_TEXT
            store.heal()
        assert await witness.compare(store) == []


async def follow(client: Client, witness: Witness, task_id: str) -> str:
    """Where a subscriber who comes back after errors sees the task end."""
    while True:
        state = None
        try:
            async for event in witness.follow(client.subscribe(task_id)):
                state = event.status.state if hasattr(event, "status") else state
            assert state is not None
            return state.name
        except (InternalError, StreamInterruptedError):
            await asyncio.sleep(0.01)
