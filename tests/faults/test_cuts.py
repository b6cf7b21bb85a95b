"""A client on a bad line: whatever is cut, reset, stalled or split, it ends with exactly what the agent made."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

import dragoman
from dragoman import App, Client, Reconnect, Result
from dragoman.errors import ConnectionLostError, RequestTimeoutError
from dragoman.model import AgentInterface
from dragoman.testing.cutting_proxy import CuttingProxy, Fate, Plan, seeded_plan, untouched
from dragoman.testing.serving import serving
from dragoman.testing.witness import Witness
from tests.faults.agents import words, working
from tests.faults.rounds import note, scaled

WORDS = 40
TEXT = "".join(words(WORDS))
PATIENT = Reconnect(attempts=60, first=0.001, longest=0.01)
BINDINGS = ["JSONRPC", "HTTP+JSON"]
EXTENSION = pytest.mark.parametrize("resumable", [True, False], ids=["resumable", "plain"])


@asynccontextmanager
async def line(binding: str, *, resumable: bool, idle: float = 0.15) -> AsyncIterator[tuple[CuttingProxy, Client, App]]:
    """An agent, a proxy before it, and a client that knows the agent's card but reaches it through the proxy only."""
    app = App(working(rerun=False, resumable=resumable), store="memory")
    async with serving(app) as url, CuttingProxy(url) as proxy:
        interface = AgentInterface(url=proxy.url, protocol_binding=binding, protocol_version="1.0")
        # No connection is used twice, so that each request meets a fate of its own.
        headers = {"connection": "close"}
        settings = {"reconnect": PATIENT, "idle_timeout": idle, "timeout": idle, "headers": headers}
        async with dragoman.connect(url, interface=interface, **settings) as client:
            yield proxy, client, app


async def run_until_it_is_known(client: Client, proxy: CuttingProxy, plan: Plan) -> tuple[Result, int]:
    """A run whose beginning came through, and how many before it were lost before the client knew of any task.

    A message is never sent twice by itself, so the caller of such a run is told so, and begins anew.
    """
    lost, first = 0, proxy.connections
    proxy.plan = lambda number: plan(number - first)
    while True:
        seen: list[object] = []
        try:
            async with asyncio.timeout(20):
                return await client.run(f"words {WORDS}", on_event=seen.append), lost
        except (ConnectionLostError, RequestTimeoutError):
            assert seen == []
            lost += 1


@pytest.mark.req("B053", "B055", "B059")
@EXTENSION
@pytest.mark.parametrize("binding", BINDINGS)
async def test_a_run_over_a_bad_line_ends_with_exactly_what_the_agent_made(
    binding: str, resumable: bool, request: pytest.FixtureRequest
) -> None:
    seeds, lost = scaled(10, 10), 0
    async with line(binding, resumable=resumable) as (proxy, client, _):
        for seed in range(seeds):
            result, begun_in_vain = await run_until_it_is_known(client, proxy, seeded_plan(seed, within=2_000))
            lost += begun_in_vain
            proxy.plan = untouched
            assert result.text == TEXT, f"seed {seed}"
            assert result.task == await client.get_task(result.task_id), f"seed {seed}"

    note(request.node, f"{seeds} seeds, {proxy.cuts} cuts, {proxy.stalls} stalls, {lost} lost before a task was known")
    assert proxy.cuts > seeds
    assert proxy.stalls > 0


@pytest.mark.req("B053", "B055")
@EXTENSION
@pytest.mark.parametrize("binding", BINDINGS)
async def test_a_stream_that_comes_byte_by_byte_is_the_same_stream(binding: str, resumable: bool) -> None:
    witness = Witness()
    async with line(binding, resumable=resumable) as (proxy, client, app):
        proxy.plan = lambda _: Fate(piece=1)

        events = [event async for event in witness.follow(client.stream("words 25"), resumes=resumable)]

        assert await witness.compare(app.runtime._store) == []
    assert len(events) == 25 + 3
    assert proxy.connections == 1


@pytest.mark.parametrize("binding", BINDINGS)
async def test_no_event_is_missing_or_double_wherever_a_resumable_stream_is_cut(
    binding: str, request: pytest.FixtureRequest
) -> None:
    witness = Witness()
    step = max(1, 211 // scaled(1, 100))
    async with line(binding, resumable=True) as (proxy, client, app):
        places = range(0, 6_000, step)
        for at in places:
            first = proxy.connections
            proxy.plan = lambda number, first=first, at=at: Fate(cut_after=at) if number == first else Fate()
            try:
                numbers = [event async for event in witness.follow(client.stream("words 12"))]
            except ConnectionLostError:
                continue
            assert len(numbers) == 12 + 3, f"cut after {at} bytes"

        assert await witness.compare(app.runtime._store) == []
    note(request.node, f"{len(places)} places, {proxy.cuts} cuts")
    assert proxy.cuts > 10
