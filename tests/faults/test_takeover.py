"""What callers do while a lost task waits to be taken over must not get in the way of that."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from typing import Any

import pytest

from dragoman import Agent, Client, Task
from dragoman.errors import StoreError, UnavailableError, UnsupportedOperationError
from dragoman.runtime.janitor import LOST_TEXT, UNSAVED_TEXT
from tests.runtime.running import FaultyStore, S, Server, Step, reaches, said, texts, until, within

LEASE = 0.3


async def lose(server: Server, agent: Agent, step: Step) -> str:
    """A task in WORKING whose process was lost a moment ago, so that its lease still runs; another process serves."""
    client = await server(agent, lease=LEASE)
    task = await client.send("go", wait=False)
    await within(step.reached.wait())
    runtime = server.app.runtime
    await until(lambda: not runtime._registry._live[task.id].backlog)

    async def keep(worker: str, until_ms: int) -> None:
        """The crash cannot shorten the lease."""

    runtime._store.heartbeat = keep
    await server.crash()
    del runtime._store.heartbeat
    return task.id


@pytest.mark.req("B079")
@pytest.mark.parametrize("watched", [True, False], ids=["watched", "alone"])
async def test_a_message_to_a_lost_task_does_not_keep_it_from_being_taken_over(durable: Server, watched: bool) -> None:
    agent, step = Agent("Waiting", description="Waits."), Step()

    @agent.task
    async def work(ctx):
        await step()

    task_id = await lose(durable, agent, step)
    client = await durable(agent, lease=LEASE)
    stream = client.subscribe(task_id)
    if watched:
        await within(anext(stream))

    with pytest.raises(UnsupportedOperationError):  # the task is over
        await within(insist(client, task_id), 4 * LEASE)

    assert said(await reaches(client, task_id, S.FAILED)) == LOST_TEXT
    await stream.aclose()


async def test_a_message_to_a_lost_task_that_may_be_run_again_is_taken_by_its_next_run(durable: Server) -> None:
    agent, step, runs = Agent("Asking", description="Asks."), Step(), []

    @agent.task(rerun=True)
    async def work(ctx):
        runs.append(ctx.recovered)
        if not ctx.recovered:
            await step()
        return str(await ctx.ask("?"))

    task_id = await lose(durable, agent, step)
    client = await durable(agent, lease=LEASE)

    done = await within(insist(client, task_id), 4 * LEASE)

    assert texts(done) == ["more"]
    assert runs == [False, True]


async def test_a_message_to_a_task_that_could_not_be_stored_does_not_keep_it_from_being_repaired(
    durable: Server,
) -> None:
    store = FaultyStore(durable.url)
    agent, step = Agent("Waiting", description="Waits."), Step()

    @agent.task
    async def work(ctx):
        await step()

    client = await durable(agent, store=store, lease=LEASE)
    task = await client.send("go", wait=False)
    store.fail_append(1)
    step.go()
    await until(lambda: durable.app.runtime._registry.doubtful)
    stream = client.subscribe(task)
    await within(anext(stream))

    with pytest.raises(UnsupportedOperationError):
        await within(insist(client, task.id), 4 * LEASE)

    assert said(await reaches(client, task, S.FAILED)) == UNSAVED_TEXT
    assert (await within(anext(stream))).status.state is S.FAILED
    await stream.aclose()


class ClaimsHeld(FaultyStore):
    """Claims are carried out, and their callers wait for the answer."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.fails = 0
        self.claimed, self.answers = asyncio.Event(), asyncio.Event()

    async def claim(self, task_id: str, worker: str, now_ms: int) -> Any:
        claimed = await self.inner.claim(task_id, worker, now_ms)
        if claimed is not None:
            self.claimed.set()
            await self.answers.wait()
            if self.fails:
                self.fails -= 1
                raise StoreError("the disk vanished")
        return claimed


async def test_a_caller_who_leaves_while_a_lost_task_is_claimed_does_not_leave_it_stuck(durable: Server) -> None:
    agent, step = Agent("Waiting", description="Waits."), Step()

    @agent.task
    async def work(ctx):
        await step()

    task_id = await lose(durable, agent, step)
    store = ClaimsHeld(durable.url)
    client = await durable(agent, store=store, lease=LEASE)
    janitor = durable.app.runtime._janitor
    janitor.leaving = True  # so that it is the caller's claim
    sending = asyncio.create_task(insist(client, task_id))
    await within(store.claimed.wait())
    sending.cancel()
    await asyncio.gather(sending, return_exceptions=True)
    store.answers.set()
    janitor.leaving = False

    assert (await reaches(client, task_id, S.FAILED, seconds=2 * LEASE)).status.state is S.FAILED


async def test_a_claim_that_was_done_although_it_failed_is_found_out(durable: Server) -> None:
    agent, step = Agent("Waiting", description="Waits."), Step()

    @agent.task
    async def work(ctx):
        await step()

    task_id = await lose(durable, agent, step)
    store = ClaimsHeld(durable.url)
    store.answers.set()
    store.fails = 1
    client = await durable(agent, store=store, lease=LEASE)

    assert (await reaches(client, task_id, S.FAILED, seconds=3 * LEASE)).status.state is S.FAILED
    assert store.fails == 0


async def test_a_doubtful_task_that_cannot_be_read_does_not_keep_the_others_from_repair(durable: Server) -> None:
    store, agent, step = FaultyStore(durable.url), Agent("Waiting", description="Waits."), Step()

    @agent.task
    async def work(ctx):
        await step()

    client = await durable(agent, store=store, lease=LEASE)
    tasks = [await client.send("go", wait=False) for _ in range(5)]
    store.fail_append(1)
    with contextlib.closing(sqlite3.connect(durable.url.removeprefix("sqlite:///"))) as other:
        for task in tasks[1:4]:
            other.execute("UPDATE dragoman_segments SET payload = 'damaged' WHERE task_id = ?", (task.id,))
        other.commit()
    step.go()

    for task in (tasks[0], tasks[4]):
        assert said(await reaches(client, task, S.FAILED, seconds=4 * LEASE)) == UNSAVED_TEXT
    durable.app.runtime._registry.doubtful.clear()


async def insist(client: Client, task_id: str) -> Task:
    """Send a message again and again until it is taken, or refused for good."""
    while True:
        try:
            task = await client.send("more", task_id=task_id)
        except UnavailableError:
            await asyncio.sleep(0)
        else:
            assert isinstance(task, Task)
            return task
