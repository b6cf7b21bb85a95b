"""Who may open a socket, and what they are told otherwise."""

from __future__ import annotations

import json
from typing import Any

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from dragoman import Agent, App, Caller
from dragoman.bindings.websocket import WEBSOCKET, WebSocketBinding
from dragoman.errors import ConfigurationError, PermissionDeniedError, UnauthenticatedError
from tests.websocket.conftest import Dial, Serve
from tests.websocket.raw import call


async def identify(scope: Any) -> Caller:
    """Whoever has a name is let in, but for Eve."""
    headers = dict(scope["headers"])
    name = headers.get(b"authorization", b"").decode()
    if not name:
        raise UnauthenticatedError("Who are you?", metadata={"challenge": 'Bearer realm="x"\r\nSet-Cookie: a'})
    if name == "eve":
        raise PermissionDeniedError("Not you")
    return Caller(id=name)


async def test_the_binding_is_off_unless_it_is_asked_for(agent: Agent, serve: Serve, dial: Dial) -> None:
    app = App(agent)
    url = await serve(app)

    assert {entry.protocol_binding for entry in app.card(url).supported_interfaces} == {"JSONRPC", "HTTP+JSON"}
    with pytest.raises(InvalidStatus) as refused:
        await dial(url)
    assert refused.value.response.status_code >= 400


@pytest.mark.req("BIND-10", "BIND-14", "AMB-78")
@pytest.mark.parametrize(
    ("base", "address"),
    [
        ("https://agents.example/planner/", "wss://agents.example/planner/ws"),
        ("http://127.0.0.1:8000", "ws://127.0.0.1:8000/ws"),
    ],
)
async def test_the_card_names_the_uri_and_the_full_address(agent: Agent, base: str, address: str) -> None:
    app = App(agent, bindings=[WebSocketBinding()])

    last = [entry for entry in app.card(base).supported_interfaces if entry.protocol_version == "1.0"][-1]

    assert (last.protocol_binding, last.url, last.protocol_version) == (WEBSOCKET, address, "1.0")


async def test_a_handshake_without_the_subprotocol_is_refused_by_name(agent: Agent, serve: Serve) -> None:
    url = await serve(agent)

    with pytest.raises(InvalidStatus) as refused:
        async with connect("ws" + url.removeprefix("http") + "/ws"):
            pass

    response = refused.value.response
    assert response.status_code == 400
    assert "a2a-dragoman.v1" in json.loads(response.body)["error"]["message"]


@pytest.mark.req("BIND-09", "BIND-13")
@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1:1"])
async def test_a_page_of_another_origin_may_not_connect(agent: Agent, serve: Serve, dial: Dial, origin: str) -> None:
    url = await serve(agent, cors=["https://good.example"], public_url="https://agents.example/x")

    with pytest.raises(InvalidStatus) as refused:
        await dial(url, origin=origin)

    assert refused.value.response.status_code == 403


@pytest.mark.req("BIND-09")
@pytest.mark.parametrize("origin", ["https://good.example", "https://agents.example"])
async def test_a_page_of_a_named_origin_or_of_ones_own_may(agent: Agent, serve: Serve, dial: Dial, origin: str) -> None:
    url = await serve(agent, cors=["https://good.example"], public_url="https://agents.example/x")
    socket = await dial(url, origin=origin)

    assert (await socket.ask(call(1)))["type"] == "result"


@pytest.mark.req("BIND-09", "AUTH-05", "AMB-34")
async def test_a_handshake_without_credentials_is_answered_with_the_challenge(
    agent: Agent, serve: Serve, dial: Dial
) -> None:
    url = await serve(agent, identify=identify)

    with pytest.raises(InvalidStatus) as refused:
        await dial(url)

    response = refused.value.response
    assert response.status_code == 401
    assert response.headers["www-authenticate"] == 'Bearer realm="x" Set-Cookie: a'
    assert json.loads(response.body)["error"]["status"] == "UNAUTHENTICATED"


@pytest.mark.req("BIND-09")
async def test_a_caller_who_may_not_is_told_so(agent: Agent, serve: Serve, dial: Dial) -> None:
    url = await serve(agent, identify=identify)

    with pytest.raises(InvalidStatus) as refused:
        await dial(url, authorization="eve")

    assert refused.value.response.status_code == 403


async def test_a_server_that_is_going_down_takes_no_more_sockets(agent: Agent, serve: Serve, dial: Dial) -> None:
    app = App(agent, bindings=[WebSocketBinding()])
    url = await serve(app)
    app.begin_stop()

    with pytest.raises(InvalidStatus) as refused:
        await dial(url)

    assert refused.value.response.status_code == 503


@pytest.mark.req("BIND-09", "AUTH-08")
async def test_the_identity_of_the_handshake_is_that_of_every_call(agent: Agent, serve: Serve, dial: Dial) -> None:
    url = await serve(agent, identify=identify)
    ada, bob = await dial(url, authorization="ada"), await dial(url, authorization="bob")
    task = (await ada.ask(call(1)))["result"]["task"]

    hers = await ada.ask(call(2, "GetTask", {"id": task["id"]}))
    his = await bob.ask(call(2, "GetTask", {"id": task["id"]}))

    assert hers["result"]["id"] == task["id"]
    assert his["error"]["status"] == "NOT_FOUND"


@pytest.mark.req("BIND-05", "BIND-09")
@pytest.mark.parametrize("name", ["Authorization", "cookie", "X-API-Key", "sec-websocket-protocol", "origin", "x-mine"])
async def test_a_message_cannot_bring_credentials_of_its_own(agent: Agent, serve: Serve, dial: Dial, name: str) -> None:
    url = await serve(agent, identify=identify, binding=WebSocketBinding(credentials=["X-Mine"]))
    socket = await dial(url, authorization="ada")

    answer = await socket.ask(call(1, parameters={"a2a-version": "1.0", name: "bob"}))

    violations = answer["error"]["details"][0]["fieldViolations"]
    assert [violation["field"] for violation in violations] == [f"parameters.{name.lower()}"]


@pytest.mark.req("BIND-09", "BIND-13")
async def test_a_socket_grows_no_older_than_max_age(agent: Agent, serve: Serve, dial: Dial) -> None:
    binding = WebSocketBinding(max_age=0.1)
    url = await serve(agent, identify=identify, binding=binding)
    socket = await dial(url, authorization="ada")

    code, came = await socket.until_closed()

    assert (code, [frame["type"] for frame in came]) == (1001, ["drain"])


@pytest.mark.parametrize(
    "settings",
    [
        {"path": "ws"},
        {"path": "/a/"},
        {"path": "/a?b"},
        {"max_calls": 0},
        {"max_age": 0},
        {"window": 0},
        {"heartbeat": -1},
    ],
)
def test_a_setting_out_of_range_is_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=next(iter(settings))):
        WebSocketBinding(**settings)


def test_two_bindings_of_one_uri_or_one_path_are_refused(agent: Agent) -> None:
    with pytest.raises(ConfigurationError, match="twice"):
        App(agent, bindings=[WebSocketBinding(), WebSocketBinding(path="/other")])
