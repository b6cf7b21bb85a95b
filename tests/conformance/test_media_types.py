"""Media types: of requests and answers, of parts, of what an agent takes and makes. Spec: §3.3.2, §4.1.6, §14.1."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman import Agent, AgentSkill, App
from dragoman.errors import ConfigurationError
from tests.conformance.wire import SPOKEN, said, served

BOTH = pytest.mark.parametrize("spoken", SPOKEN)


def agent_with(**facts: Any) -> Agent:
    agent = Agent("Typed", description="Takes and makes some types.", **facts)

    @agent.task
    async def answer(ctx):  # type: ignore[no-untyped-def]
        return f"{len(ctx.message.parts)} {list(ctx.accepted_output_modes)}"

    return agent


def part(media_type: str | None, **content: Any) -> dict[str, Any]:
    return {**(content or {"text": "x"}), **({"mediaType": media_type} if media_type else {})}


@BOTH
@pytest.mark.req("MEDIA-01", "MEDIA-02", "MEDIA-03", "AMB-75", "HTTP-02", "JRPC-01")
async def test_every_answer_says_its_type(spoken: str) -> None:
    own = {"JSONRPC": "application/json", "HTTP+JSON": "application/a2a+json"}[spoken]
    async with served(agent_with()) as wire:
        good = await wire.call(spoken, "ListTasks")
        bad = await wire.call(spoken, "GetTask", {"id": "no-such"})
        async with wire.stream(spoken, "SendStreamingMessage", said()) as stream:
            await stream.rest()
        card = await wire.ask("GET", "/.well-known/agent-card.json")

    assert (good.headers["content-type"], bad.headers["content-type"]) == (own, own)
    assert stream.headers["content-type"].partition(";")[0] == "text/event-stream"
    assert card.headers["content-type"] == "application/json"


@BOTH
@pytest.mark.req("MEDIA-06", "SEND-05", "SEC-04", "AMB-16", "AMB-93")
async def test_parts_of_types_that_the_agent_takes_pass_and_others_are_refused_by_name(spoken: str) -> None:
    agent = agent_with(
        input_modes=("text/plain", "image/*"),
        skills=[
            AgentSkill(id="a", name="A", description="A", tags=["a"], input_modes=["application/json"]),
        ],
    )
    good = [
        part(None),
        part(None, raw="AAAA"),
        part(None, url="https://files.example/x.exe"),
        part(None, data={"a": 1}),
        part("text/plain"),
        part("Text/Plain; charset=utf-8"),
        part("image/png", raw="AAAA"),
        part("application/json", data=None),
    ]
    bad = [
        part("application/pdf", raw="AAAA"),
        part("text/html"),
        part("application/x-msdownload", url="https://files.example/x.exe"),
        part("nonsense"),
    ]
    async with served(agent) as wire:
        for given in good:
            told = await wire.call(spoken, "SendMessage", said(parts=[given]))
            assert told.result["task"]["status"]["state"] == "TASK_STATE_COMPLETED", given
        for given in bad:
            told = await wire.call(spoken, "SendMessage", said(parts=[part(None), given]))
            assert told.reason == "CONTENT_TYPE_NOT_SUPPORTED", given
            assert told.code == (-32005 if spoken == "JSONRPC" else 400)
            assert told.metadata["field"] == "message.parts[1].mediaType"
            assert "image/*" in told.error["message"]
        assert (await wire.call(spoken, "ListTasks")).result["totalSize"] == len(good)


@BOTH
@pytest.mark.req("AMB-16", "SEND-16", "MEDIA-06")
async def test_accepted_output_modes_shape_the_answer_and_are_refused_only_where_none_can_be_met(spoken: str) -> None:
    def request(*modes: str) -> dict[str, Any]:
        return {**said(), "configuration": {"acceptedOutputModes": list(modes)}}

    async with served(agent_with(output_modes=("text/plain", "image/svg+xml"))) as wire:
        for modes in ((), ("text/plain",), ("application/pdf", "text/plain"), ("*/*",), ("image/*",), ("TEXT/PLAIN",)):
            task = (await wire.call(spoken, "SendMessage", request(*modes))).result["task"]
            assert task["artifacts"][0]["parts"][0]["text"] == f"1 {list(modes)}"
        told = await wire.call(spoken, "SendMessage", request("application/pdf", "audio/*"))

    assert told.reason == "CONTENT_TYPE_NOT_SUPPORTED"
    assert told.metadata["field"] == "configuration.acceptedOutputModes"


@BOTH
@pytest.mark.req("MEDIA-05", "B007")
async def test_json_is_utf_8_both_ways_and_not_escaped(spoken: str) -> None:
    text = "Grüße 你好 👋🏽 e\u0301 \u2028 \x7f"
    agent = Agent("Echo", description="Wiederholt: ü.")

    @agent.task
    async def echo(ctx):  # type: ignore[no-untyped-def]
        return ctx.text

    async with served(agent) as wire:
        told = await wire.call(spoken, "SendMessage", said(text))
        card = await wire.ask("GET", "/.well-known/agent-card.json")

    assert told.result["task"]["artifacts"][0]["parts"][0]["text"] == text
    assert "Grüße 你好 👋🏽".encode() in told.body
    assert "ü".encode() in card.body


@pytest.mark.parametrize(
    "facts",
    [
        {"input_modes": ("text",)},
        {"output_modes": ("plain/",)},
        {"output_modes": ("/plain",)},
        {"input_modes": ()},
        {"skills": [AgentSkill(id="a", name="A", description="A", tags=["a"], input_modes=["json"])]},
        {"skills": [AgentSkill(id="a", name="A", description="A", tags=["a"], output_modes=[""])]},
    ],
)
@pytest.mark.req("MEDIA-06", "CARD-16")
def test_a_card_with_what_is_no_media_type_is_refused_at_the_start(facts: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        App(agent_with(**facts))
