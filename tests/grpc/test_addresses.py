"""Forms of gRPC addresses."""

from __future__ import annotations

import pytest

from dragoman.bindings.grpc.addresses import format_address, parse_address
from dragoman.client.cards import check_interface
from dragoman.errors import CardError
from dragoman.model import AgentInterface

FORMS = [
    ("agent.example:50051", "agent.example:50051", True),
    ("agent.example", "agent.example:443", True),
    ("https://agent.example", "agent.example:443", True),
    ("HTTPS://Agent.example:8443/", "agent.example:8443", True),
    ("http://agent.example:50051", "agent.example:50051", False),
    ("http://agent.example", "agent.example:80", False),
    ("grpc://agent.example:1", "agent.example:1", False),
    ("grpcs://agent.example", "agent.example:443", True),
    ("127.0.0.1:10000", "127.0.0.1:10000", False),
    ("localhost:10000", "localhost:10000", False),
    ("[::1]:10000", "[::1]:10000", False),
    ("https://localhost:10000", "localhost:10000", True),
    ("[2001:db8::1]:443", "[2001:db8::1]:443", True),
    ("10.0.0.7:50051", "10.0.0.7:50051", True),
]


@pytest.mark.req("AMB-77", "SEC-02")
@pytest.mark.parametrize(("text", "authority", "tls"), FORMS)
def test_both_forms_are_read_and_tls_is_meant_but_on_this_machine(text: str, authority: str, tls: bool) -> None:
    address = parse_address(text)

    assert address.with_tls(None) is tls
    assert address.authority(tls) == authority


@pytest.mark.req("AMB-77")
def test_a_preference_decides_only_where_the_address_does_not_say() -> None:
    assert parse_address("agent.example:1").with_tls(False) is False
    assert parse_address("127.0.0.1:1").with_tls(True) is True
    assert parse_address("https://agent.example").with_tls(False) is True
    assert parse_address("http://agent.example").with_tls(True) is False


WRONG = [
    "",
    ":50051",
    "https://",
    "ftp://agent.example",
    "agent.example:port",
    "agent.example:99999",
    "https://agent.example/a2a",
    "agent.example:443/a2a",
    "https://agent.example?x=1",
    "user:word@agent.example:1",
    "agent example:1",
    "agent.example:1\n",
    "::1:50051",
]


@pytest.mark.req("AMB-77", "CARD-11")
@pytest.mark.parametrize("text", WRONG)
def test_what_is_no_address_is_a_card_error(text: str) -> None:
    with pytest.raises(CardError):
        parse_address(text)
    with pytest.raises(CardError):
        check_interface(AgentInterface(url=text, protocol_binding="GRPC", protocol_version="1.0"))


@pytest.mark.req("SEC-15")
def test_a_link_local_address_is_refused_like_on_http() -> None:
    entry = AgentInterface(url="169.254.169.254:80", protocol_binding="GRPC", protocol_version="1.0")

    with pytest.raises(CardError, match="link-local"):
        check_interface(entry, card_url="https://agent.example/")


@pytest.mark.req("AMB-77", "CARD-06")
@pytest.mark.parametrize(
    ("host", "shown"),
    [("127.0.0.1", "127.0.0.1:5"), ("0.0.0.0", "127.0.0.1:5"), ("::", "[::1]:5"), ("a.example", "a.example:5")],
)
def test_what_is_served_is_written_as_host_and_port(host: str, shown: str) -> None:
    assert format_address(host, 5) == shown
