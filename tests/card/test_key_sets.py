"""Keys that signatures name by address: fetched over TLS, within limits, from where they may come."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from dragoman.card import SignaturePolicy, SignatureReport, TrustStore, verify_card
from dragoman.card.canonical import Json
from dragoman.errors import OutboundUrlError
from dragoman.http.client import HttpClient
from dragoman.jose import KeySetError, KeySets
from tests.card.cards import card, entry, public, signer
from tests.grpc.certificates import Authority
from tests.http.peer import Peer, Received, as_json, peer, plain

JWKS = "/keys.json"
SET: Json = {"keys": [public()]}


class Clock:
    """A clock that stands still."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority("Test root")


@pytest.fixture
async def server(authority: Authority, tmp_path: Path) -> AsyncIterator[Peer]:
    """A server of keys, with TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority.sign("localhost", "127.0.0.1").save(tmp_path, "server"))
    async with peer(context) as made:
        yield made


@pytest.fixture
async def http(authority: Authority) -> AsyncIterator[httpx2.AsyncClient]:
    """A client that trusts the certificates of the tests."""
    context = ssl.create_default_context(cadata=authority.root.decode())
    async with httpx2.AsyncClient(verify=context) as client:
        yield client


async def verify(
    server: Peer, http: httpx2.AsyncClient, *, jku: str = "", card_url: str = "", **policy: Any
) -> SignatureReport:
    """Verify a card that names the server's keys, and that came from the server."""
    signed = signer(jku=jku or server.url + JWKS).sign_json(card())
    rules = SignaturePolicy(**{"http": http, "allow_private": True, **policy})
    return await verify_card(json.dumps(signed).encode(), rules, url=card_url or server.url + "/card")


def reason(report: SignatureReport) -> str:
    (check,) = report.checks
    assert check.outcome != "verified"
    return check.reason


@pytest.mark.req("SIGN-12", "SIGN-15", "SIGN-17", "AMB-86")
async def test_keys_at_the_origin_of_the_card_are_fetched_over_tls(server: Peer, http: httpx2.AsyncClient) -> None:
    server.on("GET", JWKS, as_json(SET))

    report = await verify(server, http)

    assert report.verified
    assert report.checks[0].key_from == server.url + JWKS


@pytest.mark.req("AMB-86")
async def test_keys_elsewhere_are_fetched_only_if_the_caller_allows_it(server: Peer, http: httpx2.AsyncClient) -> None:
    server.on("GET", JWKS, as_json(SET))
    elsewhere = "https://agent.example/card"

    refused = await verify(server, http, card_url=elsewhere)
    neither = await verify(server, http, own_jku=False)

    assert reason(refused) == reason(neither) == f"no key for kid k1; keys are not taken from {server.url}{JWKS}"
    assert refused.outcome == "unverifiable"
    assert server.targets() == []
    assert (await verify(server, http, card_url=elsewhere, jku_origins=[server.url])).verified


@pytest.mark.req("AMB-86")
async def test_a_card_in_a_file_has_no_origin_that_keys_could_come_from(server: Peer, http: httpx2.AsyncClient) -> None:
    server.on("GET", JWKS, as_json(SET))
    signed = signer(jku=server.url + JWKS).sign_json(card())

    report = await verify_card(json.dumps(signed).encode(), SignaturePolicy(http=http, allow_private=True))

    assert "keys are not taken from" in reason(report)


@pytest.mark.req("SIGN-17", "AMB-86")
@pytest.mark.parametrize(
    "place", ["http://127.0.0.1:1/keys", "ftp://a/keys", "https://u:p@a/keys", "keys.json", "https://"]
)
async def test_keys_come_over_https_only(server: Peer, http: httpx2.AsyncClient, place: str) -> None:
    signed = signer().sign_json(card())
    header = {"alg": "ES256", "kid": "k1", "jku": place}
    signed["signatures"] = [entry(card(), header)]
    policy = SignaturePolicy(http=http, allow_private=True)

    report = await verify_card(json.dumps(signed).encode(), policy, url=place if "://" in place else "")

    assert report.outcome == "unverifiable"


@pytest.mark.req("AMB-86", "AMB-71")
@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1", "localhost", "2130706433", "0x7f.1", "0177.0.0.1", "[::1]", "[::ffff:127.0.0.1]",
        "169.254.169.254", "10.0.0.1",
    ],
)  # fmt: skip
async def test_keys_are_not_fetched_from_private_addresses_in_any_spelling(server: Peer, host: str) -> None:
    port = server.url.rpartition(":")[2]
    origin = f"https://{host}:{port}"

    report = await verify(server, None, jku=origin + JWKS, card_url=origin, allow_private=False)  # type: ignore[arg-type]

    assert "private address" in reason(report)
    assert server.connections == 0


@pytest.mark.req("AMB-86", "AMB-71")
async def test_a_name_whose_address_is_private_is_not_called(server: Peer) -> None:
    port = server.url.rpartition(":")[2]

    async def resolve(host: str, port: int) -> list[str]:
        return ["127.0.0.1"]

    http = HttpClient(allow_private=False, resolver=resolve)
    with pytest.raises((KeySetError, OutboundUrlError), match="private address"):
        await KeySets().find(f"https://keys.example:{port}{JWKS}", "k1", http)
    await http.aclose()
    assert server.connections == 0


@pytest.mark.req("AMB-86")
async def test_redirects_are_not_followed_not_even_in_a_circle(server: Peer, http: httpx2.AsyncClient) -> None:
    server.on("GET", JWKS, plain(302, b"", location=server.url + JWKS))

    report = await verify(server, http)

    assert "HTTP 302 (redirects are not followed)" in reason(report)
    assert len(server.received) == 1


