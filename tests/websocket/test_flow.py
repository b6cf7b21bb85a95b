"""Streams side by side on one socket: credit, order, cancellation, heartbeats, ends."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from dragoman import RESUMABLE_STREAMS, Agent, App, Limits
from dragoman.bindings.websocket import WebSocketBinding
from dragoman.model import SUBSCRIBE_TO_TASK
from dragoman.ports.operations import CallContext, Event, EventStream, Operations
from dragoman.testing.binding_contract.scripted import Scripted, status_event
from tests.websocket.conftest import Dial, Serve
from tests.websocket.raw import BOUND, RawSocket, call, say

STREAM = "SendStreamingMessage"
LIMITS = Limits(shutdown_grace=0.2, lease=2, cancel_wait=2)


def stream(call_id: int, kilobytes: int, credit: int = 10**9) -> dict[str, Any]:
    """A call that streams so much."""
    return call(call_id, STREAM, say(f"stream {kilobytes}"), credit=credit)


async def read_stream(socket: RawSocket, call_id: int) -> list[dict[str, Any]]:
    """The messages of one stream up to its end; no other may come between."""
    found = []
    while (frame := await socket.next())["type"] != "end":
        assert frame["id"] == call_id
        found.append(frame)
    return found


def chunks(frames: list[dict[str, Any]]) -> list[str]:
    """The first words of the chunks in some messages."""
    updates = [item["event"].get("artifactUpdate") for frame in frames for item in frame.get("events", ())]
    return [
        update["artifact"]["parts"][0]["text"].strip() for update in updates if update and "parts" in update["artifact"]
    ]


def size_of(frame: dict[str, Any]) -> int:
    """About the bytes of the message."""
    return len(str(frame))


@pytest.mark.req("BIND-07")
async def test_a_stream_opens_sends_its_events_in_order_and_ends(agent: Agent, serve: Serve, dial: Dial) -> None:
    socket = await dial(await serve(agent))
    await socket.send(stream(1, 300))

    frames = await read_stream(socket, 1)

    numbers = [item["number"] for frame in frames for item in frame.get("events", ())]
    assert frames[0] == {"type": "open", "id": 1}
    assert chunks(frames)[:300] == [str(number) for number in range(300)]
    assert numbers == sorted(set(numbers))


@pytest.mark.req("BIND-07")
async def test_a_stream_without_credit_waits_and_one_with_credit_passes_it(
    agent: Agent, serve: Serve, dial: Dial
) -> None:
    socket = await dial(await serve(agent))

    waiting = await socket.ask(stream(1, 500, credit=0))
    await socket.send(stream(2, 500))
    passing = await read_stream(socket, 2)
    await socket.send({"type": "credit", "id": 1, "credit": 10**9})
    frames = await read_stream(socket, 1)

    assert waiting == {"type": "open", "id": 1}
    assert len(chunks(passing)) >= 500
    assert chunks(frames)[:500] == [str(number) for number in range(500)]


@pytest.mark.req("BIND-07")
async def test_no_more_is_sent_than_there_is_credit_for_but_for_the_last_message(
    agent: Agent, serve: Serve, dial: Dial
) -> None:
    socket = await dial(await serve(agent))
    await socket.send(stream(1, 400, credit=20_000))
    assert (await socket.next())["type"] == "open"
    sent, came = 20_000, 0
    total: list[dict[str, Any]] = []

    while (frame := await socket.next())["type"] != "end":
        total.append(frame)
        came += size_of(frame)
        if came >= sent:
            sent += 20_000
            await socket.send({"type": "credit", "id": 1, "credit": 20_000})

    # Each message fits into what was left, or is the one that goes beyond it.
    assert max(map(size_of, total)) < 22_000
    assert chunks(total)[:400] == [str(number) for number in range(400)]


@pytest.mark.req("BIND-07", "BIND-12")
async def test_large_streams_take_turns(agent: Agent, serve: Serve, dial: Dial) -> None:
    events: list[Event | Exception] = [status_event(number, "x" * 50_000) for number in range(40)]
    app = App(agent, bindings=[WebSocketBinding()], interceptors=[Scripted(events={"SubscribeToTask": events})])
    socket = await dial(await serve(app))
    for call_id in (1, 2, 3):
        await socket.send(call(call_id, "SubscribeToTask", {"id": "t"}, credit=10**9))

    order = [frame["id"] for frame in [await socket.next() for _ in range(3 * 42)] if frame["type"] == "events"]

    assert {call_id: order.count(call_id) for call_id in (1, 2, 3)} == {1: 40, 2: 40, 3: 40}
    assert all(set(order[start : start + 9]) == {1, 2, 3} for start in range(0, 90, 9))


@pytest.mark.req("BIND-07")
async def test_a_stream_that_gets_no_credit_for_too_long_is_ended_and_its_task_is_not(
    agent: Agent, serve: Serve, dial: Dial
) -> None:
    socket = await dial(await serve(agent, stall_timeout=0.1))
    await socket.send(stream(1, 5, credit=0))

    assert (await socket.next())["type"] == "open"
    ended = await socket.next()
    tasks = (await socket.ask(call(2, "ListTasks", {})))["result"]["tasks"]

    assert (ended["id"], ended["error"]["status"]) == (1, "UNAVAILABLE")
    assert [task["status"]["state"] for task in tasks] == ["TASK_STATE_COMPLETED"]


@pytest.mark.req("STRM-04", "SEND-08")
async def test_a_cancelled_call_ends_and_its_task_goes_on(agent: Agent, serve: Serve, dial: Dial) -> None:
    socket = await dial(await serve(agent))
    await socket.send(call(1, "SendMessage", say("wait")), call(2, STREAM, say("wait"), credit=10**6))
    assert (await socket.next())["type"] == "open"
    assert (await socket.next())["type"] == "events"

    await socket.send({"type": "cancel", "id": 1}, {"type": "cancel", "id": 2})
    ended = [await socket.next(), await socket.next()]
    again = await socket.ask(call(1, "ListTasks", {}))

    assert sorted(frame["id"] for frame in ended if frame["type"] == "end") == [1, 2]
    assert [task["status"]["state"] for task in again["result"]["tasks"]] == ["TASK_STATE_WORKING"] * 2


async def test_a_call_that_is_cancelled_at_once_ends_all_the_same(agent: Agent, serve: Serve, dial: Dial) -> None:
    socket = await dial(await serve(agent))

    for call_id in range(20):
        await socket.send(call(call_id, "SendMessage", say("wait")), {"type": "cancel", "id": call_id})

    assert [await socket.next() for _ in range(20)] == [{"type": "end", "id": call_id} for call_id in range(20)]


@pytest.mark.req("BIND-07", "STREAM-10")
async def test_a_subscriber_goes_on_after_the_last_event_that_it_has(agent: Agent, serve: Serve, dial: Dial) -> None:
    url = await serve(agent)
    first = await dial(url)
    await first.send(call(1, STREAM, say("wait"), credit=10**6))
    assert (await first.next())["type"] == "open"
    task = (await first.next())["events"][0]["event"]["task"]
    await first.connection.close()
    second = await dial(url)
    beside = {"a2a-version": "1.0", "a2a-extensions": RESUMABLE_STREAMS, "last-event-id": "1"}

    opened = await second.ask(call(1, "SubscribeToTask", {"id": task["id"]}, parameters=beside, credit=10**6))
    await second.send(call(2, "CancelTask", {"id": task["id"]}))
    frames = [await second.next() for _ in range(3)]

    events = [item for frame in frames for item in frame.get("events", ())]
    assert opened == {"type": "open", "id": 1, "parameters": {"a2a-extensions": RESUMABLE_STREAMS}}
    assert events[0]["number"] == 2
    assert events[-1]["event"]["statusUpdate"]["status"]["state"] == "TASK_STATE_CANCELED"


async def test_a_quiet_socket_is_pinged_and_one_that_never_answers_is_closed(
    agent: Agent, serve: Serve, dial: Dial
) -> None:
    socket = await dial(await serve(agent, binding=WebSocketBinding(heartbeat=0.1)))
    await socket.send(call(1, "SendMessage", say("wait")))

    async with asyncio.timeout(BOUND):
        first = await socket.connection.recv()
    code, _ = await socket.until_closed()

    assert first == '{"type":"ping","data":""}'
    assert code == 4408


async def test_a_socket_that_answers_stays(agent: Agent, serve: Serve, dial: Dial) -> None:
    socket = await dial(await serve(agent, binding=WebSocketBinding(heartbeat=0.1)))

    async with asyncio.timeout(BOUND):
        for _ in range(8):
            assert "ping" in str(await socket.connection.recv())
            await socket.send({"type": "pong"})

    assert (await socket.ask(call(1)))["type"] == "result"


async def test_a_client_that_reads_nothing_is_cut_off_and_bothers_nobody(
    agent: Agent, serve: Serve, dial: Dial
) -> None:
    watch = Watch([status_event(number, "x" * 100_000) for number in range(400)])
    app = App(agent, bindings=[WebSocketBinding()], interceptors=[watch], stall_timeout=0.3, limits=LIMITS)
    url = await serve(app)
    deaf, other = await dial(url), await dial(url)

    await deaf.send(call(1, "SubscribeToTask", {"id": "t"}, credit=10**12))
    answer = await other.ask(call(1, "GetTask", {"id": "none"}))
    async with asyncio.timeout(BOUND):
        await watch.closed.wait()

    assert answer["error"]["status"] == "NOT_FOUND"
    assert watch.left > 0


@pytest.mark.req("STRM-04")
async def test_a_client_that_vanishes_lets_go_of_its_streams(agent: Agent, serve: Serve, dial: Dial) -> None:
    watch = Watch([status_event(1)], endless=True)
    app = App(agent, bindings=[WebSocketBinding()], interceptors=[watch], limits=LIMITS)
    socket = await dial(await serve(app))
    await socket.send(call(1, "SubscribeToTask", {"id": "t"}, credit=10**6))
    assert [(await socket.next())["type"] for _ in range(2)] == ["open", "events"]

    socket.connection.transport.abort()

    async with asyncio.timeout(BOUND):
        await watch.closed.wait()


@pytest.mark.req("ERR-11")
async def test_at_the_end_open_calls_are_answered_and_sockets_are_closed_in_order(
    agent: Agent, serve: Serve, dial: Dial
) -> None:
    app = App(agent, bindings=[WebSocketBinding()], limits=LIMITS)
    socket = await dial(await serve(app))
    await socket.send(call(1, STREAM, say("wait"), credit=10**6), call(2, "SendMessage", say("wait")))
    assert [(await socket.next())["type"] for _ in range(2)] == ["open", "events"]

    app.begin_stop()
    assert await socket.next() == {"type": "drain"}
    refused = await socket.ask(call(3))
    stopping = asyncio.create_task(app.stop())
    code, came = await socket.until_closed()
    await stopping

    last = {frame["id"]: frame["type"] for frame in came}
    assert (refused["id"], refused["error"]["status"]) == (3, "UNAVAILABLE")
    assert set(last) == {1, 2}
    assert set(last.values()) <= {"end", "error", "result"}
    assert code == 1001


class Watch:
    """An interceptor whose subscriptions are made of these events, and that sees them closed."""

    def __init__(self, events: list[Event], *, endless: bool = False) -> None:
        self._events = events
        self._endless = endless
        self._inner: Operations
        self.closed = asyncio.Event()
        self.left = 0

    def __call__(self, inner: Operations) -> Operations:
        self._inner = inner
        return self

    async def call(self, op: Any, request: Any, context: CallContext) -> Any:
        return await self._inner.call(op, request, context)

    async def stream(self, op: Any, request: Any, context: CallContext) -> EventStream:
        assert op is SUBSCRIBE_TO_TASK
        return _Watched(self, list(self._events), self._endless)


class _Watched(EventStream):
    def __init__(self, watch: Watch, events: list[Event], endless: bool) -> None:
        self._watch = watch
        self._events = events
        self._endless = endless

    async def next_batch(self) -> list[Event]:
        if not self._events and self._endless:
            await asyncio.Event().wait()
        return [self._events.pop(0)] if self._events else []

    async def aclose(self) -> None:
        self._watch.left = len(self._events)
        self._watch.closed.set()
