"""The binding within an app: where it is mounted, and how it begins and ends with its server."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import MutableMapping
from pathlib import Path
from typing import Any

import pytest

import dragoman
from dragoman import Agent, App, Limits
from dragoman.bindings.websocket import WEBSOCKET, WebSocketBinding
from dragoman.errors import ConfigurationError, ConnectError, UnauthenticatedError
from dragoman.model import AgentInterface
from dragoman.ports.binding import ServerEdge, ServerHalf
from dragoman.testing.serving import serving
from tests.grpc.certificates import Authority
from tests.websocket.lines import LinesBinding
from tests.websocket.raw import BOUND, SUBPROTOCOL, call, dialed, say
from tests.websocket.scripted_server import Peer, playing

Message = MutableMapping[str, Any]


class Asgi:
    """One WebSocket scope, played by hand."""

    def __init__(self, **scope: Any) -> None:
        self.scope: dict[str, Any] = {
            "type": "websocket",
            "path": "/ws",
            "headers": [(b"a2a-version", b"1.0")],
            "subprotocols": [SUBPROTOCOL],
            **scope,
        }
        self.sent: list[Message] = []
        self.messages: list[Message] = [{"type": "websocket.connect"}, {"type": "websocket.disconnect", "code": 1000}]

    async def receive(self) -> Message:
        return self.messages.pop(0)

    async def send(self, message: Message) -> None:
        self.sent.append(message)

    async def run(self, app: App) -> list[str]:
        await app(self.scope, self.receive, self.send)
        return [message["type"] for message in self.sent]


@pytest.mark.parametrize(
    "scope",
    [
        {"path": "/ws"},
        {"path": "/agents/echo/ws", "root_path": "/agents/echo"},
        {"path": "/ws", "root_path": "/agents/echo"},
    ],
)
async def test_the_endpoint_is_below_whatever_the_app_is_mounted_at(agent: Agent, scope: dict[str, str]) -> None:
    async with App(agent, bindings=[WebSocketBinding()]) as app:
        socket = Asgi(**scope)
        await socket.run(app)

    assert socket.sent[0] == {"type": "websocket.accept", "subprotocol": "a2a-dragoman.v1"}


async def test_a_socket_starts_an_app_that_nobody_has_started(agent: Agent) -> None:
    app = App(agent, bindings=[WebSocketBinding(path="/a/b")])

    types = await Asgi(path="/a/b").run(app)
    await app.stop()

    assert types[0] == "websocket.accept"


@pytest.mark.parametrize("path", ["/", "/ws/", "/wss", "/message:send"])
async def test_a_socket_anywhere_else_is_closed(agent: Agent, path: str) -> None:
    async with App(agent, bindings=[WebSocketBinding()]) as app:
        assert await Asgi(path=path).run(app) == ["websocket.close"]


async def test_a_server_that_cannot_refuse_with_a_body_refuses_without(agent: Agent) -> None:
    async def identify(scope: Any) -> dragoman.Caller:
        raise UnauthenticatedError

    async with App(agent, bindings=[WebSocketBinding()], identify=identify) as app:
        assert await Asgi().run(app) == ["websocket.close"]


@pytest.mark.req("ERR-11")
async def test_a_server_that_ends_answers_open_calls_before_it_closes_sockets(agent: Agent) -> None:
    app = App(agent, bindings=[WebSocketBinding()], limits=Limits(shutdown_grace=0.2, lease=2, cancel_wait=2))
    async with asyncio.timeout(4 * BOUND):
        async with serving(app) as url:
            opening = dialed(url)
            socket = await opening.__aenter__()
            await socket.send(call(1, "SendStreamingMessage", say("wait"), credit=10**6))
            assert [(await socket.next())["type"] for _ in range(2)] == ["open", "events"]
        code, came = await socket.until_closed()
        await opening.__aexit__(None, None, None)

    assert came[0] == {"type": "drain"}
    assert came[-1]["type"] in ("error", "end")
    assert code == 1001


@pytest.mark.req("SEC-01", "BIND-13")
async def test_a_socket_over_tls_is_opened_to_whom_the_client_trusts(tmp_path: Path) -> None:
    authority = Authority("Root")
    certificate, key = authority.sign("localhost").save(tmp_path, "server")
    server_side = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    server_side.load_cert_chain(certificate, key)
    trusting = ssl.create_default_context(cadata=authority.root.decode())

    async def play(peer: Peer) -> None:
        frame = await peer.next()
        await peer.send({"type": "result", "id": frame["id"], "result": {"id": "t-1", "status": {}}})
        await peer.connection.wait_closed()

    async with playing(play, ssl=server_side) as server:
        port = server.interface.url.rpartition(":")[2]
        interface = AgentInterface(url=f"wss://localhost:{port}", protocol_binding=WEBSOCKET, protocol_version="1.0")
        async with dragoman.connect(interface, bindings=[WebSocketBinding(tls=trusting)]) as client:
            assert (await client.get_task("t-1")).id == "t-1"
        async with dragoman.connect(interface, bindings=[WebSocketBinding()]) as client:
            with pytest.raises(ConnectError, match="TLS"):
                await client.get_task("t-1")


@pytest.mark.req("CARD-06", "BIND-10")
async def test_a_binding_that_listens_by_itself_is_on_the_card_while_it_is_served(agent: Agent) -> None:
    app = App(agent, bindings=[LinesBinding()])
    before = app.card("http://127.0.0.1:1")

    async with app:
        during = app.card("http://127.0.0.1:1")
    after = app.card("http://127.0.0.1:1")

    assert [len(card.supported_interfaces) for card in (before, during, after)] == [4, 5, 4]
    assert during.supported_interfaces[2].url.startswith("lines://")


class Broken(LinesBinding):
    """Cannot listen."""

    uri = "https://example.com/bindings/broken/v1"

    def server(self, edge: ServerEdge) -> Any:
        return _BrokenHalf()


class _BrokenHalf(ServerHalf):
    def interface(self, base_url: str) -> None:
        return None

    async def start(self) -> None:
        raise ConfigurationError("the port is taken")


async def test_an_app_whose_binding_cannot_start_does_not_start_and_leaves_nothing_open(agent: Agent) -> None:
    working = LinesBinding()
    app = App(agent, bindings=[working, Broken()])

    with pytest.raises(ConfigurationError, match="port is taken"):
        await app.start()

    assert len(app.card("http://127.0.0.1:1").supported_interfaces) == 4


@pytest.mark.parametrize("uri", ["JSONRPC", "GRPC", "lines"])
def test_a_binding_without_a_uri_of_its_own_is_refused(agent: Agent, uri: str) -> None:
    binding = LinesBinding()
    binding.uri = uri

    with pytest.raises(ConfigurationError, match="no URI"):
        App(agent, bindings=[binding])
