"""Persist, then publish: nobody sees what is not stored, and a store that fails leaves nobody waiting."""

from __future__ import annotations

import asyncio

import pytest

from dragoman import Agent, Fail
from dragoman.errors import A2AError, InternalError, StoreError
from dragoman.model import Task
from dragoman.ports.store import Scope
from dragoman.runtime.committer import MAX_GROUP
from tests.runtime.running import (
    NOTHING,
    FaultyStore,
    S,
    Server,
    Step,
    database,
    held,
    reaches,
    said,
    texts,
    until,
    within,
)

agent = Agent("Chunks", description="Says eleven words, one after the other.")
WORDS = [f"word-{n} " for n in range(11)]


@agent.task
async def chunks(ctx):
    for word in WORDS:
        yield word
        await asyncio.sleep(0)


async def test_nothing_is_seen_before_it_is_stored(server: Server) -> None:
    store = FaultyStore()
    client = await server(agent, store=store)
    store.hold()
    sending = asyncio.create_task(client.send("go", wait=False))
    streamed: list[object] = []

    async def read() -> None:
        async for event in client.stream("go"):
            streamed.append(event)

    reading = asyncio.create_task(read())
    await within(store.held.wait())
    for _ in range(20):
        await asyncio.sleep(0)

    assert not sending.done()
    assert streamed == []
    assert (await client.list_tasks()).total_size == 0

    store.release()
    await within(sending)
    await within(reading)
    assert len(streamed) == len(WORDS) + 2


async def test_records_are_numbered_without_gap_and_events_share_writes(server: Server) -> None:
    store = FaultyStore()
    client = await server(agent, store=store)

    tasks = await within(asyncio.gather(*(client.send("go") for _ in range(50))))

    assert [texts(task) for task in tasks] == [WORDS] * 50
    for task in tasks:
        records = await store.records(task.id, 0, 100)
        assert [record.number for record in records] == list(range(1, len(WORDS) + 3))
    assert store.appends < 50 * (len(WORDS) + 2) / 5


async def test_a_group_is_bounded_and_has_each_task_once(server: Server) -> None:
    store = FaultyStore()
    client = await server(agent, store=store)
    store.hold()
    first = asyncio.create_task(client.send("go"))
    await within(store.held.wait())
    rest = [asyncio.create_task(client.send("go")) for _ in range(MAX_GROUP + 20)]
    await until(lambda: len(server.app.runtime._committer._queue) > MAX_GROUP)

    store.release()
    await within(asyncio.gather(first, *rest), 20)

    assert max(len(batch) for batch in store.batches) <= MAX_GROUP
    assert all(len({append.task_id for append in batch}) == len(batch) for batch in store.batches)


@pytest.mark.req("B081", "B179")
@pytest.mark.parametrize("number", range(1, 13))
async def test_a_failed_write_is_an_error_for_everybody_who_waits_and_the_task_does_not_stay_working(
    server: Server, number: int
) -> None:
    store = FaultyStore()
    one_by_one = Agent("Slow", description="Each word is stored before the next.")

    @one_by_one.task
    async def slow(ctx):
        for word in WORDS:
            yield word
            await ctx._turn._live.drain(0)

    client = await server(one_by_one, store=store)
    store.fail_append(number)

    with pytest.raises(InternalError):
        await within(client.send("go"))

    for found in (await client.list_tasks(include_artifacts=True)).tasks:
        done = await reaches(client, found.id, S.FAILED)
        assert said(done) == "The work on this task could not be stored."
        assert texts(done) == WORDS[: number - 1]
    assert (await client.list_tasks()).total_size == (0 if number == 1 else 1)
    assert texts(await within(client.send("again"))) == WORDS
    assert held(server.app) == NOTHING


@pytest.mark.req("B081")
async def test_a_failed_write_ends_streams_with_an_error(server: Server) -> None:
    store = FaultyStore()
    step = Step()
    waiting = Agent("Waiting", description="Waits, then says something.")

    @waiting.task
    async def work(ctx):
        yield "before"
        await step()
        yield "after"

    client = await server(waiting, store=store)
    seen: list[object] = []

    async def read() -> None:
        async for event in client.stream("go", timeout=5):
            seen.append(event)

    reading = asyncio.create_task(read())
    await until(lambda: len(seen) == 2)
    store.fail_append(1)
    step.go()

    with pytest.raises(InternalError):
        await within(reading)
    assert len(seen) == 2
    await until(lambda: held(server.app) == NOTHING)


@pytest.mark.req("B081")
async def test_a_write_that_was_done_although_it_failed_is_found_out(server: Server) -> None:
    store = FaultyStore()
    client = await server(agent, store=store)
    store.fail_append(1, after_write=True)

    with pytest.raises(InternalError):
        await within(client.send("go"))

    (found,) = (await client.list_tasks()).tasks
    done = await reaches(client, found.id, S.FAILED, S.COMPLETED)
    assert said(done) in ("The work on this task could not be stored.", "")


async def test_what_was_staged_while_a_write_failed_never_happened(server: Server) -> None:
    store = FaultyStore()
    first, second = Step(), Step()
    three = Agent("Three", description="Publishes while a write is on its way.")

    @three.task
    async def work(ctx):
        await ctx.artifact("one")
        await first()
        await ctx.artifact("two")
        await second()
        return "three"

    client = await server(three, store=store)
    task = await client.send("go", wait=False)
    await within(first.reached.wait())
    await until(lambda: not server.app.runtime._registry._live[task.id].backlog)
    store.hold()
    store.fail_append(1)
    first.go()
    await within(store.held.wait())
    second.go()
    await until(lambda: server.app.runtime._registry._live[task.id].state is S.COMPLETED)
    store.release()

    done = await reaches(client, task, S.FAILED)

    assert texts(done) == ["one"]
    assert all(append.records for batch in store.batches for append in batch)
    (listed,) = (await client.list_tasks()).tasks
    assert listed.status == done.status


