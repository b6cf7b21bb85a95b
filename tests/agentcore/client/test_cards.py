"""Cards of runtimes: where they are fetched, and which addresses of theirs are believed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from dragoman import CardCache
from dragoman.agentcore import AccessDenied
from dragoman.errors import CardError
from tests.agentcore.client.front import (
    CALLS,
    CARD,
    ONE,
    SESSION,
    FakeTime,
    busy,
    call,
    done,
    forbidden,
    runtime_card,
)
from tests.agentcore.client.sigv4 import is_genuine
from tests.client.words import card
from tests.http.peer import Answer, Peer, as_json, peer, plain

OLD_CARD = {
    "name": "Vendor's sample",
    "description": "As printed",
    "version": "1.0.0",
    "protocolVersion": "0.3.0",
    "preferredTransport": "JSONRPC",
    "capabilities": {"streaming": True},
    "defaultInputModes": ["text"],
    "defaultOutputModes": ["text"],
    "skills": [{"id": "s", "name": "S", "description": "Does it", "tags": []}],
}


@pytest.fixture
async def front() -> AsyncIterator[Peer]:
    async with peer() as made:
        yield made


@pytest.fixture
async def elsewhere() -> AsyncIterator[Peer]:
    async with peer() as made:
        yield made


@pytest.mark.req("AC-C-60")
async def test_the_card_is_fetched_signed_in_the_session(front: Peer) -> None:
    front.on("GET", CARD, as_json(runtime_card(front)))

    async with call(front, card=True, session_id=ONE, qualifier="prod") as client:
        assert client.card.name == "Peer"

    (sent,) = front.received
    assert f"{sent.method} {sent.target}" == f"GET {CARD}?qualifier=prod"
    assert sent.headers[SESSION] == ONE
    assert is_genuine(sent)


@pytest.mark.req("AC-C-60")
async def test_a_403_of_the_card_names_the_missing_action(front: Peer) -> None:
    front.on("GET", CARD, forbidden("Access denied"))

    with pytest.raises(AccessDenied, match="bedrock-agentcore:GetAgentCard"):
        async with call(front, card=True):
            raise AssertionError("connected")


@pytest.mark.req("AC-C-60")
async def test_a_session_that_is_busy_is_waited_for_by_the_card_too(front: Peer) -> None:
    front.on("GET", CARD, busy(), busy(), as_json(runtime_card(front)))
    time = FakeTime()

    async with call(front, card=True, timing=time.timing):
        pass

    assert time.waits == [0.5, 1.0]


@pytest.mark.req("AC-C-61")
async def test_a_card_can_be_given(front: Peer) -> None:
    front.on("POST", CALLS, done())

    async with call(front, card=runtime_card(front)) as client:
        await client.send("hi")

    assert client.card.name == "Peer"
    assert front.targets() == [f"POST {CALLS}"]


def generations(front: Peer) -> dict[str, dict[str, Any]]:
    url = front.url + CALLS
    return {
        "0.3": {**OLD_CARD, "url": url},
        "1.0": card(url),
        "mixed": {**OLD_CARD, "url": url, **card(url)},
    }


@pytest.mark.req("AC-C-62")
@pytest.mark.parametrize(("generation", "version"), [("0.3", "0.3"), ("1.0", "1.0"), ("mixed", "1.0")])
async def test_cards_of_every_generation_are_read(front: Peer, generation: str, version: str) -> None:
    front.on("GET", CARD, as_json(generations(front)[generation]))

    async with call(front, card=True) as client:
        assert client.interface.protocol_version.startswith(version)
        assert client.card.capabilities.streaming is True


@pytest.mark.req("AC-C-23", "AC-C-62")
@pytest.mark.parametrize("url", ["http://localhost:9000/", "https://evil.example/", "another runtime"])
async def test_a_card_that_names_another_address_is_refused(front: Peer, url: str) -> None:
    other = front.url + CALLS.replace("ledger_bot", "other_bot")
    front.on("GET", CARD, as_json(card(other if url == "another runtime" else url)))

    with pytest.raises(CardError, match="own_address"):
        async with call(front, card=True):
            raise AssertionError("connected")

    assert front.targets() == [f"GET {CARD}"]


@pytest.mark.req("AC-C-62")
async def test_the_own_address_may_be_kept_with_a_warning(front: Peer, caplog: pytest.LogCaptureFixture) -> None:
    front.on("GET", CARD, as_json(card("http://localhost:9000/"))).on("POST", CALLS, done())

    async with call(front, card=True, own_address=True) as client:
        await client.send("hi")

    assert front.targets()[-1] == f"POST {CALLS}"
    assert any("localhost:9000" in record.getMessage() for record in caplog.records)


@pytest.mark.req("AC-C-23")
async def test_an_address_that_the_user_trusts_is_called(front: Peer, elsewhere: Peer) -> None:
    front.on("GET", CARD, as_json(card(f"{elsewhere.url}/gate/agent")))
    elsewhere.on("POST", "/gate/agent", done())

    async with call(front, card=True, trusted=[f"{elsewhere.url}/gate"]) as client:
        await client.send("hi")

    assert is_genuine(elsewhere.received[0])


@pytest.mark.req("AC-C-23")
async def test_trust_ends_at_the_base_address(front: Peer, elsewhere: Peer) -> None:
    front.on("GET", CARD, as_json(card(f"{elsewhere.url}/gateway")))

    with pytest.raises(CardError):
        async with call(front, card=True, trusted=[f"{elsewhere.url}/gate"]):
            raise AssertionError("connected")

    assert elsewhere.connections == 0


@pytest.mark.req("AC-C-23")
async def test_no_redirect_is_followed_with_credentials(front: Peer, elsewhere: Peer) -> None:
    front.on("GET", CARD, plain(307, b"", location=f"{elsewhere.url}{CARD}"))

    with pytest.raises(CardError, match="redirect"):
        async with call(front, card=True):
            raise AssertionError("connected")

    assert elsewhere.connections == 0
    assert len(front.received) == 1


@pytest.mark.req("AC-C-63")
@pytest.mark.parametrize(("second", "fetched"), [(plain(304, b"", etag='"1"'), 2)])
async def test_a_card_is_kept_by_its_etag(front: Peer, second: Answer, fetched: int) -> None:
    front.on("GET", CARD, as_json(runtime_card(front), etag='"1"', cache_control="no-cache"), second)
    cache = CardCache()

    for _ in range(2):
        async with call(front, card=True, cache=cache) as client:
            assert client.card.name == "Peer"

    assert len(front.received) == fetched
    assert front.received[1].headers["if-none-match"] == '"1"'
