"""Which interface of which version is used: by cards of every age, and what happens when the agent refuses it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from dragoman import connect, fetch_card
from dragoman.client import Connection
from dragoman.client.cards import OldCardError
from dragoman.errors import CardError, ConfigurationError, MethodNotFoundError, VersionNotSupportedError
from dragoman.model import AgentInterface
from tests.compat.client.words import CARD_PATH, OLD_CARD_PATH, REST, RPC, connect_to, events, old_card, rpc_error, task
from tests.http.peer import BOUND, Peer, as_json, error, peer, plain, result


@pytest.fixture
async def server() -> AsyncIterator[Peer]:
    async with peer() as made:
        yield made


def hybrid(url: str, *entries: tuple[str, str], **more: Any) -> dict[str, Any]:
    """A card for both versions, at one address each."""
    listed = [{"url": url, "protocolBinding": binding, "protocolVersion": version} for binding, version in entries]
    return {**old_card(f"{url}/only-old"), "supportedInterfaces": listed, **more}


async def chosen(connection: Connection) -> tuple[str, str, str]:
    async with connection as client:
        return client.interface.url, client.interface.protocol_binding, client.interface.protocol_version


@pytest.mark.req("B143", "V03-05", "AC-C-62")
async def test_an_old_card_in_hand_works_like_a_found_one(server: Peer, tmp_path: Path) -> None:
    value = old_card(server.url)
    (tmp_path / "card.json").write_text(json.dumps(value))
    server.on("GET", CARD_PATH, as_json(value))

    found = [await chosen(connect(target)) for target in (value, tmp_path / "card.json", server.url)]

    assert found == [(server.url, RPC, "0.3")] * 3


@pytest.mark.req("B143", "V03-05")
async def test_a_card_without_preferred_transport_is_of_json_rpc(server: Peer) -> None:
    value = old_card(server.url)
    del value["preferredTransport"]
    server.on("POST", "/", result(task("completed")))

    async with connect(value) as client:
        await client.send("hi")

    assert server.received[0].json["method"] == "message/send"


@pytest.mark.req("V03-05", "B139")
async def test_an_old_card_is_found_at_its_old_place(server: Peer) -> None:
    server.on("GET", CARD_PATH, plain(404, b"")).on("GET", OLD_CARD_PATH, as_json(old_card(server.url)))

    found = await fetch_card(server.url)

    assert server.targets() == [f"GET {CARD_PATH}", f"GET {OLD_CARD_PATH}"]
    assert found.card.supported_interfaces[0].protocol_version == "0.3"


@pytest.mark.req("B143", "V03-05")
@pytest.mark.parametrize(("wanted", "place"), [((RPC, REST), "rpc"), ((REST,), "rest")])
async def test_additional_interfaces_stand_by_and_can_be_asked_for(wanted: tuple[str, ...], place: str) -> None:
    more = [
        {"url": "http://a.example/rpc", "transport": RPC},
        {"url": "http://a.example/rest", "transport": REST},
        {"url": "http://a.example/pigeon", "transport": "PIGEON"},
    ]

    found = await chosen(connect(old_card("http://a.example/rpc", additionalInterfaces=more), bindings=wanted))

    assert found[0] == f"http://a.example/{place}"


@pytest.mark.req("B143", "V03-05")
async def test_of_a_card_for_both_versions_the_interfaces_of_the_new_form_count() -> None:
    value = hybrid("http://a.example/both", (RPC, "0.3"), (RPC, "1.0"), (REST, "1.0"))

    assert await chosen(connect(value)) == ("http://a.example/both", RPC, "1.0")
    assert await chosen(connect(value, versions=("0.3",))) == ("http://a.example/both", RPC, "0.3")


@pytest.mark.req("V03-05", "V03-P22")
@pytest.mark.parametrize("version", ["0.2.5", "0.2.9", "0.3", "0.3.0", None])
async def test_every_version_below_the_present_one_is_called_as_0_3(server: Peer, version: str | None) -> None:
    value = old_card(server.url)
    value.pop("protocolVersion")
    server.on("POST", "/", result(task("completed")))

    async with connect({**value, **({"protocolVersion": version} if version else {})}) as client:
        await client.send("hi")

    assert (server.received[0].headers["a2a-version"], server.received[0].json["method"]) == ("0.3", "message/send")


@pytest.mark.req("V03-05")
@pytest.mark.parametrize("version", ["1.0", "2.0.0"])
async def test_a_card_of_old_form_and_new_version_contradicts_itself(version: str) -> None:
    with pytest.raises(CardError, match="contradicts itself"):
        await connect(old_card("http://a.example", protocolVersion=version)).open()


@pytest.mark.req("V03-05")
@pytest.mark.parametrize(
    "more",
    [{"url": 7}, {"capabilities": "all"}, {"additionalInterfaces": [{"transport": 1}]}, {"skills": "many"}],
)
async def test_an_old_card_with_wrong_values_is_told_what_is_wrong(more: dict[str, Any]) -> None:
    with pytest.raises(CardError):
        await connect({**old_card("http://a.example"), **more}).open()


@pytest.mark.req("VER-10", "VER-11", "B145")
async def test_old_agents_are_not_called_when_only_the_present_version_is_allowed(server: Peer) -> None:
    with pytest.raises(OldCardError, match=r"offers JSONRPC 0\.3; this client speaks JSONRPC 1\.0"):
        await connect(old_card(server.url), versions=("1.0",)).open()

    assert server.received == []


@pytest.mark.parametrize("versions", [(), ("2.0",), ("1.0", "x"), "1.0"])
def test_versions_that_are_not_spoken_are_a_mistake_of_the_caller(versions: Any) -> None:
    with pytest.raises(ConfigurationError, match="versions"):
        connect("http://a.example", versions=versions)


async def test_an_interface_of_an_old_version_can_be_given(server: Peer) -> None:
    server.on("POST", "/", result(task("completed")))
    entry = AgentInterface(url=server.url, protocol_binding=RPC, protocol_version="0.3")

    async with connect(entry, timeout=BOUND) as client:
        await client.send("hi")

    assert server.received[0].json["method"] == "message/send"


# Refused.


VERSION = error(-32009, "only 0.3 is served", "VERSION_NOT_SUPPORTED")
METHOD = rpc_error(-32601, "Method not found")
REFUSALS = [(VERSION, VersionNotSupportedError), (METHOD, MethodNotFoundError)]


@pytest.mark.req("B145", "VER-11", "V03-P11")
@pytest.mark.parametrize(("refusal", "kind"), REFUSALS)
async def test_a_refused_version_is_an_error_that_says_what_the_card_offers(
    server: Peer, refusal: Any, kind: type[Exception]
) -> None:
    server.on("POST", "/", refusal)
    value = hybrid(server.url, (RPC, "1.0"), (RPC, "0.3"))

    async with connect_to(server, card=value) as client:
        with pytest.raises(kind) as caught:
            await client.send("hi")

    assert "card offers JSONRPC 1.0, JSONRPC 0.3" in caught.value.__notes__[0]
    assert len(server.received) == 1


@pytest.mark.req("B145", "V03-P11")
@pytest.mark.parametrize(("refusal", "kind"), REFUSALS)
async def test_a_refused_version_falls_back_where_that_is_allowed_and_stays_there(
    server: Peer, refusal: Any, kind: type[Exception]
) -> None:
    server.on("POST", "/", refusal, result(task("working")), events(task("completed")))
    value = hybrid(server.url, (RPC, "1.0"), (RPC, "0.3"))

    async with connect_to(server, card=value, fallback=True) as client:
        await client.send("hi")
        async for _ in client.stream("hi"):
            pass
        used = client.interface.protocol_version

    assert [each.json["method"] for each in server.received] == ["SendMessage", "message/send", "message/stream"]
    assert used == "0.3"


@pytest.mark.req("B145", "VER-11")
@pytest.mark.parametrize(
    ("entries", "more"),
    [([(RPC, "1.0")], {}), ([(RPC, "1.0"), (RPC, "0.3")], {"versions": ("1.0",)})],
    ids=["the card offers none", "the caller allows none"],
)
async def test_there_is_no_falling_back_to_what_is_not_offered_or_not_allowed(
    server: Peer, entries: list[tuple[str, str]], more: dict[str, Any]
) -> None:
    server.on("POST", "/", VERSION)

    async with connect_to(server, card=hybrid(server.url, *entries), fallback=True, **more) as client:
        with pytest.raises(VersionNotSupportedError):
            await client.send("hi")

    assert len(server.received) == 1


@pytest.mark.req("B145")
async def test_a_method_that_only_one_operation_lacks_is_no_matter_of_the_version(server: Peer) -> None:
    server.on("POST", "/", METHOD)

    async with connect_to(server, card=hybrid(server.url, (RPC, "1.0"), (RPC, "0.3")), fallback=True) as client:
        with pytest.raises(MethodNotFoundError):
            await client.get_task("t1")

    assert len(server.received) == 1
