"""The client half, against servers that do what servers do."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from websockets.datastructures import Headers
from websockets.http11 import Response

import dragoman
from dragoman import Agent, App, Client, Reconnect, Task, TaskState
from dragoman.bindings.websocket import WEBSOCKET, WebSocketBinding
from dragoman.client import Connection
from dragoman.errors import (
    CardError,
    ConfigurationError,
    ConnectError,
    ConnectionLostError,
    InvalidAgentResponseError,
    OutboundUrlError,
    RequestTimeoutError,
    UnavailableError,
)
from dragoman.model import SUBSCRIBE_TO_TASK, AgentInterface, SubscribeToTaskRequest
from dragoman.ports.operations import CallContext
from dragoman.testing.cutting_proxy import CuttingProxy, Fate
from tests.websocket.conftest import Serve
from tests.websocket.raw import BOUND
from tests.websocket.scripted_server import Peer, playing, silent_after_handshake

TASK = {"id": "t-1", "contextId": "c-1", "status": {"state": "TASK_STATE_WORKING"}}
DONE = {"taskId": "t-1", "contextId": "c-1", "status": {"state": "TASK_STATE_COMPLETED"}}


def to(interface: AgentInterface | str, binding: WebSocketBinding | None = None, **settings: Any) -> Connection:
    """A connection to one WebSocket interface."""
    if isinstance(interface, str):
        interface = AgentInterface(url=interface, protocol_binding=WEBSOCKET, protocol_version="1.0")
    return dragoman.connect(interface, bindings=[binding or WebSocketBinding()], **settings)


def result(frame: dict[str, Any], value: Any = None) -> dict[str, Any]:
    """The answer to a call."""
    return {"type": "result", "id": frame["id"], "result": TASK if value is None else value}


def events(frame: dict[str, Any], *items: dict[str, Any]) -> dict[str, Any]:
    """Events of a stream."""
    return {"type": "events", "id": frame["id"], "events": [{"event": item} for item in items]}


async def test_one_socket_serves_all_calls_and_opens_with_the_first() -> None:
    async def play(peer: Peer) -> None:
        while True:
            await peer.send(result(await peer.next()))

    async with playing(play) as server, to(server.interface) as client:
        before = len(server.peers)
        await asyncio.gather(*(client.get_task(f"t-{number}") for number in range(20)))

        assert (before, len(server.peers)) == (0, 1)


@pytest.mark.req("TEN-02", "BIND-05")
async def test_a_call_carries_the_tenant_the_version_and_what_the_handshake_did_not_say() -> None:
    seen: list[dict[str, Any]] = []

    async def play(peer: Peer) -> None:
        seen.append(dict(peer.connection.request.headers.raw_items()) if peer.connection.request else {})
        while True:
            seen.append(await peer.next())
            await peer.send(result(seen[-1]))

    async with playing(play) as server:
        server.interface.tenant = "acme"
        headers = {"Authorization": "Bearer s", "X-App": "1", "A2A-Extensions": "https://e.example/1"}
        async with to(server.interface, headers=headers) as client:
            await client.get_task("t-1", headers={"X-Trace": "9"})

    handshake, frame = seen
    names = {name.lower(): value for name, value in handshake.items()}
    assert (names["authorization"], names["x-app"]) == ("Bearer s", "1")
    assert frame["operation"] == "GetTask"
    assert frame["request"] == {"id": "t-1", "tenant": "acme"}
    assert frame["parameters"] == {
        "x-trace": "9",
        "a2a-version": "1.0",
        "a2a-extensions": "https://e.example/1",
    }


@pytest.mark.req("BIND-09")
async def test_other_credentials_get_a_socket_of_their_own() -> None:
    async def play(peer: Peer) -> None:
        while True:
            await peer.send(result(await peer.next()))

    binding = WebSocketBinding(credentials=["X-Key"])
    async with playing(play) as server, to(server.interface, binding, headers={"X-Key": "a"}) as client:
        await client.get_task("t-1")
        await client.get_task("t-1", headers={"X-Key": "b"})
        await client.get_task("t-1", headers={"X-Key": "b"})

        keys = [peer.connection.request.headers["X-Key"] for peer in server.peers if peer.connection.request]
        assert keys == ["a", "b"]


@pytest.mark.req("GET-05")
async def test_a_call_that_changes_nothing_is_repeated_when_the_socket_is_lost_and_another_is_not() -> None:
    async def play(peer: Peer) -> None:
        frame = await peer.next()
        if peer.number:
            await peer.send(result(frame))
            await peer.next()

    async with playing(play) as server, to(server.interface) as client:
        got = await client.get_task("t-1")
        assert (got.id, len(server.peers)) == ("t-1", 2)

    async def close(peer: Peer) -> None:
        await peer.next()

    async with playing(close) as server, to(server.interface) as client:
        with pytest.raises(ConnectionLostError):
            await client.send("hello")
        assert len(server.peers) == 1


async def test_after_a_drain_new_calls_go_over_a_new_socket_and_open_ones_stay() -> None:
    async def play(peer: Peer) -> None:
        first = await peer.next()
        if peer.number:
            await peer.send(result(first))
            answered.set()
        else:
            await peer.send({"type": "drain"}, {"type": "ping"})
            assert (await peer.next())["type"] == "pong"
            drained.set()
            await answered.wait()
            await peer.send(result(first, {"task": TASK}))
        await peer.connection.wait_closed()

    drained, answered = asyncio.Event(), asyncio.Event()
    async with playing(play) as server, to(server.interface) as client, asyncio.timeout(BOUND):
        sending = asyncio.create_task(client.send("hello", wait=False))
        await drained.wait()
        await client.get_task("t-1")
        sent = await sending

        assert isinstance(sent, Task)
        assert len(server.peers) == 2


async def test_what_the_server_may_say_in_a_later_version_is_ignored() -> None:
    async def play(peer: Peer) -> None:
        frame = await peer.next()
        await peer.send({"type": "news", "id": frame["id"]}, {**result(frame), "later": 1})
        await peer.connection.wait_closed()

    async with playing(play) as server, to(server.interface) as client:
        assert (await client.get_task("t-1")).id == "t-1"


@pytest.mark.req("AMB-37")
@pytest.mark.parametrize(
    "answer",
    [
        "{",
        '{"type":"result","id":"x"}',
        {"type": "result", "id": 1, "result": {"status": 5}},
        {"type": "result", "id": 1, "result": []},
        {"type": "open", "id": 1},
        {"type": "end", "id": 1},
    ],
)
async def test_an_answer_that_cannot_be_understood_is_said_to_be_so(answer: Any) -> None:
    async def play(peer: Peer) -> None:
        await peer.next()
        await peer.send(answer)
        await peer.connection.wait_closed()

    async with playing(play) as server, to(server.interface, timeout=BOUND) as client:
        with pytest.raises(InvalidAgentResponseError):
            await client.get_task("t-1")


@pytest.mark.parametrize("error", [None, {}, "text", {"code": "x", "details": [1, {"@type": 5}]}, {"code": 503}])
async def test_an_error_of_any_form_is_an_error(error: Any) -> None:
    async def play(peer: Peer) -> None:
        frame = await peer.next()
        await peer.send({"type": "error", "id": frame["id"], "error": error})
        await peer.connection.wait_closed()

    async with playing(play) as server, to(server.interface, timeout=BOUND) as client:
        with pytest.raises(dragoman.A2AError) as caught:
            await client.get_task("t-1")
        assert caught.value.origin is not None
        assert isinstance(caught.value, UnavailableError) == (error == {"code": 503})


@pytest.mark.req("BIND-07")
async def test_credit_is_given_back_as_events_are_read() -> None:
    window, came = 20_000, []

    async def play(peer: Peer) -> None:
        frame = await peer.next()
        credit = frame["credit"]
        await peer.send({"type": "open", "id": frame["id"]}, events(frame, {"task": TASK}))
        text = {**DONE, "status": {"state": "TASK_STATE_WORKING"}, "metadata": {"x": "y" * 4000}}
        for _ in range(50):
            while credit <= 0:
                more = await peer.next()
                assert more["type"] == "credit"
                credit += more["credit"]
                came.append(more["credit"])
            await peer.send(events(frame, {"statusUpdate": text}))
            credit -= 4_200
        await peer.send(events(frame, {"statusUpdate": DONE}), {"type": "end", "id": frame["id"]})
        await peer.connection.wait_closed()

    async with playing(play) as server, to(server.interface, WebSocketBinding(window=window)) as client:
        async with asyncio.timeout(BOUND):
            seen = [event async for event in client.stream("hello")]

        assert len(seen) == 52
        assert min(came) >= window // 2


@pytest.mark.req("BIND-13")
async def test_a_server_that_does_not_keep_to_the_credit_loses_the_stream_not_the_memory() -> None:
    cancelled: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()

    async def play(peer: Peer) -> None:
        frame = await peer.next()
        await peer.send({"type": "open", "id": frame["id"]})
        large = events(frame, {"statusUpdate": {**DONE, "metadata": {"x": "y" * 50_000}}})
        await peer.send(*[large] * 10)
        cancelled.set_result(await peer.next())
        await peer.connection.wait_closed()

    binding = WebSocketBinding(window=10_000, max_message_bytes=100_000)
    async with playing(play) as server, to(server.interface, binding) as client:
        stream = await client.operations.stream(SUBSCRIBE_TO_TASK, SubscribeToTaskRequest(id="t-1"), CallContext())
        async with asyncio.timeout(BOUND):
            await cancelled
        kept = await stream.next_batch()
        with pytest.raises(InvalidAgentResponseError, match="more than it was allowed"):
            await stream.next_batch()

    assert len(kept) == 2
    assert cancelled.result()["type"] == "cancel"


async def test_a_call_that_takes_too_long_is_cancelled_on_the_wire() -> None:
    seen: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()

    async def play(peer: Peer) -> None:
        await peer.next()
        seen.set_result(await peer.next())
        await peer.connection.wait_closed()

    async with playing(play) as server, to(server.interface) as client:
        with pytest.raises(RequestTimeoutError, match="GetTask"):
            await client.get_task("t-1", timeout=0.05)

        async with asyncio.timeout(BOUND):
            assert await seen == {"type": "cancel", "id": 1}


async def test_a_dead_line_is_noticed_by_the_heartbeat() -> None:
    async with silent_after_handshake() as url, to(url, WebSocketBinding(heartbeat=0.05), timeout=BOUND) as client:
        with pytest.raises(ConnectionLostError):
            await client.send("hello")


async def test_a_silent_line_is_noticed_by_the_idle_timeout_without_heartbeats() -> None:
    async with silent_after_handshake() as url, to(url, WebSocketBinding(heartbeat=0), idle_timeout=0.05) as client:
        with pytest.raises(ConnectionLostError, match="Nothing came"):
            await client.send("hello", timeout=BOUND)


@pytest.mark.parametrize("status", [200, 302, 404, 426, 500])
async def test_an_address_where_no_agent_answers_is_one_without_connection(status: int) -> None:
    async def refuse(connection: Any, request: Any) -> Response:
        return Response(status, "No", Headers({"Location": "ws://127.0.0.1:1/"}), b"nothing here")

    async def play(peer: Peer) -> None: ...

    async with playing(play, process_request=refuse) as server, to(server.interface) as client:
        with pytest.raises(ConnectError, match=str(status)):
            await client.get_task("t-1")


async def test_a_server_that_speaks_something_else_is_one_without_connection() -> None:
    async def play(peer: Peer) -> None:
        await peer.connection.wait_closed()

    async with playing(play, subprotocols=None) as server, to(server.interface) as client:
        with pytest.raises(ConnectError):
            await client.get_task("t-1")


@pytest.mark.req("CARD-12")
async def test_the_next_interface_is_used_where_the_socket_cannot_be_opened(agent: Agent, serve: Serve) -> None:
    app = App(agent)
    url = await serve(app)
    card = app.card(url)
    dead = AgentInterface(url="ws://127.0.0.1:1/ws", protocol_binding=WEBSOCKET, protocol_version="1.0")
    card.supported_interfaces.insert(0, dead)

    async with dragoman.connect(card, bindings=[WebSocketBinding(), "JSONRPC"]) as client:
        assert (await client.run("hello")).text == "You said: hello"
        assert client.interface.protocol_binding == "JSONRPC"


@pytest.mark.req("AMB-78")
async def test_a_client_that_does_not_know_the_binding_passes_it_over(agent: Agent, serve: Serve) -> None:
    app = App(agent, bindings=[WebSocketBinding()])
    url = await serve(app)
    card = app.card(url)
    card.supported_interfaces.reverse()

    async with dragoman.connect(card) as client:
        assert client.interface.protocol_binding == "HTTP+JSON"


async def test_a_name_alone_is_no_binding_that_can_be_spoken() -> None:
    with pytest.raises(ConfigurationError, match="custom bindings as objects"):
        dragoman.connect("http://127.0.0.1:1", bindings=[WEBSOCKET])


@pytest.mark.parametrize("url", ["http://127.0.0.1/ws", "ws:///ws", "ws://u:p@127.0.0.1/", "ws://127.0.0.1:x/", "ws"])
async def test_an_address_that_is_none_of_a_socket_is_a_fault_of_the_card(url: str) -> None:
    with pytest.raises(CardError):
        async with to(url):
            pass


@pytest.mark.req("AMB-71")
async def test_a_private_address_is_not_called_where_only_public_ones_may_be() -> None:
    async with to("ws://127.0.0.1:1/ws", allow_private=False) as client:
        with pytest.raises(OutboundUrlError):
            await client.get_task("t-1")


@pytest.mark.req("BIND-07", "STREAM-10")
async def test_a_stream_whose_socket_is_cut_goes_on_without_gap_or_double(agent: Agent, serve: Serve) -> None:
    app = App(agent, bindings=[WebSocketBinding()])
    url = await serve(app)

    async with CuttingProxy(url, lambda number: Fate(cut_after=30_000 * (number + 1), reset=True)) as proxy:
        card = app.card(proxy.url)
        binding = WebSocketBinding(window=4096)
        async with _connected(card, binding) as client, asyncio.timeout(4 * BOUND):
            run = await client.run("stream 200")

    assert run.state is TaskState.COMPLETED
    assert run.text.split() == [str(number) for number in range(200)]


def _connected(card: Any, binding: WebSocketBinding) -> Connection:
    return dragoman.connect(card, bindings=[binding], reconnect=Reconnect(first=0.01))


async def test_closing_a_client_fails_what_is_open_and_leaves_nothing_behind(agent: Agent, serve: Serve) -> None:
    url = await serve(agent)
    before = asyncio.all_tasks()
    client: Client
    async with dragoman.connect(url, bindings=[WebSocketBinding()]) as client:
        waiting = asyncio.create_task(client.send("wait"))
        async with asyncio.timeout(BOUND):
            while not (await client.list_tasks()).tasks:  # noqa: ASYNC110 - the server tells by being asked
                await asyncio.sleep(0)

    with pytest.raises((ConnectionLostError, asyncio.CancelledError)):
        await waiting
    ours = {task for task in asyncio.all_tasks() - before if "bindings/websocket/socket" in str(task.get_coro())}
    assert ours == set()
