"""Finding an agent, also one that is mounted somewhere. Spec: §8.2, §8.3.2."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.routing import Mount

import dragoman
from dragoman import Agent, App, TaskState
from dragoman.errors import CardError, ClientError, ConnectError, RequestTimeoutError
from dragoman.model import AgentInterface
from tests.client.words import CARD_PATH, card, connect_to, serve_card, task
from tests.conformance.wire import QUICK, SPOKEN, Wire, as_caller, asgi_served, by_header, served
from tests.http.peer import as_json, free_url, peer, plain, raw, reset, result, silence

BOTH = pytest.mark.parametrize("spoken", SPOKEN)
agent = Agent("Echo", description="Repeats what you say.")


@agent.task
async def echo(ctx):  # type: ignore[no-untyped-def]
    yield f"You said: {ctx.text}"


# Mounted under a path.


@asynccontextmanager
async def mounted(framework: str, path: str, *, with_lifespan: bool) -> AsyncIterator[tuple[App, Wire]]:
    """An App under a path of another application; without lifespan it starts with its first request."""
    app = App(agent, limits=QUICK)
    outer: Any = Starlette(routes=[Mount(path, app)]) if framework == "starlette" else FastAPI()
    if framework == "fastapi":
        outer.mount(path, app)
    async with asgi_served(outer) as wire:
        if with_lifespan:
            async with app:
                yield app, wire
        else:
            yield app, wire
            await app.stop()


@BOTH
@pytest.mark.parametrize("with_lifespan", [True, False], ids=["with lifespan", "without"])
@pytest.mark.parametrize("framework", ["starlette", "fastapi"])
@pytest.mark.req("B031", "CARD-06", "HTTP-11", "CARD-03", "AMB-74")
async def test_a_mounted_agent_works_at_the_addresses_of_its_card(
    framework: str, with_lifespan: bool, spoken: str
) -> None:
    async with mounted(framework, "/agents/echo", with_lifespan=with_lifespan) as (_, wire):
        base = f"{wire.url}/agents/echo"
        entries = (await wire.ask("GET", f"/agents/echo{CARD_PATH}", headers={})).json["supportedInterfaces"]
        async with dragoman.connect(base, bindings=(spoken,)) as client:
            done = await client.send("hi")
            streamed = [event async for event in client.stream("hi")]
            again = await client.get_task(done)
        health = await wire.ask("GET", "/agents/echo/health")
        root = await wire.ask("GET", CARD_PATH)

    assert [entry["url"] for entry in entries] == [f"{base}/", base] * 2
    assert (done.status.state, again.status.state) == (TaskState.COMPLETED, TaskState.COMPLETED)
    assert len(streamed) > 2
    assert (health.status, root.status) == (200, 404)


@pytest.mark.req("B031", "AMB-90")
async def test_below_a_mount_with_odd_letters_ids_and_tenants_are_still_single_segments() -> None:
    async with mounted("starlette", "/agents ü", with_lifespan=True) as (_, wire):
        told = await wire.rest("GET", "/agents%20%C3%BC/acme/tasks/a%2Fb")
        entry = (await wire.ask("GET", f"/agents%20%C3%BC{CARD_PATH}")).json["supportedInterfaces"][1]

    assert (told.reason, told.metadata["taskId"]) == ("TASK_NOT_FOUND", "a/b")
    assert entry["url"].endswith("/agents%20%C3%BC")


@pytest.mark.req("B031")
async def test_two_agents_on_one_host_have_a_card_each_and_share_nothing() -> None:
    one, two = App(agent, limits=QUICK), App(agent, limits=QUICK)
    outer = Starlette(routes=[Mount("/one", one), Mount("/two", two)])
    async with (
        asgi_served(outer) as wire,
        one,
        two,
        dragoman.connect(f"{wire.url}/one") as first,
        dragoman.connect(f"{wire.url}/two") as second,
    ):
        done = await first.send("hi")
        with pytest.raises(dragoman.errors.TaskNotFoundError):
            await second.get_task(done)
        urls = [client.card.supported_interfaces[0].url for client in (first, second)]

    assert urls == [f"{wire.url}/one/", f"{wire.url}/two/"]


@pytest.mark.req("B131", "B031")
async def test_behind_a_proxy_that_strips_the_path_root_path_or_public_url_name_the_right_address() -> None:
    """uvicorn's --root-path in front of an app that sees the whole path, as ASGI says."""
    app = App(agent, limits=QUICK)

    async def with_root_path(scope: Any, receive: Any, send: Any) -> None:
        scope = {
            **scope,
            "root_path": "/echo",
            "path": "/echo" + scope["path"],
            "raw_path": b"/echo" + scope["raw_path"],
        }
        await app(scope, receive, send)

    async with asgi_served(with_root_path) as wire, app:
        card = (await wire.ask("GET", CARD_PATH)).json
        told = await wire.rest("GET", "/tasks")

    assert card["supportedInterfaces"][1]["url"] == f"{wire.url}/echo"
    assert told.status == 200


# Where a card may be.


