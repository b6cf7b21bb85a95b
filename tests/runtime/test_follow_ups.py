"""Messages to tasks that exist: taken once, in order, by the run that is there or by one that is started."""

from __future__ import annotations

import asyncio
import time

import pytest

from dragoman import Agent, Artifact
from dragoman.errors import InvalidParamsError, TaskNotFoundError, UnavailableError
from dragoman.model import Message, Part, Role, SendMessageConfiguration
from tests.runtime.running import (
    NOTHING,
    FaultyStore,
    S,
    Server,
    Step,
    held,
    reaches,
    said,
    status,
    texts,
    until,
    within,
)


def heard(task) -> list[str | None]:
    return [m.parts[0].text for m in task.history if m.role is Role.USER]


@pytest.mark.req("B079", "SEND-19")
async def test_messages_to_a_working_task_answer_its_next_questions(either: Server) -> None:
    agent = Agent("Asking", description="Asks late.")
    step = Step()

    @agent.task
    async def work(ctx):
        await step()
        first = await ctx.ask("First?")
        second = await ctx.ask("Second?")
        return f"{first} {second}"

    client = await either(agent)
    task = await client.send("go", wait=False)
    await within(step.reached.wait())
    blocked = asyncio.create_task(client.send("one", task=task))
    await until(lambda: len(either.app.runtime._registry._live[task.id].user_messages) == 2)
    await within(client.send("two", task=task, wait=False))
    step.go()

    done = await within(blocked)

    assert texts(done) == ["one two"]
    assert heard(done) == ["go", "one", "two"]
    assert held(either.app) == NOTHING


@pytest.mark.req("B079")
async def test_messages_to_a_working_agent_of_events_are_runs_one_after_the_other(either: Server) -> None:
    agent = Agent("Events", description="A run for each message.")
    step = Step()
    ran: list[tuple[str, object]] = []
    at_once = 0

    @agent.events
    async def work(ctx):
        nonlocal at_once
        at_once += 1
        assert at_once == 1
        yield status(S.WORKING)
        await step()
        ran.append((ctx.text, ctx.metadata.get("n")))
        yield Artifact(artifact_id=ctx.text, parts=[Part(text=ctx.text)])
        at_once -= 1
        yield status(S.COMPLETED if ctx.text == "3" else S.INPUT_REQUIRED)

    client = await either(agent)
    task = await client.send("0", wait=False, metadata={"n": 0})
    await within(step.reached.wait())
    for n in (1, 2):
        await client.send(f"{n}", task=task, wait=False, metadata={"n": n})
    last = asyncio.create_task(client.send("3", task=task, metadata={"n": 3}))
    await until(lambda: len(either.app.runtime._registry._live[task.id].queue) == 3)
    step.go()

    done = await reaches(client, task, S.COMPLETED)

    assert ran == [(f"{n}", n) for n in range(4)]
    assert texts(done) == ["0", "1", "2", "3"]
    await within(last)
    await until(lambda: held(either.app) == NOTHING)


@pytest.mark.req("B079")
@pytest.mark.parametrize("shape", ["task", "events"])
async def test_two_messages_at_once_to_a_stored_task_are_both_taken(either: Server, shape: str) -> None:
    agent = Agent("Asking", description="Asks.")

    if shape == "task":

        @agent.task
        async def work(ctx):
            return " ".join([str(await ctx.ask(f"{n}?")) for n in range(4)])
    else:

        @agent.events
        async def events(ctx):
            yield status(S.WORKING)
            yield status(S.COMPLETED if len(heard(ctx.task)) == 5 else S.INPUT_REQUIRED)

    client = await either(agent, suspended_tasks=1)
    task = await client.send("go")
    await client.send("another task that takes the place in memory")
    await until(lambda: task.id not in either.app.runtime._registry._live)

    await within(asyncio.gather(*(client.send(f"{n}", task=task, wait=False) for n in range(4))))

    done = await reaches(client, task, S.COMPLETED)
    assert sorted(heard(done)[1:]) == ["0", "1", "2", "3"]


@pytest.mark.req("CTX-14", "CTX-15", "SEND-07")
async def test_a_message_must_name_the_context_of_its_task_or_none(server: Server) -> None:
    agent = Agent("Asking", description="Asks.")

    @agent.task
    async def work(ctx):
        return str(await ctx.ask("?"))

    client = await server(agent)
    task = await client.send("go")

    with pytest.raises(InvalidParamsError) as caught:
        await client.send("x", task_id=task.id, context_id="another")
    assert [v.field for v in caught.value.violations] == ["message.contextId"]
    with pytest.raises(TaskNotFoundError):
        await client.send("x", task_id="unknown")
    assert (await client.get_task(task)).status.state is S.INPUT_REQUIRED
    assert (await client.send("x", task_id=task.id)).context_id == task.context_id


