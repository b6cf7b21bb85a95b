"""What a lost process, or an orderly end, leaves: nothing is stuck, and nothing that was told is lost."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3

import pytest

from dragoman import Agent, App
from dragoman.errors import A2AError, UnavailableError
from dragoman.model import SEND_STREAMING_MESSAGE, SUBSCRIBE_TO_TASK, Message, Part, Role, SubscribeToTaskRequest
from dragoman.ports.operations import CallContext
from dragoman.runtime.runs import Runs
from tests.runtime.running import NOTHING, S, Server, Step, held, reaches, said, status, texts, until, within
from tests.runtime.test_streams import request

LOST = "The process that worked on this task was lost, and the work is not safe to repeat."
SHUT = "The agent was shut down while it worked on this task."


class Work:
    """An agent whose first run of the message ``wait`` never ends."""

    def __init__(self, *, rerun: bool = False) -> None:
        self.agent = Agent("Working", description="Works.")
        self.step = Step()
        self.runs: list[tuple[str, bool]] = []
        self.effects = 0

        @self.agent.task(rerun=rerun)
        async def work(ctx):
            self.runs.append((ctx.text, ctx.recovered))
            await ctx.update("begun")
            if ctx.text == "ask":
                effect = await ctx.once("effect", self.effect)
                first = await ctx.ask("First?")
                await ctx.update("between")
                second = await ctx.ask("Second?")
                return f"{effect} {first} {second}"
            if not ctx.recovered:
                await ctx.artifact("half")
                await self.step()
            return f"{ctx.text} {ctx.recovered}"

    async def effect(self) -> int:
        self.effects += 1
        return self.effects


async def test_a_task_of_a_lost_process_fails_with_a_plain_message(durable: Server) -> None:
    work = Work()
    client = await durable(work.agent)
    task = await client.send("wait", wait=False)
    await within(work.step.reached.wait())
    await reaches(client, task, S.WORKING)
    await until(lambda: held(durable.app)["live"] == 1 and not durable.app.runtime._registry._live[task.id].backlog)
    await durable.crash()

    client = await durable(work.agent)

    failed = await reaches(client, task, S.FAILED)
    assert said(failed) == LOST
    assert texts(failed) == ["half"]
    assert work.runs == [("wait", False)]
    assert held(durable.app) == NOTHING


async def test_a_task_that_may_be_run_again_is_and_completes(durable: Server) -> None:
    work = Work(rerun=True)
    client = await durable(work.agent)
    task = await client.send("wait", wait=False, metadata={"n": 1})
    await within(work.step.reached.wait())
    await until(lambda: not durable.app.runtime._registry._live[task.id].backlog)
    await durable.crash()

    client = await durable(work.agent)

    done = await reaches(client, task, S.COMPLETED)
    assert texts(done) == ["wait True"]
    assert work.runs == [("wait", False), ("wait", True)]


async def test_a_process_that_starts_while_the_lease_still_runs_takes_over_within_two_leases(durable: Server) -> None:
    work = Work()
    client = await durable(work.agent, lease=0.3)
    task = await client.send("wait", wait=False)
    await within(work.step.reached.wait())
    runtime = durable.app.runtime
    await until(lambda: not runtime._registry._live[task.id].backlog)
    beat = runtime._store.heartbeat

    async def keep(worker: str, until_ms: int) -> None:
        """The crash cannot shorten the lease."""

    runtime._store.heartbeat = keep
    await durable.crash()
    runtime._store.heartbeat = beat

    client = await durable(work.agent, lease=0.3)
    assert (await client.get_task(task)).status.state is S.WORKING

    assert said(await reaches(client, task, S.FAILED, seconds=1.0)) == LOST


@pytest.mark.req("B091")
async def test_a_question_survives_and_the_handler_finds_its_answers(durable: Server) -> None:
    work = Work()
    client = await durable(work.agent)
    task = await client.send("ask")
    await durable.crash()
    client = await durable(work.agent)

    task = await within(client.send("one", task=task))
    assert (task.status.state, said(task)) == (S.INPUT_REQUIRED, "Second?")
    await durable.crash()
    client = await durable(work.agent)
    done = await within(client.send("two", task=task))

    assert texts(done) == ["1 one two"]
    assert work.effects == 1
    agents = [m.parts[0].text for m in done.history if m.role is Role.AGENT]
    assert agents == ["begun", "First?", "between", "Second?"]
    assert work.runs == [("ask", False), ("ask", True), ("ask", True)]


async def test_tasks_that_never_started_are_started_within_the_slots(durable: Server) -> None:
    work = Work()
    client = await durable(work.agent, running_tasks=1)
    first = await client.send("wait", wait=False)
    waiting = [await client.send(f"{n}", wait=False) for n in range(5)]
    await within(work.step.reached.wait())
    await durable.crash()

    client = await durable(work.agent, running_tasks=1)

    assert (held(durable.app)["running"], held(durable.app)["waiting"]) == (1, 4)
    states = [(await client.get_task(task)).status.state for task in waiting]
    assert sorted(state.name for state in states) == ["SUBMITTED"] * 4 + ["WORKING"]
    work.step.go()
    for task in waiting:
        await reaches(client, task, S.COMPLETED)
    assert sorted(work.runs[1:]) == [(f"{n}", False) for n in range(5)]
    assert (await client.get_task(first)).status.state is S.FAILED


@pytest.mark.req("B079")
async def test_messages_that_a_task_got_before_it_started_are_not_lost(durable: Server) -> None:
    agent = Agent("Answers", description="Wants two answers.")
    step = Step()

    @agent.task
    async def work(ctx):
        if ctx.text == "wait":
            await step()
        return f"{await ctx.ask('?')} {await ctx.ask('?')}"

    client = await durable(agent, running_tasks=1)
    await client.send("wait", wait=False)
    task = await client.send("go", wait=False)
    for text in ("one", "two"):
        await client.send(text, task=task, wait=False)
    await durable.crash()
    client = await durable(agent)

    assert texts(await reaches(client, task, S.COMPLETED)) == ["one two"]


async def test_an_orphan_that_cannot_be_read_does_not_keep_the_others_waiting(durable: Server) -> None:
    work = Work()
    client = await durable(work.agent)
    tasks = [await client.send("wait", wait=False) for _ in range(4)]
    await until(lambda: not any(live.backlog for live in durable.app.runtime._registry.all()))
    await durable.crash()
    with contextlib.closing(sqlite3.connect(durable.url.removeprefix("sqlite:///"))) as database:
        database.execute("UPDATE dragoman_segments SET payload = 'damaged' WHERE task_id = ?", (tasks[0].id,))
        database.commit()

    client = await durable(work.agent)

    for task in tasks[1:]:
        assert said(await reaches(client, task, S.FAILED)) == LOST


async def test_a_crash_between_writes_leaves_a_log_without_gaps(durable: Server) -> None:
    agent = Agent("Chunks", description="Says many words.")

    @agent.task
    async def chunks(ctx):
        for n in range(5000):
            yield f"{n} "
            await asyncio.sleep(0)

    client = await durable(agent)
    tasks = [await client.send("go", wait=False) for _ in range(5)]
    await until(lambda: all(live.number > 20 for live in durable.app.runtime._registry.all()))
    await durable.crash()

    client = await durable(agent)

    for task in tasks:
        failed = await reaches(client, task, S.FAILED, S.COMPLETED)
        found = texts(failed)
        assert found == [f"{n} " for n in range(len(found))]
        records = await durable.app.runtime._store.records(task.id, 0, 10_000)
        assert [record.number for record in records] == list(range(1, len(records) + 1))


async def test_of_two_workers_the_one_that_lost_its_lease_is_refused_and_stops(durable: Server) -> None:
    work = Work()
    old = await durable(work.agent, lease=3600)
    task = await old.send("wait", wait=False)
    blocked = asyncio.create_task(old.send("more", task=task))
    await within(work.step.reached.wait())
    runtime = durable.app.runtime
    await until(lambda: runtime._registry._live[task.id].number == 4)
    await runtime._store.heartbeat(runtime._registry.worker, 1)

    new = await durable(work.agent, lease=3600)
    taken = await reaches(new, task, S.FAILED)
    work.step.go()

    with pytest.raises(UnavailableError, match="handled elsewhere"):
        await within(blocked)
    assert said(taken) == LOST
    assert await old.get_task(task) == taken == await new.get_task(task)
    assert [held(app) for app in durable.apps] == [NOTHING, NOTHING]


# An orderly end.


@pytest.mark.req("ERR-11")
async def test_at_shutdown_new_work_is_refused_and_running_work_may_end(durable: Server) -> None:
    work = Work()
    client = await durable(work.agent, shutdown_grace=5)
    blocked = asyncio.create_task(client.send("wait"))
    stream = await durable.app.operations.stream(SEND_STREAMING_MESSAGE, request("wait"), CallContext())
    await within(work.step.reached.wait())

    stopping = asyncio.create_task(durable.app.stop())
    await until(lambda: durable.app.runtime.is_stopping)
    with pytest.raises(UnavailableError) as caught:
        await client.send("late")
    assert caught.value.retry_after
    work.step.go()

    assert (await within(blocked)).status.state is S.COMPLETED
    events = [event async for event in stream]
    assert events[-1].response.status_update.status.state is S.COMPLETED
    await within(stopping)


@pytest.mark.req("ERR-11", "AMB-10")
async def test_work_that_does_not_end_in_time_is_interrupted_and_recorded(durable: Server) -> None:
    work = Work()
    client = await durable(work.agent, shutdown_grace=0.05)
    blocked = asyncio.create_task(client.send("wait"))
    stream = await durable.app.operations.stream(SEND_STREAMING_MESSAGE, request("wait"), CallContext())
    await within(work.step.reached.wait())

    await durable.stop()

    task = await within(blocked)
    assert (task.status.state, said(task)) == (S.FAILED, SHUT)
    assert [event async for event in stream][-1].response.status_update.status.state is S.FAILED
    client = await durable(work.agent)
    assert (await client.get_task(task)).status.state is S.FAILED


@pytest.mark.req("ERR-11", "AMB-10")
async def test_streams_and_callers_of_work_that_goes_on_later_are_told_so(durable: Server) -> None:
    work = Work(rerun=True)
    client = await durable(work.agent, shutdown_grace=0.02)
    blocked = asyncio.create_task(client.send("wait"))
    stream = await durable.app.operations.stream(SEND_STREAMING_MESSAGE, request("wait"), CallContext())
    await within(work.step.reached.wait())

    async def read() -> None:
        async for _ in stream:
            pass

    reading = asyncio.create_task(read())
    await durable.stop()

    for waiting in (blocked, reading):
        with pytest.raises(UnavailableError, match="shutting down"):
            await within(waiting)
    client = await durable(work.agent)
    tasks = (await client.list_tasks()).tasks
    for task in tasks:
        assert texts(await reaches(client, task, S.COMPLETED)) == ["wait True"]


@pytest.mark.req("ERR-11")
async def test_waiting_tasks_keep_waiting_over_a_shutdown_and_their_streams_end_at_once(durable: Server) -> None:
    work = Work()
    client = await durable(work.agent, shutdown_grace=5)
    task = await client.send("ask")

    stream = await durable.app.operations.stream(SUBSCRIBE_TO_TASK, SubscribeToTaskRequest(id=task.id), CallContext())
    await within(stream.next_batch())
    reading = asyncio.create_task(stream.next_batch())
    await asyncio.sleep(0)

    async with asyncio.timeout(2):
        await durable.app.stop()

    with pytest.raises(UnavailableError, match="shutting down"):
        await within(reading)
    client = await durable(work.agent)
    task = await within(client.send("one", task=task))
    assert said(task) == "Second?"


async def test_an_answer_that_came_just_before_the_shutdown_is_worked_on(durable: Server) -> None:
    agent = Agent("Asking", description="Asks.")

    @agent.task
    async def work(ctx):
        answer = await ctx.ask("?")
        await asyncio.sleep(0.02)
        return str(answer)

    client = await durable(agent, shutdown_grace=5)
    task = await client.send("go")
    runtime = durable.app.runtime
    live = runtime._registry._live[task.id]
    stopping = asyncio.create_task(runtime.stop())  # its first step comes before that of the handler
    live.accept(Message(message_id="m2", role=Role.USER, parts=[Part(text="yes")]))
    done = live.wait(1, frozenset({S.COMPLETED, S.FAILED}))

    assert texts(await within(done)) == ["yes"]
    await within(stopping)


async def test_a_question_during_the_shutdown_is_kept_for_later(durable: Server) -> None:
    work = Work()
    agent = Agent("Asking", description="Asks late.")

    @agent.task
    async def late(ctx):
        await work.step()
        return str(await ctx.ask("?"))

    client = await durable(agent, shutdown_grace=5)
    task = await client.send("go", wait=False)
    await within(work.step.reached.wait())
    stopping = asyncio.create_task(durable.app.stop())
    await until(lambda: durable.app.runtime.is_stopping)
    work.step.go()
    async with asyncio.timeout(2):
        await stopping
    client = await durable(agent)

    assert (await client.get_task(task)).status.state is S.INPUT_REQUIRED
    assert texts(await within(client.send("yes", task=task))) == ["yes"]


async def test_tasks_that_wait_for_a_slot_are_started_by_the_next_process(durable: Server) -> None:
    work = Work()
    client = await durable(work.agent, running_tasks=1, shutdown_grace=0.02)
    await client.send("wait", wait=False)
    waiting = await client.send("later", wait=False)
    await within(work.step.reached.wait())
    await durable.stop()
    work.step.go()
    client = await durable(work.agent)

    assert texts(await reaches(client, waiting, S.COMPLETED)) == ["half", "later False"]


async def test_a_message_queued_at_the_shutdown_ends_its_task_in_words(durable: Server) -> None:
    agent = Agent("Events", description="A run for each message.")
    step = Step()

    @agent.events
    async def work(ctx):
        yield status(S.WORKING)
        await step()

    client = await durable(agent, shutdown_grace=5)
    task = await client.send("go", wait=False)
    await within(step.reached.wait())
    await client.send("more", task=task, wait=False)
    stopping = asyncio.create_task(durable.app.stop())
    await until(lambda: durable.app.runtime.is_stopping)
    step.go()
    await within(stopping)
    client = await durable(agent)

    assert said(await client.get_task(task)) == SHUT


async def test_stopping_twice_and_stopping_what_never_started_is_fine(durable: Server) -> None:
    work = Work()
    await durable(work.agent)
    await within(asyncio.gather(durable.app.stop(), durable.app.stop()))
    await durable.app.stop()
    await App(work.agent).stop()


async def test_a_handler_that_does_not_react_to_its_interruption_does_not_hold_the_shutdown_for_ever(
    server: Server, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = Agent("Stubborn", description="Cannot be interrupted.")
    step = asyncio.Event()

    @agent.task
    async def work(ctx):
        while not step.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await step.wait()

    wait_idle = Runs._wait_idle

    async def brief(self: Runs, seconds: float) -> None:
        await wait_idle(self, 0.02)

    monkeypatch.setattr(Runs, "_wait_idle", brief)
    client = await server(agent)
    await client.send("go", wait=False)
    await within(server.app.stop())

    assert "did not react" in caplog.text
    step.set()
    await until(lambda: held(server.app)["active"] == 0)


# Retention and memory.


@pytest.mark.req("ERR-10")
async def test_finished_tasks_are_removed_after_their_time_and_others_stay(either: Server) -> None:
    work = Work()
    client = await either(work.agent, retention=0.0, lease=0.06)
    work.step.go()
    done = await client.send("wait")
    asking = await client.send("ask")

    async with asyncio.timeout(5):
        while (await client.list_tasks()).total_size > 1:  # noqa: ASYNC110
            await asyncio.sleep(0.01)

    with pytest.raises(A2AError, match="not found"):
        await client.get_task(done)
    assert (await client.get_task(asking)).status.state is S.INPUT_REQUIRED


@pytest.mark.req("B171")
async def test_tasks_that_wait_or_are_over_take_no_memory(durable: Server) -> None:
    agent = Agent("Events", description="Asks, or ends.")

    @agent.events
    async def work(ctx):
        yield status(S.INPUT_REQUIRED if ctx.text == "ask" else S.COMPLETED)

    client = await durable(agent)
    for _ in range(10):
        await within(asyncio.gather(*(client.send(text) for text in ("ask", "end") for _ in range(100))), 20)

    await until(lambda: held(durable.app) == NOTHING)
    assert (await client.list_tasks(status=S.INPUT_REQUIRED)).total_size == 1000
    assert (await client.list_tasks(status=S.COMPLETED)).total_size == 1000


@pytest.mark.req("B171")
async def test_callers_who_vanish_leave_nothing(either: Server) -> None:
    work = Work()
    client = await either(work.agent)
    callers = [asyncio.create_task(client.send(text)) for text in ("wait", "ask") for _ in range(50)]
    await until(lambda: len(work.runs) == 100)
    for caller in callers:
        caller.cancel()
    await asyncio.gather(*callers, return_exceptions=True)
    work.step.go()
    await until(lambda: held(either.app)["live"] == held(either.app)["suspended"] == 50)

    assert all(not live._waiters for live in either.app.runtime._registry.all())
    await until(lambda: not any(live.backlog for live in either.app.runtime._registry.all()))
    for task in (await client.list_tasks(status=S.INPUT_REQUIRED, page_size=100)).tasks:
        await client.cancel(task)
    assert held(either.app) == NOTHING
