"""Streams are cursors over one log: equal for all, bounded in memory, resumable."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from dragoman import RESUMABLE_STREAMS, Agent, Artifact, TaskStatus, TaskStatusUpdateEvent
from dragoman.errors import StoreError, UnavailableError, UnsupportedOperationError
from dragoman.model import (
    SEND_STREAMING_MESSAGE,
    SUBSCRIBE_TO_TASK,
    Message,
    Part,
    Role,
    SendMessageRequest,
    SubscribeToTaskRequest,
    Task,
    TaskState,
)
from dragoman.ports.operations import CallContext, EventStream
from dragoman.runtime import window as window_module
from tests.runtime.running import NOTHING, FaultyStore, S, Server, Step, held, reaches, status, until, within


def counting(step: Step | None = None, extensions: tuple[str, ...] = ()) -> Agent:
    """An agent that publishes as many words as it is told, and waits in the middle."""
    agent = Agent("Counting", description="Counts.", extensions=extensions)

    @agent.task
    async def count(ctx):
        number = int(ctx.text)
        for n in range(number):
            if step is not None and n == number // 2:
                await step()
            yield f"{n} "

    return agent


def request(text: str, **message: Any) -> SendMessageRequest:
    return SendMessageRequest(message=Message(message_id="m", role=Role.USER, parts=[Part(text=text)], **message))


async def begin(server: Server, text: str, **message: Any) -> EventStream:
    return await server.app.operations.stream(SEND_STREAMING_MESSAGE, request(text, **message), CallContext())


async def subscribe(server: Server, task: Task | str, after: int | None = None) -> EventStream:
    task_id = task if isinstance(task, str) else task.id
    extensions = (RESUMABLE_STREAMS,) if after is not None else ()
    context = CallContext(last_event_id=after, extensions=extensions)
    return await server.app.operations.stream(SUBSCRIBE_TO_TASK, SubscribeToTaskRequest(id=task_id), context)


async def rest(stream: EventStream) -> list[tuple[int | None, bytes]]:
    events: list[tuple[int | None, bytes]] = []
    async with stream:
        while batch := await within(stream.next_batch()):
            events += [(event.number, event.json) for event in batch]
    return events


def numbers(events: list[tuple[int | None, bytes]]) -> list[int | None]:
    return [number for number, _ in events]


@pytest.mark.req("STRM-01", "STRM-03", "STREAM-04", "STREAM-05", "STREAM-07")
async def test_many_subscribers_get_the_same_events_in_the_same_order(either: Server) -> None:
    step = Step()
    client = await either(counting(step))
    sender = await begin(either, "40")
    await within(step.reached.wait())
    (task,) = (await client.list_tasks()).tasks
    readers = [asyncio.create_task(rest(await subscribe(either, task))) for _ in range(50)]

    step.go()
    first, *others = await within(asyncio.gather(rest(sender), *readers))

    assert numbers(first) == list(range(1, 43))
    for events in others:
        assert b'"task"' in events[0][1][:10]
        assert events[1:] == first[events[0][0] :]
    await until(lambda: held(either.app) == NOTHING)


@pytest.mark.req("STRM-03")
async def test_an_event_is_encoded_once_for_all(server: Server) -> None:
    step = Step()
    await server(counting(step))
    streams = [await begin(server, "4")]
    await within(step.reached.wait())
    task_id = (await within(streams[0].next_batch()))[0].response.task.id
    streams += [await subscribe(server, task_id) for _ in range(5)]
    for stream in streams[1:]:
        await within(stream.next_batch())
    step.go()

    async def collect(stream: EventStream) -> list[Any]:
        return [event async for event in stream]

    collected = await within(asyncio.gather(*(collect(stream) for stream in streams)))

    for events in zip(*collected, strict=True):
        assert len({id(event.json) for event in events}) == 1


@pytest.mark.req("STRM-04", "B041")
async def test_a_stream_that_is_left_does_not_touch_the_task(server: Server) -> None:
    step = Step()
    client = await server(counting(step))
    stream = await begin(server, "10")
    await within(stream.next_batch())
    await stream.aclose()
    await stream.aclose()
    (task,) = (await client.list_tasks()).tasks

    later = await subscribe(server, task)
    step.go()
    events = await rest(later)

    assert (await client.get_task(task)).status.state is S.COMPLETED
    assert events[-1][0] == 12
    assert held(server.app) == NOTHING


@pytest.mark.req("STRM-04", "B041", "B171")
async def test_a_cancelled_reader_leaves_nothing_behind(server: Server) -> None:
    step = Step()
    await server(counting(step))
    streams = [await begin(server, "10") for _ in range(5)]
    reading = [asyncio.create_task(rest(stream)) for stream in streams]
    await until(lambda: all(stream._waiter is not None for stream in streams))

    for task in reading:
        task.cancel()
    await asyncio.gather(*reading, return_exceptions=True)
    step.go()

    await until(lambda: held(server.app) == NOTHING)


async def test_a_cancelled_next_batch_loses_no_event(server: Server) -> None:
    step = Step()
    await server(counting(step))
    stream = await begin(server, "6")
    await within(step.reached.wait())
    seen = list(await within(stream.next_batch()))
    while len(seen) < 4:
        seen += await within(stream.next_batch())
    for _ in range(3):
        waiting = asyncio.create_task(stream.next_batch())
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
    step.go()
    seen_numbers = [event.number for event in seen] + numbers(await rest(stream))

    assert seen_numbers == list(range(1, 9))


@pytest.mark.req("B051")
async def test_a_cursor_behind_the_window_reads_from_the_store(either: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(window_module, "WINDOW", 8)
    client = await either(counting())
    slow = await begin(either, "300")
    first = await within(slow.next_batch())
    quick = await begin(either, "1")
    await rest(quick)
    task_id = first[0].response.task.id
    await reaches(client, task_id, S.COMPLETED)

    events = [(event.number, event.json) for event in first] + await rest(slow)

    assert numbers(events) == list(range(1, 303))
    assert [json for _, json in events] == [
        r.event_json for r in await either.app.runtime._store.records(task_id, 0, 999)
    ]
    assert held(either.app) == NOTHING


@pytest.mark.req("B051")
async def test_the_window_is_bounded_in_events_and_in_bytes(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(window_module, "WINDOW", 50)
    monkeypatch.setattr(window_module, "WINDOW_BYTES", 20_000)
    step = Step()
    sizes: list[tuple[int, int]] = []
    agent = Agent("Large", description="Large events.")

    @agent.task
    async def large(ctx):
        live = ctx._turn._live
        for n in range(300):
            yield "x" * (2_000 if n > 150 else 1)
            await live.drain(0)
            sizes.append((len(live._window._events), sum(len(event.json) for event in live._window._events)))
        await step()

    await server(agent)
    stream = await begin(server, "go")
    await within(step.reached.wait())

    assert max(count for count, _ in sizes) <= 101
    assert max(size for _, size in sizes) <= 45_000
    step.go()
    assert numbers(await rest(stream)) == list(range(1, 303))


@pytest.mark.req("B051", "AMB-10")
async def test_a_reader_too_far_behind_is_cut_off_and_can_come_back(server: Server) -> None:
    step = Step()
    client = await server(counting(step, (RESUMABLE_STREAMS,)), stream_lag=20, unsaved_events=10)
    stream = await begin(server, "100")
    first = await within(stream.next_batch())
    await within(step.reached.wait())
    (task,) = (await client.list_tasks()).tasks
    await until(lambda: server.app.runtime._registry._live[task.id].number > 40)

    with pytest.raises(UnavailableError, match="fell too far behind"):
        await within(stream.next_batch())
    assert await within(stream.next_batch()) == []

    again = await subscribe(server, task)
    step.go()
    assert numbers(await rest(again))[-1] == 102
    assert first[0].number == 1


@pytest.mark.req("AMB-10")
async def test_an_idle_stream_ends_with_an_error_and_the_task_goes_on(server: Server) -> None:
    step = Step()
    client = await server(counting(step), stream_idle=0.05)
    stream = await begin(server, "4")
    await within(step.reached.wait())

    with pytest.raises(UnavailableError, match="Nothing happened for"):
        await rest(stream)

    step.go()
    (task,) = (await client.list_tasks()).tasks
    await reaches(client, task, S.COMPLETED)
    assert held(server.app) == NOTHING


asking = Agent("Asking", description="Asks twice.")


@asking.task
async def ask_twice(ctx):
    first = await ctx.ask("First?")
    second = await ctx.ask("Second?")
    return f"{first} {second}"


@pytest.mark.req("AMB-05", "SUB-02", "SUB-04", "SUB-06")
async def test_a_send_stream_ends_at_a_question_and_a_subscription_stays(either: Server) -> None:
    client = await either(asking)
    first = await rest(await begin(either, "go"))
    (task,) = (await client.list_tasks()).tasks
    subscription = asyncio.create_task(rest(await subscribe(either, task)))

    second = await rest(await begin(either, "one", task_id=task.id))
    third = await rest(await begin(either, "two", task_id=task.id))

    assert b"TASK_STATE_INPUT_REQUIRED" in first[-1][1]
    assert b"TASK_STATE_INPUT_REQUIRED" in second[-1][1]
    assert b"TASK_STATE_COMPLETED" in third[-1][1]
    events = await within(subscription)
    assert numbers(events) == list(range(events[0][0], third[-1][0] + 1))
    assert held(either.app) == NOTHING


@pytest.mark.req("AMB-05")
async def test_a_stream_whose_first_snapshot_asks_already_ends_there(server: Server) -> None:
    store = FaultyStore()
    client = await server(asking, store=store)
    task = await client.send("go")
    store.hold()
    opening = asyncio.create_task(begin(server, "one", task_id=task.id))
    await within(store.held.wait())
    for _ in range(10):
        await asyncio.sleep(0)
    store.release()

    events = await rest(await within(opening))

    assert b"TASK_STATE_INPUT_REQUIRED" in events[-1][1]


@pytest.mark.req("SUB-03")
async def test_there_is_nothing_to_subscribe_to_when_the_task_is_over(either: Server) -> None:
    client = await either(counting())
    task = await client.send("2")

    with pytest.raises(UnsupportedOperationError):
        await subscribe(either, task)


@pytest.mark.req("B047", "SUB-01", "SUB-02")
async def test_subscribing_while_the_task_ends_shows_the_end_or_is_refused(either: Server) -> None:
    step = Step()
    client = await either(counting(step))
    task = await client.send("2", wait=False)
    await within(step.reached.wait())

    async def follow(turns: int) -> str:
        for _ in range(turns):
            await asyncio.sleep(0)
        try:
            events = await rest(await subscribe(either, task))
        except UnsupportedOperationError:
            return "refused"
        assert b"COMPLETED" in events[-1][1]
        return "seen"

    step.go()
    outcomes = await within(asyncio.gather(*(follow(turns) for turns in range(200))))

    assert set(outcomes) <= {"seen", "refused"}
    assert "seen" in outcomes
    await until(lambda: held(either.app) == NOTHING)


@pytest.mark.req("B045", "SUB-04")
async def test_a_waiting_task_can_be_subscribed_to_after_a_restart_and_shows_what_follows(durable: Server) -> None:
    agent = Agent("Asking", description="Asks.")

    @agent.task
    async def ask(ctx):
        answer = await ctx.authorize("May I?") if ctx.text == "auth" else await ctx.ask("What?")
        return str(answer)

    client = await durable(agent)
    tasks = [await client.send(text) for text in ("auth", "ask")]
    await durable.stop()
    client = await durable(agent)

    for task in tasks:
        subscription = await subscribe(durable, task)
        snapshot = await within(subscription.next_batch())
        assert snapshot[0].response.task.status.state in (S.AUTH_REQUIRED, S.INPUT_REQUIRED)
        await client.send("answer", task=task)
        assert b"COMPLETED" in (await rest(subscription))[-1][1]


@pytest.mark.req("STRM-02", "B047")
async def test_a_reader_that_comes_back_gets_what_it_lacks_also_after_the_end_and_a_restart(durable: Server) -> None:
    agent = counting(extensions=(RESUMABLE_STREAMS,))
    client = await durable(agent)
    whole = await rest(await begin(durable, "20"))
    (task,) = (await client.list_tasks()).tasks

    async def check() -> None:
        for after in (0, 1, 7, 21):
            assert await rest(await subscribe(durable, task, after)) == whole[after:]
        for after in (22, 99):
            with pytest.raises(UnsupportedOperationError):
                await subscribe(durable, task, after)

    await check()
    await durable.stop()
    await durable(agent)
    await check()


async def test_resuming_a_live_task_goes_on_without_a_snapshot(server: Server) -> None:
    step = Step()
    client = await server(counting(step, (RESUMABLE_STREAMS,)))
    whole = asyncio.create_task(rest(await begin(server, "10")))
    await within(step.reached.wait())
    (task,) = (await client.list_tasks()).tasks
    at = (await client.get_task(task)).artifacts
    number = 1 + len(at[0].parts)
    streams = [await subscribe(server, task, after) for after in (2, number)]
    ahead = await subscribe(server, task, number + 5)
    step.go()

    events = await within(whole)
    assert await rest(streams[0]) == events[2:]
    assert await rest(streams[1]) == events[number:]
    assert b'"task"' in (await rest(ahead))[0][1][:10]


async def test_without_the_extension_the_last_event_id_means_nothing(server: Server) -> None:
    step = Step()
    client = await server(counting(step))
    task = await client.send("4", wait=False)
    await within(step.reached.wait())

    stream = await subscribe(server, task, 1)
    snapshot = await within(stream.next_batch())
    step.go()

    assert snapshot[0].response.task is not None
    await rest(stream)


async def test_a_stream_of_a_task_that_was_purged_under_it_ends_with_an_error(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(window_module, "WINDOW", 4)
    client = await server(counting(), unsaved_events=10)
    stream = await begin(server, "100")
    await within(stream.next_batch())
    (task,) = (await client.list_tasks()).tasks
    await reaches(client, task, S.COMPLETED)
    await server.app.runtime._store.purge(2**50, 10, client.card.name)

    with pytest.raises(Exception, match="not there any more"):
        await rest(stream)


@pytest.mark.req("B081")
async def test_a_failing_read_under_a_stream_ends_it_with_an_error_of_the_protocol(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(window_module, "WINDOW", 4)
    store = FaultyStore()
    client = await server(counting(), unsaved_events=10, store=store)
    stream = await begin(server, "100")
    await within(stream.next_batch())
    (task,) = (await client.list_tasks()).tasks
    await reaches(client, task, S.COMPLETED)
    store.failing_reads = True

    with pytest.raises(Exception, match="store failed") as caught:
        await rest(stream)
    assert not isinstance(caught.value, StoreError)
    assert held(server.app) == NOTHING


@pytest.mark.req("B049", "B077")
async def test_a_burst_of_immediate_sends_that_end_together_blocks_nothing(server: Server) -> None:
    client = await server(counting(step := Step()))
    tasks = await within(asyncio.gather(*(client.send("6", wait=False) for _ in range(200))))
    unread = [await subscribe(server, task) for task in tasks]
    step.go()

    for task in tasks:
        await reaches(client, task, S.COMPLETED)
    assert {task.status.state for task in tasks} == {S.WORKING}
    for stream in unread:
        await stream.aclose()
    await until(lambda: held(server.app) == NOTHING)


@pytest.mark.parametrize("state", [S.AUTH_REQUIRED, S.INPUT_REQUIRED])
async def test_a_quick_agent_that_decides_is_followed_by_its_own_stream(server: Server, state: TaskState) -> None:
    agent = Agent("Events", description="Waits at once.")

    @agent.events
    async def events(ctx):
        yield TaskStatusUpdateEvent(task_id="", context_id="", status=TaskStatus(state=state))
        if ctx.text == "more":
            yield Artifact(artifact_id="a", parts=[Part(text="x")])
            yield TaskStatusUpdateEvent(task_id="", context_id="", status=TaskStatus(state=S.COMPLETED))

    client = await server(agent)
    stream = await begin(server, "go")
    first = await within(stream.next_batch())
    task_id = first[0].response.task.id
    await client.send("more", task_id=task_id)

    events_seen = [(event.number, event.json) for event in first] + await rest(stream)

    assert (b"COMPLETED" in events_seen[-1][1]) is (state is S.AUTH_REQUIRED)


@pytest.mark.req("B047")
async def test_a_task_that_ended_while_it_was_read_is_read_again(server: Server) -> None:
    class SlowRead(FaultyStore):
        step: Step | None = None

        async def task(self, *args: Any) -> Any:
            found = await super().task(*args)
            step, self.step = self.step, None
            if step is not None:
                await step()
            return found

    agent = Agent("Events", description="Asks, then ends.")

    @agent.events
    async def work(ctx):
        yield status(S.COMPLETED if ctx.text == "end" else S.INPUT_REQUIRED)

    store = SlowRead()
    client = await server(agent, store=store)
    task = await client.send("go")
    await until(lambda: held(server.app) == NOTHING)
    step = store.step = Step()
    subscribing = asyncio.create_task(subscribe(server, task))
    await within(step.reached.wait())
    assert (await client.send("end", task=task)).status.state is S.COMPLETED
    await until(lambda: held(server.app)["live"] == 0)
    step.go()

    with pytest.raises(UnsupportedOperationError):
        await within(subscribing)