async def test_a_question_that_nobody_answers_in_time_raises_in_the_handler(server: Server) -> None:
    agent = Agent("Impatient", description="Waits a little.")

    @agent.task
    async def work(ctx):
        try:
            return str(await ctx.ask("?", timeout=0.05))
        except TimeoutError:
            await ctx.update("Then without.")
            return "default"

    client = await server(agent)
    task = await client.send("go")
    done = await reaches(client, task, S.COMPLETED)

    assert texts(done) == ["default"]
    assert held(server.app) == NOTHING


async def test_an_answer_that_races_the_timeout_is_taken_or_refused_but_not_lost(server: Server) -> None:
    agent = Agent("Impatient", description="Waits a little.")

    @agent.task
    async def work(ctx):
        try:
            return f"answer {await ctx.ask('?', timeout=0.005)}"
        except TimeoutError:
            return "default"

    client = await server(agent)
    for turn in range(40):
        task = await client.send("go")
        await asyncio.sleep(0.004 + 0.0001 * (turn % 20))
        answered = await asyncio.gather(client.send("x", task_id=task.id), return_exceptions=True)
        done = await reaches(client, task, S.COMPLETED)
        taken = not isinstance(answered[0], Exception)
        assert texts(done) == ["answer x"] if taken else ["default"]
        assert (len(heard(done)) == 2) is taken


async def test_an_answer_in_the_same_turn_of_the_loop_as_the_timeout_counts(server: Server) -> None:
    agent = Agent("Impatient", description="Waits a little.")

    @agent.task
    async def work(ctx):
        return f"answer {await ctx.ask('?', timeout=0.02)}"

    client = await server(agent)
    task = await client.send("go")
    live = server.app.runtime._registry._live[task.id]
    answer = Message(message_id="late", role=Role.USER, parts=[Part(text="x")])
    loop = asyncio.get_running_loop()
    loop.call_at(loop.time() + 0.021, live.accept, answer)
    time.sleep(0.03)  # noqa: ASYNC251  (both timers are due now, that of the timeout first)

    assert texts(await reaches(client, task, S.COMPLETED)) == ["answer x"]


async def test_a_lost_task_is_not_started_again_by_a_message(server: Server) -> None:
    store = FaultyStore()
    agent = Agent("Working", description="Works.")
    step, runs = Step(), []

    @agent.task
    async def work(ctx):
        runs.append(ctx.text)
        await step()
        return "done"

    client = await server(agent, store=store, lease=3600)
    task = await client.send("go", wait=False)
    store.fail_append(1)
    step.go()
    await until(lambda: held(server.app) == NOTHING)

    with pytest.raises(UnavailableError):
        await client.send("more", task=task)
    await server.app.runtime._janitor._repair()

    assert said(await reaches(client, task, S.FAILED)) == "The work on this task could not be stored."
    assert runs == ["go"]


async def test_an_answer_that_could_not_be_stored_can_be_given_again(server: Server) -> None:
    store = FaultyStore()
    agent = Agent("Asking", description="Asks.")

    @agent.task
    async def work(ctx):
        return str(await ctx.ask("?"))

    client = await server(agent, store=store)
    task = await client.send("go")
    store.fail_append(1)
    with pytest.raises(Exception, match="could not be stored"):
        await within(client.send("lost", task=task))
    assert (await client.get_task(task)).status.state is S.INPUT_REQUIRED

    await until(lambda: not server.app.runtime._registry.doubtful)
    done = await within(client.send("kept", task=task))

    assert texts(done) == ["kept"]
    assert heard(done) == ["go", "kept"]


@pytest.mark.req("SEND-16")
async def test_a_handler_that_runs_again_finds_what_the_first_request_said(durable: Server) -> None:
    agent = Agent("Asking", description="Asks.", extensions=["https://x.example/ext"], output_modes=["*/*"])
    found: list[object] = []

    @agent.task
    async def work(ctx):
        found.append((dict(ctx.metadata), list(ctx.accepted_output_modes), list(ctx.extensions), ctx.text))
        return str(await ctx.ask("?"))

    client = await durable(agent)
    task = await client.send(
        "go",
        metadata={"a": {"b": [1, None]}},
        accepted_output_modes=["image/png"],
        extensions=["https://x.example/ext"],
    )
    plain = await client.send("plain")
    await durable.stop()
    client = await durable(agent)

    assert texts(await within(client.send("yes", task=task, metadata={"other": 1}))) == ["yes"]
    assert texts(await within(client.send("yes", task=plain))) == ["yes"]

    first = ({"a": {"b": [1, None]}}, ["image/png"], ["https://x.example/ext"], "go")
    assert found == [first, ({}, [], [], "plain"), first, ({}, [], [], "plain")]


def test_a_configuration_has_no_other_member_that_a_run_may_need() -> None:
    assert set(SendMessageConfiguration.__struct_fields__) == {
        "accepted_output_modes",
        "task_push_notification_config",
        "history_length",
        "return_immediately",
    }
