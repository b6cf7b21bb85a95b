"""Security in general: secrets, limits, what is never followed. Spec: §13.4, §14.1.1."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

import dragoman
from dragoman import Agent, Limits
from dragoman.errors import UnauthenticatedError
from dragoman.ports.operations import Caller
from tests.conformance.wire import SPOKEN, said, served
from tests.http.peer import peer, plain

BOTH = pytest.mark.parametrize("spoken", SPOKEN)
SECRET = "hunter2-correct-horse"


def looking_agent() -> Agent:
    agent = Agent("Looker", description="Looks at everything it is given.", input_modes=("*/*",))

    @agent.task
    async def look(ctx):  # type: ignore[no-untyped-def]
        if ctx.text == "break":
            raise RuntimeError(f"with {ctx.caller!r}")
        return [part.url or part.filename or part.text or "" for part in ctx.message.parts]

    return agent


@BOTH
@pytest.mark.req("SEC-05", "SEC-09", "AUTH-05", "ERR-13", "SEC-07")
async def test_credentials_are_neither_logged_nor_told_however_the_call_ends(
    spoken: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)

    async def identify(scope: Any) -> Caller:
        if b"authorization" not in dict(scope["headers"]):
            raise UnauthenticatedError
        return Caller(id="ann")

    headers = {"Authorization": f"Bearer {SECRET}", "Cookie": f"s={SECRET}"}
    bodies = []
    async with served(looking_agent(), identify=identify) as wire:
        for request in (said(), said("break"), said(taskId="no-such"), {"message": 5}):
            bodies.append((await wire.call(spoken, "SendMessage", request, headers=headers)).body)
        bodies.append((await wire.call(spoken, "ListTasks", headers={"X-Api-Key": SECRET})).body)
        async with dragoman.connect(wire.url, bindings=(spoken,), headers=headers, card_headers=headers) as client:
            await client.send("hi")
            with pytest.raises(dragoman.A2AError) as raised:
                await client.get_task("no-such")
            shown = repr(client) + repr(client.card) + repr(raised.value) + str(vars(raised.value))

    own = [record for record in caplog.records if record.name.startswith("dragoman")]
    assert own, "failures are logged"
    assert SECRET not in caplog.text
    assert not any(SECRET.encode() in body for body in bodies)
    assert SECRET not in shown


@BOTH
@pytest.mark.req("SEC-03", "ERR-01")
async def test_size_depth_and_number_of_parts_are_limited(spoken: str) -> None:
    limits = Limits(max_parts=3, shutdown_grace=0.2)
    async with served(looking_agent(), max_body_bytes=2000, limits=limits) as wire:
        fits = await wire.call(spoken, "SendMessage", said("x" * 500))
        large = await wire.call(spoken, "SendMessage", said("x" * 3000))
        many = await wire.call(spoken, "SendMessage", said(parts=[{"text": "x"}] * 4))
        deep = "[" * 900 + "]" * 900
        body = f'{{"message":{{"messageId":"m","role":"ROLE_USER","parts":[{{"data":{deep}}}]}}}}'
        if spoken == "JSONRPC":
            body = f'{{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{body}}}'
        path = "/" if spoken == "JSONRPC" else "/message:send"
        nested = await wire.ask("POST", path, body.encode())
        after = await wire.call(spoken, "ListTasks")

    assert "task" in fits.result
    assert large.status == 413
    assert many.fields == ["message.parts"]
    assert nested.status in (200, 400)
    assert "error" in nested.json or "task" in nested.result
    assert after.status == 200


@BOTH
@pytest.mark.req("SEC-15", "AMB-71", "SEC-14")
async def test_addresses_in_a_request_are_data_and_never_followed_by_the_server(spoken: str) -> None:
    async with peer() as trap, served(looking_agent()) as wire:
        trap.on("GET", "/file", plain(200, b"{}"))
        url = f"{trap.url}/file"
        request = said(
            parts=[{"url": url, "mediaType": "image/png"}, {"text": url}],
            extensions=[url],
            metadata={url: url},
        )
        task = (await wire.call(spoken, "SendMessage", request, headers={"A2A-Extensions": url})).result["task"]

        assert task["artifacts"][0]["parts"][0]["data"] == [url, url]
        assert trap.connections == 0


@BOTH
@pytest.mark.req("SEC-14", "DATA-16")
async def test_hostile_text_is_carried_as_text(spoken: str) -> None:
    hostile = [
        "</script><script>alert(1)</script>",
        "'; DROP TABLE tasks; --",
        "data: x\n\nevent: y\r\n\r\nid: 9",
        '"},"error":{"code":1}}',
        "\u0000\u001b[31m\u2028",
        "{{7*7}} ${jndi:ldap://x} %s %n",
    ]
    async with served(looking_agent()) as wire:
        for text in hostile:
            request = said(text, contextId=text, messageId=text)
            task = (await wire.call(spoken, "SendMessage", request)).result["task"]
            assert (task["contextId"], task["history"][0]["parts"][0]["text"]) == (text, text)
            async with wire.stream(spoken, "SendStreamingMessage", request) as stream:
                events = await stream.rest()
            assert json.dumps(text)[1:-1] in json.dumps(events)
            listed = (await wire.call(spoken, "ListTasks", {"contextId": text})).result
            assert listed["totalSize"] == 2


@pytest.mark.req("SEC-05", "SEC-09")
async def test_a_card_that_needs_credentials_says_so_without_showing_any() -> None:
    async with peer() as server:
        server.on("GET", "/.well-known/agent-card.json", plain(401, b"", www_authenticate="Bearer"))
        with pytest.raises(UnauthenticatedError) as raised:
            async with dragoman.connect(server.url, card_headers={"Authorization": f"Bearer {SECRET}"}):
                pass

    assert SECRET not in str(raised.value) + repr(raised.value) + str(vars(raised.value))
    assert "card_headers" in str(raised.value)


@pytest.mark.req("SEC-05", "SEC-09")
async def test_credentials_inside_an_address_are_not_shown() -> None:
    async with peer() as server:
        address = server.url.replace("http://", f"http://user:{SECRET}@") + f"/a?key={SECRET}"
        with pytest.raises(dragoman.ClientError) as raised:
            async with dragoman.connect(address):
                pass

    assert SECRET not in str(raised.value) + repr(raised.value) + str(raised.value.url)
