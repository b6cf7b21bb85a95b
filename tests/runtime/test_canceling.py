"""Cancellation reaches the code, ends in one state, and loses to an end that came before."""

from __future__ import annotations

import asyncio
import threading

import pytest

from dragoman import Agent, Client
from dragoman.errors import TaskNotCancelableError, TaskNotFoundError, UnsupportedOperationError
from dragoman.model import (
    CANCEL_TASK,
    SUBSCRIBE_TO_TASK,
    CancelTaskRequest,
    Part,
    SubscribeToTaskRequest,
    Task,
)
from dragoman.ports.operations import CallContext
from tests.runtime.running import NOTHING, S, Server, Step, held, reaches, status, texts, until, within


def stepping(step: Step) -> Agent:
    agent = Agent("Stepping", description="Waits.")

    @agent.task
    async def work(ctx):
        await ctx.artifact("half")
        await step()
        return "whole"

    return agent


async def raw_cancel(server: Server, task_id: str) -> Task:
    """CancelTask without what the client makes of its errors."""
    task = await server.app.operations.call(CANCEL_TASK, CancelTaskRequest(id=task_id), CallContext())
    assert isinstance(task, Task)
    return task


@pytest.mark.req("CANCEL-01", "B087")
async def test_it_reaches_the_running_code(either: Server) -> None:
    step = Step()
    client = await either(stepping(step))
    first = await client.send("go", wait=False)
    blocked = asyncio.create_task(client.send("more", task=first))
    await within(step.reached.wait())
    await until(lambda: len(either.app.runtime._registry._live[first.id].task.history) == 2)
    (task,) = (await client.list_tasks()).tasks

    canceled = await within(client.cancel(task))

    assert step.cancelled
    assert canceled.status.state is S.CANCELED
    assert texts(canceled) == ["half"]
    assert (await within(blocked)).status.state is S.CANCELED
    assert (await client.get_task(task)).status.state is S.CANCELED
    assert held(either.app) == NOTHING


@pytest.mark.req("CANCEL-01", "B087")
async def test_it_comes_before_the_first_step_of_the_code(server: Server) -> None:
    began: list[str] = []
    agent = Agent("Quick", description="Would be quick.")

    @agent.task
    async def work(ctx):
        began.append(ctx.text)
        return "done"

    client = await server(agent)
    runtime = server.app.runtime
    start = runtime._runs.start

    def start_canceled(turn, live):
        run = start(turn, live)
        live.canceling = True
        run.task.cancel()
        return run

    runtime._runs.start = start_canceled  # type: ignore[method-assign]
    task = await within(client.send("go"))

    assert (task.status.state, began) == (S.CANCELED, [])


@pytest.mark.req("AMB-13", "B087")
async def test_code_that_ignores_it_is_waited_for_briefly_and_the_task_is_shown_as_it_is(server: Server) -> None:
    agent = Agent("Stubborn", description="Does not let itself be interrupted.")
    step, more = Step(), Step()

    @agent.task
    async def work(ctx):
        try:
            await step()
        except asyncio.CancelledError:
            await more()
        return "finished"

    client = await server(agent, cancel_wait=0.05)
    task = await client.send("go", wait=False)
    await within(step.reached.wait())

    shown = await within(client.cancel(task))

    assert shown.status.state is S.WORKING
    more.go()
    done = await reaches(client, task, S.COMPLETED)
    assert texts(done) == ["finished"]
    with pytest.raises(TaskNotCancelableError):
        await client.cancel(task)
    assert held(server.app) == NOTHING


async def test_code_that_ends_by_itself_when_interrupted_decides_how(server: Server) -> None:
    agent = Agent("Saving", description="Saves what it has.")
    step = Step()

    @agent.task
    async def work(ctx):
        try:
            await step()
        except asyncio.CancelledError:
            return "what there was"

    client = await server(agent)
    task = await client.send("go", wait=False)
    await within(step.reached.wait())

    with pytest.raises(TaskNotCancelableError):
        await within(client.cancel(task))

    assert texts(await client.get_task(task)) == ["what there was"]


async def test_an_agent_of_events_that_just_stops_when_interrupted_is_canceled(server: Server) -> None:
    agent = Agent("Events", description="Stops.")
    step = Step()

    @agent.events
    async def work(ctx):
        yield status(S.WORKING)
        try:
            await step()
        except asyncio.CancelledError:
            return

    client = await server(agent)
    task = await client.send("go", wait=False)
    await within(step.reached.wait())

    assert (await within(client.cancel(task))).status.state is S.CANCELED


@pytest.mark.req("CANCEL-01")
async def test_a_waiting_task_is_canceled_live_and_stored(durable: Server) -> None:
    agent = Agent("Asking", description="Asks.")

    @agent.task
    async def work(ctx):
        return str(await ctx.ask("?"))

    client = await durable(agent)
    live, stored = await client.send("a"), await client.send("b")
    stream = await durable.app.operations.stream(SUBSCRIBE_TO_TASK, SubscribeToTaskRequest(id=live.id), CallContext())
    await within(stream.next_batch())
    assert (await within(client.cancel(live))).status.state is S.CANCELED
    assert [event.response async for event in stream][-1].status_update.status.state is S.CANCELED
    await durable.stop()
    client = await durable(agent)

    assert (await within(client.cancel(stored))).status.state is S.CANCELED

    for task in (live, stored):
        with pytest.raises(UnsupportedOperationError):
            await client.send("late", task_id=task.id)
    assert held(durable.app) == NOTHING


