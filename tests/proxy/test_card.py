"""The card of a proxy: the agent's, less what does not come through, and as fresh as its caching headers ask."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest

import dragoman
from dragoman import App, ProxyApp
from dragoman.bindings.websocket import WebSocketBinding
from dragoman.errors import CardError, ConfigurationError, ConnectError, UnavailableError
from dragoman.model import (
    GET_EXTENDED_AGENT_CARD,
    AgentCard,
    AgentCardSignature,
    AgentInterface,
    Message,
    decode_json,
    decode_value,
)
from dragoman.ports.operations import CallContext
from dragoman.proxy.card import CardChanges, derive_card
from dragoman.testing.serving import serving
from tests.bindings.parts import RecordingOperations, usual_answer
from tests.bindings.parts import served as on_socket
from tests.client.words import card as card_value
from tests.conformance.quick_server import quick_serving
from tests.peers.our_agent import make_agent
from tests.proxy.chain import BOUND, QUICK, ScriptedApp, chained

SECURITY = {
    "securitySchemes": {"token": {"httpAuthSecurityScheme": {"scheme": "bearer"}}},
    "securityRequirements": [{"schemes": {"token": {"list": []}}}],
}


def some_card(**more: Any) -> AgentCard:
    card = decode_value(AgentCard, card_value("https://far.example/a2a", "JSONRPC", "GRPC", **more))
    assert isinstance(card, AgentCard)
    return card


@pytest.mark.req("CARD-06")
def test_interfaces_are_ours_and_everything_else_is_the_agents() -> None:
    card = some_card(documentationUrl="https://far.example/docs", **SECURITY)
    grpc = AgentInterface(url="near.example:50051", protocol_binding="GRPC", protocol_version="1.0")

    derived = derive_card(card, "https://near.example/agent", [grpc])

    assert [(i.protocol_binding, i.url) for i in derived.supported_interfaces] == [
        ("JSONRPC", "https://near.example/agent/"),
        ("HTTP+JSON", "https://near.example/agent"),
        ("GRPC", "near.example:50051"),
    ]
    assert (derived.name, derived.documentation_url) == (card.name, card.documentation_url)
    assert derived.security_schemes == card.security_schemes
    assert derived.security_requirements == card.security_requirements
    assert card.supported_interfaces[0].url == "https://far.example/a2a"


@pytest.mark.req("SIGN-01")
def test_a_signature_is_dropped_since_it_is_of_another_card() -> None:
    card = some_card(signatures=[{"protected": "e30", "signature": "c2ln"}])

    assert card.signatures == [AgentCardSignature(protected="e30", signature="c2ln")]
    assert derive_card(card, "https://near.example").signatures == []


@pytest.mark.req("CARD-25")
def test_capabilities_are_those_that_the_agent_has_and_that_are_passed_on() -> None:
    none = derive_card(some_card(capabilities={}), "https://near.example").capabilities
    every = derive_card(some_card(), "https://near.example").capabilities
    kept = derive_card(some_card(), "https://near.example", changes=CardChanges(push=False)).capabilities

    assert (none.streaming, none.push_notifications, none.extended_agent_card) == (False, False, False)
    assert (every.streaming, every.push_notifications, every.extended_agent_card) == (True, True, True)
    assert (kept.streaming, kept.push_notifications, kept.extended_agent_card) == (True, False, True)


async def test_the_operator_may_say_who_it_is() -> None:
    async with chained(make_agent(), name="Front", description="Before the other") as chain:
        assert (chain.client.card.name, chain.client.card.description) == ("Front", "Before the other")


async def test_every_binding_that_is_served_is_named() -> None:
    async with chained(make_agent(), near="GRPC") as chain:
        offered = [interface.protocol_binding for interface in chain.client.card.supported_interfaces]

    assert offered == ["JSONRPC", "HTTP+JSON", "GRPC"] * 2


@pytest.mark.req("XCARD-01")
async def test_an_extended_card_is_as_true_as_the_public_one(near: str, far: str) -> None:
    extended = some_card(name="Peer, extended", signatures=[{"protected": "e30", "signature": "c2ln"}])

    def answer(op: Any, request: Any, context: CallContext) -> Any:
        return extended if op is GET_EXTENDED_AGENT_CARD else usual_answer(op, request, context)

    async with chained(ScriptedApp(RecordingOperations(answer)), near=near, far=far) as chain:
        found = await chain.client.get_extended_card()

    assert found.name == "Peer, extended"
    assert found.signatures == []
    assert found.supported_interfaces == chain.client.card.supported_interfaces
    assert {entry.url for entry in found.supported_interfaces[:2]} == {chain.url}


async def test_custom_bindings_work_on_both_sides() -> None:
    sockets = WebSocketBinding()
    app = App(make_agent(), limits=QUICK, bindings=[sockets])

    async with serving(app) as upstream:
        proxy = ProxyApp(upstream, bindings=[sockets], serve_bindings=[sockets], shutdown_grace=0.1)
        async with serving(proxy) as url, dragoman.connect(url, bindings=[sockets]) as client:
            offered = [interface.protocol_binding for interface in client.card.supported_interfaces]
            reply = await client.send("say hello")
            kinds = [type(event).__name__ async for event in client.stream("stream 2")]

    assert isinstance(reply, Message)
    assert offered == ["JSONRPC", "HTTP+JSON", sockets.uri, "JSONRPC", "HTTP+JSON"]
    assert kinds == ["Task", "TaskArtifactUpdateEvent", "TaskArtifactUpdateEvent", "TaskStatusUpdateEvent"]


async def test_an_extended_card_names_no_address_that_is_not_known() -> None:
    grpc = AgentInterface(url="near.example:50051", protocol_binding="GRPC", protocol_version="1.0")

    async with quick_serving(ScriptedApp(RecordingOperations())) as url, ProxyApp(url) as proxy:
        proxy.add_interface(grpc)
        found = await proxy.operations.call(GET_EXTENDED_AGENT_CARD, GET_EXTENDED_AGENT_CARD.request(), CallContext())

    assert isinstance(found, AgentCard)
    assert found.supported_interfaces == [grpc]


class Aging:
    """An agent, a proxy before it, and a clock between them."""

    def __init__(self, upstream: ScriptedApp, proxy: ProxyApp, url: str, http: httpx2.AsyncClient) -> None:
        self.upstream = upstream
        self.proxy = proxy
        self.url = url
        self.http = http
        self.now = 0.0

    async def card(self) -> AgentCard:
        response = await self.http.get(f"{self.url}/.well-known/agent-card.json")
        assert response.status_code == 200
        return decode_json(AgentCard, response.content)

    async def name(self) -> str:
        return (await self.card()).name


@asynccontextmanager
async def aging(max_age: int = 30, **settings: Any) -> AsyncIterator[Aging]:
    upstream = ScriptedApp(RecordingOperations(), card_max_age=max_age, name="Old")
    async with quick_serving(upstream) as upstream_url, httpx2.AsyncClient(timeout=BOUND) as http:
        proxy = ProxyApp(upstream_url, shutdown_grace=0.1, now=lambda: found.now, **settings)
        found = Aging(upstream, proxy, "", http)
        async with quick_serving(proxy) as url:
            found.url = url
            yield found


@pytest.mark.req("CARD-22", "CARD-23")
async def test_the_card_is_looked_at_again_as_its_caching_headers_say() -> None:
    async with aging(max_age=30) as served:
        served.upstream.change(name="New")
        served.now = 29.0
        before = await served.name()
        served.now = 31.0
        after = await served.name()

    assert (before, after) == ("Old", "New")


async def test_an_unchanged_card_costs_one_conditional_request_and_no_connection() -> None:
    async with aging(max_age=30) as served:
        built = served.upstream.card_requests
        current = served.proxy._link.current
        served.now = 31.0
        await served.name()
        served.now = 32.0
        await served.name()

        assert served.proxy._link.current is current
    assert served.upstream.card_requests == built


async def test_a_card_that_must_not_be_kept_is_not_asked_for_with_every_request() -> None:
    async with aging(max_age=0) as served:
        served.upstream.change(name="New")
        names = [await served.name()]
        served.now = 1.5
        names.append(await served.name())

    assert names == ["Old", "New"]


async def test_calls_do_not_wait_for_a_newer_card() -> None:
    async with aging(max_age=30) as served, dragoman.connect(served.proxy) as client, asyncio.timeout(BOUND):
        served.upstream.change(name="New")
        served.now = 31.0
        answer = await client.send("hello")
        served_later = await served.name()

    assert isinstance(answer, Message)
    assert served_later == "New"


async def test_who_asks_for_the_card_while_it_is_looked_at_waits_as_well() -> None:
    async with aging(max_age=30) as served, asyncio.timeout(BOUND):
        served.upstream.change(name="New")
        served.now = 31.0
        names = await asyncio.gather(*(served.name() for _ in range(5)))

    assert names == ["New"] * 5


async def test_an_agent_that_is_gone_is_shown_as_it_was_known() -> None:
    upstream = ScriptedApp(RecordingOperations(), name="Old")
    now = 0.0
    async with httpx2.AsyncClient(timeout=BOUND) as http:
        async with quick_serving(upstream) as upstream_url:
            proxy = ProxyApp(upstream_url, shutdown_grace=0.1, now=lambda: now)
            await proxy.start()
        async with quick_serving(proxy) as url:
            now = 1000.0
            served = Aging(upstream, proxy, url, http)

            assert await served.name() == "Old"


async def test_an_agent_that_moved_is_followed_and_open_work_stays_where_it_is() -> None:
    new = RecordingOperations()

    async with quick_serving(ScriptedApp(new)) as new_url, aging(max_age=30) as served:
        with served.proxy._link.current as used:
            served.upstream.change(elsewhere=new_url)
            served.now = 31.0
            await served.name()
            async with dragoman.connect(served.proxy) as client:
                await client.send("hello")
            still = await used.operations.call(
                GET_EXTENDED_AGENT_CARD, GET_EXTENDED_AGENT_CARD.request(), CallContext()
            )

    assert [op.name for op, _, _ in new.calls] == ["SendMessage"]
    assert [op.name for op, _, _ in served.upstream.script.calls] == ["GetExtendedAgentCard"]
    assert isinstance(still, AgentCard)


async def test_a_proxy_does_not_start_without_its_agent() -> None:
    with pytest.raises(ConnectError):
        await ProxyApp("http://127.0.0.1:9/").start()


async def test_what_is_left_to_the_first_request_is_refused_in_the_words_of_the_binding() -> None:
    proxy = ProxyApp("http://127.0.0.1:9/")
    async with on_socket(proxy) as (host, port), httpx2.AsyncClient(timeout=BOUND) as http:
        url = f"http://{host}:{port}"
        body = {"jsonrpc": "2.0", "id": 7, "method": "GetTask", "params": {"id": "x"}}
        rpc = await http.post(url, json=body, headers={"A2A-Version": "1.0"})
        rest = await http.get(f"{url}/tasks/x", headers={"A2A-Version": "1.0"})
        card = await http.get(f"{url}/.well-known/agent-card.json")

    assert (rpc.status_code, rest.status_code, card.status_code) == (503, 503, 503)
    assert (rpc.json()["id"], rpc.json()["error"]["code"]) == (7, -32603)
    assert rest.json()["error"]["status"] == "UNAVAILABLE"
    assert all("127.0.0.1" not in response.text for response in (rpc, rest, card))


async def test_a_target_without_a_card_is_refused() -> None:
    bare = AgentInterface(url="http://far.example", protocol_binding="JSONRPC", protocol_version="1.0")

    with pytest.raises(ConfigurationError, match="card"):
        ProxyApp(bare)


async def test_before_the_start_there_is_no_card() -> None:
    with pytest.raises(UnavailableError):
        ProxyApp("http://far.example").card("http://near.example")


async def test_a_card_at_hand_and_an_agent_of_this_process_can_be_served_again() -> None:
    async with quick_serving(ScriptedApp(RecordingOperations(), name="Far")) as url:
        given = decode_value(AgentCard, card_value(url))
        async with ProxyApp(given) as by_card, dragoman.connect(by_card) as client:
            by_card_said = await client.send("hello")
    async with ProxyApp(make_agent()) as by_agent, dragoman.connect(by_agent) as client:
        by_agent_said = await client.send("say hello")

    assert isinstance(by_card_said, Message)
    assert isinstance(by_agent_said, Message)


@pytest.mark.req("V03-05")
async def test_an_agent_of_an_older_version_is_told_apart() -> None:
    old = {"name": "Old", "url": "http://far.example/", "protocolVersion": "0.3.0", "version": "1"}

    with pytest.raises(CardError, match=r"0\.3"):
        await ProxyApp(old, versions=("1.0",)).start()
    async with ProxyApp(old) as served:
        assert "far.example" not in repr(served.card("http://near.example"))
