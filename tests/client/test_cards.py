"""Reading cards, and choosing the interface."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman.client.cards import OldCardError, read_card, select_interfaces
from dragoman.errors import CardError
from dragoman.model import AgentCard, AgentInterface
from tests.client.words import card


def read(value: Any) -> AgentCard:
    return read_card(json.dumps(value).encode(), "here")


def with_interfaces(*entries: tuple[str, str, str]) -> AgentCard:
    found = card("")
    found["supportedInterfaces"] = [
        {"protocolBinding": binding, "protocolVersion": version, "url": url} for binding, version, url in entries
    ]
    return read(found)


@pytest.mark.req("DATA-16", "AMB-46", "AMB-43")
def test_a_card_with_unknown_and_without_required_members_is_read() -> None:
    found = read({"name": "A", "supportedInterfaces": [{"url": "http://a/", "new": 1}], "future": {"x": []}})

    assert (found.name, found.description, found.skills) == ("A", "", [])
    assert found.capabilities.streaming is None


@pytest.mark.req("AMB-54")
def test_of_several_oauth_flows_one_that_is_not_deprecated_is_kept() -> None:
    flows = {"implicit": {"scopes": {}}, "clientCredentials": {"tokenUrl": "https://t", "scopes": {}}}

    found = read(card("http://a/", securitySchemes={"o": {"oauth2SecurityScheme": {"flows": flows}}}))

    scheme = found.security_schemes["o"].oauth2_security_scheme
    assert scheme is not None
    assert scheme.flows.client_credentials is not None
    assert scheme.flows.implicit is None


@pytest.mark.req("VER-17")
@pytest.mark.parametrize("flag", ["supportsExtendedAgentCard", "supportsAuthenticatedExtendedCard"])
def test_the_extended_card_is_also_found_under_its_old_flags(flag: str) -> None:
    value = card("http://a/", capabilities={"streaming": True}, **{flag: True})

    capabilities = read(value).capabilities

    assert (capabilities.extended_agent_card, capabilities.streaming) == (True, True)
    assert value["capabilities"] == {"streaming": True}


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"<!DOCTYPE html><html><title>secret</title>", "a web page"),
        (b"secret", "not JSON"),
        (b"", "not JSON"),
        (b"\xff\xfe{}", "not JSON"),
        (b"[]", "no object"),
        (b'"secret"', "no object"),
        (b'{"status": "secret"}', "names no supportedInterfaces"),
        (b'{"supportedInterfaces": "secret"}', "supportedInterfaces"),
        (b'{"name": {"secret": 1}, "supportedInterfaces": [{"url": "http://a"}]}', "name"),
    ],
)
@pytest.mark.req("B127")
def test_what_is_no_card_is_named_and_not_quoted(body: bytes, words: str) -> None:
    with pytest.raises(CardError) as caught:
        read_card(body, "https://a/card")

    assert words in str(caught.value)
    assert "https://a/card" in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.req("AMB-76", "B143")
def test_a_card_of_an_older_version_becomes_one_whose_interfaces_have_that_version() -> None:
    old = {"name": "Old", "url": "http://a", "protocolVersion": "0.2.5", "preferredTransport": "HTTP+JSON"}

    found = read(old)

    entries = [(i.url, i.protocol_binding, i.protocol_version) for i in found.supported_interfaces]
    assert (found.name, entries) == ("Old", [("http://a", "HTTP+JSON", "0.2")])


@pytest.mark.req("AMB-76", "B143")
def test_a_card_of_an_older_version_without_an_address_is_called_that() -> None:
    with pytest.raises(OldCardError, match=r"speaks A2A 0\.2\.5, and names no address"):
        read({"protocolVersion": "0.2.5", "supportedInterfaces": []})


@pytest.mark.req("V03-05", "AMB-76")
@pytest.mark.parametrize("version", ["1.0", "1.0.0", "2.1"])
def test_a_card_that_says_one_version_and_has_the_form_of_another_is_told_so(version: str) -> None:
    with pytest.raises(CardError, match=f"contradicts itself.* version {version}"):
        read({"url": "http://a", "protocolVersion": version, "preferredTransport": "JSONRPC"})


@pytest.mark.req("CARD-09", "CARD-05")
def test_the_first_interface_that_is_spoken_comes_first_whatever_the_order_of_bindings() -> None:
    found = with_interfaces(
        ("GRPC", "1.0", "host:50051"),
        ("JSONRPC", "0.3", "http://a/old"),
        ("HTTP+JSON", "1.0", "http://a/rest"),
        ("https://custom.example/binding", "1.0", "x:y"),
        ("JSONRPC", "1.0", "http://a/rpc"),
    )

    assert [i.url for i in select_interfaces(found)] == ["host:50051", "http://a/old", "http://a/rest", "http://a/rpc"]
    assert [i.url for i in select_interfaces(found, ["JSONRPC"])] == ["http://a/old", "http://a/rpc"]
    assert [i.url for i in select_interfaces(found, ["JSONRPC"], versions=["1.0"])] == ["http://a/rpc"]


@pytest.mark.req("V03-05", "CARD-09")
@pytest.mark.parametrize("order", [("1.0", "0.3"), ("0.3", "1.0")])
def test_of_one_address_that_speaks_two_versions_the_higher_is_used(order: tuple[str, str]) -> None:
    found = with_interfaces(
        *(("JSONRPC", version, "http://a/rpc") for version in order),
        *(("HTTP+JSON", version, "http://a/rest") for version in order),
    )

    chosen = [(i.protocol_binding, i.protocol_version) for i in select_interfaces(found)]

    assert chosen == [("JSONRPC", "1.0"), ("HTTP+JSON", "1.0")]


@pytest.mark.req("V03-05", "V03-P22")
def test_versions_below_the_present_one_are_taken_as_old_and_later_ones_only_where_nothing_else_is() -> None:
    listed = with_interfaces(("JSONRPC", "1.7", "http://a/7"), ("JSONRPC", "0.2.9", "http://a/2"))
    alone = with_interfaces(("JSONRPC", "1.7", "http://a/7"), ("JSONRPC", "2.0", "http://a/20"))

    assert [i.url for i in select_interfaces(listed)] == ["http://a/2"]
    assert [i.url for i in select_interfaces(alone)] == ["http://a/7"]


@pytest.mark.req("V03-05")
def test_names_of_bindings_are_compared_without_case() -> None:
    found = with_interfaces(("http+json", "0.3", "http://a/"), ("jsonrpc", "1.0", "http://b/"))

    assert [i.protocol_binding for i in select_interfaces(found)] == ["HTTP+JSON", "JSONRPC"]


@pytest.mark.req("VER-03", "AMB-19", "AMB-78")
@pytest.mark.parametrize(
    ("version", "spoken"), [("1.0", 1), ("1.0.7", 1), ("1", 1), ("", 1), ("1.1", 0), ("2.0", 0), ("x", 0)]
)
def test_versions_are_compared_by_major_and_minor(version: str, spoken: int) -> None:
    found = with_interfaces(("JSONRPC", version, "http://a/"), ("HTTP+JSON", "1.0", "http://b/"))

    assert len(select_interfaces(found)) == 1 + spoken


@pytest.mark.req("B145", "VER-11")
def test_a_card_without_a_spoken_interface_says_what_it_offers_and_what_is_spoken() -> None:
    found = with_interfaces(("PIGEON", "1.0", "h:1"), ("JSONRPC", "0.3", "http://a/"))

    with pytest.raises(
        OldCardError,
        match=r"offers PIGEON 1\.0, JSONRPC 0\.3; this client speaks JSONRPC 1\.0, HTTP\+JSON 1\.0, GRPC 1\.0",
    ):
        select_interfaces(found, versions=["1.0"])


@pytest.mark.req("B135")
@pytest.mark.parametrize(
    "end",
    [
        "/.well-known/agent-card.json",
        "/.well-known/agent.json",
        "/v1/card",
        "/message:stream",
        "/message:send",
        "/v1/card/",
    ],
)
def test_an_interface_that_is_the_card_or_one_operation_is_an_error_that_names_the_remedy(end: str) -> None:
    found = with_interfaces(("HTTP+JSON", "1.0", f"http://a{end}"))

    with pytest.raises(CardError, match="interface=AgentInterface"):
        select_interfaces(found)


def test_a_wrong_address_is_passed_over_when_another_interface_is_right() -> None:
    found = with_interfaces(("JSONRPC", "1.0", "/relative"), ("HTTP+JSON", "1.0", "http://a/"))

    assert [i.url for i in select_interfaces(found)] == ["http://a/"]


@pytest.mark.req("B127", "SEC-15")
@pytest.mark.parametrize("url", ["file:///etc/passwd", "http://169.254.169.254/latest", "http://u:p@h/", "relative"])
def test_an_interface_that_leads_astray_is_refused(url: str) -> None:
    with pytest.raises(CardError):
        select_interfaces(with_interfaces(("JSONRPC", "1.0", url)), card_url="https://agent.example/card")


def test_the_entry_itself_is_used_with_its_tenant() -> None:
    value = card("http://a/")
    value["supportedInterfaces"][0]["tenant"] = "t/1"

    assert select_interfaces(read(value)) == [
        AgentInterface(url="http://a/", protocol_binding="JSONRPC", protocol_version="1.0", tenant="t/1")
    ]
