"""Which headers of a caller an agent behind a proxy gets: those that the operator named, and only at its own origin."""

from __future__ import annotations

from typing import Any

import pytest

import dragoman
from dragoman import ProxyApp
from dragoman.errors import ConfigurationError
from dragoman.model import AgentInterface
from dragoman.proxy.headers import Beside, activated, may_have_headers
from tests.bindings.parts import RecordingOperations
from tests.conformance.quick_server import quick_serving
from tests.proxy.chain import ScriptedApp, chained

SECRET = {"Authorization": "Bearer caller", "X-Trace": "t1", "X-Other": "o"}


def interface(url: str, binding: str = "JSONRPC") -> AgentInterface:
    return AgentInterface(url=url, protocol_binding=binding, protocol_version="1.0")


async def received(near: str, far: str, **settings: Any) -> dict[str, str]:
    """Headers that the agent gets of a call with the usual ones."""
    operations = RecordingOperations()
    async with chained(ScriptedApp(operations), near=near, far=far, **settings) as chain:
        await chain.client.send("hello", headers=SECRET)
    found = operations.context.parameters
    return {name: found[name] for name in ("authorization", "x-trace", "x-other") if name in found}


@pytest.mark.req("SEC-09")
async def test_nothing_of_the_caller_is_forwarded_unless_asked_for(near: str, far: str) -> None:
    assert await received(near, far) == {}


async def test_what_is_named_is_forwarded(near: str, far: str) -> None:
    found = await received(near, far, forward_headers=["Authorization", "x-trace"])

    assert found == {"authorization": "Bearer caller", "x-trace": "t1"}


async def test_credentials_of_the_proxy_itself_go_with_every_call(near: str, far: str) -> None:
    assert await received(near, far, headers={"Authorization": "Bearer ours"}) == {"authorization": "Bearer ours"}


async def test_a_forwarded_header_goes_before_one_of_the_proxy() -> None:
    found = await received("JSONRPC", "JSONRPC", headers={"authorization": "ours"}, forward_headers=["authorization"])

    assert found == {"authorization": "Bearer caller"}


async def test_a_card_that_names_another_origin_gets_no_header_of_a_caller(caplog: pytest.LogCaptureFixture) -> None:
    operations = RecordingOperations()
    async with quick_serving(ScriptedApp(operations)) as elsewhere:
        found = [
            await _through_foreign_card(elsewhere, operations, forward_headers=["authorization"]),
            await _through_foreign_card(
                elsewhere, operations, forward_headers=["authorization"], forward_origins=[elsewhere]
            ),
        ]

    assert found == [None, "Bearer caller"]
    assert "no header of callers is passed on" in caplog.text


async def _through_foreign_card(elsewhere: str, operations: RecordingOperations, **settings: Any) -> str | None:
    upstream = ScriptedApp(RecordingOperations())
    upstream.elsewhere = elsewhere
    async with (
        quick_serving(upstream) as url,
        quick_serving(ProxyApp(url, shutdown_grace=0.1, **settings)) as proxy_url,
        dragoman.connect(proxy_url) as client,
    ):
        await client.send("hello", headers=SECRET)
    return operations.context.parameters.get("authorization")


@pytest.mark.parametrize(
    ("place", "used", "trusted", "expected"),
    [
        ("https://a.example/card.json", [interface("https://a.example/rpc")], [], True),
        ("https://a.example/card.json", [interface("https://A.example:443/rpc")], [], True),
        ("https://a.example/card.json", [interface("https://b.example/rpc")], [], False),
        ("https://a.example/card.json", [interface("http://a.example/rpc")], [], False),
        ("https://a.example/card.json", [interface("https://a.example:8443/rpc")], [], False),
        ("https://a.example/card.json", [interface("https://b.example/rpc")], ["https://b.example"], True),
        ("https://a.example/c.json", [interface("https://a.example"), interface("https://b.example")], [], False),
        ("http://localhost:80/", [interface("http://127.0.0.1:80/rpc")], [], True),
        ("https://a.example/", [interface("a.example:50051", "GRPC")], [], True),
        ("https://a.example/", [interface("b.example:443", "GRPC")], [], False),
        ("https://a.example/", [interface("nonsense://", "GRPC")], [], False),
        ("https://a.example/", [interface("nonsense")], [], False),
        ("https://a.example/", [interface("wss://a.example/ws", "urn:x")], [], True),
        ("https://a.example/", [interface("ws://a.example/ws", "urn:x")], [], False),
    ],
)
def test_an_origin_is_scheme_host_and_port(
    place: str, used: list[AgentInterface], trusted: list[str], expected: bool
) -> None:
    assert may_have_headers(place, used, trusted) is expected


@pytest.mark.parametrize("name", ["Host", "content-length", "A2A-Version", "grpc-timeout", "Proxy-Authorization", "te"])
def test_what_belongs_to_the_connection_cannot_be_forwarded(name: str) -> None:
    with pytest.raises(ConfigurationError, match=name.lower()):
        ProxyApp("https://a.example", forward_headers=[name])


def test_an_origin_that_is_none_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="forward_origins"):
        ProxyApp("https://a.example", forward_headers=["x-a"], forward_origins=["a.example"])


def test_headers_that_cannot_be_written_are_left_out() -> None:
    beside = Beside({}, (), ["x-name"])

    assert beside.headers({"x-name": "Zoë"}, trusted=True) == {}


def test_extensions_among_the_headers_count_as_extensions() -> None:
    beside = Beside({"A2A-Extensions": "urn:a, urn:b", "A2A-Version": "9"}, ["urn:c"])

    assert beside.headers({}, trusted=False) == {}
    assert beside.extensions(["urn:x"], ["urn:more"]) == ("urn:x", "urn:c", "urn:a", "urn:b", "urn:more")


def test_only_what_the_caller_asked_for_is_active_to_it() -> None:
    assert activated(["a", "b"], ["b", "c"]) == ("b",)
    assert activated([], ["b"]) == ()
