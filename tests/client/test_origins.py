"""Credentials stay where they were meant for. Spec: AUTH-04, SEC-05; section 12.3 of the command line's register."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import httpx2
import pytest

import dragoman
from dragoman.auth import ApiKey, Basic, CredentialsMissingError, as_httpx_auth
from dragoman.client import CredentialOriginError
from dragoman.client.origins import Trust
from dragoman.errors import ConfigurationError
from dragoman.model import AgentInterface
from tests.http.peer import Peer, as_json, peer, plain, result

SECRET = "s3cret"
CARD = "/.well-known/agent-card.json"
TASK = {"id": "t", "contextId": "c", "status": {"state": "TASK_STATE_COMPLETED"}}


def card_of(*urls: str, **more: Any) -> dict[str, Any]:
    return {
        "name": "n",
        "description": "d",
        "version": "1",
        "supportedInterfaces": [{"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"} for url in urls],
        "capabilities": {},
        "defaultInputModes": ["text/plain"],
        "defaultOutputModes": ["text/plain"],
        "skills": [],
        **more,
    }


def asking(scheme: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"securitySchemes": {"s": scheme}, "securityRequirements": [{"schemes": {"s": {"list": []}}}], **more}


def api_key(location: str) -> dict[str, Any]:
    return asking({"apiKeySecurityScheme": {"location": location, "name": "X-Key"}})


@pytest.fixture
async def peers() -> AsyncIterator[list[Peer]]:
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(peer()) for _ in range(2)]


def serve(home: Peer, *others: Peer, **more: Any) -> None:
    home.on("GET", CARD, as_json(card_of(*(f"{one.url}/rpc" for one in others or (home,)), **more)))
    for one in (home, *others):
        one.on("POST", "/rpc", result(TASK))


def told(one: Peer) -> str:
    return "\n".join(f"{request.target} {request.headers}" for request in one.received)


WAYS: list[dict[str, Any]] = [
    {"credentials": SECRET},
    {"credentials": Basic("ann", SECRET)},
    {"headers": {"Authorization": f"Bearer {SECRET}"}},
    {"headers": {"Cookie": f"session={SECRET}"}},
    {"headers": {"X-API-Key": SECRET}},
]


@pytest.mark.req("AUTH-04", "SEC-05", "SEC-06", "AMB-71")
@pytest.mark.parametrize("way", WAYS)
async def test_no_credential_follows_a_card_to_another_origin(peers: list[Peer], way: dict[str, Any]) -> None:
    home, other = peers
    serve(home, other)

    with pytest.raises(CredentialOriginError, match="another origin"):
        async with dragoman.connect(home.url, **way) as client:
            await client.get_task("t")

    assert SECRET not in told(other)
    assert other.connections == 0


@pytest.mark.req("AUTH-04", "SEC-05")
async def test_a_key_in_a_header_that_the_card_names_is_a_credential(peers: list[Peer]) -> None:
    home, other = peers
    serve(home, other, **api_key("header"))

    with pytest.raises(CredentialOriginError):
        await dragoman.connect(home.url, headers={"x-key": SECRET}).open()


@pytest.mark.req("AUTH-04", "SEC-05")
async def test_credentials_of_a_client_that_is_brought_along_stay_as_well(peers: list[Peer]) -> None:
    home, other = peers
    serve(home, other)

    async with httpx2.AsyncClient(auth=("ann", SECRET)) as http:
        with pytest.raises(CredentialOriginError):
            await dragoman.connect(home.url, http=http).open()


@pytest.mark.req("AUTH-04", "SEC-05")
async def test_a_credential_of_one_call_does_not_follow_either(peers: list[Peer]) -> None:
    home, other = peers
    serve(home, other)

    async with dragoman.connect(home.url, headers={"x-team": "a"}) as client:
        await client.get_task("t")
        with pytest.raises(CredentialOriginError):
            await client.get_task("t", headers={"Authorization": f"Bearer {SECRET}"})

    assert [request.headers["x-team"] for request in other.received] == ["a"]
    assert SECRET not in told(other)


@pytest.mark.req("AUTH-04", "CARD-09")
async def test_an_interface_at_home_is_used_before_one_elsewhere(peers: list[Peer]) -> None:
    home, other = peers
    serve(home, other, home)

    async with dragoman.connect(home.url, credentials=SECRET) as client:
        await client.get_task("t")

    assert other.connections == 0
    assert SECRET in told(home)


@pytest.mark.req("AUTH-04")
@pytest.mark.parametrize("way", WAYS[:3])
async def test_they_go_where_they_are_allowed_to(peers: list[Peer], way: dict[str, Any]) -> None:
    home, other = peers
    serve(home, other)

    async with dragoman.connect(home.url, trusted=[other.url], **way) as client:
        await client.get_task("t")

    assert SECRET in told(other) or "Basic" in told(other)


@pytest.mark.req("AUTH-04")
async def test_a_card_that_the_user_gave_is_the_users_word(peers: list[Peer]) -> None:
    home, _ = peers
    serve(home)

    async with dragoman.connect(card_of(f"{home.url}/rpc"), credentials=SECRET) as client:
        await client.get_task("t")

    assert SECRET in told(home)


@pytest.mark.req("SEC-05", "AUTH-04")
async def test_the_request_for_the_card_carries_none(peers: list[Peer]) -> None:
    home, _ = peers
    serve(home, **api_key("query"))

    async with dragoman.connect(home.url, credentials=ApiKey(SECRET)) as client:
        await client.get_task("t")

    card, *calls = home.received
    assert SECRET not in f"{card.target} {card.headers}"
    assert [call.target for call in calls] == [f"/rpc?X-Key={SECRET}"]


@pytest.mark.req("AUTH-04")
@pytest.mark.parametrize(
    ("location", "sent"), [("header", ("x-key", SECRET)), ("cookie", ("cookie", f"X-Key={SECRET}"))]
)
async def test_a_key_goes_where_the_card_says(peers: list[Peer], location: str, sent: tuple[str, str]) -> None:
    home, _ = peers
    serve(home, **api_key(location))

    async with dragoman.connect(home.url, credentials=[ApiKey(SECRET), "unused"]) as client:
        await client.get_task("t")

    headers = home.received[-1].headers
    assert (sent[0], headers[sent[0]]) == sent
    assert "authorization" not in headers


@pytest.mark.req("AUTH-04")
@pytest.mark.parametrize(
    "scheme",
    [
        {"httpAuthSecurityScheme": {"scheme": "basic"}},
        {"mtlsSecurityScheme": {}},
        {"apiKeySecurityScheme": {"location": "header", "name": "k"}},
    ],
)
async def test_a_card_that_wants_something_else_is_told_before_any_call(
    peers: list[Peer], scheme: dict[str, Any]
) -> None:
    home, _ = peers
    serve(home, **asking(scheme))

    with pytest.raises(CredentialsMissingError, match="s"):
        await dragoman.connect(home.url, credentials=SECRET).open()

    assert home.targets() == [f"GET {CARD}"]


@pytest.mark.req("AUTH-04")
async def test_all_schemes_of_an_alternative_are_met_together(peers: list[Peer]) -> None:
    home, _ = peers
    schemes = {
        "key": {"apiKeySecurityScheme": {"location": "header", "name": "X-Key"}},
        "id": {"openIdConnectSecurityScheme": {"openIdConnectUrl": "https://id.example/.well-known/x"}},
        "pw": {"httpAuthSecurityScheme": {"scheme": "Basic"}},
    }
    wanted: list[dict[str, Any]] = [{"schemes": {"pw": {}}}, {"schemes": {"key": {}, "id": {}}}]
    serve(home, securitySchemes=schemes, securityRequirements=wanted)

    async with dragoman.connect(home.url, credentials={"key": ApiKey("k"), "id": "token"}) as client:
        await client.get_task("t")

    headers = home.received[-1].headers
    assert (headers["x-key"], headers["authorization"]) == ("k", "Bearer token")


@pytest.mark.req("AUTH-04")
async def test_a_key_without_a_place_is_a_mistake_that_is_told(peers: list[Peer]) -> None:
    home, _ = peers
    serve(home)

    with pytest.raises(ConfigurationError, match="header"):
        await dragoman.connect(home.url, credentials=ApiKey("k")).open()


@pytest.mark.req("AUTH-04", "AUTH-01", "SEC-06")
@pytest.mark.parametrize(
    ("place", "binding", "url", "may"),
    [
        ("https://a.example/c", "JSONRPC", "https://a.example/rpc", True),
        ("https://a.example/c", "JSONRPC", "https://A.example:443/rpc", True),
        ("https://a.example/c", "JSONRPC", "https://a.example:8443/rpc", False),
        ("https://a.example/c", "JSONRPC", "http://a.example/rpc", False),
        ("http://a.example/c", "JSONRPC", "https://a.example/rpc", True),
        ("https://a.example/c", "JSONRPC", "https://a.example.evil.example/rpc", False),
        ("https://a.example/c", "JSONRPC", "https://b.a.example/rpc", False),
        ("https://a.example/c", "JSONRPC", "https://a.example@evil.example/rpc", False),
        ("https://a.example/c", "https://x/ws", "wss://a.example/ws", True),
        ("https://a.example/c", "https://x/ws", "ws://a.example/ws", False),
        ("https://a.example/c", "GRPC", "a.example:50051", True),
        ("https://a.example/c", "GRPC", "http://a.example:50051", False),
        ("https://a.example/c", "GRPC", "evil.example:50051", False),
        ("http://localhost:1/c", "JSONRPC", "http://127.0.0.1:1/rpc", True),
        ("http://localhost:1/c", "JSONRPC", "http://127.0.0.1:2/rpc", False),
        ("http://localhost:1/c", "GRPC", "127.0.0.1:50051", True),
        ("https://a.example/c", "JSONRPC", "nonsense", False),
        ("https://a.example/c", "https://x/lines", "lines://a.example:7", True),
        ("https://a.example/c", "https://x/lines", "lines://evil.example:7", False),
        ("https://a.example/c", "https://x/lines", "lines://[", False),
        ("https://a.example/c", "https://x/lines", "", False),
    ],
)
def test_what_is_the_same_origin(place: str, binding: str, url: str, may: bool) -> None:
    entry = AgentInterface(url=url, protocol_binding=binding, protocol_version="1.0")

    assert Trust(place).covers(entry) is may


@pytest.mark.req("AUTH-04", "SEC-05", "AUTH-06")
async def test_a_client_of_ones_own_shows_the_same_credentials_to_the_same_origin(peers: list[Peer]) -> None:
    home, other = peers
    home.on("GET", "/file", plain(401, b"", www_authenticate="Bearer"), plain(200, b"content"))
    other.on("GET", "/file", plain(200, b"content"))
    tokens = iter(("old", "new"))

    async with httpx2.AsyncClient(auth=as_httpx_auth(lambda: next(tokens), [home.url])) as http:
        answers = [(await http.get(f"{one.url}/file")).status_code for one in (home, other)]

    assert answers == [200, 200]
    assert [request.headers["authorization"] for request in home.received] == ["Bearer old", "Bearer new"]
    assert "authorization" not in other.received[0].headers