@pytest.mark.req("CARD-03", "AMB-74", "B137")
async def test_a_card_is_found_by_its_own_address_with_headers_or_is_given(tmp_path: Path) -> None:
    async with peer() as server:
        value = card(server.url)
        server.on("GET", "/api/x/a2a/id.json", as_json(value))
        server.on("POST", "/", result(task("COMPLETED")))
        file = tmp_path / "card.json"
        file.write_text(json.dumps(value))
        for target in (f"{server.url}/api/x/a2a/id.json?tenant=1", str(file), value):
            async with dragoman.connect(target, card_headers={"Authorization": "Bearer t"}) as client:
                await client.get_task("t1")

    first = server.received[0]
    assert (first.target, first.headers["authorization"]) == ("/api/x/a2a/id.json?tenant=1", "Bearer t")
    assert all("authorization" not in request.headers for request in server.received[1:])
    assert len([request for request in server.received if request.method == "GET"]) == 1


@pytest.mark.req("AMB-74", "B139", "CARD-03")
async def test_a_base_address_is_tried_below_its_path_then_at_the_root() -> None:
    async with peer() as server:
        serve_card(server)
        async with dragoman.connect(f"{server.url}/agents/echo") as client:
            assert client.card.name == "Peer"
        with pytest.raises(CardError) as raised:
            async with dragoman.connect(f"{server.url}/missing{CARD_PATH}"):
                pass

    assert server.targets()[:2] == [f"GET /agents/echo{CARD_PATH}", f"GET {CARD_PATH}"]
    assert "/missing" in str(raised.value)


@pytest.mark.req("B139", "AMB-76")
async def test_an_old_server_is_found_at_its_old_place_and_called_by_its_version_where_that_is_allowed() -> None:
    old = {"name": "Old", "url": "http://old.example", "protocolVersion": "0.3.0", "capabilities": {}, "skills": []}
    async with peer() as server:
        server.on("GET", "/.well-known/agent.json", as_json(old))
        async with dragoman.connect(server.url) as client:
            found = client.interface
        with pytest.raises(CardError) as raised:
            async with dragoman.connect(server.url, versions=("1.0",)):
                pass

    assert (found.url, found.protocol_version) == ("http://old.example", "0.3")
    assert "JSONRPC 0.3" in str(raised.value)


