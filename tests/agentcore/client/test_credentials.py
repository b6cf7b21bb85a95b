"""Bearer tokens, the way from a 401 to one, and where credentials never go."""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections.abc import AsyncIterator
from typing import Any

import pytest

from dragoman.agentcore import AccessDenied, AuthenticationRequired, AwsCredentials
from dragoman.auth import BearerToken, ClientCredentials, Discovery, TokenError
from dragoman.errors import ClientError, ConfigurationError, DragomanError, InvalidAgentResponseError, OutboundUrlError
from tests.agentcore.client.front import CALLS, CARD, KEYS, METADATA, call, choose, done, forbidden, runtime_card
from tests.auth.server import OIDC, issuer, serve_metadata, serve_tokens
from tests.http.peer import Answer, Peer, Received, as_json, peer, plain

SECRET = "not-a-real-secret-marker"
MISSING = {"jsonrpc": "2.0", "error": {"code": -32001, "message": "Missing Authentication Token"}}


@pytest.fixture
async def front() -> AsyncIterator[Peer]:
    async with peer() as made:
        yield made


@pytest.fixture
async def elsewhere() -> AsyncIterator[Peer]:
    async with peer() as made:
        yield made


def challenge(front: Peer, more: str = "") -> Answer:
    text = f'Bearer resource_metadata="{front.url}{METADATA}?qualifier=DEFAULT"{more}'
    return as_json(MISSING, 401, www_authenticate=text)


def guarded(front: Peer, *good: str) -> Peer:
    """A runtime that takes these tokens, with everything that leads to one."""
    wrong = ', error="invalid_token", error_description="The token is not good"'

    def pick(request: Received) -> Answer:
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        return done() if token in good else challenge(front, wrong if token else "")

    resource = {"resource": f"{front.url}{CALLS.rstrip('/')}?qualifier=DEFAULT", "authorization_servers": []}
    resource["authorization_servers"] = [issuer(front)]
    front.on("POST", CALLS, choose(pick)).on("GET", METADATA, as_json(resource))
    return serve_metadata(front, OIDC)


def calls(front: Peer) -> list[str]:
    return [r.headers.get("authorization", "") for r in front.received if r.target.partition("?")[0] == CALLS]


@pytest.mark.req("AC-C-20")
@pytest.mark.parametrize("more", [{"credentials": KEYS}, {"profile": "p"}])
def test_there_is_one_kind_of_credentials(front: Peer, more: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match="not both"):
        call(front, bearer="t", **more)


@pytest.mark.req("AC-C-20")
async def test_a_mismatch_of_kinds_is_a_403_that_says_so(front: Peer) -> None:
    front.on("POST", CALLS, forbidden("Authorization method mismatch"))

    async with call(front, bearer="t") as client:
        with pytest.raises(AccessDenied, match="method mismatch"):
            await client.send("hi")

    assert calls(front) == ["Bearer t"]


@pytest.mark.req("AC-C-21")
async def test_fifty_parallel_calls_ask_the_provider_once(front: Peer) -> None:
    guarded(front, "t-1")
    asked = 0

    async def provide() -> BearerToken:
        nonlocal asked
        asked += 1
        await asyncio.sleep(0.01)
        return BearerToken("t-1", 1e12)

    async with call(front, bearer=provide) as client:
        await asyncio.gather(*(client.send(f"{n}") for n in range(50)))

    assert asked == 1
    assert set(calls(front)) == {"Bearer t-1"}


@pytest.mark.req("AC-C-25")
def test_a_user_id_and_a_token_exclude_each_other(front: Peer) -> None:
    with pytest.raises(ConfigurationError, match="user_id"):
        call(front, bearer="t", user_id="alice")


@pytest.mark.req("AC-C-25")
@pytest.mark.parametrize("user_id", ["x" * 1025, "a\r\nb", "ü"])
def test_a_user_id_fits_into_its_header(front: Peer, user_id: str) -> None:
    with pytest.raises(ConfigurationError):
        call(front, user_id=user_id)


