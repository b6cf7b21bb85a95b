"""Sends that are safe to repeat: the client's half of idempotent sends, over a line that is cut."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

import dragoman
from dragoman import Agent, App, TaskState
from dragoman.errors import ConnectionLostError
from dragoman.extensions import IDEMPOTENT_SENDS, IdempotentSends
from dragoman.model import AgentInterface
from tests.bindings.parts import served as on_socket

BOUND = 10.0
RETRYING = IdempotentSends(attempts=4, pause=0.01)


class Line:
    """Passes bytes between a client and a server, but cuts the first ``cuts`` connections once the answer comes."""

    def __init__(self, cuts: int) -> None:
        self.cuts = cuts
        self.made = 0

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int) -> None:
        self.made += 1
        cut = self.made <= self.cuts
        there, back = await asyncio.open_connection("127.0.0.1", port)
        out = asyncio.create_task(_pump(reader, back))
        with suppress(OSError):
            if cut:
                await there.read(1)
            else:
                await _pump(there, writer)
        out.cancel()
        await asyncio.gather(out, return_exceptions=True)
        writer.transport.abort()
        back.close()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()


@asynccontextmanager
async def line_to(port: int, cuts: int) -> AsyncIterator[tuple[Line, str]]:
    line = Line(cuts)
    server = await asyncio.start_server(lambda r, w: line.carry(r, w, port), "127.0.0.1", 0)
    try:
        yield line, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


@asynccontextmanager
async def counted(
    *extensions: Any, binding: str = "JSONRPC", cuts: int = 2, asking: Any = RETRYING
) -> AsyncIterator[Any]:
    """A client of an agent that counts its runs, over a line that is cut so often."""
    runs: list[str] = []
    agent = Agent("Counter", description="Counts.", extensions=extensions)

    @agent.task
    async def work(ctx):  # type: ignore[no-untyped-def]
        runs.append(ctx.text)
        return "done"

    app = App(agent)
    async with on_socket(app) as (_, port), line_to(port, cuts) as (line, through):
        card = await app.start()
        card.supported_interfaces = [AgentInterface(url=through, protocol_binding=binding, protocol_version="1.0")]
        async with asyncio.timeout(BOUND), dragoman.connect(card, extensions=[asking]) as client:
            yield client, runs, line
    await app.stop()


@pytest.mark.parametrize("binding", ["JSONRPC", "HTTP+JSON"])
@pytest.mark.req("SEND-01", "EXT-02")
async def test_a_message_whose_answer_was_lost_is_sent_again_and_is_done_once(binding: str) -> None:
    async with counted(RETRYING, binding=binding) as (client, runs, line):
        task = await client.send("pay")
        events = [event async for event in client.stream("pay again")]

    assert task.status.state is TaskState.COMPLETED
    assert events
    assert (runs, line.made >= 3) == (["pay", "pay again"], True)


@pytest.mark.parametrize("binding", ["JSONRPC", "HTTP+JSON"])
@pytest.mark.req("STREAM-10", "EXT-02")
async def test_a_stream_that_is_cut_before_its_first_event_begins_again(binding: str) -> None:
    async with counted(RETRYING, binding=binding) as (client, runs, _):
        events = [event async for event in client.stream("pay")]

    assert events
    assert runs == ["pay"]


@pytest.mark.req("SEND-01", "EXT-02", "EXT-17")
async def test_nothing_is_sent_again_to_an_agent_that_does_not_declare_it_or_without_opting_in() -> None:
    for declared, asking in (([], RETRYING), ([RETRYING], IDEMPOTENT_SENDS)):
        async with counted(*declared, asking=asking) as (client, runs, _):
            with pytest.raises(ConnectionLostError):
                await client.send("pay")
        assert runs == ["pay"]


@pytest.mark.req("SEND-01")
async def test_it_gives_up_after_so_many_attempts_and_with_the_time_of_the_call() -> None:
    async with counted(RETRYING, cuts=100) as (client, runs, line):
        with pytest.raises(ConnectionLostError):
            await client.send("pay")
        made = line.made
    patient = IdempotentSends(attempts=4, pause=60)
    async with counted(RETRYING, cuts=100, asking=patient) as (client, once, _):
        with pytest.raises(ConnectionLostError):
            await client.send("pay", timeout=5)

    assert (runs[0], made, once) == ("pay", 5, ["pay"])