@pytest.mark.parametrize("end", ["/v1/card", CARD_PATH, "/message:stream", "/message:send"])
@pytest.mark.req("B135")
async def test_a_card_that_names_no_interface_but_an_operation_is_explained_and_can_be_overruled(end: str) -> None:
    async with peer() as server:
        server.on("POST", "/", result(task("COMPLETED")))
        entry = {"url": f"{server.url}{end}", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
        wrong = card(server.url, supportedInterfaces=[entry])
        with pytest.raises(CardError) as raised:
            async with connect_to(server, card=wrong):
                pass
        right = AgentInterface(url=server.url, protocol_binding="JSONRPC", protocol_version="1.0")
        async with connect_to(server, card=wrong, interface=right) as client:
            await client.get_task("t1")

    assert end in str(raised.value)
    assert "interface=" in str(raised.value)
    assert server.targets() == ["POST /"]


@pytest.mark.req("CARD-09", "CARD-11", "CARD-12", "AMB-78")
async def test_interfaces_are_taken_in_order_and_the_next_is_tried_only_where_nobody_answers() -> None:
    async with peer() as server:
        server.on("POST", "/message:send", as_json({"task": task("COMPLETED")}))
        entries = [
            {
                "url": "https://x.example",
                "protocolBinding": "https://bindings.example/pigeon",
                "protocolVersion": "1.0",
            },
            {"url": free_url().removeprefix("http://"), "protocolBinding": "GRPC", "protocolVersion": "1.0"},
            {"url": free_url(), "protocolBinding": "JSONRPC", "protocolVersion": "1.0"},
            {"url": server.url, "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0"},
        ]
        async with connect_to(server, card=card(server.url, supportedInterfaces=entries)) as client:
            assert client.interface.protocol_binding == "GRPC"
            await client.send("hi")
            assert client.interface.protocol_binding == "HTTP+JSON"
        async with connect_to(
            server, card=card(server.url, supportedInterfaces=entries), bindings=("HTTP+JSON",)
        ) as client:
            assert client.interface.protocol_binding == "HTTP+JSON"


SECRET = "root:x:0:0"


@pytest.mark.parametrize(
    "answer",
    [
        plain(200, f"<html>{SECRET}</html>".encode(), kind="text/html"),
        plain(200, f'{{"name": "{SECRET}"}}'.encode()),
        plain(200, f'["{SECRET}"]'.encode()),
        plain(500, SECRET.encode()),
        plain(200, f'{{"supportedInterfaces": [{{"url": "{SECRET}"}}]}}'.encode()),
        plain(302, SECRET.encode(), location="http://169.254.169.254/latest/meta-data"),
        plain(302, SECRET.encode(), location="file:///etc/passwd"),
        raw(f"HTTP/1.1 200 OK\r\nContent-Length: 9000000000\r\n\r\n{SECRET}".encode()),
    ],
    ids=["a page", "no card", "a list", "an error", "a bad url", "metadata service", "a file", "nine gigabytes"],
)
@pytest.mark.req("B127", "CARD-03")
async def test_what_is_no_card_is_refused_without_a_word_of_what_was_there(answer: Any) -> None:
    async with peer() as server:
        server.on("GET", CARD_PATH, answer)
        with pytest.raises(ClientError) as raised:
            async with dragoman.connect(server.url):
                pass

    assert SECRET not in str(raised.value)
    assert raised.value.url.startswith((server.url, "file:"))


@pytest.mark.parametrize("target", ["htp://x", "ftp://agents.example/card", "gopher://x", "http://", "data:,x"])
@pytest.mark.req("B127", "SEC-15")
async def test_only_http_addresses_are_fetched(target: str) -> None:
    with pytest.raises(ClientError):
        async with dragoman.connect(target):
            pass


@pytest.mark.parametrize(
    "target",
    [
        "http://127.0.0.1:1",
        "http://169.254.169.254/latest",
        "http://[::1]:1",
        "http://localhost:1",
        "http://2130706433:1",
        "file:///etc/passwd",
    ],
)
@pytest.mark.req("B127", "SEC-15")
async def test_for_targets_that_are_not_trusted_inner_addresses_and_files_are_out_of_reach(target: str) -> None:
    with pytest.raises(dragoman.errors.OutboundUrlError):
        async with dragoman.connect(target, allow_private=False):
            pass


@pytest.mark.parametrize(
    ("answer", "kind"),
    [(reset, dragoman.errors.ConnectionLostError), (silence, RequestTimeoutError), (None, ConnectError)],
    ids=["connection reset", "no answer", "nobody there"],
)
@pytest.mark.req("B157")
async def test_each_way_to_fail_has_its_error_with_address_and_cause(answer: Any, kind: type[ClientError]) -> None:
    async with peer() as server:
        url = free_url() if answer is None else server.url
        if answer is not None:
            server.on("POST", "/", answer)
        entry = AgentInterface(url=url, protocol_binding="JSONRPC", protocol_version="1.0")
        async with dragoman.connect(entry, timeout=0.2) as client:
            with pytest.raises(kind) as raised:
                await client.send("hi", timeout=0.2)

    assert raised.value.url.startswith(url)
    assert url in str(raised.value)
    assert raised.value.__cause__ is not None


@pytest.mark.req("B157")
async def test_a_name_that_is_not_found_and_a_peer_without_tls_are_connect_errors() -> None:
    async with peer() as server:
        for url in (f"http://{'a' * 64}.example", server.url.replace("http:", "https:")):
            entry = AgentInterface(url=url, protocol_binding="JSONRPC", protocol_version="1.0")
            async with dragoman.connect(entry, connect_timeout=0.3) as client:
                with pytest.raises(ConnectError) as raised:
                    await client.list_tasks()
            assert url in str(raised.value)
            assert raised.value.__cause__ is not None


@pytest.mark.req("CARD-18", "CARD-22", "CARD-23", "CARD-24")
async def test_our_own_card_is_fetched_once_and_then_only_revalidated() -> None:
    clock = [0.0]
    cache = dragoman.client.CardCache(now=lambda: clock[0])
    statuses: list[int] = []
    app = App(agent, card_max_age=60)

    async def watched(scope: Any, receive: Any, send: Any) -> None:
        async def note(message: Any) -> None:
            if message["type"] == "http.response.start":
                statuses.append(message["status"])
            await send(message)

        await app(scope, receive, note)

    async with asgi_served(watched) as wire, app:
        for clock[0] in (0.0, 59.0, 61.0, 62.0):
            async with dragoman.connect(wire.url, cache=cache) as client:
                assert client.card.name == "Echo"

    assert statuses == [200, 304]


@BOTH
@pytest.mark.req("SEC-05")
async def test_credentials_of_the_connection_go_with_every_call_in_headers_only(spoken: str) -> None:
    async with served(agent, identify=by_header) as wire:
        headers = {name: value or "" for name, value in as_caller("ann").items()}
        async with dragoman.connect(wire.url, bindings=(spoken,), headers=headers) as client:
            done = await client.send("hi")
            assert [event async for event in client.stream("hi")]
            assert (await client.get_task(done)).id == done.id
        async with dragoman.connect(wire.url, bindings=(spoken,)) as client:
            with pytest.raises(dragoman.errors.UnauthenticatedError) as raised:
                await client.get_task(done)

    assert "agents" in str(raised.value.metadata.get("challenge", "")) or raised.value.origin is not None


@pytest.mark.req("AMB-72")
async def test_the_name_of_the_older_security_member_means_nothing_in_a_card_of_1_0() -> None:
    async with peer() as server:
        both = card(server.url, security=[{"old": []}], securityRequirements=[{"schemes": {"new": {"list": ["a"]}}}])
        old = card(server.url, security=[{"old": []}])
        async with connect_to(server, card=both) as client:
            assert [list(entry.schemes) for entry in client.card.security_requirements] == [["new"]]
        async with connect_to(server, card=old) as client:
            assert client.card.security_requirements == []
