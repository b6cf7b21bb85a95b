"""The ping over the wire: what holds, what does not, and that nothing the agent does delays it."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from dragoman import Agent, agentcore
from tests.agentcore.server.hosts import Gate, calling, hosted, ping, post, rpc, send, served, until, working

BUSY, HEALTHY = "HealthyBusy", "Healthy"


class Wall:
    """A wall clock that a test sets; the monotonic one stands still with it."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


async def until_healthy(client) -> None:
    async def healthy() -> bool:
        return (await ping(client))[0] == HEALTHY

    await until(healthy)


@pytest.mark.req("P2", "AC-S-63")
async def test_a_blocking_turn_is_busy_while_it_runs():
    gate, wall = Gate(), Wall()
    async with served(hosted(working(gate), wall=wall, monotonic=wall)) as client:
        wall.now = 1010.2
        call = asyncio.create_task(post(client, send()))
        await gate.arrive()
        wall.now = 1011
        assert await ping(client) == (BUSY, 1010)
        wall.now = 1025.9
        gate.open()
        await call
        await until_healthy(client)
        assert await ping(client) == (HEALTHY, 1025)


@pytest.mark.req("P4", "AC-S-63")
@pytest.mark.parametrize("generation", ["1.0", "0.3"])
async def test_a_turn_in_the_background_is_busy_after_its_answer_was_sent(generation: str):
    gate, wall = Gate(), Wall()
    body = send(immediately=True)
    if generation == "0.3":
        message = {"role": "user", "parts": [{"kind": "text", "text": "x"}], "messageId": "m-1", "kind": "message"}
        body = rpc("message/send", {"message": message, "configuration": {"blocking": False}})
    async with served(hosted(working(gate), wall=wall, monotonic=wall)) as client:
        wall.now = 1010
        assert "result" in await post(client, body)
        await gate.arrive()
        wall.now = 1050
        assert await ping(client) == (BUSY, 1010)
        wall.now = 1100
        gate.open()
        await until_healthy(client)
        assert await ping(client) == (HEALTHY, 1100)


