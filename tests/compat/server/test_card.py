"""The card for readers of both generations."""

from __future__ import annotations

import pytest

from dragoman import App
from dragoman.errors import ConfigurationError
from dragoman.model import AgentInterface
from tests.bindings.parts import RecordingOperations, ask, card
from tests.compat.server.recording import endpoint_over
from tests.compat.server.speaking import ECHO, Old, serving

pytestmark = pytest.mark.req("V03-05")

PATH = "/.well-known/agent-card.json"
ALIAS = "/.well-known/agent.json"


@pytest.mark.req("V03-P13", "V03-P14", "V03-P32")
async def test_who_does_not_name_1_0_is_shown_a_card_for_both(old: Old) -> None:
    for headers in ({}, {"A2A-Version": "0.3"}, {"A2A-Version": ""}):
        for path in (PATH, ALIAS):
            found = await old.wire.ask("GET", path, None, headers)
            card = found.json
            assert found.headers["content-type"] == "application/json"
            assert found.headers["vary"] == "A2A-Version"
            assert (card["protocolVersion"], card["preferredTransport"]) == ("0.3.0", "JSONRPC")
            assert card["url"] == old.wire.url
            assert {"url": card["url"], "transport": "JSONRPC"} in card["additionalInterfaces"]
            assert [entry["protocolVersion"] for entry in card["supportedInterfaces"]] == ["1.0", "1.0", "0.3", "0.3"]
            assert card["capabilities"]["streaming"] is True


@pytest.mark.req("V03-P13", "V03-P32")
async def test_who_names_1_0_is_shown_a_card_of_1_0(old: Old) -> None:
    pure = await old.wire.ask("GET", PATH, None, {"A2A-Version": "1.0"})
    minor = await old.wire.ask("GET", f"{PATH}?a2a-version=1.7", None, {})

    assert pure.body == minor.body
    assert not {"url", "preferredTransport", "additionalInterfaces", "protocolVersion"} & set(pure.json)
    assert pure.headers["vary"] == "A2A-Version"
    assert [
        (entry["protocolBinding"], entry["protocolVersion"], entry["url"]) for entry in pure.json["supportedInterfaces"]
    ] == [
        ("JSONRPC", "1.0", old.wire.url),
        ("HTTP+JSON", "1.0", old.wire.url),
        ("JSONRPC", "0.3", old.wire.url),
        ("HTTP+JSON", "0.3", old.wire.url),
    ]


@pytest.mark.req("V03-P32", "CARD-19")
async def test_each_form_has_its_own_validator(old: Old) -> None:
    pure = await old.wire.ask("GET", PATH, None, {"A2A-Version": "1.0"})
    both = await old.wire.ask("GET", PATH, None, {})

    async def again(etag: str, version: dict[str, str]) -> int:
        return (await old.wire.ask("GET", PATH, None, {"If-None-Match": etag, **version})).status

    assert pure.headers["etag"] != both.headers["etag"]
    assert await again(pure.headers["etag"], {"A2A-Version": "1.0"}) == 304
    assert await again(both.headers["etag"], {}) == 304
    assert await again(pure.headers["etag"], {}) == 200
    assert (await old.wire.ask("HEAD", ALIAS, None, {})).headers["etag"] == both.headers["etag"]


@pytest.mark.req("V03-P12", "B141")
async def test_a_card_without_interfaces_of_0_3_is_served_as_it_is() -> None:
    app = endpoint_over(RecordingOperations())
    found = await ask(app, "GET", PATH)
    pure = await ask(app, "GET", PATH, headers={"A2A-Version": "1.0"})

    assert found.status == 200
    assert found.json == pure.json


async def test_without_0_3_the_card_is_that_of_1_0_and_varies_by_nothing() -> None:
    async with serving(versions=("1.0",)) as old:
        found = await old.wire.ask("GET", PATH, None, {})

    assert "vary" not in found.headers
    assert "url" not in found.json
    assert [entry["protocolVersion"] for entry in found.json["supportedInterfaces"]] == ["1.0", "1.0"]


def test_the_entries_of_0_3_come_last_whoever_adds_them() -> None:
    app = App(ECHO)
    for version in ("1.0", "0.3"):
        app.add_interface(AgentInterface(url="agents.example:443", protocol_binding="GRPC", protocol_version=version))
    before = app.card("https://agents.example/a")

    assert [(entry.protocol_binding, entry.protocol_version) for entry in before.supported_interfaces] == [
        ("JSONRPC", "1.0"),
        ("HTTP+JSON", "1.0"),
        ("GRPC", "1.0"),
        ("JSONRPC", "0.3"),
        ("HTTP+JSON", "0.3"),
        ("GRPC", "0.3"),
    ]
    assert before.supported_interfaces[3].url == "https://agents.example/a/"


async def test_a_card_that_is_shared_is_not_changed_by_being_shown() -> None:
    shared = card("https://agents.example")
    shared.supported_interfaces.append(
        AgentInterface(url="https://agents.example", protocol_binding="JSONRPC", protocol_version="0.3")
    )
    from dragoman.bindings.endpoint import Endpoint
    from dragoman.compat.v03.server_dialect import V03Dialect
    from dragoman.model import encode_json

    before = encode_json(shared)
    app = Endpoint(RecordingOperations(), card=lambda base: shared, dialect=V03Dialect())
    found = await ask(app, "GET", PATH)

    assert found.json["url"] == "https://agents.example"
    assert encode_json(shared) == before


def test_an_interface_of_a_tenant_that_cannot_be_is_refused() -> None:
    entry = AgentInterface(url="agents.example:443", protocol_binding="GRPC", protocol_version="1.0", tenant="v1")
    with pytest.raises(ConfigurationError, match="tenant"):
        App(ECHO).add_interface(entry)
    alone = App(ECHO, versions=("1.0",))
    alone.add_interface(entry)
    assert alone.card("https://agents.example").supported_interfaces[2].tenant == "v1"
