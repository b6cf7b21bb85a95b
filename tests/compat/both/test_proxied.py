"""A proxy in front of an agent of version 0.3: clients of 1.0 see an agent of 1.0."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

import dragoman
from dragoman import App, Client, ProxyApp
from dragoman.errors import TaskNotFoundError, UnsupportedOperationError
from dragoman.model import Task, TaskState
from tests.client.words import QUICK, QUICK_POLL
from tests.compat.both.test_both_sides import NUMBERS, an_agent
from tests.conformance.quick_server import quick_serving
from tests.http.peer import BOUND


@asynccontextmanager
async def chained(
    near: str, far: str, release: asyncio.Event | None = None, *, version: str = "1.0"
) -> AsyncIterator[Client]:
    """A client of 1.0 or of another version, a proxy, and an agent that is called by 0.3."""
    async with quick_serving(App(an_agent(release)), grpc=far == "GRPC") as agent_url:
        proxy = ProxyApp(agent_url, versions=("0.3",), bindings=[far], shutdown_grace=0.2, reconnect=QUICK)
        async with (
            quick_serving(proxy, grpc=near == "GRPC") as url,  # type: ignore[arg-type]
            dragoman.connect(
                url, versions=(version,), bindings=[near], timeout=BOUND, reconnect=QUICK, poll=QUICK_POLL
            ) as client,
        ):
            yield client


@pytest.mark.req("V03-01", "V03-04")
@pytest.mark.parametrize("near", ["JSONRPC", "HTTP+JSON", "GRPC"])
@pytest.mark.parametrize("far", ["JSONRPC", "HTTP+JSON", "GRPC"])
async def test_every_binding_leads_to_every_binding_of_the_old_version(near: str, far: str) -> None:
    async with chained(near, far) as client:
        result = await client.run("count", timeout=BOUND)
        question = await client.run("ask", timeout=BOUND)
        answered = await client.run("ten", task_id=question.task_id, timeout=BOUND)
        after = [event async for event in client.subscribe(result.task_id)]
        with pytest.raises(TaskNotFoundError):
            await client.get_task("none")

    assert (result.text, result.state) == (NUMBERS, TaskState.COMPLETED)
    assert (question.question, answered.text) == ("how far?", "to ten")
    assert [type(event) for event in after] == [Task]


@pytest.mark.req("V03-01")
async def test_what_the_old_version_lacks_is_refused_in_the_words_of_the_present_one() -> None:
    async with chained("JSONRPC", "JSONRPC") as client:
        with pytest.raises(UnsupportedOperationError, match=r"0\.3"):
            await client.list_tasks()


@pytest.mark.req("V03-04", "SUB-07")
async def test_a_task_is_joined_through_the_proxy() -> None:
    release = asyncio.Event()

    async with chained("HTTP+JSON", "JSONRPC", release) as client:
        started = await client.send("count", wait=False)
        async with client.subscribe(started) as events:
            first = await asyncio.wait_for(anext(events), BOUND)
            release.set()
        result = await client.wait(started, timeout=BOUND)

    assert isinstance(first, Task)
    assert result.text == NUMBERS


@pytest.mark.req("V03-01", "V03-04")
@pytest.mark.parametrize("near", ["JSONRPC", "HTTP+JSON", "GRPC"])
async def test_clients_of_the_old_version_reach_an_agent_of_the_old_version(near: str) -> None:
    async with chained(near, "JSONRPC", version="0.3") as client:
        result = await client.run("count", timeout=BOUND)
        question = await client.run("ask", timeout=BOUND)

    assert (client.interface.protocol_version, result.text, question.question) == ("0.3", NUMBERS, "how far?")
