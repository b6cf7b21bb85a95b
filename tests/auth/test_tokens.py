"""Tokens: kept, shared, renewed."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from urllib.parse import parse_qs

import pytest

from dragoman.auth import (
    AuthorizationServer,
    BearerToken,
    ClientCredentials,
    Discovery,
    TokenCache,
    TokenError,
    as_source,
    discover,
)
from dragoman.auth import discovery as discovery_module
from dragoman.auth.metadata import MetadataError
from dragoman.errors import ConfigurationError
from dragoman.http.client import HttpClient
from tests.auth.server import OIDC, RFC8414, issuer, serve_metadata, serve_tokens
from tests.http.peer import Peer, as_json, peer, plain, silence

SECRET = "not-a-real-secret"


@pytest.fixture
async def server() -> AsyncIterator[Peer]:
    async with peer() as made:
        yield made


@pytest.fixture
async def other() -> AsyncIterator[Peer]:
    async with peer() as made:
        yield made


@pytest.mark.req("AC-C-21")
@pytest.mark.parametrize("kind", ["text", "token", "function", "async function"])
async def test_a_token_may_come_from_a_text_or_a_function(kind: str) -> None:
    async def later() -> str:
        return "t-1"

    given = {"text": "t-1", "token": BearerToken("t-1"), "function": lambda: "t-1", "async function": later}[kind]

    assert await TokenCache(as_source(given)).get() == BearerToken("t-1")


@pytest.mark.req("AC-C-21")
async def test_callers_at_the_same_time_share_one_request() -> None:
    calls = 0

    async def provide() -> str:
        nonlocal calls
        calls += 1
        await asyncio.sleep(0.01)
        return f"t-{calls}"

    cache = TokenCache(as_source(provide))
    tokens = await asyncio.gather(*(cache.get() for _ in range(50)))

    assert calls == 1
    assert set(tokens) == {BearerToken("t-1")}


@pytest.mark.req("AC-C-21")
async def test_a_token_is_kept_until_shortly_before_its_expiry() -> None:
    now, calls = 1000.0, 0

    def provide() -> BearerToken:
        nonlocal calls
        calls += 1
        return BearerToken(f"t-{calls}", now + 300.0)

    cache = TokenCache(as_source(provide), lambda: now)
    found = []
    for moment in (1000.0, 1239.0, 1241.0):
        now = moment
        token = await cache.get()
        found.append(token.value if token else "")

    assert found == ["t-1", "t-1", "t-2"]


async def test_a_cancelled_caller_does_not_take_the_request_from_the_others() -> None:
    going = asyncio.Event()

    async def provide() -> str:
        await going.wait()
        return "t-1"

    cache = TokenCache(as_source(provide))
    first, second = asyncio.create_task(cache.get()), asyncio.create_task(cache.get())
    await asyncio.sleep(0)
    first.cancel()
    going.set()

    assert await asyncio.wait_for(second, 5) == BearerToken("t-1")


@pytest.mark.req("AC-C-24")
async def test_a_failing_provider_is_an_error_without_its_words() -> None:
    def provide() -> str:
        raise ValueError(SECRET)

    with pytest.raises(TokenError) as caught:
        await TokenCache(as_source(provide)).get()

    assert SECRET not in str(caught.value)


@pytest.mark.req("AC-C-24")
@pytest.mark.parametrize(
    "thing", [BearerToken(SECRET, 1.0), ClientCredentials("id", SECRET), as_source(BearerToken(SECRET))]
)
def test_no_secret_is_shown(thing: object) -> None:
    assert SECRET not in repr(thing)


@pytest.mark.parametrize("token", ["", "s3cr3t s3cr3t", "s3cr3t\r\nx", "ü"])
def test_a_token_that_no_header_can_hold_is_refused(token: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        as_source(token)

    assert not token or token not in str(caught.value)


async def found_by(called: Peer, challenge: str, path: str = "/r/") -> Discovery:
    http = HttpClient()
    try:
        return await discover(http, f"{called.url}{path}", {"www-authenticate": challenge})
    finally:
        await http.aclose()


def serve_resource(server: Peer, **more: object) -> str:
    value = {"resource": f"{server.url}/r", "authorization_servers": [issuer(server)], **more}
    server.on("GET", "/m", as_json(value))
    return f'Bearer resource_metadata="{server.url}/m"'


@pytest.mark.req("AC-C-93")
@pytest.mark.parametrize("paths", [(RFC8414,), (OIDC,), (RFC8414, OIDC)])
async def test_servers_of_both_kinds_are_found(server: Peer, paths: tuple[str, ...]) -> None:
    serve_metadata(server, *paths)
    challenge = serve_resource(server, scopes_supported=["read"])

    found = await found_by(server, challenge)

    assert [one.token_endpoint for one in found.servers] == [f"{server.url}/token"]
    assert (found.scopes, found.problem, found.resource) == (("read",), "", f"{server.url}/r")
    assert all("authorization" not in request.headers for request in server.received)


@pytest.mark.req("AC-C-93")
async def test_a_server_with_another_issuer_is_left_out(server: Peer) -> None:
    serve_metadata(server, OIDC, issuer="https://evil.example")

    found = await found_by(server, serve_resource(server))

    assert found.servers == []
    assert "issuer" in found.problem
    assert found.issuers == (issuer(server),)


@pytest.mark.req("AC-C-94")
async def test_scopes_of_the_challenge_come_before_those_of_the_metadata(server: Peer) -> None:
    serve_metadata(server, OIDC)
    challenge = serve_resource(server, scopes_supported=["read"]) + ', scope="a b", error="invalid_token"'

    found = await found_by(server, challenge)

    assert (found.scopes, found.error) == (("a", "b"), "invalid_token")


@pytest.mark.req("AC-C-91")
async def test_metadata_of_another_origin_is_not_asked_for(server: Peer, other: Peer) -> None:
    found = await found_by(server, f'Bearer resource_metadata="{other.url}/m"')

    assert "another origin" in found.problem
    assert other.connections == 0


@pytest.mark.req("AC-C-91")
async def test_no_redirect_of_metadata_is_followed(server: Peer, other: Peer) -> None:
    server.on("GET", "/m", plain(302, b"", location=f"{other.url}/m"))

    found = await found_by(server, f'Bearer resource_metadata="{server.url}/m"')

    assert "302" in found.problem
    assert other.connections == 0


@pytest.mark.req("AC-C-91")
async def test_metadata_is_small(server: Peer) -> None:
    server.on("GET", "/m", as_json({"resource": f"{server.url}/r", "x": "y" * 70_000}))

    assert "65536" in (await found_by(server, f'Bearer resource_metadata="{server.url}/m"')).problem


@pytest.mark.req("AC-C-91")
async def test_metadata_has_ten_seconds(server: Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    assert discovery_module.TIMEOUT == 10.0
    monkeypatch.setattr(discovery_module, "TIMEOUT", 0.05)
    server.on("GET", "/m", silence)

    assert "longer than" in (await found_by(server, f'Bearer resource_metadata="{server.url}/m"')).problem


@pytest.mark.req("AC-C-96")
@pytest.mark.parametrize("challenge", ["", "Basic realm=x", "Bearer", 'Bearer realm="x"'])
async def test_a_challenge_that_leads_nowhere_is_a_problem_with_words(server: Peer, challenge: str) -> None:
    assert (await found_by(server, challenge)).problem


def server_of(server: Peer, **more: object) -> Discovery:
    return Discovery(
        issuers=[issuer(server)],
        servers=[AuthorizationServer(issuer=issuer(server), token_endpoint=f"{server.url}/token", **more)],  # type: ignore[arg-type]
        scopes=["read", "write"],
    )


@pytest.mark.req("AC-C-95")
async def test_client_credentials_are_exchanged_for_a_token(server: Peer) -> None:
    serve_tokens(server)
    source = ClientCredentials("id :1", SECRET, resource="https://a.example/r", now=lambda: 1000.0)

    assert await source.fetch(None) is None
    token = await source.fetch(server_of(server))

    assert token == BearerToken("token-1", 4600.0)
    (sent,) = server.received
    form = {name: values[0] for name, values in parse_qs(sent.body.decode()).items()}
    assert form == {"grant_type": "client_credentials", "scope": "read write", "resource": "https://a.example/r"}
    basic = base64.b64decode(sent.headers["authorization"].partition(" ")[2]).decode()
    assert basic == f"id+%3A1:{SECRET}"


@pytest.mark.req("AC-C-95")
async def test_the_secret_goes_into_the_body_where_the_server_takes_it_nowhere_else(server: Peer) -> None:
    serve_tokens(server)
    found = server_of(server, token_endpoint_auth_methods_supported=("client_secret_post",))

    await ClientCredentials("id", SECRET, scopes=["own"]).fetch(found)

    form = parse_qs(server.received[0].body.decode())
    assert (form["client_secret"], form["scope"]) == ([SECRET], ["own"])
    assert "authorization" not in server.received[0].headers


@pytest.mark.req("AC-C-95")
async def test_a_known_endpoint_needs_no_discovery_and_its_token_is_kept(server: Peer) -> None:
    serve_tokens(server)
    now = 0.0
    cache = TokenCache(ClientCredentials("id", SECRET, token_url=f"{server.url}/token", now=lambda: now), lambda: now)

    for moment in (0.0, 3539.0, 3541.0):
        now = moment
        await cache.get()

    assert len(server.received) == 2


@pytest.mark.req("AC-C-95")
async def test_the_secret_goes_to_the_issuer_that_was_named_only(server: Peer) -> None:
    source = ClientCredentials("id", SECRET, issuer="https://i.example")

    with pytest.raises(TokenError, match=r"i\.example"):
        await source.fetch(server_of(server))

    assert server.connections == 0


@pytest.mark.req("AC-C-95")
def test_a_token_endpoint_is_https() -> None:
    with pytest.raises(MetadataError):
        ClientCredentials("id", SECRET, token_url="http://i.example/token")


@pytest.mark.req("AC-C-24", "AC-C-95")
@pytest.mark.parametrize(
    "answer",
    [
        as_json({"error": "invalid_client", "error_description": SECRET}, 401),
        plain(500, SECRET.encode()),
        plain(200, SECRET.encode()),
        as_json({"access_token": SECRET, "token_type": "mac"}),
        as_json({"access_token": f"{SECRET} {SECRET}"}),
    ],
)
async def test_what_is_no_token_is_an_error_without_secrets(server: Peer, answer: object) -> None:
    server.on("POST", "/token", answer)  # type: ignore[arg-type]
    source = ClientCredentials("id", SECRET, token_url=f"{server.url}/token")

    with pytest.raises((TokenError, ConfigurationError)) as caught:
        await source.fetch(None)

    assert SECRET not in str(caught.value)