@pytest.mark.req("P5", "AC-S-68")
@pytest.mark.parametrize("shape", ["resident", "events"])
async def test_a_task_that_asks_does_not_hold(shape: str):
    agent, wall = Agent("asking", description="x"), Wall()
    if shape == "resident":

        @agent.task
        async def work(ctx):
            wall.now = 1015
            answer = await ctx.ask("Which pier?")
            wall.now = 1305
            return answer.text
    else:

        @agent.events
        async def events(ctx):
            from dragoman.model import TaskState, TaskStatus, TaskStatusUpdateEvent

            if len(ctx.history) > 1:
                wall.now = 1305
                yield TaskStatusUpdateEvent(task_id="", context_id="", status=TaskStatus(state=TaskState.COMPLETED))
                return
            wall.now = 1015
            status = TaskStatus(state=TaskState.INPUT_REQUIRED)
            yield TaskStatusUpdateEvent(task_id="", context_id="", status=status)

    async with served(hosted(agent, wall=wall, monotonic=wall)) as client:
        wall.now = 1010
        task = (await post(client, send()))["result"]["task"]
        assert task["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
        await until_healthy(client)
        wall.now = 1100
        assert await ping(client) == (HEALTHY, 1015)
        wall.now = 1300
        task = (await post(client, send("Pier 6", taskId=task["id"])))["result"]["task"]
        assert task["status"]["state"] == "TASK_STATE_COMPLETED"
        await until_healthy(client)
        assert await ping(client) == (HEALTHY, 1305)


@pytest.mark.req("P6")
@pytest.mark.parametrize("kind", ["task", "reply"])
async def test_a_turn_that_raises_is_over(kind: str):
    agent, gate, wall = Agent("raising", description="x"), Gate(), Wall()

    @getattr(agent, kind)
    async def work(ctx):
        await gate.wait()
        raise ValueError

    async with served(hosted(agent, wall=wall, monotonic=wall)) as client:
        wall.now = 1010
        call = asyncio.create_task(post(client, send()))
        await gate.arrive()
        assert await ping(client) == (BUSY, 1010)
        wall.now = 1020
        gate.open()
        await call
        await until_healthy(client)
        assert await ping(client) == (HEALTHY, 1020)


@pytest.mark.req("P8", "AC-S-63")
@pytest.mark.parametrize("kind", ["coroutine", "thread"])
async def test_a_turn_that_ignores_its_cancellation_holds_until_it_is_really_over(kind: str):
    gate, wall = Gate(), Wall()
    agent = working(gate, ignore_cancel=True)
    if kind == "thread":
        agent = Agent("stubborn", description="x")
        agent.task(lambda ctx: gate.block())
    limits = agentcore.Profile().limits
    async with served(hosted(agent, wall=wall, monotonic=wall, limits=limits)) as client:
        wall.now = 1010
        task = (await post(client, send(immediately=True)))["result"]["task"]
        await gate.arrive()
        wall.now = 1020
        canceling = asyncio.create_task(post(client, rpc("CancelTask", {"id": task["id"]})))
        if kind == "thread":
            await canceling
        wall.now = 1050
        assert await ping(client) == (BUSY, 1010)
        wall.now = 1090
        gate.open()
        await canceling
        await until_healthy(client)
        assert await ping(client) == (HEALTHY, 1090)


@pytest.mark.req("AC-S-63")
async def test_a_turn_that_waits_for_a_slot_holds():
    gate = Gate()
    from dragoman import Limits

    async with served(hosted(working(gate), limits=Limits(running_tasks=1))) as client:
        await post(client, send(immediately=True))
        queued = (await post(client, send(immediately=True)))["result"]["task"]
        assert queued["status"]["state"] == "TASK_STATE_SUBMITTED"
        stamp = await ping(client)
        assert stamp[0] == BUSY
        gate.open()
        await until_healthy(client)


@pytest.mark.req("AC-S-64")
async def test_pings_and_cards_are_answered_while_the_agent_blocks_its_loop():
    agent = Agent("blocking", description="x")

    @agent.task
    async def work(ctx):
        time.sleep(3)  # noqa: ASYNC251 - that is what is tested
        return "done"

    async with served(hosted(agent)) as client:
        await client.get("/ping")
        call = asyncio.create_task(post(client, send()))
        await until(lambda: busy(client))
        slowest = 0.0
        for number in range(20):
            began = time.perf_counter()
            answer = await client.get("/ping" if number % 2 else "/.well-known/agent-card.json")
            slowest = max(slowest, time.perf_counter() - began)
            assert answer.status_code == 200
            await asyncio.sleep(0.05)
        assert not call.done()
        assert slowest < 0.25
        assert (await call)["result"]["task"]["status"]["state"] == "TASK_STATE_COMPLETED"


async def busy(client) -> bool:
    return (await ping(client))[0] == BUSY


@pytest.mark.req("AC-S-64")
async def test_the_second_loop_can_be_switched_off():
    agent, threads = Agent("where", description="x"), []

    @agent.task
    async def work(ctx):
        threads.append(threading.current_thread())

    for own_thread in (False, True):
        async with calling(hosted(agent, own_thread=own_thread)) as client:
            await post(client, send())
    assert threads[0] is threading.current_thread()
    assert threads[1] is not threads[0]


@pytest.mark.req("AC-S-65", "P11")
async def test_a_handler_of_the_users_is_asked_at_each_ping():
    said = ["HealthyBusy"]

    async def handler() -> str:
        if said[0] == "raise":
            raise ValueError
        return said[0]

    async with served(hosted(ping_handler=handler)) as client:
        assert (await ping(client))[0] == BUSY
        said[0] = "Healthy"
        assert (await ping(client))[0] == HEALTHY
        said[0] = "raise"
        assert (await ping(client))[0] == HEALTHY


@pytest.mark.req("AC-S-65")
async def test_a_handler_that_hangs_in_the_agents_loop_makes_no_ping_slower_than_its_limit():
    async def handler() -> str:
        await asyncio.sleep(60)
        return "Healthy"

    async with served(hosted(ping_handler=handler, ping_limit=0.1)) as client:
        began = time.perf_counter()
        assert (await ping(client))[0] == HEALTHY
        assert time.perf_counter() - began < 0.9


@pytest.mark.req("AC-S-66")
async def test_a_handler_holds_for_work_that_outlives_it():
    agent, gate, app = Agent("indexing", description="x"), Gate(), []
    background: list[asyncio.Task] = []

    @agent.task
    async def work(ctx):
        async def index() -> None:
            with agentcore.hold("indexing"):
                await gate.wait()

        background.append(asyncio.create_task(index()))
        return "begun"

    async with served(hosted(agent)) as client:
        await post(client, send())
        await gate.arrive()
        assert (await ping(client))[0] == BUSY
        gate.open()
        await until_healthy(client)
    with agentcore.hold("nobody is hosted now"):
        assert not app


@pytest.mark.req("AC-S-67")
async def test_a_hung_turn_holds_no_longer_than_its_age():
    gate, wall = Gate(), Wall()
    async with served(hosted(working(gate), wall=wall, monotonic=wall, turn_age=100)) as client:
        await post(client, send(immediately=True))
        await gate.arrive()
        wall.now = 1099
        assert await ping(client) == (BUSY, 1000)
        wall.now = 1200
        assert await ping(client) == (HEALTHY, 1100)
        gate.open()


@pytest.mark.req("AC-S-62")
async def test_pings_move_no_stamp():
    wall = Wall()
    async with calling(hosted(wall=wall, monotonic=wall)) as client:
        stamps = set()
        for _ in range(1000):
            wall.now += 1
            stamps.add(await ping(client))
        assert stamps == {(HEALTHY, 1000)}


@pytest.mark.req("P16", "AC-S-73", "AC-S-74")
@pytest.mark.parametrize("first", ["ping", "call"])
async def test_a_restore_renews_the_stamp_and_calls_the_hooks_once(first: str):
    wall, steady, restored = Wall(), Wall(), []

    async def hook() -> None:
        restored.append("coroutine")

    hooks = [hook, lambda: 1 / 0, lambda: restored.append("function")]
    async with served(hosted(wall=wall, monotonic=steady, on_restore=hooks)) as client:
        assert await ping(client) == (HEALTHY, 1000)
        wall.now, steady.now = 50_000, 1001
        if first == "call":
            await post(client, rpc("GetTask", {"id": "none"}))
        assert await ping(client) == (HEALTHY, 50_000)
        wall.now, steady.now = 50_010, 1011
        assert await ping(client) == (HEALTHY, 50_000)
        await until(lambda: len(restored) == 2)
        assert restored == ["coroutine", "function"]


@pytest.mark.req("AC-S-72")
async def test_the_first_call_and_a_restore_make_a_process_somebody_else_in_the_store():
    wall, steady = Wall(), Wall()
    app = hosted(wall=wall, monotonic=steady)
    registry = app._inner.runtime._registry
    async with calling(app) as client:
        names = [registry.worker]
        await post(client, send())
        names.append(registry.worker)
        await post(client, send())
        assert registry.worker == names[-1]
        wall.now = 50_000
        await post(client, send())
        names.append(registry.worker)
        assert len(set(names)) == 3
