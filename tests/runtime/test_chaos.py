"""Everything at once, in an order that a seed decides: senders, readers, cancels, leavers and a store that fails."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Any

import pytest

from dragoman import Agent, Client
from dragoman.errors import A2AError, ClientError, StoreError
from dragoman.model import encode_json
from dragoman.protocol.lifecycle import TERMINAL, TaskFold
from tests.runtime.running import NOTHING, FaultyStore, S, Server, database, held, status, until, within


class Flaky(FaultyStore):
    """A store that takes its time and fails now and then, before or after the write, or for one task only."""

    def __init__(self, dice: random.Random, url: str) -> None:
        super().__init__(url)
        self.dice = dice
        self.faulty = True

    async def append(self, batch: Any) -> Any:
        for _ in range(self.dice.randrange(4)):
            await asyncio.sleep(0)
        fate = self.dice.random() if self.faulty else 1.0
        if fate < 0.02:
            raise StoreError("not written")
        outcomes = list(await self.inner.append(batch))
        if fate < 0.04:
            raise StoreError("written, and not said so")
        return outcomes

    async def _read(self, read: Any) -> Any:
        if self.faulty and self.dice.random() < 0.02:
            read.close()
            raise StoreError("not read")
        found = await read
        await asyncio.sleep(0)
        return found


def agent_of(dice: random.Random, shape: str) -> Agent:
    agent = Agent("Chaos", description="Does anything.")

    async def pause() -> None:
        for _ in range(dice.randrange(6)):
            await asyncio.sleep(0)

    async def task(ctx):
        for n in range(dice.randrange(5)):
            await pause()
            move = dice.randrange(7)
            if move == 0:
                await ctx.update(f"update {n}")
            elif move == 1:
                await ctx.ask(f"question {n}", timeout=dice.choice([None, 0.001]))
            elif move == 2 and dice.random() < 0.3:
                raise ValueError("a fault")
            elif move == 3:
                await ctx.artifact("x", append=dice.random() < 0.5)
            else:
                await ctx.artifact(f"{n}")
        return "done"

    async def events(ctx):
        yield status(S.WORKING)
        await pause()
        yield status(dice.choice([S.WORKING, S.INPUT_REQUIRED, S.AUTH_REQUIRED, S.COMPLETED]))

    getattr(agent, shape)(events if shape == "events" else task)
    return agent


async def play(client: Client, dice: random.Random) -> None:
    """One caller; errors of the protocol are answers too."""
    try:
        task = await client.send("go", wait=dice.random() < 0.5)
        for _ in range(dice.randrange(1, 6)):
            move = dice.randrange(5)
            if move == 0:
                await client.cancel(task)
            elif move == 1:
                async with client.subscribe(task, timeout=1) as stream:
                    async for _ in stream:
                        if dice.random() < 0.3:
                            break
            elif move == 2:
                await client.send("answer", task_id=task.id, wait=False)
            elif move == 3:
                task = await client.get_task(task)
            else:
                await client.list_tasks(page_size=5)
    except (A2AError, ClientError):
        pass


@pytest.mark.req("B081", "B085", "B171")
@pytest.mark.parametrize("shape", ["task", "message", "events"])
@pytest.mark.parametrize("seed", range(8))
async def test_nothing_is_stuck_lost_or_left_behind(server: Server, tmp_path: Path, seed: int, shape: str) -> None:
    dice = random.Random(f"{shape} {seed}")
    store = Flaky(dice, "memory" if seed % 4 else database(tmp_path))
    limits = {"running_tasks": 8, "suspended_tasks": 3, "lease": 0.06, "cancel_wait": 0.05}
    client = await server(agent_of(dice, shape), store=store, **limits)
    callers = [asyncio.create_task(play(client, dice)) for _ in range(40)]
    for caller in dice.sample(callers, 8):
        for _ in range(dice.randrange(30)):
            await asyncio.sleep(0)
        caller.cancel()
    await asyncio.wait(callers, timeout=0.3)
    store.faulty = False
    await settle(client)
    for caller in callers:
        caller.cancel()
    await asyncio.gather(*callers, return_exceptions=True)
    await until(lambda: held(server.app) == NOTHING)

    tasks = [task async for task in client.tasks(page_size=100)]
    assert all(task.status.state in TERMINAL for task in tasks)
    for task in tasks:
        await check_log(store, task.id)


async def settle(client: Client) -> None:
    """Cancel what waits until everything is over: nothing may stay active for longer than the janitor's bound."""
    async with asyncio.timeout(5):
        while True:
            states = {task.id: task.status.state async for task in client.tasks(page_size=100)}
            left = [task_id for task_id, state in states.items() if state not in TERMINAL]
            if not left:
                return
            for task_id in left:
                if states[task_id] in (S.INPUT_REQUIRED, S.AUTH_REQUIRED):
                    await asyncio.gather(client.cancel(task_id), return_exceptions=True)
            await asyncio.sleep(0.01)


async def check_log(store: Flaky, task_id: str) -> None:
    records = await store.inner.records(task_id, 0, 10_000)
    stored = await within(store.inner.task(task_id, None))
    fold = TaskFold(records[0].event.task)
    ends = 0
    for record in records:
        fold.apply(record)
        update = record.event.status_update
        ends += update is not None and update.status.state in TERMINAL

    assert [record.number for record in records] == list(range(1, len(records) + 1))
    assert ends == 1
    assert records[-1].event.status_update.status.state in TERMINAL
    assert encode_json(fold.task) == encode_json(stored.task)
