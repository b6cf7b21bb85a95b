"""Both generations at one address, with and without the header that the front drops."""

from __future__ import annotations

import logging

import pytest

from dragoman import Agent, App
from dragoman.model import AgentExtension
from tests.agentcore.server.hosts import calling, echo, hosted, post, rpc, send

SAMPLE = {
    "jsonrpc": "2.0",
    "id": "req-001",
    "method": "message/send",
    "params": {
        "message": {"role": "user", "parts": [{"kind": "text", "text": "what is 101 * 11?"}], "messageId": "12345678"}
    },
}
"""A request in the form of the vendor's contract page: kind-JSON without a ``kind`` on the message."""


@pytest.mark.req("AC-S-20", "AC-S-21")
async def test_both_generations_are_served_without_a_header_by_the_name_of_the_method():
    async with calling(hosted()) as client:
        new = (await post(client, send("Hi")))["result"]["task"]
        old = (await post(client, SAMPLE))["result"]
        assert new["status"]["state"] == "TASK_STATE_COMPLETED"
        assert (old["kind"], old["status"]["state"]) == ("task", "completed")
        assert old["artifacts"][0]["parts"] == [{"kind": "text", "text": "You said: what is 101 * 11?"}]


@pytest.mark.req("AC-S-21")
async def test_outside_of_the_profile_a_missing_version_is_0_3():
    async with calling(App(echo())) as client:
        assert (await post(client, send("Hi")))["error"]["code"] == -32009


@pytest.mark.req("AC-S-22")
@pytest.mark.parametrize(
    ("method", "version", "code"),
    [
        ("SendMessage", "0.3", -32009),
        ("message/send", "1.0", -32601),
        ("SendMessage", "2.0", -32009),
        ("message/send", "2.0", -32009),
        ("SendMessage", "1.7", -32009),
        ("SendMessage", "1.0.1", None),
        ("SendMessage", "1.0", None),
        ("SendMessage", " ", None),
        ("message/send", "", None),
        ("message/send", "0.3", None),
    ],
)
async def test_a_version_that_is_named_decides(method: str, version: str, code: int | None):
    body = SAMPLE if method == "message/send" else send()
    async with calling(hosted()) as client:
        answer = await post(client, body, a2a_version=version)
        assert answer.get("error", {}).get("code") == code


@pytest.mark.req("AC-S-23")
async def test_that_versions_are_inferred_is_said_once(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.INFO)
    async with calling(hosted()) as client:
        await post(client, send(), a2a_version="1.0")
        assert "A2A-Version" not in caplog.text
        for _ in range(1_000):
            await post(client, rpc("GetTask", {"id": "none"}))
        hints = [record for record in caplog.records if "A2A-Version" in record.getMessage()]
        assert len(hints) == 1
        assert "A2A-Extensions" in hints[0].getMessage()


@pytest.mark.req("AC-S-24")
@pytest.mark.parametrize("assumed", [True, False])
async def test_a_required_extension_may_be_taken_as_named(assumed: bool):
    uri = "https://harbour.example/ext/tides/v1"
    agent = Agent("strict", description="x", extensions=[AgentExtension(uri=uri, required=True)])

    @agent.task
    async def work(ctx):
        return ", ".join(ctx.extensions)

    async with calling(hosted(agent, assume_extensions=[uri] if assumed else [])) as client:
        answer = await post(client, send())
        named = await post(client, send(), a2a_extensions=uri)
        assert "result" in named
        if assumed:
            assert answer["result"]["task"]["artifacts"][0]["parts"][0]["text"] == uri
        else:
            assert answer["error"]["code"] == -32008