@pytest.mark.req("AC-C-93", "AC-C-94", "AC-C-95")
async def test_from_a_401_the_client_finds_its_way_to_a_token(front: Peer) -> None:
    serve_tokens(guarded(front, "token-1"))

    async with call(front, bearer=ClientCredentials("id", SECRET)) as client:
        await client.send("hi")
        await client.send("again")

    assert calls(front) == ["", "Bearer token-1", "Bearer token-1"]
    assert [target.partition("?")[0] for target in front.targets()][1:5] == [
        f"GET {METADATA}",
        "GET /.well-known/oauth-authorization-server/pool",
        f"GET {OIDC}",
        "POST /token",
    ]


@pytest.mark.req("AC-C-94")
async def test_the_card_finds_its_way_too(front: Peer) -> None:
    def pick(request: Received) -> Answer:
        good = request.headers.get("authorization") == "Bearer token-1"
        return as_json(runtime_card(front)) if good else challenge(front)

    serve_tokens(guarded(front, "token-1")).on("GET", CARD, choose(pick))

    async with call(front, bearer=ClientCredentials("id", SECRET), card=True) as client:
        await client.send("hi")

    assert calls(front) == ["Bearer token-1"]


@pytest.mark.req("AC-C-94")
async def test_an_expired_token_is_renewed_once_for_all_calls(front: Peer) -> None:
    guarded(front, "t-2")
    count = 0

    def provide() -> BearerToken:
        nonlocal count
        count += 1
        return BearerToken(f"t-{count}", 1e12)

    async with call(front, bearer=provide) as client:
        await asyncio.gather(*(client.send(f"{n}") for n in range(10)))

    assert count == 2
    assert calls(front).count("Bearer t-2") == 10


@pytest.mark.req("AC-C-94")
async def test_a_second_401_is_an_error_that_says_what_the_challenge_said(front: Peer) -> None:
    guarded(front, "never")

    async with call(front, bearer=lambda: "t-1") as client:
        with pytest.raises(AuthenticationRequired, match="The token is not good") as caught:
            await client.send("hi")

    assert (caught.value.error, caught.value.description) == ("invalid_token", "The token is not good")
    assert len(calls(front)) == 2


@pytest.mark.req("AC-C-94")
@pytest.mark.parametrize("options", [{"bearer": "t-1"}, {"credentials": KEYS}])
async def test_without_a_source_a_401_tells_everything_that_was_found(front: Peer, options: dict[str, Any]) -> None:
    guarded(front, "never")

    async with call(front, **options) as client:
        with pytest.raises(AuthenticationRequired) as caught:
            await client.send("hi")

    error = caught.value
    assert error.metadata_url.startswith(f"{front.url}{METADATA}")
    assert [server.token_endpoint for server in error.servers] == [f"{front.url}/token"]
    assert error.discovery.issuers == (issuer(front),)
    assert len(calls(front)) == 1
    assert error.retryable is False


class Handed:
    """A source that keeps what it is handed."""

    def __init__(self) -> None:
        self.discoveries: list[Discovery | None] = []

    async def fetch(self, discovery: Discovery | None) -> BearerToken | None:
        self.discoveries.append(discovery)
        return None if discovery is None else BearerToken("t-1")


@pytest.mark.req("AC-C-94")
async def test_a_source_is_handed_the_discovery(front: Peer) -> None:
    guarded(front, "t-1")
    source = Handed()

    async with call(front, bearer=source) as client:
        with pytest.raises(AuthenticationRequired):
            await client.send("hi")

    handed = source.discoveries[1]
    assert handed is not None
    assert handed.resource.startswith(front.url)
    assert handed.servers


@pytest.mark.req("AC-C-96")
@pytest.mark.parametrize(
    ("refused", "reason"),
    [
        (as_json(MISSING, 401), "no challenge"),
        (as_json(MISSING, 401, www_authenticate="Basic realm=x"), "no challenge"),
        (as_json(MISSING, 401, www_authenticate="Bearer"), "no resource metadata"),
        (plain(401, b"", kind=""), "no challenge"),
    ],
)
async def test_a_401_without_a_usable_challenge_states_the_reason(front: Peer, refused: Answer, reason: str) -> None:
    front.on("POST", CALLS, refused)

    async with call(front, bearer="t-1") as client:
        with pytest.raises(AuthenticationRequired, match=reason):
            await client.send("hi")


