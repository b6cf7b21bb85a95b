"""Finding and fetching cards, over real sockets."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from dragoman.client import CardCache, connect, fetch_card
from dragoman.client.discovery import CardFetcher, as_file, card_urls
from dragoman.errors import (
    CardError,
    ConnectError,
    OutboundUrlError,
    PermissionDeniedError,
    RequestTimeoutError,
    UnauthenticatedError,
)
from dragoman.http.client import HttpClient
from tests.client.words import CARD_PATH, card, serve_card
from tests.http.peer import Peer, as_json, free_url, peer, plain, silence, stream

OLD_PATH = "/.well-known/agent.json"


@pytest.fixture
async def server() -> AsyncIterator[Peer]:
    async with peer() as made:
        yield made


@pytest.mark.req("AMB-74", "CARD-03")
@pytest.mark.parametrize(
    ("target", "urls"),
    [
        ("https://a", [f"https://a{CARD_PATH}", f"https://a{OLD_PATH}"]),
        ("https://a/", [f"https://a{CARD_PATH}", f"https://a{OLD_PATH}"]),
        ("https://a:443", [f"https://a{CARD_PATH}", f"https://a{OLD_PATH}"]),
        ("agent.example", [f"https://agent.example{CARD_PATH}", f"https://agent.example{OLD_PATH}"]),
        ("localhost:9999", [f"http://localhost:9999{CARD_PATH}", f"http://localhost:9999{OLD_PATH}"]),
        ("[::1]:9", [f"http://[::1]:9{CARD_PATH}", f"http://[::1]:9{OLD_PATH}"]),
        (
            "https://a/x/y/",
            [
                f"https://a/x/y{CARD_PATH}",
                f"https://a{CARD_PATH}",
                f"https://a/x/y{OLD_PATH}",
                f"https://a{OLD_PATH}",
                "https://a/x/y",
            ],
        ),
        ("https://a/x/card.json", ["https://a/x/card.json"]),
        ("https://a/x?tenant=1", ["https://a/x?tenant=1"]),
        (f"https://a/x{CARD_PATH}", [f"https://a/x{CARD_PATH}"]),
        ("https://a/c.json?x=1#part", ["https://a/c.json?x=1"]),
    ],
)
def test_where_a_card_is_looked_for(target: str, urls: list[str]) -> None:
    assert card_urls(target) == urls


@pytest.mark.req("AMB-74")
async def test_the_card_below_the_path_wins_over_the_one_at_the_root(server: Peer) -> None:
    serve_card(server, card(server.url, name="root"))
    server.on("GET", f"/agents/one{CARD_PATH}", as_json(card(server.url, name="one")))

    assert (await fetch_card(f"{server.url}/agents/one")).card.name == "one"
    assert (await fetch_card(f"{server.url}/agents/two")).card.name == "root"


@pytest.mark.req("B139")
async def test_the_old_name_is_asked_for_when_the_new_one_is_not_there(server: Peer) -> None:
    server.on("GET", OLD_PATH, as_json(card(server.url, name="old place")))

    assert (await fetch_card(server.url)).card.name == "old place"
    assert server.targets() == [f"GET {CARD_PATH}", f"GET {OLD_PATH}"]


@pytest.mark.req("B137", "AMB-75")
async def test_a_card_at_any_address_with_a_query_and_headers_is_fetched_as_it_is(server: Peer) -> None:
    body = json.dumps(card(server.url, name="odd")).encode()
    server.on("GET", "/api/x/a2a/id.json", plain(200, body, kind="application/octet-stream"))

    found = await fetch_card(f"{server.url}/api/x/a2a/id.json?tenant=1", headers={"Authorization": "Bearer x"})

    assert (found.card.name, found.json) == ("odd", body)
    assert server.received[0].target == "/api/x/a2a/id.json?tenant=1"
    assert server.received[0].headers["authorization"] == "Bearer x"


async def test_a_page_for_every_address_does_not_hide_the_card(server: Peer) -> None:
    server.on("GET", f"/app{CARD_PATH}", plain(200, b"<html>", kind="text/html"))
    serve_card(server)

    assert (await fetch_card(f"{server.url}/app")).card.name == "Peer"


@pytest.mark.req("B127")
async def test_pages_everywhere_are_an_error_that_says_so_without_quoting(server: Peer) -> None:
    for path in (CARD_PATH, OLD_PATH):
        server.on("GET", path, plain(200, b"<html>secret", kind="text/html"))

    with pytest.raises(CardError, match=r"a web page \(HTML\)") as caught:
        await fetch_card(server.url)

    assert "secret" not in str(caught.value)


async def test_no_card_anywhere_names_the_places(server: Peer) -> None:
    with pytest.raises(CardError, match=rf"No agent card at .*{CARD_PATH} or .*{OLD_PATH}"):
        await fetch_card(server.url)


async def test_a_card_of_an_old_version_ends_the_search(server: Peer) -> None:
    server.on("GET", f"/x{CARD_PATH}", as_json({"url": "http://a", "protocolVersion": "0.3.0"}))
    serve_card(server)

    found = await fetch_card(f"{server.url}/x")

    assert [i.protocol_version for i in found.card.supported_interfaces] == ["0.3"]
    assert server.received[0].headers["a2a-version"] == "1.0"


@pytest.mark.parametrize(
    ("status", "error"), [(401, UnauthenticatedError), (403, PermissionDeniedError), (500, CardError)]
)
async def test_a_refused_card_is_an_error_of_its_own_kind(server: Peer, status: int, error: type[Exception]) -> None:
    server.on("GET", CARD_PATH, plain(status, b"secret", www_authenticate='Bearer realm="x"'))

    with pytest.raises(error) as caught:
        await fetch_card(server.url)

    assert "secret" not in str(caught.value)
    if isinstance(caught.value, UnauthenticatedError):
        assert caught.value.metadata["challenge"] == 'Bearer realm="x"'


@pytest.mark.req("B127")
async def test_a_huge_card_is_not_read(server: Peer) -> None:
    server.on("GET", CARD_PATH, plain(200, b" " * (1024 * 1024 + 1)))

    with pytest.raises(CardError, match="larger than"):
        await fetch_card(server.url)


@pytest.mark.req("B127")
@pytest.mark.parametrize("answer", [silence, stream(b"{", end="stay")], ids=["no answer", "slow body"])
async def test_a_slow_card_is_given_up(server: Peer, answer) -> None:
    server.on("GET", CARD_PATH, answer)
    http = HttpClient()

    with pytest.raises(RequestTimeoutError):
        await CardFetcher(http, timeout=0.05).find(server.url)
    await http.aclose()


async def test_an_agent_that_is_not_there_is_a_connect_error() -> None:
    with pytest.raises(ConnectError):
        await fetch_card(free_url())


@pytest.mark.req("B127", "AMB-71")
@pytest.mark.parametrize("target", ["htp://x", "ftp://x/card.json", "http://user:pw@x/"])
async def test_only_plain_http_addresses_are_fetched(target: str) -> None:
    with pytest.raises(OutboundUrlError):
        await fetch_card(target)


@pytest.mark.req("AMB-71", "B127")
@pytest.mark.parametrize(
    "target", ["http://169.254.169.254/", "http://127.0.0.1:1/", "file:///etc/passwd", "/etc/passwd"]
)
async def test_an_untrusted_target_reaches_neither_inside_nor_files(target: str) -> None:
    with pytest.raises(OutboundUrlError):
        await fetch_card(target, allow_private=False)


async def test_a_redirect_inside_the_origin_is_followed(server: Peer) -> None:
    server.on("GET", CARD_PATH, plain(302, b"", location="/moved.json"))
    server.on("GET", "/moved.json", as_json(card(server.url)))

    assert (await fetch_card(server.url)).url == f"{server.url}/moved.json"


@pytest.mark.req("B127", "AMB-71")
async def test_a_redirect_to_another_origin_is_refused_with_its_address(server: Peer) -> None:
    async with peer() as other:
        server.on("GET", CARD_PATH, plain(302, b"", location=f"{other.url}{CARD_PATH}"))
        serve_card(other)

        with pytest.raises(CardError, match=f"redirects to another origin, {other.url}"):
            await fetch_card(server.url)

        assert other.received == []


async def test_endless_redirects_are_given_up(server: Peer) -> None:
    server.on("GET", CARD_PATH, plain(302, b"", location=CARD_PATH))

    with pytest.raises(CardError, match="redirects"):
        await fetch_card(server.url)


@pytest.mark.req("CARD-18", "CARD-22")
async def test_a_fresh_card_is_not_fetched_again(server: Peer) -> None:
    serve_card(server, cache_control="max-age=100")
    cache = CardCache(now=lambda: 0.0)

    first = await fetch_card(server.url, cache=cache)
    second = await fetch_card(server.url, cache=cache)

    assert (first.card, len(server.received)) == (second.card, 1)


@pytest.mark.req("CARD-23")
@pytest.mark.parametrize(
    ("validator", "condition"),
    [({"etag": '"v1"'}, ("if-none-match", '"v1"')), ({"last_modified": "X"}, ("if-modified-since", "X"))],
)
async def test_an_expired_card_is_asked_about_and_used_on(
    server: Peer, validator: dict[str, str], condition: tuple[str, str]
) -> None:
    moment = 0.0
    cache = CardCache(now=lambda: moment)
    answer = as_json(card(server.url), cache_control="max-age=100", **validator)
    server.on("GET", CARD_PATH, answer, plain(304, b"", kind="", cache_control="max-age=100"))

    first = await fetch_card(server.url, cache=cache)
    moment = 101.0
    second = await fetch_card(server.url, cache=cache)
    third = await fetch_card(server.url, cache=cache)

    assert first.card == second.card == third.card
    assert len(server.received) == 2
    assert server.received[1].headers[condition[0]] == condition[1]


@pytest.mark.req("CARD-22")
async def test_a_card_that_must_not_be_stored_is_fetched_each_time(server: Peer) -> None:
    serve_card(server, cache_control="no-store")
    cache = CardCache()

    for _ in range(2):
        await fetch_card(server.url, cache=cache)

    assert len(server.received) == 2


async def test_cards_fetched_with_other_credentials_are_kept_apart(server: Peer) -> None:
    serve_card(server, cache_control="max-age=100")
    cache = CardCache()

    for token in ("a", "b", "a"):
        await fetch_card(server.url, headers={"Authorization": token}, cache=cache)

    assert [request.headers["authorization"] for request in server.received] == ["a", "b"]


async def test_a_cache_keeps_a_bounded_number_of_cards(server: Peer) -> None:
    cache = CardCache(max_cards=2)
    for name in ("a", "b", "c"):
        server.on("GET", f"/{name}.json", as_json(card(server.url)))

    for name in ("a", "b", "c", "c", "a"):
        await fetch_card(f"{server.url}/{name}.json", cache=cache)

    assert [request.target for request in server.received] == ["/a.json", "/b.json", "/c.json", "/a.json"]


@pytest.mark.req("B137", "CARD-03")
@pytest.mark.parametrize("form", ["path", "text", "file address"])
async def test_a_card_in_a_file_is_read(tmp_path: Path, form: str) -> None:
    file = tmp_path / "a card.json"
    file.write_text(json.dumps(card("http://a/", name="filed")))
    target = {"path": file, "text": str(file), "file address": file.as_uri()}[form]

    assert (await fetch_card(target)).card.name == "filed"


async def test_a_file_that_is_not_there_or_too_large_is_a_card_error(tmp_path: Path) -> None:
    large = tmp_path / "large.json"
    large.write_bytes(b" " * (1024 * 1024 + 1))

    with pytest.raises(CardError, match="cannot be read"):
        await fetch_card(tmp_path / "none.json")
    with pytest.raises(CardError, match="larger"):
        await fetch_card(large)


def test_a_file_address_with_a_host_is_refused() -> None:
    with pytest.raises(CardError):
        as_file("file://host/etc/passwd")


@pytest.mark.req("B137")
async def test_a_dict_is_a_card_and_is_not_changed(server: Peer) -> None:
    value = card(server.url)
    before = json.dumps(value)

    async with connect(value) as client:
        assert client.card.name == "Peer"

    assert json.dumps(value) == before


async def test_the_card_request_carries_only_the_headers_meant_for_it(server: Peer) -> None:
    serve_card(server)

    async with connect(server.url, headers={"authorization": "call"}, card_headers={"x-card": "1"}):
        pass

    assert "authorization" not in server.received[0].headers
    assert server.received[0].headers["x-card"] == "1"
