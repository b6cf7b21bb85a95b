"""The client with real agents: over both bindings and in process, the same; and through a connection that breaks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import pytest

from dragoman import RESUMABLE_STREAMS, Agent, App, Context, connect
from dragoman.client import Client, Connection
from dragoman.errors import TaskNotFoundError, UnsupportedOperationError
from dragoman.model import (
    AgentInterface,
    Task,
    TaskArtifactUpdateEvent,
    TaskState,
    TaskStatusUpdateEvent,
)
from dragoman.testing.serving import serving
from tests.client.words import QUICK
from tests.http.peer import BOUND

WAYS = ["JSONRPC", "HTTP+JSON", "in process"]


def an_agent(*extensions: str, release: asyncio.Event | None = None) -> Agent:
    """Counts in chunks; asks when asked to; waits half way when given something to wait for."""
    agent = Agent("Counter", description="Counts", extensions=extensions)

    @agent.task
    async def count(ctx: Context) -> None:
        if ctx.text == "ask":
            answer = await ctx.ask("how far?")
            await ctx.artifact(f"to {answer.text}")
            return
        async with ctx.artifact_stream(name="numbers") as out:
            for number in range(10):
                if number == 5 and release is not None:
                    await release.wait()
                await out.write(f"{number} ")

    return agent


@asynccontextmanager
async def client_of(agent: Agent, way: str) -> AsyncIterator[Client]:
    if way == "in process":
        async with connect(agent, timeout=BOUND) as client:
            yield client
    else:
        async with serving(App(agent)) as url, connect(url, bindings=[way], timeout=BOUND) as client:
            yield client


@pytest.mark.parametrize("way", WAYS)
async def test_a_run_gives_the_same_every_way(way: str) -> None:
    seen: list[type] = []

    async with client_of(an_agent(), way) as client:
        result = await client.run("go", on_event=lambda event: seen.append(type(event)), timeout=BOUND)
        again = await client.get_task(result.task_id)

    assert (result.text, result.state) == ("0 1 2 3 4 5 6 7 8 9 ", TaskState.COMPLETED)
    assert seen[0] is Task
    assert seen.count(TaskArtifactUpdateEvent) >= 1
    assert seen[-1] is TaskStatusUpdateEvent
    assert result.task == again


@pytest.mark.req("B095", "CTX-16")
@pytest.mark.parametrize("way", WAYS)
async def test_a_question_is_answered_every_way(way: str) -> None:
    async with client_of(an_agent(), way) as client:
        talk = client.conversation()
        question = await talk.run("ask", timeout=BOUND)
        result = await talk.run("ten", timeout=BOUND)

    assert (question.question, question.waiting) == ("how far?", True)
    assert (result.text, result.task_id) == ("to ten", question.task_id)


@pytest.mark.req("SEND-11", "AMB-08")
@pytest.mark.parametrize("way", WAYS)
async def test_a_task_is_followed_from_outside_every_way(way: str) -> None:
    release = asyncio.Event()

    async with client_of(an_agent(release=release), way) as client:
        started = await client.send("go", wait=False)
        assert isinstance(started, Task)
        async with client.subscribe(started) as events:
            first = await asyncio.wait_for(anext(events), BOUND)
        release.set()
        result = await client.wait(started, timeout=BOUND)
        after = [type(event) async for event in client.subscribe(started)]

    assert isinstance(first, Task)
    assert result.text == "0 1 2 3 4 5 6 7 8 9 "
    assert after == [Task]


@pytest.mark.parametrize("way", WAYS)
async def test_refusals_are_the_same_classes_every_way(way: str) -> None:
    async with client_of(an_agent(), way) as client:
        done = await client.send("go")
        assert isinstance(done, Task)
        with pytest.raises(TaskNotFoundError):
            await client.get_task("none")
        with pytest.raises(UnsupportedOperationError):
            await client.send("more", task_id=done.id)
        more = await client.send("more", task=done)

    assert isinstance(more, Task)
    assert (more.context_id, more.id != done.id) == (done.context_id, True)


@pytest.mark.req("CANCEL-01", "AMB-12")
@pytest.mark.parametrize("way", WAYS)
async def test_a_task_is_canceled_every_way_and_again(way: str) -> None:
    async with client_of(an_agent(release=asyncio.Event()), way) as client:
        started = await client.send("go", wait=False)
        assert isinstance(started, Task)
        first = await client.cancel(started)
        second = await client.cancel(started)

    assert (first.status.state, second.status.state) == (TaskState.CANCELED, TaskState.CANCELED)


# A connection that breaks.


@asynccontextmanager
async def breaking_proxy(url: str, breaks: list[int]) -> AsyncIterator[str]:
    """Passes bytes on; each connection is torn down after its number of answered bytes, when there is one left."""
    target = urlsplit(url)

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, onward = await asyncio.open_connection(target.hostname, target.port)
        limit = breaks.pop(0) if breaks else -1
        asking = asyncio.create_task(_pump(reader, onward, -1))
        try:
            await _pump(there, writer, limit)
        finally:
            asking.cancel()
            writer.transport.abort()
            onward.transport.abort()

    server = await asyncio.start_server(carry, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, limit: int) -> None:
    passed = 0
    while data := await reader.read(65536):
        if 0 <= limit <= passed + len(data):
            writer.write(data[: limit - passed])
            await writer.drain()
            return
        passed += len(data)
        writer.write(data)


def through(url: str, agent_card_url: str, way: str) -> Connection:
    interface = AgentInterface(url=url, protocol_binding=way, protocol_version="1.0")
    return connect(agent_card_url, interface=interface, reconnect=QUICK, timeout=BOUND)


@pytest.mark.req("B059", "SUB-07", "AMB-03")
@pytest.mark.parametrize("way", ["JSONRPC", "HTTP+JSON"])
@pytest.mark.parametrize("size", [900, 1200, 1600])
async def test_a_resumable_stream_has_no_gap_and_no_double_wherever_it_is_cut(way: str, size: int) -> None:
    release = asyncio.Event()
    agent = an_agent(RESUMABLE_STREAMS, release=release)

    async with serving(App(agent)) as url, breaking_proxy(url, [size]) as proxy, through(proxy, url, way) as client:
        seen: list[str] = []
        numbers: list[str | None] = []
        events = client.stream("go")
        async for event in events:
            numbers.append(events.last_event_id)
            if isinstance(event, TaskArtifactUpdateEvent):
                seen += [part.text or "" for part in event.artifact.parts]
            if not release.is_set():
                release.set()

    assert "".join(seen) == "0 1 2 3 4 5 6 7 8 9 "
    assert len(set(numbers)) == len(numbers)


@pytest.mark.req("B059", "SUB-07")
@pytest.mark.parametrize("way", ["JSONRPC", "HTTP+JSON"])
async def test_a_run_through_cuts_ends_with_the_whole_task(way: str) -> None:
    release = asyncio.Event()
    agent = an_agent(release=release)

    def let_go(event: object) -> None:
        release.set()

    async with serving(App(agent)) as url, breaking_proxy(url, [700, 500]) as proxy, through(proxy, url, way) as client:
        result = await client.run("go", on_event=let_go, timeout=BOUND)

    assert (result.text, result.ok) == ("0 1 2 3 4 5 6 7 8 9 ", True)