@pytest.mark.req("B081")
async def test_a_store_that_is_down_for_long_gives_errors_and_then_heals(server: Server) -> None:
    store = FaultyStore()
    step = Step()
    waiting = Agent("Waiting", description="Waits, then says something.")

    @waiting.task
    async def work(ctx):
        if ctx.text == "wait":
            await step()
        return "done"

    client = await server(waiting, store=store)
    task = await client.send("wait", wait=False)
    store.fail_append(1, forever=True)
    store.failing_reads = True
    step.go()
    for _ in range(5):
        with pytest.raises(InternalError):
            await within(client.send("go"))
        with pytest.raises(InternalError):
            await within(client.get_task("unknown"))

    store.heal()

    assert texts(await within(client.send("go"))) == ["done"]
    assert (await reaches(client, task, S.FAILED)).status.state is S.FAILED


@pytest.mark.req("B081")
async def test_failing_reads_are_errors_and_leave_nothing_behind(server: Server) -> None:
    store = FaultyStore()
    client = await server(agent, store=store)
    task = await client.send("go")
    await until(lambda: held(server.app) == NOTHING)
    store.failing_reads = True

    async def stream() -> None:
        async for _ in client.subscribe(task):
            pass

    for call in (client.get_task(task), client.cancel(task), client.list_tasks(), client.send("x", task_id=task.id)):
        with pytest.raises(InternalError, match="store failed"):
            await within(call)
    with pytest.raises(A2AError):
        await within(stream())

    assert held(server.app) == NOTHING


async def test_a_store_that_raises_what_it_may_not_does_not_stop_the_writer(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken(FaultyStore):
        broken = ""

        async def append(self, batch):
            if self.broken == "raises":
                raise OSError("secret path")
            return (await super().append(batch)) if not self.broken else []

    store = Broken()
    client = await server(agent, store=store)
    for how in ("raises", "forgets"):
        store.broken = how
        with pytest.raises(InternalError) as caught:
            await within(client.send("go"))
        assert "secret" not in str(caught.value)

    store.broken = ""
    assert texts(await within(client.send("go"))) == WORDS
    assert "unexpected error" in caplog.text


async def test_an_event_that_is_no_json_fails_its_task_and_no_other(either: Server) -> None:
    bad = Agent("Bad", description="Publishes what cannot be written.")

    @bad.task
    async def work(ctx):
        if ctx.text == "text":
            await ctx.update("\ud800")
        elif ctx.text == "metadata":
            await ctx.update("x", metadata={"a": object()})
        return ctx.text

    client = await either(bad)
    tasks = await within(asyncio.gather(*(client.send(text) for text in ("text", "good", "metadata"))))

    assert [task.status.state for task in tasks] == [S.FAILED, S.COMPLETED, S.FAILED]
    assert said(tasks[0]) == "The agent failed while it worked on this task."


async def test_a_failing_memo_fails_the_task(server: Server) -> None:
    store = FaultyStore()
    once = Agent("Once", description="Does something once.")

    @once.task
    async def work(ctx):
        async def value() -> int:
            return 7

        return str(await ctx.once("key", value))

    client = await server(once, store=store)
    store.failing_memos = True
    task = await within(client.send("go"))
    store.heal()

    assert task.status.state is S.FAILED
    assert texts(await within(client.send("go"))) == ["7"]


async def test_a_handler_waits_while_too_much_of_it_is_unsaved(server: Server) -> None:
    store = FaultyStore()
    published = 0
    fast = Agent("Fast", description="Publishes as fast as it may.")

    @fast.task
    async def work(ctx):
        nonlocal published
        for _ in range(200):
            yield "x"
            published += 1

    client = await server(fast, store=store, unsaved_events=10)
    store.hold()
    sending = asyncio.create_task(client.send("go"))
    await within(store.held.wait())
    for _ in range(100):
        await asyncio.sleep(0)

    assert published <= 12
    store.release()
    assert len(texts(await within(sending))) == 200


@pytest.mark.req("B081")
async def test_a_slow_store_delays_and_nothing_else(server: Server, tmp_path) -> None:
    class Slow(FaultyStore):
        async def append(self, batch):
            await asyncio.sleep(0.05)
            return await super().append(batch)

    store = Slow(database(tmp_path))
    client = await server(agent, store=store)

    tasks: list[Task] = await within(asyncio.gather(*(client.send("go") for _ in range(30))))

    assert [texts(task) for task in tasks] == [WORDS] * 30
    assert store.appends < 30


@pytest.mark.req("B101")
async def test_what_a_caller_does_with_an_answer_changes_nothing(server: Server) -> None:
    client = await server(agent)
    store = server.app.runtime._store
    task = await client.send("go")

    stored = await store.task(task.id, Scope(agent=agent.name))
    stored.task.artifacts.clear()
    stored.task.history.clear()
    stored.task.status.state = S.FAILED

    again = await client.get_task(task)
    assert (again.status.state, texts(again), len(again.history)) == (S.COMPLETED, WORDS, 1)


async def test_a_failure_that_is_meant_for_the_caller_is_stored(either: Server) -> None:
    failing = Agent("Failing", description="Fails.")

    @failing.task
    async def work(ctx):
        await ctx.artifact("half")
        raise Fail("There is no such thing.")

    client = await either(failing)
    task = await within(client.send("go"))

    assert (task.status.state, said(task), texts(task)) == (S.FAILED, "There is no such thing.", ["half"])
    assert (await client.get_task(task)).status == task.status


def test_a_store_error_is_no_error_of_the_protocol() -> None:
    assert not issubclass(StoreError, A2AError)
