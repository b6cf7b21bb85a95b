"""What a proxy does when one of its two sides is lost, slow, or leaves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import dragoman
from dragoman import RESUMABLE_STREAMS, Agent, App, Context, ProxyApp, Reconnect, Task, TaskState
from dragoman.client import Client
from dragoman.errors import A2AError, InternalError, UnavailableError
from dragoman.model import (
    GET_TASK,
    SEND_MESSAGE,
    SEND_STREAMING_MESSAGE,
    GetTaskRequest,
    Message,
    Part,
    Role,
    SendMessageRequest,
)
from dragoman.ports.operations import CallContext, Event, EventStream
from dragoman.server.serving import listen
from dragoman.testing.cutting_proxy import CuttingProxy, Fate
from examples.process import DRAGOMAN, AgentProcess
from tests.bindings.parts import RecordingOperations, ScriptedStream, happens, text_event
from tests.conformance.quick_server import quick_serving
from tests.proxy.chain import BOUND, HASTY, QUICK, Gate, ScriptedApp, chained

ONCE = Reconnect(attempts=0)
LOST = "The stream from the agent behind this server was lost; the task may go on"
UNREACHABLE = "The agent behind this server cannot be reached"


def said(text: str = "hello") -> SendMessageRequest:
    return SendMessageRequest(message=Message(message_id="m-1", role=Role.USER, parts=[Part(text=text)]))


async def open_stream(client: Client, text: str = "hello") -> EventStream:
    """A stream as it comes over the wire: nothing mends it on this side."""
    return await client.operations.stream(SEND_STREAMING_MESSAGE, said(text), CallContext())


def counting() -> Agent:
    """Streams 300 numbers."""
    agent = Agent("Counting", description="Counts", extensions=[RESUMABLE_STREAMS])

    @agent.task
    async def count(ctx: Context) -> Any:
        for number in range(300):
            yield f"{number} "
            await asyncio.sleep(0)

    return agent


@pytest.mark.req("STREAM-10")
@pytest.mark.parametrize("far", ["JSONRPC", "HTTP+JSON"])
async def test_cuts_behind_the_proxy_are_not_seen_before_it(near: str, far: str) -> None:
    patient = Reconnect(attempts=30, first=0.01, longest=0.05)

    async with (
        quick_serving(App(counting(), limits=QUICK)) as upstream_url,
        CuttingProxy(upstream_url, lambda number: Fate(cut_after=6_000 + 500 * number, reset=number % 2 == 0)) as line,
        proxied(line.url, upstream_url, near, far, patient) as client,
        asyncio.timeout(4 * BOUND),
    ):
        pieces = [
            event.artifact.parts[0].text
            async for event in client.stream("count")
            if isinstance(event, dragoman.TaskArtifactUpdateEvent) and event.artifact.parts
        ]

    assert "".join(text or "" for text in pieces).split() == [str(number) for number in range(300)]
    assert line.cuts >= 2


@pytest.mark.parametrize("far", ["JSONRPC", "HTTP+JSON"])
async def test_a_stream_whose_agent_is_lost_ends_with_a_clear_error(near: str, far: str) -> None:
    stream = ScriptedStream([text_event("one", 1)])
    upstream = ScriptedApp(RecordingOperations(stream=stream))

    async with (
        quick_serving(upstream) as upstream_url,
        CuttingProxy(upstream_url) as line,
        proxied(line.url, upstream_url, near, far) as client,
        await open_stream(client) as events,
        asyncio.timeout(BOUND),
    ):
        first = await events.next_batch()
        await line.__aexit__(None, None, None)
        with pytest.raises(UnavailableError) as caught:
            await events.next_batch()

    assert first[0].number in (1, None)  # over gRPC numbers are sent to those who asked for them
    assert caught.value.message == LOST


async def test_calls_to_an_agent_that_is_gone_are_unavailable_and_work_again_when_it_is_back(near: str) -> None:
    with listen("127.0.0.1", 0) as reserved:
        port = reserved.getsockname()[1]
    command = [DRAGOMAN, "server", "--echo", "--quiet"]

    with AgentProcess(command, port=port) as process:
        proxy = ProxyApp(process.url, reconnect=HASTY, shutdown_grace=0.2, now=lambda: 0.0)
        async with (
            quick_serving(proxy, grpc=near == "GRPC") as url,
            dragoman.connect(url, bindings=(near,)) as client,
            asyncio.timeout(30),
        ):
            before = await client.send("hello")
            events = client.stream("!stream 500 20ms", timeout=BOUND)
            await anext(events)
            raw = await open_stream(client, "!stream 500 20ms")
            await raw.next_batch()
            process.kill()
            broken = await refusal(_to_the_end(raw))
            read = await refusal(client.get_task("x"))
            sent = await refusal(client.send("hello"))
            streamed = await refusal(open_stream(client))
            process.start()
            after = await client.send("hello")
            await events.aclose()
            await raw.aclose()

    assert isinstance(before, Task)
    assert isinstance(after, Task)
    assert [type(error) for error in (broken, read, sent, streamed)] == [UnavailableError] * 4
    assert {error.message for error in (read, sent, streamed)} == {UNREACHABLE}
    assert broken.message == LOST


async def refusal(call: Any) -> A2AError:
    with pytest.raises(A2AError) as caught:
        await call
    return caught.value


async def _to_the_end(stream: EventStream) -> None:
    while await stream.next_batch():
        pass


async def test_an_answer_that_is_lost_is_no_invitation_to_send_again(near: str) -> None:
    pending = asyncio.Event()

    async def never(op: Any, request: Any, context: CallContext) -> Any:
        await pending.wait()

    upstream = ScriptedApp(RecordingOperations(never))
    async with (
        quick_serving(upstream) as upstream_url,
        CuttingProxy(upstream_url) as line,
        proxied(line.url, upstream_url, near) as client,
        asyncio.timeout(BOUND),
    ):
        sending = asyncio.create_task(client.send("hello"))
        await happens(upstream.script.called)
        await line.__aexit__(None, None, None)
        error = await refusal(sending)
        pending.set()

    assert isinstance(error, InternalError)
    assert error.message == "The agent behind this server was lost before it answered; it may have taken the request"


@asynccontextmanager
async def proxied(
    line_url: str, upstream_url: str, near: str, far: str = "JSONRPC", reconnect: Reconnect = HASTY
) -> AsyncIterator[Client]:
    """A client of a proxy that reaches the agent by a line which can be cut. The client mends nothing."""
    card = (await dragoman.fetch_card(upstream_url)).card
    card.supported_interfaces = [entry for entry in card.supported_interfaces if entry.protocol_binding == far]
    card.supported_interfaces[0].url = line_url
    proxy = ProxyApp(card, reconnect=reconnect, shutdown_grace=0.2)
    async with (
        quick_serving(proxy, grpc=near == "GRPC") as url,
        dragoman.connect(url, bindings=(near,), reconnect=ONCE) as client,
    ):
        yield client


@pytest.mark.req("STRM-04")
async def test_who_leaves_a_stream_closes_it_to_the_agent(near: str, far: str) -> None:
    stream = ScriptedStream([text_event("one", 1)])
    upstream = ScriptedApp(RecordingOperations(stream=stream))

    async with chained(upstream, near=near, far=far) as chain:
        events = await open_stream(chain.client)
        await events.next_batch()
        await events.aclose()
        await happens(stream.closed)

        assert chain.proxy._work._open == {}
    assert [op.name for op, _, _ in upstream.script.calls] == ["SendStreamingMessage"]


@pytest.mark.req("STRM-04")
async def test_the_task_goes_on_when_its_stream_is_left(near: str, far: str) -> None:
    gate = Gate()

    async with chained(gate.agent, near=near, far=far) as chain, asyncio.timeout(BOUND):
        stream = chain.client.stream("hello")
        task = await anext(stream)
        await stream.aclose()
        gate.open.set()
        ended = await chain.client.wait(task.id)  # type: ignore[union-attr]

    assert ended.task is not None
    assert ended.task.status.state is TaskState.COMPLETED


async def test_who_leaves_a_call_ends_it_to_the_agent_and_no_task() -> None:
    gate = Gate()

    async with chained(gate.agent) as chain, asyncio.timeout(BOUND):
        async with dragoman.connect(chain.proxy) as client:
            sending = asyncio.create_task(client.send("hello"))
            await happens(gate.begun)
            sending.cancel()
            await asyncio.wait((sending,))
            left = dict(chain.proxy._work._open)
        gate.open.set()
        (task,) = (await chain.direct.list_tasks()).tasks
        ended = await chain.direct.wait(task)

    assert left == {}
    assert ended.task is not None
    assert ended.task.status.state is TaskState.COMPLETED


async def test_a_reader_that_does_not_read_keeps_the_agent_from_sending_and_not_the_others() -> None:
    class Endless(ScriptedStream):
        sent = 0

        async def next_batch(self) -> list[Event]:
            await asyncio.sleep(0)
            self.sent += 1
            return [text_event("x" * 100_000, self.sent)]

    slow = Endless()
    operations = RecordingOperations(stream=slow)

    async with chained(ScriptedApp(operations)) as chain, asyncio.timeout(BOUND):
        events = await open_stream(chain.client)
        await events.next_batch()
        for _ in range(100):
            await chain.client.operations.call(GET_TASK, GetTaskRequest(id="t-1"), CallContext())
        sent = slow.sent
        await events.aclose()
        await happens(slow.closed)

    assert sent < 400  # 40 MB, most of it in the buffers of this machine's sockets


@pytest.mark.req("ERR-11")
async def test_the_end_of_the_proxy_tells_those_who_wait() -> None:
    gate = Gate()

    async with chained(gate.agent, shutdown_grace=0.1) as chain, asyncio.timeout(BOUND):
        stream = await open_stream(chain.client)
        await stream.next_batch()
        context = CallContext()
        sending = asyncio.create_task(chain.client.operations.call(SEND_MESSAGE, said("again"), context))
        await happens(gate.begun)
        reading = asyncio.create_task(_to_the_end(stream))
        chain.proxy.begin_stop()
        refused = await refusal(chain.proxy.operations.call(GET_TASK, GetTaskRequest(id="x"), CallContext()))
        await chain.proxy.stop()
        told = [await refusal(sending), await refusal(reading)]
        await stream.aclose()
        gate.open.set()

    assert {type(error) for error in (refused, *told)} == {UnavailableError}
    assert {error.message for error in (refused, *told)} == {"The server is shutting down"}


async def test_work_that_ends_within_the_grace_is_waited_for() -> None:
    gate = Gate()

    async with chained(gate.agent, shutdown_grace=BOUND) as chain, asyncio.timeout(BOUND):
        sending = asyncio.create_task(chain.client.send("hello"))
        await happens(gate.begun)
        stopping = asyncio.create_task(chain.proxy.stop())
        await asyncio.sleep(0)
        gate.open.set()
        task = await sending
        await stopping

    assert isinstance(task, Task)
    assert task.status.state is TaskState.COMPLETED


async def test_a_stream_goes_on_over_a_restart_of_the_agents_server(tmp_path: Path) -> None:
    with listen("127.0.0.1", 0) as reserved:
        port = reserved.getsockname()[1]
    command = [DRAGOMAN, "run", "tests.faults.agents:again", "--store", f"{tmp_path}/t.db", "--lease", "0.5"]
    patient = Reconnect(attempts=200, first=0.05, longest=0.2)

    with AgentProcess(command, port=port) as process:
        proxy = ProxyApp(process.url, reconnect=patient, shutdown_grace=0.2)
        async with (
            quick_serving(proxy) as url,
            dragoman.connect(url, reconnect=ONCE) as client,
            asyncio.timeout(40),
        ):
            stream = client.stream("words 500")
            first = await anext(stream)
            process.kill()
            process.start()
            events = [event async for event in stream]

    assert isinstance(first, Task)
    assert stream.state is TaskState.COMPLETED
    assert events
