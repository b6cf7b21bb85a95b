"""What becomes active is told with every answer, on every binding and in both generations. Spec: EXT-09, AMB-25."""

from __future__ import annotations

from typing import Any

import pytest

import dragoman
from dragoman import Agent, App
from dragoman.errors import ExtensionSupportRequiredError
from dragoman.extensions import RESUMABLE_STREAMS, ResumableStreams
from dragoman.model import AgentExtension
from tests.conformance.quick_server import quick_serving

MEMORY = pytest.mark.parametrize("store", ["memory"], indirect=True)
GEO, GEO_OLD, TERSE = "https://ext.example/geo/v2", "https://ext.example/geo/v1", "https://ext.example/terse"


class Listening:
    """An interceptor of a client that keeps what it is told to be active."""

    def __init__(self, heard: list[tuple[str, ...]], inner: Any) -> None:
        self.heard = heard
        self.inner = inner

    async def call(self, op: Any, request: Any, context: Any) -> Any:
        answer = await self.inner.call(op, request, context)
        self.heard.append(context.activated)
        return answer

    async def stream(self, op: Any, request: Any, context: Any) -> Any:
        stream = await self.inner.stream(op, request, context)
        self.heard.append(context.activated)
        return stream


def agent_with(*extensions: Any) -> Agent:
    agent = Agent("Reporter", description="Says which extensions are active.", extensions=extensions)

    @agent.task
    async def report(ctx):  # type: ignore[no-untyped-def]
        return ",".join(ctx.extensions)

    return agent


@MEMORY
@pytest.mark.req("EXT-02", "EXT-06", "EXT-08", "EXT-09", "AMB-25", "PARAM-06", "PARAM-07")
async def test_what_became_active_is_told_with_answers_and_streams(connect: Any) -> None:
    heard: list[tuple[str, ...]] = []
    settings = {"interceptors": [lambda inner: Listening(heard, inner)], "extensions": [TERSE, GEO_OLD]}
    client = await connect(agent_with(GEO, TERSE), client_settings=settings)

    task = await client.send("x")
    events = [event async for event in client.stream("x", extensions=[GEO])]
    await client.get_task(task)

    assert events
    assert [set(active) for active in heard] == [{TERSE}, {TERSE, GEO}, {TERSE}]
    assert task.artifacts[0].parts[0].text == TERSE


@pytest.mark.parametrize("binding", ["JSONRPC", "HTTP+JSON", "GRPC"])
@pytest.mark.req("EXT-02", "EXT-03", "EXT-09", "AMB-22", "AMB-24", "AMB-25")
async def test_callers_of_the_older_version_ask_for_extensions_and_are_told(binding: str) -> None:
    heard: list[tuple[str, ...]] = []
    app = App(agent_with(AgentExtension(uri=GEO, required=True), TERSE))
    settings: dict[str, Any] = {"bindings": (binding,), "versions": ("0.3",)}
    async with quick_serving(app, grpc=True) as url:
        listening: Any = [lambda inner: Listening(heard, inner)]
        async with dragoman.connect(url, extensions=[GEO], interceptors=listening, **settings) as client:
            task: Any = await client.send("x")
            events = [event async for event in client.stream("x", extensions=[TERSE])]
        async with dragoman.connect(url, extensions=[GEO_OLD], **settings) as client:
            with pytest.raises(Exception, match="requires the extension") as refused:
                await client.send("x")

    assert task.artifacts[0].parts[0].text == GEO
    assert events
    assert [set(active) for active in heard] == [{GEO}, {GEO, TERSE}]
    assert isinstance(refused.value, dragoman.A2AError)


@MEMORY
@pytest.mark.req("EXT-03", "EXT-07", "EXT-08", "AMB-24")
async def test_another_version_of_a_required_extension_is_refused_with_the_uri_that_is_required(connect: Any) -> None:
    client = await connect(agent_with(AgentExtension(uri=GEO, required=True)))

    with pytest.raises(ExtensionSupportRequiredError) as refused:
        await client.send("x", extensions=[GEO_OLD])

    assert refused.value.metadata["extensions"] == GEO
    assert (await client.list_tasks(extensions=[GEO])).total_size == 0


@MEMORY
@pytest.mark.req("EXT-17", "STREAM-10", "SUB-01")
async def test_resumable_streams_are_named_as_an_object_or_by_their_uri(connect: Any) -> None:
    cards = [(await connect(agent_with(given))).card for given in (ResumableStreams(), RESUMABLE_STREAMS)]

    assert cards[0].capabilities.extensions == cards[1].capabilities.extensions
    assert cards[0].capabilities.extensions[0].description
