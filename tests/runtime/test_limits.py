"""What one runtime takes on, and how long it waits."""

from __future__ import annotations

import asyncio

import pytest

from dragoman import Agent, Limits, Reply
from dragoman.errors import (
    ConfigurationError,
    InternalError,
    InvalidParamsError,
    RateLimitedError,
    UnavailableError,
)
from dragoman.model import Part, Role, Task, TaskStatusUpdateEvent
from tests.runtime.running import NOTHING, S, Server, Step, held, reaches, said, status, texts, until, within


def gated() -> tuple[Agent, dict[str, Step], list[str]]:
    """An agent that waits at the gate named by its message, if there is one; and in which order it began."""
    agent = Agent("Gated", description="Waits at a gate.")
    gates: dict[str, Step] = {}
    begun: list[str] = []

    @agent.task
    async def work(ctx):
        begun.append(ctx.text)
        if ctx.text in gates:
            await gates[ctx.text]()
        return ctx.text

    return agent, gates, begun


async def test_tasks_beyond_the_slots_wait_as_submitted_and_run_in_order(either: Server) -> None:
    agent, gates, begun = gated()
    gates["a"], gates["b"] = Step(), Step()
    client = await either(agent, running_tasks=2)
    first = [await client.send(text, wait=False) for text in ("a", "b")]
    await until(lambda: len(begun) == 2)

    waiting = [await client.send(text, wait=False) for text in ("c", "d", "e")]

    assert [task.status.state for task in first + waiting] == [S.WORKING] * 2 + [S.SUBMITTED] * 3
    assert (await client.list_tasks(status=S.SUBMITTED)).total_size == 3
    gates["a"].go()
    for task in waiting:
        assert texts(await reaches(client, task, S.COMPLETED)) != []
    assert begun == ["a", "b", "c", "d", "e"]
    assert held(either.app)["running"] == 1
    gates["b"].go()
    await until(lambda: held(either.app) == NOTHING)


async def test_a_blocking_send_and_a_stream_wait_through_submitted(server: Server) -> None:
    agent, gates, _ = gated()
    gates["a"] = Step()
    client = await server(agent, running_tasks=1)
    await client.send("a", wait=False)
    blocked = asyncio.create_task(client.send("b"))
    states = []

    async def read() -> None:
        async for event in client.stream("c"):
            if isinstance(event, Task | TaskStatusUpdateEvent):
                states.append(event.status.state)

    reading = asyncio.create_task(read())
    await until(lambda: held(server.app)["waiting"] == 2)
    gates["a"].go()

    assert (await within(blocked)).status.state is S.COMPLETED
    await within(reading)
    assert states == [S.SUBMITTED, S.WORKING, S.COMPLETED]


async def test_no_more_than_so_many_tasks_wait(server: Server) -> None:
    agent, gates, begun = gated()
    gates["a"] = Step()
    client = await server(agent, running_tasks=1, waiting_tasks=2)
    for text in ("a", "b", "c"):
        await client.send(text, wait=False)

    with pytest.raises(UnavailableError, match="Too many tasks are waiting") as caught:
        await client.send("d", wait=False)

    assert caught.value.retry_after
    gates["a"].go()
    await until(lambda: held(server.app) == NOTHING)
    assert begun == ["a", "b", "c"]
    assert (await client.send("d")).status.state is S.COMPLETED


@pytest.mark.req("CANCEL-01")
async def test_a_task_that_is_canceled_while_it_waits_never_runs_and_frees_its_place(server: Server) -> None:
    agent, gates, begun = gated()
    gates["a"] = Step()
    client = await server(agent, running_tasks=1, waiting_tasks=1)
    await client.send("a", wait=False)
    waiting = await client.send("b", wait=False)

    canceled = await client.cancel(waiting)
    other = await client.send("c", wait=False)

    assert (canceled.status.state, other.status.state) == (S.CANCELED, S.SUBMITTED)
    gates["a"].go()
    await reaches(client, other, S.COMPLETED)
    assert begun == ["a", "c"]


@pytest.mark.req("B079")
async def test_a_message_to_a_waiting_task_is_taken_when_it_runs(server: Server) -> None:
    agent = Agent("Asking", description="Asks.")
    step = Step()

    @agent.task
    async def work(ctx):
        if ctx.text == "first":
            await step()
        return str(await ctx.ask("?"))

    client = await server(agent, running_tasks=1)
    first = await client.send("first", wait=False)
    task = await client.send("second", wait=False)
    followed = await client.send("the answer", task=task, wait=False)
    assert followed.status.state is S.SUBMITTED

    step.go()

    assert texts(await reaches(client, task, S.COMPLETED)) == ["the answer"]
    await client.cancel(first)


async def test_an_agent_that_decides_is_refused_when_there_is_no_slot(server: Server) -> None:
    agent = Agent("Deciding", description="Decides.")
    step = Step()

    @agent.message
    async def work(ctx):
        await step()
        return Reply("done")

    client = await server(agent, running_tasks=1)
    first = asyncio.create_task(client.send("a"))
    await within(step.reached.wait())

    with pytest.raises(UnavailableError):
        await client.send("b")

    step.go()
    assert (await within(first)).parts[0].text == "done"
    assert held(server.app) == NOTHING


async def test_a_handler_that_takes_too_long_is_interrupted_and_failed(
    either: Server, caplog: pytest.LogCaptureFixture
) -> None:
    agent = Agent("Slow", description="Never ends.")
    step = Step()

    @agent.task
    async def work(ctx):
        await step()

    client = await either(agent, run_time=0.05)
    task = await within(client.send("go"))

    assert (task.status.state, said(task)) == (S.FAILED, "The agent took longer than 0.05 s.")
    assert step.cancelled
    assert task.id in caplog.text
    assert held(either.app) == NOTHING


