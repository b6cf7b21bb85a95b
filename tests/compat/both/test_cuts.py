"""Streams of version 0.3 through a connection that breaks: joined again, nothing lost, nothing double."""

from __future__ import annotations

import asyncio

import pytest

from dragoman import App, connect
from dragoman.model import AgentInterface, TaskState
from dragoman.testing.serving import serving
from tests.client.test_against_agents import breaking_proxy
from tests.client.words import QUICK
from tests.compat.both.test_both_sides import NUMBERS, an_agent
from tests.http.peer import BOUND


@pytest.mark.req("V03-04", "AC-C-71", "AC-C-72", "SUB-07")
@pytest.mark.parametrize("way", ["JSONRPC", "HTTP+JSON"])
@pytest.mark.parametrize("breaks", [[900], [1100, 900], [1300], [1600, 900]])
async def test_a_run_through_cuts_ends_with_the_whole_task(way: str, breaks: list[int]) -> None:
    release = asyncio.Event()

    async with serving(App(an_agent(release))) as url, breaking_proxy(url, list(breaks)) as proxy:
        entry = AgentInterface(url=proxy, protocol_binding=way, protocol_version="0.3")
        async with connect(url, interface=entry, reconnect=QUICK, timeout=BOUND) as client:
            result = await client.run("count", on_event=lambda event: release.set(), timeout=BOUND)

    assert (result.text, result.state) == (NUMBERS, TaskState.COMPLETED)
