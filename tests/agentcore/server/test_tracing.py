"""Traces and outbound connections of a hosted agent."""

from __future__ import annotations

import asyncio
import sys

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from dragoman import Agent, agentcore
from dragoman.http.client import HttpClient
from tests.agentcore.server.hosts import SESSION, calling, hosted, ping, post, send, served

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = "b7ad6b7169203331"


def traced_agent() -> Agent:
    """An agent that works in a span."""
    agent = Agent("traced", description="x")

    @agent.task
    async def work(ctx):
        with agentcore.traced("tides") as span:
            return "no span" if span is None else "span"

    return agent


@pytest.fixture
def exporter(monkeypatch: pytest.MonkeyPatch) -> InMemorySpanExporter:
    """Spans that ended."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer", lambda name: provider.get_tracer(name))
    return exporter


@pytest.mark.req("AC-S-48")
async def test_a_span_continues_the_callers_trace_and_has_the_session(exporter: InMemorySpanExporter):
    session = "harbour-7c0d9f1e-2b64-4f0e-8a55-90d1c3b7e2aa"
    async with calling(hosted(traced_agent())) as client:
        headers = {"traceparent": f"00-{TRACE}-{PARENT}-01", SESSION: session}
        await client.post("/", json=send(), headers=headers)
        await client.post("/", json=send())
    first, second = exporter.get_finished_spans()
    assert f"{first.context.trace_id:032x}" == TRACE
    assert f"{first.parent.span_id:016x}" == PARENT
    assert dict(first.attributes) == {"session.id": session}
    assert (second.parent, dict(second.attributes)) == (None, {})


@pytest.mark.req("AC-S-48")
async def test_without_opentelemetry_nothing_is_done(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    monkeypatch.setattr("dragoman.agentcore.tracing.find_spec", lambda name: None)
    async with calling(hosted(traced_agent())) as client:
        task = (await post(client, send()))["result"]["task"]
        assert task["artifacts"][0]["parts"][0]["text"] == "no span"


@pytest.mark.req("AC-S-74")
async def test_after_a_restore_new_connections_are_made():
    connections = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(writer)
        while await reader.readline():
            while (await reader.readline()).strip():
                pass
            writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")

    wall = [1000.0]
    neighbour = await asyncio.start_server(answer, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{neighbour.sockets[0].getsockname()[1]}/"
    http = HttpClient()
    try:
        async with served(hosted(wall=lambda: wall[0], monotonic=lambda: 5.0)) as client:
            for _ in range(2):
                await http.fetch("GET", url)
            assert len(connections) == 1
            wall[0] = 50_000
            await ping(client)
            await http.fetch("GET", url)
            assert len(connections) == 2
    finally:
        await http.aclose()
        for writer in connections:
            writer.close()
        neighbour.close()
