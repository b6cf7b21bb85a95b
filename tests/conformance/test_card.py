"""The public card: what it says, and how it is served. Spec: §4.4, §8."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import dragoman
from dragoman import Agent, AgentSkill, App
from dragoman.errors import ConfigurationError
from dragoman.model import AgentCard, AgentProvider, decode_json
from dragoman.testing.serving import serving
from tests.conformance.wire import SPOKEN, as_caller, asgi_served, by_header, said, served

CARD = "/.well-known/agent-card.json"
PLAIN: dict[str, str] = {}


def echo_agent(**facts: Any) -> Agent:
    agent = Agent("Echo", **{"description": "Repeats what you say.", **facts})

    @agent.task
    async def echo(ctx):  # type: ignore[no-untyped-def]
        """Say it again."""
        yield f"You said: {ctx.text}"

    return agent


@pytest.mark.req("CARD-01", "CARD-02", "CARD-04", "CARD-05", "CARD-07", "CARD-25", "DATA-12", "AMB-73", "AMB-76")
async def test_the_card_is_whole_and_says_what_is_really_served() -> None:
    provider = AgentProvider(organization="Echo Ltd", url="https://echo.example")
    agent = echo_agent(version="2.1.0", provider=provider, documentation_url="https://echo.example/docs")
    async with served(agent) as wire:
        told = await wire.ask("GET", CARD, headers=PLAIN)
        entries = told.json["supportedInterfaces"]
        works = [
            (await wire.call(entry["protocolBinding"], "SendMessage", said())).result["task"]["status"]["state"]
            for entry in entries[:2]
        ]
        url = wire.url

    card = told.json
    assert told.status == 200
    assert (card["name"], card["description"], card["version"]) == ("Echo", "Repeats what you say.", "2.1.0")
    assert card["provider"] == {"organization": "Echo Ltd", "url": "https://echo.example"}
    assert card["documentationUrl"] == "https://echo.example/docs"
    assert entries == [
        {"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"},
        {"url": url, "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0"},
        {"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "0.3"},
        {"url": url, "protocolBinding": "HTTP+JSON", "protocolVersion": "0.3"},
    ]
    assert works == ["TASK_STATE_COMPLETED"] * 2
    assert card["capabilities"] == {"streaming": True, "pushNotifications": False, "extendedAgentCard": False}
    assert (card["defaultInputModes"], card["defaultOutputModes"]) == (["text/plain"], ["text/plain"])
    assert card["skills"] == [{"id": "echo", "name": "Echo", "description": "Say it again.", "tags": ["echo"]}]
    assert decode_json(AgentCard, told.body).name == "Echo"


@pytest.mark.parametrize("spoken", SPOKEN)
@pytest.mark.parametrize("streaming", [True, False])
@pytest.mark.req("CARD-25", "STREAM-08", "ERR-23", "STRM-11", "AMB-39")
async def test_the_streaming_capability_is_what_the_streaming_operations_do(spoken: str, streaming: bool) -> None:
    async with served(echo_agent(streaming=streaming)) as wire:
        card = (await wire.ask("GET", CARD)).json
        told = await wire.call(spoken, "SendMessage", said())
        async with wire.stream(spoken, "SendStreamingMessage", said()) as stream:
            kind = stream.headers["content-type"].partition(";")[0]

    assert card["capabilities"]["streaming"] is streaming
    assert (kind == "text/event-stream") is streaming
    assert told.result["task"]["status"]["state"] == "TASK_STATE_COMPLETED", "polling works without streams"


@pytest.mark.req("CARD-16", "CARD-14", "MEDIA-06")
async def test_skills_may_have_modes_of_their_own() -> None:
    skill = AgentSkill(
        id="draw",
        name="Draw",
        description="Draws",
        tags=["art"],
        input_modes=["text/plain"],
        output_modes=["image/png"],
    )
    async with served(echo_agent(skills=[skill])) as wire:
        card = (await wire.ask("GET", CARD)).json

    assert card["skills"][0]["outputModes"] == ["image/png"]
    assert card["defaultOutputModes"] == ["text/plain"]


@pytest.mark.parametrize(
    ("facts", "settings", "names"),
    [
        ({"version": ""}, {}, "version"),
        ({"skills": [AgentSkill(id="", name="A", description="A", tags=["a"])]}, {}, "skills[0].id"),
        ({"skills": [AgentSkill(id="a", name="A", description="A", tags=[])]}, {}, "skills[0].tags"),
        ({"skills": [AgentSkill(id="a", name="A", description="A", tags=["a"])] * 2}, {}, "'a'"),
        ({}, {"public_url": "agents.example"}, "url"),
        ({}, {"public_url": "/echo"}, "url"),
        ({}, {"public_url": "ftp://agents.example"}, "url"),
        ({}, {"public_url": "https://agents.example/?a=1"}, "public_url"),
        ({}, {"public_url": f"https://agents.example{CARD}"}, "base"),
        ({}, {"public_url": "https://agents.example/message:send"}, "base"),
        ({}, {"public_url": "https://agents.example/echo/message:stream"}, "base"),
    ],
)
@pytest.mark.req("CARD-06", "CARD-08", "DATA-12", "B135")
def test_a_card_that_lacks_or_misstates_something_is_refused_at_the_start(
    facts: dict[str, Any], settings: dict[str, Any], names: str
) -> None:
    with pytest.raises(ConfigurationError) as raised:
        App(echo_agent(**facts), **settings)

    assert names in str(raised.value)


@pytest.mark.req("CARD-18", "CARD-19", "CARD-20", "CARD-21", "CARD-23")
async def test_the_card_is_cacheable_and_revalidated_by_content() -> None:
    async with served(echo_agent(), card_max_age=7) as wire, served(echo_agent(version="2")) as other:
        first = await wire.ask("GET", CARD, headers=PLAIN)
        etag, modified = first.headers["etag"], first.headers["last-modified"]
        same = await wire.ask("GET", CARD, headers={"If-None-Match": etag})
        since = await wire.ask("GET", CARD, headers={"If-Modified-Since": modified})
        changed = await wire.ask("GET", CARD, headers={"If-None-Match": '"other"', "If-Modified-Since": modified})
        newer = await other.ask("GET", CARD, headers={"If-None-Match": etag})
        head = await wire.ask("HEAD", CARD, headers=PLAIN)

    assert "max-age=7" in first.headers["cache-control"]
    assert [(told.status, told.body) for told in (same, since)] == [(304, b""), (304, b"")]
    assert same.headers["etag"] == etag
    assert (changed.status, newer.status) == (200, 200)
    assert (head.status, head.body, head.headers["etag"]) == (200, b"", etag)


@pytest.mark.req("B131", "CARD-06", "CARD-08")
async def test_the_card_names_the_public_url_or_the_sockets_address_and_never_what_a_request_claims() -> None:
    claims = {
        "Host": "evil.example",
        "X-Forwarded-Host": "evil.example",
        "X-Forwarded-Proto": "https",
        "X-Forwarded-Port": "444",
        "X-Forwarded-Prefix": "/evil",
        "Forwarded": "host=evil.example;proto=https",
    }
    public = "https://agents.example/echo"
    async with (
        serving(App(echo_agent())) as url,  # as `dragoman run` serves it
        served(echo_agent(), public_url=f"{public}/") as behind,
    ):
        own = (await behind.http.get(url + CARD, headers=claims)).json()["supportedInterfaces"]
        told = await behind.ask("GET", CARD, headers=claims)

    assert {entry["url"] for entry in own} == {url}
    assert [entry["url"] for entry in told.json["supportedInterfaces"]] == [f"{public}/", public] * 2
    assert b"evil" not in told.body


@pytest.mark.req("B131", "SEC-01", "CARD-15")
async def test_behind_https_the_server_asks_for_https_ever_after() -> None:
    async with served(echo_agent()) as wire, served(echo_agent(), public_url="https://agents.example") as behind:
        plain = await wire.ask("GET", CARD)
        told = [await behind.ask("GET", CARD), await behind.rpc("ListTasks"), await behind.rest("GET", "/tasks/x")]

    assert "strict-transport-security" not in plain.headers
    assert all("max-age" in answer.headers["strict-transport-security"] for answer in told)


@pytest.mark.req("B133", "CARD-06")
async def test_cards_asked_for_under_different_prefixes_at_once_are_each_their_own() -> None:
    app = App(echo_agent())

    async def under_prefix(scope: Any, receive: Any, send: Any) -> None:
        prefix = "/" + scope["path"].split("/")[1]
        await app({**scope, "root_path": prefix}, receive, send)

    async with app, asgi_served(under_prefix) as wire:

        async def check(number: int) -> None:
            prefix = f"/p{number % 10}"
            card = (await wire.ask("GET", prefix + CARD)).json
            assert [entry["url"] for entry in card["supportedInterfaces"]] == [
                f"{wire.url}{prefix}/",
                f"{wire.url}{prefix}",
            ] * 2

        for _ in range(5):
            await asyncio.gather(*(check(number) for number in range(40)))


@pytest.mark.req("CARD-01", "CARD-17", "AUTH-05")
async def test_the_public_card_is_public_where_everything_else_is_not() -> None:
    async with served(echo_agent(), identify=by_header) as wire:
        card = await wire.ask("GET", CARD, headers=PLAIN)
        call = await wire.rpc("ListTasks")
        known = await wire.rpc("ListTasks", headers=as_caller("ann"))

    assert (card.status, call.status, known.status) == (200, 401, 200)


@pytest.mark.req("CARD-14", "SEC-05", "XCARD-09")
async def test_nothing_of_the_servers_settings_is_in_the_card(tmp_path: Any) -> None:
    async with served(echo_agent(), store=f"sqlite:///{tmp_path}/secret-name.db", cors=("https://in.example",)) as wire:
        card = await wire.ask("GET", CARD)

    assert b"secret-name" not in card.body
    assert b"in.example" not in card.body


@pytest.mark.req("B177")
async def test_pages_of_other_origins_may_call_where_that_is_switched_on_and_not_by_default() -> None:
    preflight = {
        "Origin": "https://page.example",
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "a2a-version, a2a-extensions, authorization, content-type, last-event-id",
    }
    asking = {"Origin": "https://page.example", "A2A-Version": "1.0"}
    async with served(echo_agent(), cors=("https://page.example",)) as wire, served(echo_agent()) as off:
        told = [await wire.ask("OPTIONS", path, headers=preflight) for path in ("/", "/message:stream", CARD)]
        card = await wire.ask("GET", CARD, headers=asking)
        async with wire.stream("HTTP+JSON", "SendStreamingMessage", said(), headers=asking) as stream:
            events = await stream.rest()
        other = await wire.ask("GET", CARD, headers={"Origin": "https://evil.example"})
        closed = [
            await off.ask("OPTIONS", "/", headers=preflight),
            await off.ask("GET", CARD, headers=asking),
        ]

    for answer in told:
        assert answer.status in (200, 204)
        assert answer.headers["access-control-allow-origin"] == "https://page.example"
        allowed = {name.strip().lower() for name in answer.headers["access-control-allow-headers"].split(",")}
        assert allowed >= {"a2a-version", "a2a-extensions", "authorization", "content-type"}
        assert "POST" in answer.headers["access-control-allow-methods"]
    assert card.headers["access-control-allow-origin"] == "https://page.example"
    assert stream.headers["access-control-allow-origin"] == "https://page.example"
    assert events
    assert "access-control-allow-origin" not in other.headers
    assert not any("access-control-allow-origin" in answer.headers for answer in closed)


@pytest.mark.req("CARD-09", "CARD-13", "STRM-11", "ERR-23")
async def test_the_client_knows_from_the_card_what_not_to_ask() -> None:
    asked: list[str] = []

    def watch(operations: Any) -> Any:
        class Watching:
            async def call(self, op: Any, request: Any, context: Any) -> Any:
                asked.append(op.name)
                return await operations.call(op, request, context)

            async def stream(self, op: Any, request: Any, context: Any) -> Any:
                asked.append(op.name)
                return await operations.stream(op, request, context)

        return Watching()

    async with (
        served(echo_agent(streaming=False), interceptors=[watch]) as wire,
        dragoman.connect(wire.url) as client,
    ):
        with pytest.raises(dragoman.errors.UnsupportedOperationError):
            [event async for event in client.stream("hi")]
        with pytest.raises(dragoman.errors.PushNotificationNotSupportedError):
            await client.create_push_config("t", "https://hooks.example")
        with pytest.raises(dragoman.errors.UnsupportedOperationError):
            await client.get_extended_card()
        assert asked == []
        result = await client.run("hi")

    assert result.text == "You said: hi"
    assert set(asked) <= {"SendMessage", "GetTask"}
