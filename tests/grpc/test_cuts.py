"""gRPC on a bad line: wherever a stream is cut, no event is missing or double."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

import dragoman
from dragoman import App, Client, Reconnect
from dragoman.errors import ConnectError, ConnectionLostError, UnavailableError
from dragoman.model import AgentInterface
from dragoman.testing.cutting_proxy import CuttingProxy, Fate
from dragoman.testing.witness import Witness
from tests.faults.agents import words, working
from tests.grpc.raw import grpc_served

PATIENT = Reconnect(attempts=60, first=0.001, longest=0.05)


@asynccontextmanager
async def line(app: App, proxy: CuttingProxy) -> AsyncIterator[Client]:
    """A client with a connection of its own, through the proxy."""
    card = app.card(proxy.url)
    card.supported_interfaces[:] = [
        AgentInterface(url=proxy.url, protocol_binding="GRPC", protocol_version="1.0"),
    ]
    async with dragoman.connect(card, reconnect=PATIENT, timeout=5) as client:
        yield client


@asynccontextmanager
async def cut_everywhere(app: App, *, reset: bool) -> AsyncIterator[AsyncIterator[tuple[int, CuttingProxy, Client]]]:
    """Clients, the first connection of each of which ends after another number of bytes."""
    async with grpc_served(app) as server, CuttingProxy(f"http://127.0.0.1:{server.port}") as proxy:

        async def clients() -> AsyncIterator[tuple[int, CuttingProxy, Client]]:
            for at in range(0, 2_400, 61):
                first = proxy.connections
                fate = Fate(cut_after=at, reset=reset)
                proxy.plan = lambda number, first=first, fate=fate: fate if number == first else Fate()
                async with line(app, proxy) as client:
                    yield at, proxy, client

        yield clients()


LOST = (ConnectError, ConnectionLostError, UnavailableError)
"""Before a task is known: a message is never sent twice by itself."""

ENDS = pytest.mark.parametrize("reset", [False, True], ids=["ended", "reset"])


@pytest.mark.req("STREAM-10", "STRM-03", "B053", "B055")
@ENDS
async def test_no_event_is_missing_or_double_wherever_a_resumable_stream_is_cut(reset: bool) -> None:
    app, witness, lost = App(working(rerun=False, resumable=True), store="memory"), Witness(), 0
    async with cut_everywhere(app, reset=reset) as clients:
        async for at, _, client in clients:
            try:
                events = [event async for event in witness.follow(client.stream("words 12"))]
            except LOST:
                lost += 1
                continue
            assert len(events) == 12 + 3, f"cut after {at} bytes"

        assert await witness.compare(app.runtime._store) == []
    assert lost < 20


@pytest.mark.req("STREAM-10", "SUB-07", "B053")
@ENDS
async def test_a_run_over_a_stream_without_numbers_ends_with_what_the_agent_made(reset: bool) -> None:
    app, lost, cut = App(working(rerun=False, resumable=False), store="memory"), 0, 0
    async with cut_everywhere(app, reset=reset) as clients:
        async for at, proxy, client in clients:
            before = proxy.connections
            try:
                result = await client.run("words 12")
            except LOST:
                lost += 1
                continue
            assert result.text == "".join(words(12)), f"cut after {at} bytes"
            cut += proxy.connections > before + 1

    assert cut > 5
    assert lost < 20