@pytest.mark.req("CANCEL-02", "CANCEL-03", "CANCEL-04", "AMB-12")
async def test_what_is_over_cannot_be_canceled_but_canceling_twice_is_fine(either: Server) -> None:
    step = Step()
    client = await either(stepping(step))
    canceled = await client.send("go", wait=False)
    await raw_cancel(either, canceled.id)
    step.go()
    done = await client.send("go")

    again = await raw_cancel(either, canceled.id)

    assert again == await client.get_task(canceled)
    with pytest.raises(TaskNotCancelableError):
        await raw_cancel(either, done.id)
    with pytest.raises(TaskNotFoundError):
        await raw_cancel(either, "unknown")
    assert held(either.app) == NOTHING


@pytest.mark.req("CANCEL-04", "B085")
async def test_two_cancels_at_once_interrupt_once_and_both_succeed(either: Server) -> None:
    agent = Agent("Tidy", description="Cleans up when interrupted.")
    step, cleaning = Step(), Step()
    cleaned: list[str] = []

    @agent.task
    async def work(ctx):
        try:
            await step()
        finally:
            await cleaning()
            cleaned.append("done")

    client = await either(agent)
    task = await client.send("go", wait=False)
    await within(step.reached.wait())
    cancels = [asyncio.create_task(raw_cancel(either, task.id)) for _ in range(5)]
    await within(cleaning.reached.wait())
    for _ in range(10):
        await asyncio.sleep(0)
    cleaning.go()

    outcomes = await within(asyncio.gather(*cancels))

    assert {outcome.status.state for outcome in outcomes} == {S.CANCELED}
    assert cleaned == ["done"]
    assert held(either.app) == NOTHING


async def test_a_canceler_who_leaves_changes_nothing_and_leaves_nothing(server: Server) -> None:
    agent = Agent("Slow", description="Takes its time to go.")
    step, cleaning = Step(), Step()

    @agent.task
    async def work(ctx):
        try:
            await step()
        finally:
            await cleaning()

    client = await server(agent)
    task = await client.send("go", wait=False)
    await within(step.reached.wait())
    canceling = asyncio.create_task(client.cancel(task))
    await within(cleaning.reached.wait())
    canceling.cancel()
    await asyncio.gather(canceling, return_exceptions=True)
    cleaning.go()

    await reaches(client, task, S.CANCELED)
    await until(lambda: held(server.app) == NOTHING)


@pytest.mark.req("B085", "CANCEL-02")
@pytest.mark.parametrize("shape", ["task", "events"])
async def test_of_a_cancel_and_an_end_one_wins_everywhere(either: Server, shape: str) -> None:
    agent = Agent("Racing", description="Ends after some turns of the loop.")

    async def turns(ctx) -> None:
        for _ in range(int(ctx.text)):
            await asyncio.sleep(0)

    if shape == "task":

        @agent.task
        async def work(ctx):
            await turns(ctx)
            return "done"
    else:

        @agent.events
        async def events(ctx):
            yield status(S.WORKING)
            await turns(ctx)
            yield status(S.COMPLETED)

    client = await either(agent)
    rounds = [await within(race(either, client, n)) for n in range(100)]

    for answer, streamed, waited, stored in rounds:
        assert streamed == [stored]
        assert waited is stored
        assert answer in (stored, "not cancelable")
        assert (answer == "not cancelable") == (stored is S.COMPLETED)
    if not either.app.runtime._store.durable:
        assert {stored for *_, stored in rounds} == {S.COMPLETED, S.CANCELED}
    assert held(either.app) == NOTHING


async def race(server: Server, client: Client, number: int):
    """One task, canceled while it ends: what the canceler, a stream, a waiting caller and the store say."""
    task = await client.send(str(number % 12 + 3), wait=False)
    streamed, answer = [], None
    try:
        stream = client.subscribe(task)
        waiting = asyncio.create_task(client.wait(task))
        for _ in range(number % 5):
            await asyncio.sleep(0)
        try:
            answer = (await raw_cancel(server, task.id)).status.state
        except TaskNotCancelableError:
            answer = "not cancelable"
        async for event in stream:
            event_status = getattr(event, "status", None)
            if event_status is not None and event_status.state in (S.COMPLETED, S.CANCELED):
                streamed.append(event_status.state)
    finally:
        result = await waiting
    return answer, streamed, result.state, (await client.get_task(task)).status.state


@pytest.mark.req("B087")
async def test_a_function_in_a_thread_is_left_behind(server: Server) -> None:
    agent = Agent("Thread", description="Works in a thread.")
    began, end = threading.Event(), threading.Event()

    @agent.task
    def work(ctx):
        began.set()
        end.wait(5)
        return "late"

    client = await server(agent)
    task = await client.send("go", wait=False)
    await asyncio.to_thread(began.wait, 5)

    canceled = await within(client.cancel(task))
    end.set()

    assert canceled.status.state is S.CANCELED
    assert texts(await client.get_task(task)) == []


async def test_a_message_that_races_a_cancel_is_kept_or_refused(server: Server) -> None:
    agent = Agent("Asking", description="Asks.")

    @agent.task
    async def work(ctx):
        return str(await ctx.ask("?"))

    client = await server(agent)
    for _ in range(30):
        task = await client.send("go")
        answers = await within(
            asyncio.gather(client.cancel(task), client.send([Part(text="x")], task=task), return_exceptions=True)
        )
        stored = await client.get_task(task)
        assert stored.status.state in (S.CANCELED, S.COMPLETED)
        assert isinstance(answers[1], UnsupportedOperationError) or len(stored.history) >= 3
    assert held(server.app) == NOTHING