@pytest.mark.req("AC-C-96")
async def test_metadata_that_is_blocked_states_the_reason(front: Peer) -> None:
    front.on("POST", CALLS, challenge(front)).on("GET", METADATA, forbidden("Blocked by the endpoint policy"))

    async with call(front, bearer="t-1") as client:
        with pytest.raises(AuthenticationRequired, match="HTTP 403"):
            await client.send("hi")


@pytest.mark.req("AC-C-97")
async def test_a_malformed_token_comes_back_as_a_403_with_its_text(front: Peer) -> None:
    front.on("POST", CALLS, as_json({"message": "OAuth authorization failed: cannot parse the token"}, 403))

    async with call(front, bearer="nonsense") as client:
        with pytest.raises(AccessDenied, match="OAuth authorization failed: cannot parse"):
            await client.send("hi")


@pytest.mark.req("AC-C-23")
async def test_a_redirect_gets_no_credentials(front: Peer, elsewhere: Peer) -> None:
    front.on("POST", CALLS, plain(307, b"", location=f"{elsewhere.url}{CALLS}"))

    async with call(front, bearer="t-1") as client:
        with pytest.raises(InvalidAgentResponseError, match="redirects"):
            await client.send("hi")

    assert elsewhere.connections == 0


@pytest.mark.req("AC-C-23")
async def test_the_way_out_is_closed_for_every_other_address(front: Peer, elsewhere: Peer) -> None:
    connection = call(front, bearer="t-1")
    async with connection:
        http = connection._stopper._http  # type: ignore[union-attr]
        for url in (elsewhere.url + CALLS, front.url + "/other", front.url + CALLS.replace("ledger", "other")):
            with pytest.raises(OutboundUrlError):
                await http.fetch("POST", url, body=b"{}")

    assert (front.connections, elsewhere.connections) == (0, 0)


def everything_about(error: BaseException) -> str:
    return "".join(traceback.format_exception(error)) + repr(error) + repr(vars(error))


@pytest.mark.req("AC-C-24")
@pytest.mark.parametrize("kind", ["bearer", "sigv4"])
async def test_no_secret_is_in_logs_errors_or_reprs(front: Peer, kind: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    keys = AwsCredentials("AKIDLEDGERTEST000001", SECRET, f"token-{SECRET}")
    options: dict[str, Any] = {"bearer": SECRET} if kind == "bearer" else {"credentials": keys}
    front.on("POST", CALLS, forbidden("no"), challenge(front), plain(424, b""), plain(200, b"?"))
    told = repr(options.get("credentials"))

    connection = call(front, **options)
    async with connection as client:
        for _ in range(4):
            with pytest.raises(DragomanError) as caught:
                await client.send("hi")
            told += everything_about(caught.value)
        told += repr(connection) + repr(client) + repr(client.export_sessions())

    assert SECRET not in told
    assert SECRET not in caplog.text


@pytest.mark.req("AC-C-24")
async def test_a_source_that_fails_raises_its_own_error(front: Peer) -> None:
    def provide() -> str:
        raise RuntimeError(SECRET)

    async with call(front, bearer=provide) as client:
        with pytest.raises(TokenError) as caught:
            await client.send("hi")

    assert isinstance(caught.value, ClientError)
    assert SECRET not in str(caught.value)
    assert front.received == []


@pytest.mark.req("AC-C-94")
@pytest.mark.parametrize("renews", [True, False])
async def test_many_refused_calls_follow_the_challenge_once(front: Peer, renews: bool) -> None:
    serve_tokens(guarded(front, "token-1"))
    bearer: Any = ClientCredentials("id", SECRET) if renews else "old"

    async with call(front, bearer=bearer, hold=0.0) as client:
        answers = await asyncio.gather(*(client.send(f"{n}") for n in range(20)), return_exceptions=True)

    assert {type(answer).__name__ for answer in answers} == {"Task" if renews else "AuthenticationRequired"}
    assert len([target for target in front.targets() if METADATA in target]) == 1


@pytest.mark.req("AC-C-23")
def test_a_trusted_address_is_encrypted_or_on_this_machine(front: Peer) -> None:
    with pytest.raises(ConfigurationError, match="http://"):
        call(front, trusted=["http://gate.example/"])


def test_anonymous_calls_are_for_this_machine() -> None:
    with pytest.raises(ConfigurationError, match="anonymous"):
        call(Peer(url="https://front.example"), credentials=None, anonymous=True)