async def test_waiting_for_an_answer_is_no_run_time(server: Server) -> None:
    agent = Agent("Asking", description="Asks.")

    @agent.task
    async def work(ctx):
        return str(await ctx.ask("?"))

    client = await server(agent, run_time=0.05)
    task = await client.send("go")
    await asyncio.sleep(0.1)

    assert held(server.app)["suspended"] == 1
    assert texts(await within(client.send("yes", task=task))) == ["yes"]


async def test_a_reply_that_takes_too_long_is_an_error(server: Server) -> None:
    agent = Agent("Slow", description="Never replies.")
    step = Step()

    @agent.reply
    async def work(ctx):
        await step()

    client = await server(agent, reply_time=0.05)
    with pytest.raises(InternalError, match="took too long"):
        await within(client.send("go"))
    assert step.cancelled


async def test_a_task_takes_only_so_many_messages_that_nobody_reads(server: Server) -> None:
    agent, gates, _ = gated()
    gates["a"] = Step()
    client = await server(agent, queued_messages=3)
    task = await client.send("a", wait=False)
    for _ in range(3):
        await client.send("more", task=task, wait=False)

    with pytest.raises(RateLimitedError) as caught:
        await client.send("more", task=task, wait=False)

    assert caught.value.retry_after
    assert len((await client.get_task(task)).history) == 4
    gates["a"].go()
    await reaches(client, task, S.COMPLETED)


async def test_messages_that_start_runs_of_their_own_are_limited_alike(server: Server) -> None:
    agent = Agent("Events", description="One run for each message.")
    step = Step()
    ran: list[str] = []

    @agent.events
    async def work(ctx):
        yield status(S.WORKING)
        await step()
        ran.append(ctx.task.history[-1].parts[0].text)
        yield status(S.INPUT_REQUIRED)

    client = await server(agent, queued_messages=2)
    task = await client.send("0", wait=False)
    for n in (1, 2):
        await client.send(str(n), task=task, wait=False)
    with pytest.raises(RateLimitedError):
        await client.send("3", task=task, wait=False)

    step.go()
    await until(lambda: len(ran) == 3)
    await reaches(client, task, S.INPUT_REQUIRED)
    assert held(server.app) == NOTHING


async def test_a_message_has_only_so_many_parts(server: Server) -> None:
    agent, _, _ = gated()
    client = await server(agent, max_parts=2)
    await client.send([Part(text="a"), Part(text="b")])

    with pytest.raises(InvalidParamsError) as caught:
        await client.send([Part(text="a")] * 3)

    assert [violation.field for violation in caught.value.violations] == ["message.parts"]


async def test_the_longest_waiting_handlers_leave_memory_and_run_again_when_the_answer_comes(either: Server) -> None:
    agent = Agent("Asking", description="Asks twice, and does something once.")
    done: list[str] = []
    runs: list[str] = []

    @agent.task
    async def work(ctx):
        runs.append(ctx.text)

        async def effect() -> str:
            done.append(ctx.text)
            return f"effect of {ctx.text}"

        await ctx.update("begun")
        kept = await ctx.once("effect", effect)
        first = await ctx.ask("First?")
        await ctx.update("between")
        second = await ctx.ask("Second?")
        return f"{kept}, {first}, {second}"

    client = await either(agent, suspended_tasks=2)
    tasks = [await client.send(f"{n}") for n in range(5)]
    await until(lambda: held(either.app)["suspended"] == 2 and held(either.app)["live"] == 2)

    for turn in ("one", "two"):
        tasks = [await within(client.send(f"{turn} {n}", task=task)) for n, task in enumerate(tasks)]

    assert [texts(task) for task in tasks] == [[f"effect of {n}, one {n}, two {n}"] for n in range(5)]
    assert sorted(done) == ["0", "1", "2", "3", "4"]
    assert len(runs) > 5
    for task in tasks:
        agents = [m.parts[0].text for m in task.history if m.role is Role.AGENT]
        assert agents == ["begun", "First?", "between", "Second?"]
    assert held(either.app) == NOTHING


async def test_an_answer_that_meets_a_handler_being_put_aside_is_not_lost(server: Server) -> None:
    agent = Agent("Asking", description="Asks, and takes its time to go.")
    slow = Step()

    @agent.task
    async def work(ctx):
        try:
            return str(await ctx.ask("?"))
        except asyncio.CancelledError:
            await slow()
            raise

    client = await server(agent, suspended_tasks=1)
    first = await client.send("a")
    await client.send("b")
    await within(slow.reached.wait())
    answering = asyncio.create_task(client.send("answer", task=first))
    await until(lambda: server.app.runtime._registry._live[first.id].state is S.WORKING)
    slow.go()

    assert texts(await within(answering)) == ["answer"]


@pytest.mark.parametrize("name", ["running_tasks", "waiting_tasks", "queued_messages", "max_parts", "stream_lag"])
def test_a_limit_of_nothing_is_a_mistake(name: str) -> None:
    with pytest.raises(ConfigurationError, match=name):
        Limits(**{name: 0})


@pytest.mark.parametrize("name", ["run_time", "cancel_wait", "shutdown_grace", "retention"])
def test_a_negative_time_is_a_mistake(name: str) -> None:
    with pytest.raises(ConfigurationError, match=name):
        Limits(**{name: -1.0})
    Limits(**{name: 0.0})


def test_a_lease_takes_some_time() -> None:
    with pytest.raises(ConfigurationError, match="lease"):
        Limits(lease=0)
