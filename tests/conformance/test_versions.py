"""Protocol versions: what a server takes, what a client sends and chooses. Spec: §3.6."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest

import dragoman
from dragoman import Agent, App
from dragoman.errors import CardError
from dragoman.model import OPERATIONS
from tests.client.words import card, connect_to, task
from tests.conformance.wire import SPOKEN, asgi_served, by_header, said, served
from tests.http.peer import Peer, as_json, peer, result

BOTH = pytest.mark.parametrize("spoken", SPOKEN)
SERVED = ["1.0", "1.0.1", "1.0.99", "1"]
NOT_SERVED = ["99.0", "0.5", "0.3", "1.7", "1.1.0", "2", "abc", "1.x", "-1.0", "1.0.0.0", "v1.0", "1,0", "x" * 300]

agent = Agent("Echo", description="Repeats what you say.")


@agent.task
async def echo(ctx):  # type: ignore[no-untyped-def]
    return f"You said: {ctx.text}"


@BOTH
@pytest.mark.req("VER-01", "VER-03", "VER-06", "VER-07", "AMB-19", "AMB-20", "ERR-08", "B147")
async def test_major_and_minor_decide_and_a_refusal_names_what_is_served(spoken: str) -> None:
    async with served(agent) as wire:
        for version in SERVED:
            told = await wire.call(spoken, "ListTasks", headers={"A2A-Version": version})
            assert "tasks" in told.result, version
        for version in NOT_SERVED:
            told = await wire.call(spoken, "ListTasks", headers={"A2A-Version": version})
            assert told.reason == "VERSION_NOT_SUPPORTED", version
            assert told.code == (-32009 if spoken == "JSONRPC" else 400)
            assert told.metadata["supportedVersions"] == "1.0"
            assert len(told.body) < 1000


@BOTH
@pytest.mark.parametrize("version", [None, ""])
@pytest.mark.req("VER-08", "AMB-17", "B147")
async def test_no_version_means_0_3_and_is_refused_with_the_remedy(spoken: str, version: str | None) -> None:
    async with served(agent) as wire:
        told = await wire.call(spoken, "SendMessage", said(), headers={"A2A-Version": version})
        listed = await wire.call(spoken, "ListTasks")

    assert told.reason == "VERSION_NOT_SUPPORTED"
    assert "missing" in told.error["message"]
    assert "A2A-Version: 1.0" in told.error["message"]
    assert listed.result["totalSize"] == 0, "nothing was done"


@BOTH
@pytest.mark.req("VER-07", "ERR-01", "AMB-17")
async def test_a_version_that_is_not_served_is_told_before_anything_that_depends_on_the_version(spoken: str) -> None:
    async with served(agent) as wire:
        for version in ("99.0", None):
            bad = await wire.call(spoken, "SendMessage", {"message": 5}, headers={"A2A-Version": version})
            stream = await wire.call(spoken, "SendStreamingMessage", said(), headers={"A2A-Version": version})
            assert (bad.reason, stream.reason) == ("VERSION_NOT_SUPPORTED", "VERSION_NOT_SUPPORTED")


@pytest.mark.req("VER-07", "VER-08", "AMB-17", "AMB-94", "B021", "B147")
async def test_where_0_3_is_off_its_methods_are_a_wrong_version_and_an_unknown_name_under_1_0() -> None:
    old = {"message": {"kind": "message", "messageId": "m", "role": "user", "parts": [{"kind": "text", "text": "x"}]}}
    async with served(agent, versions=("1.0",)) as wire:
        unnamed = await wire.rpc("message/send", old, headers={"A2A-Version": None})
        named = await wire.rpc("message/send", old)
        other = await wire.rpc("message/send", old, headers={"A2A-Version": "99.0"})

    assert (unnamed.code, other.code) == (-32009, -32009)
    assert named.code == -32601
    assert "SendMessage" in named.error["message"]


@BOTH
@pytest.mark.req("AMB-17")
async def test_a_setting_takes_an_unmistakable_request_without_version_as_1_0_but_never_a_wrong_one(
    spoken: str,
) -> None:
    async with served(agent, infer_version=True) as wire:
        unnamed = await wire.call(spoken, "SendMessage", said(), headers={"A2A-Version": None})
        wrong = await wire.call(spoken, "SendMessage", said(), headers={"A2A-Version": "0.3"})

    assert unnamed.result["task"]["status"]["state"] == "TASK_STATE_COMPLETED"
    assert wrong.reason == "VERSION_NOT_SUPPORTED"


@pytest.mark.req("VER-05", "AMB-18", "AMB-21", "PARAM-01", "B147")
async def test_the_version_is_the_header_in_any_case_else_a_query_parameter_in_any_case() -> None:
    rpc = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ListTasks"}).encode()
    cases: list[tuple[str, dict[str, str], bool]] = [
        ("?A2A-Version=1.0", {}, True),
        ("?a2a-version=1.0", {}, True),
        ("?A2A-VERSION=99.0", {}, False),
        ("?a2a-version=99.0", {"A2A-Version": "1.0"}, True),
        ("?a2a-version=1.0", {"A2A-Version": "99.0"}, False),
        ("", {"a2a-version": "1.0"}, True),
        ("", {"A2A-VERSION": "1.0"}, True),
    ]
    async with served(agent) as wire:
        for query, headers, good in cases:
            for told in (
                await wire.ask("POST", f"/{query}", rpc, headers),
                await wire.ask("GET", f"/tasks{query}", None, headers),
            ):
                assert ("error" not in told.json) is good, (query, headers)
                assert good or told.reason == "VERSION_NOT_SUPPORTED"


@pytest.mark.req("VER-01", "VER-02", "CARD-08", "AMB-20")
async def test_the_card_is_read_without_a_version_and_names_versions_without_patch() -> None:
    async with served(agent) as wire:
        told = await wire.ask("GET", "/.well-known/agent-card.json", headers={})

    assert [entry["protocolVersion"] for entry in told.json["supportedInterfaces"]] == ["1.0", "1.0", "0.3", "0.3"]


# The client.


@BOTH
@pytest.mark.req(
    "VER-02", "VER-04", "VER-12", "PARAM-03", "PARAM-04", "PARAM-05", "AMB-17", "AMB-18", "AMB-20", "AMB-21"
)
async def test_the_client_sends_one_version_header_with_every_operation(spoken: str) -> None:
    seen: list[tuple[str, list[bytes]]] = []
    app = App(agent)

    async def record(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and not scope["path"].startswith("/.well-known"):
            seen.append((scope["path"], [value for name, value in scope["headers"] if name == b"a2a-version"]))
            assert b"version" not in scope["query_string"].lower()
        await app(scope, receive, send)

    async with (
        asgi_served(record) as wire,
        app,
        dragoman.connect(wire.url, bindings=(spoken,), check_capabilities=False) as client,
    ):
        done = await client.send("hello")
        calls = [
            client.get_task(done),
            client.list_tasks(),
            client.cancel(done),
            client.create_push_config(done, "https://hooks.example"),
            client.get_push_config(done, "c"),
            client.list_push_configs(done),
            client.delete_push_config(done, "c"),
            client.get_extended_card(),
        ]
        for call in calls:
            with contextlib.suppress(dragoman.A2AError):
                await call
        async for _ in client.stream("hello"):
            pass
        async for _ in client.subscribe(done):
            pass

    assert len(seen) >= len(OPERATIONS)
    assert {tuple(values) for _, values in seen} == {(b"1.0",)}


async def _answering(server: Peer) -> None:
    server.on("POST", "/", result({"task": task("COMPLETED")}))
    server.on("POST", "/message:send", as_json({"task": task("COMPLETED")}))


@pytest.mark.parametrize(
    ("entries", "chosen"),
    [
        ([("PIGEON", "0.3"), ("JSONRPC", "2.0"), ("HTTP+JSON", "1.0")], 2),
        ([("GRPC", "1.0"), ("JSONRPC", "1.0"), ("HTTP+JSON", "1.0")], 1),
        ([("https://bindings.example/v1", "1.0"), ("HTTP+JSON", "1.0.3")], 1),
        ([("JSONRPC", "1.1"), ("JSONRPC", "1")], 1),
    ],
)
@pytest.mark.req("VER-03", "VER-10", "CARD-09", "AMB-19", "AMB-78")
async def test_the_client_takes_the_first_interface_whose_binding_and_version_it_speaks(
    entries: list[tuple[str, str]], chosen: int
) -> None:
    async with peer() as server, peer() as wrong:
        await _answering(server)
        interfaces = [
            {
                "url": server.url if number == chosen else f"{wrong.url}/{number}",
                "protocolBinding": binding,
                "protocolVersion": version,
            }
            for number, (binding, version) in enumerate(entries)
        ]
        async with connect_to(server, card=card(server.url, supportedInterfaces=interfaces)) as client:
            await client.send("hello")

    assert len(server.received) == 1
    assert not wrong.received


@pytest.mark.req("VER-10", "VER-11", "CARD-09", "AMB-76")
async def test_a_card_of_other_versions_only_is_refused_and_says_what_it_offers() -> None:
    async with peer() as server:
        other = [{"url": server.url, "protocolBinding": "JSONRPC", "protocolVersion": "0.3"}]
        with pytest.raises(CardError) as raised:
            async with connect_to(server, card=card(server.url, supportedInterfaces=other), versions=("1.0",)):
                pass

    assert "JSONRPC 0.3" in str(raised.value)
    assert "1.0" in str(raised.value)
    assert not server.received


@pytest.mark.parametrize("flag", ["supportsExtendedAgentCard", "supportsAuthenticatedExtendedCard"])
@pytest.mark.req("VER-15", "VER-17")
async def test_the_client_reads_the_older_names_of_the_extended_card_flag(flag: str) -> None:
    async with peer() as server:
        old = card(server.url, **{flag: True, "capabilities": {"streaming": True}})
        async with connect_to(server, card=old) as client:
            assert client.card.capabilities.extended_agent_card is True


@BOTH
@pytest.mark.req("AUTH-05", "AMB-40")
async def test_credentials_are_asked_for_before_the_version(spoken: str) -> None:
    async with served(agent, identify=by_header) as wire:
        told = await wire.call(spoken, "ListTasks", headers={"A2A-Version": "99.0"})

    assert told.status == 401