@pytest.mark.req("AMB-86")
@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (plain(404, b""), "HTTP 404"),
        (plain(200, b"<html>"), "neither JSON nor PEM"),
        (plain(200, b"[]"), "no object"),
        (plain(200, b'{"keys":{}}'), "keys is no list"),
        (plain(200, b"[" * 200_000), "neither JSON nor PEM"),
        (plain(200, json.dumps({"keys": [], "pad": "x" * 300_000}).encode()), "larger than"),
        (as_json({"keys": []}), "no key for kid k1"),
        (as_json({"keys": [{"kty": "oct", "kid": "k1", "k": "AAAA"}]}), "no key for kid k1"),
        (as_json({"keys": [{"kty": "RSA", "kid": "k1"}, 7, None]}), "no key for kid k1"),
        (as_json({"keys": [{}] * 100 + [public()]}), "no key for kid k1"),
    ],
)
async def test_what_is_no_set_of_keys_or_too_large_gives_none(
    server: Peer, http: httpx2.AsyncClient, answer: Any, words: str
) -> None:
    server.on("GET", JWKS, answer)

    report = await verify(server, http)

    assert report.outcome == "unverifiable"
    assert words in reason(report)


async def test_a_server_that_never_ends_costs_five_seconds_at_most(
    server: Peer, http: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def trickle(request: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{")
        await request.hang_up()

    server.on("GET", JWKS, trickle)
    monkeypatch.setattr("dragoman.jose.key_sets.TIMEOUT", 0.2)

    assert "took longer than" in reason(await verify(server, http))


@pytest.mark.req("SIGN-19", "SIGN-20")
async def test_sets_are_kept_and_a_key_that_is_new_has_them_fetched_again(
    server: Peer, http: httpx2.AsyncClient
) -> None:
    server.on("GET", JWKS, as_json(SET, cache_control="max-age=600"), as_json({"keys": [public(kid="k2")]}))
    clock, client = Clock(), HttpClient(http)
    sets = KeySets(now=clock)
    url = server.url + JWKS

    assert len(await sets.find(url, "k1", client)) == 1
    assert await sets.find(url, "k2", client) == []  # asked a moment ago
    assert len(server.received) == 1
    clock.now += 11
    assert len(await sets.find(url, "k2", client)) == 1
    assert len(await sets.find(url, "k2", client)) == 1
    assert len(server.received) == 2
    assert await sets.find(url, "k1", client) == []  # the old one is gone


async def test_sets_are_used_as_long_as_their_headers_say(server: Peer, http: httpx2.AsyncClient) -> None:
    server.on(
        "GET", JWKS, as_json(SET, cache_control="public, max-age=1"), as_json(SET, cache_control="max-age=999999")
    )
    clock, client = Clock(), HttpClient(http)
    sets = KeySets(now=clock)

    for seconds, asked in ((0, 1), (59, 1), (2, 2), (3599, 2), (2, 3)):
        clock.now += seconds
        await sets.find(server.url + JWKS, "k1", client)
        assert len(server.received) == asked


async def test_a_failure_is_remembered_for_a_moment_and_costs_no_keys_that_are_good(
    server: Peer, http: httpx2.AsyncClient
) -> None:
    server.on("GET", JWKS, as_json(SET), plain(500, b""), plain(500, b""), as_json(SET))
    clock, client = Clock(), HttpClient(http)
    sets, url = KeySets(now=clock), server.url + JWKS

    assert len(await sets.find(url, "k1", client)) == 1
    clock.now += 20
    assert await sets.find(url, "k2", client) == []
    assert len(await sets.find(url, "k1", client)) == 1
    clock.now += 300
    for _ in range(3):
        with pytest.raises(KeySetError, match="HTTP 500"):
            await sets.find(url, "k1", client)
    assert len(server.received) == 3
    clock.now += 11
    assert len(await sets.find(url, "k1", client)) == 1


@pytest.mark.req("SIGN-18")
async def test_a_trust_store_may_be_an_address(server: Peer, http: httpx2.AsyncClient) -> None:
    server.on("GET", JWKS, as_json(SET))
    signed = signer().sign_json(card())
    policy = SignaturePolicy(trust=TrustStore(server.url + JWKS), http=http, mode="required")

    report = await verify_card(json.dumps(signed).encode(), policy)

    assert (report.outcome, report.checks[0].key_from) == ("verified", "trust")


async def test_a_key_of_the_same_name_in_the_trust_store_does_not_hide_the_agents_own(
    server: Peer, http: httpx2.AsyncClient
) -> None:
    server.on("GET", JWKS, as_json(SET))

    report = await verify(server, http, trust=TrustStore({**public("RS256", "other"), "kid": "k1"}))

    assert report.verified


async def test_a_client_with_credentials_goes_to_the_origin_of_the_card_only(
    server: Peer, http: httpx2.AsyncClient
) -> None:
    server.on("GET", JWKS, as_json(SET))
    http.headers["authorization"] = "Bearer secret"
    signed = json.dumps(signer(jku=server.url + JWKS).sign_json(card())).encode()
    policy = SignaturePolicy(allow_private=True, jku_origins=[server.url])

    elsewhere = await verify_card(signed, policy, url="https://agent.example/card", http=http)
    own = await verify_card(signed, SignaturePolicy(allow_private=True), url=server.url, http=http)

    assert "TLS failed" in reason(elsewhere)  # a client that does not know the certificates of the tests
    assert [request.headers.get("authorization") for request in server.received] == ["Bearer secret"]
    assert own.verified
