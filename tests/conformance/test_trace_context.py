"""Trace context: from a call to what the agent calls for it. An extension of this package."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman import Agent
from dragoman.errors import ConfigurationError
from dragoman.extensions import TRACE_CONTEXT, Trace, TraceContext, current_trace, tracing
from tests.conformance.wire import SPOKEN, said, served

BOTH = pytest.mark.parametrize("spoken", SPOKEN)
MEMORY = pytest.mark.parametrize("store", ["memory"], indirect=True)
IDS = ("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7")
PARENT = f"00-{IDS[0]}-{IDS[1]}-01"


def tracing_agent(*extensions: Any) -> Agent:
    agent = Agent("Tracer", description="Tells its trace.", extensions=extensions or [TraceContext()])

    @agent.task
    async def tell(ctx):  # type: ignore[no-untyped-def]
        trace = ctx.trace
        assert trace == current_trace()
        return {"parent": trace.traceparent if trace else None, "state": trace.state if trace else None}

    return agent


def told(task: Any) -> Any:
    return task.artifacts[0].parts[0].data


@MEMORY
@pytest.mark.req("EXT-02", "EXT-17", "PARAM-01")
async def test_a_trace_goes_with_calls_on_every_binding_where_both_sides_have_the_extension(connect: Any) -> None:
    client = await connect(tracing_agent(), client_settings={"extensions": [TraceContext()]})
    plain = await connect(connect.app, client_settings={"extensions": []})
    trace = Trace.read(PARENT, "vendor=a, other=b")

    with tracing(trace):
        inside = await client.send("x")
        events = [event async for event in client.stream("x")]
        not_asked = await plain.send("x", headers={"traceparent": PARENT})
        own = await client.send("x", headers={"traceparent": f"{PARENT[:-2]}00"})
    outside = await client.send("x")

    assert told(inside) == {"parent": PARENT, "state": "vendor=a,other=b"}
    assert events
    assert told(not_asked) == told(outside) == {"parent": None, "state": None}
    assert told(own) == {"parent": f"{PARENT[:-2]}00", "state": ""}


@MEMORY
@pytest.mark.req("EXT-02")
async def test_an_agent_passes_the_trace_of_its_call_on_to_the_agent_that_it_calls(connect: Any) -> None:
    inner = await connect(tracing_agent(), client_settings={"extensions": [TraceContext()]})
    outer_agent = Agent("Outer", description="Calls another.", extensions=[TraceContext()])

    @outer_agent.task
    async def ask(ctx):  # type: ignore[no-untyped-def]
        return told(await inner.send("x"))

    outer = await connect(outer_agent, client_settings={"extensions": [TraceContext(source=lambda: PARENT)]})

    assert told(await outer.send("x"))["parent"] == PARENT


@BOTH
@pytest.mark.req("EXT-12")
async def test_what_is_no_trace_is_dropped_and_the_call_goes_on(spoken: str) -> None:
    zero = f"00-{'0' * 32}-{IDS[1]}-01"
    async with served(tracing_agent()) as wire:
        for parent in (
            "",
            "x",
            PARENT.upper(),
            zero,
            f"ff{PARENT[2:]}",
            f"{PARENT}-more",
            "00" * 9000,
            f"{PARENT}\t"[:-2],
        ):
            headers = {"A2A-Extensions": TRACE_CONTEXT, "traceparent": parent}
            task = (await wire.call(spoken, "SendMessage", said(), headers=headers)).result["task"]
            assert task["artifacts"][0]["parts"][0]["data"] == {"parent": None, "state": None}, parent


def test_only_what_this_version_knows_of_a_later_one_is_passed_on() -> None:
    trace = Trace.read(f"cc-{IDS[0]}-{IDS[1]}-09-what-the-future-will-be-like")

    assert trace is not None
    assert trace.traceparent == f"00-{IDS[0]}-{IDS[1]}-01"
    assert trace.sampled


@pytest.mark.parametrize(
    ("state", "kept"),
    [
        ("a=1,b=2", "a=1,b=2"),
        (" a=1 ,, b=2\t", "a=1,b=2"),
        ("a=1,a=2", ""),
        ("A=1", ""),
        ("a", ""),
        ("a=1\x00", ""),
        ("t61@v=x", "t61@v=x"),
        (",".join(f"k{n}=1" for n in range(33)), ""),
        ("a=" + "x" * 9000, ""),
    ],
)
def test_a_trace_state_is_kept_whole_or_not_at_all(state: str, kept: str) -> None:
    trace = Trace.read(PARENT, state)

    assert trace is not None
    assert trace.state == kept


def test_code_of_ones_own_cannot_begin_a_trace_with_a_text_that_is_none() -> None:
    with pytest.raises(ConfigurationError), tracing("nonsense"):
        pass
