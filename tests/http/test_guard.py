"""The guard of outbound addresses."""

from __future__ import annotations

from ipaddress import ip_address

import pytest

from dragoman.errors import OutboundUrlError
from dragoman.http.guard import is_public, parse_target, shown, vet


def resolving(*addresses: str):
    async def resolve(host: str, port: int) -> list[str]:
        return list(addresses)

    return resolve


@pytest.mark.req("B127", "AMB-71")
@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "htp://x",
        "ftp://x/",
        "gopher://x/",
        "//x/y",
        "x",
        "",
        "http://",
        "http:///path",
        "http://user:secret@x/",
        "http://x:70000/",
        "http://[::1/",
        "http://x/\nHost: y",
        "http://x\\@y/",
        "javascript:alert(1)",
        "http://x/\udcff",
        "http://①②⑦.⓪.⓪.①/",
        "http://a\u200bb.example/",
    ],
)
def test_what_is_no_plain_http_address_is_refused(url: str) -> None:
    with pytest.raises(OutboundUrlError) as caught:
        parse_target(url)

    assert "secret" not in str(caught.value)


def test_an_address_is_split_into_its_parts() -> None:
    target = parse_target("HTTPS://Example.COM.:8443/a?b=c")

    assert (target.origin, target.path, target.query) == (("https", "example.com", 8443), "/a", "b=c")
    assert (target.authority, parse_target("http://[::1]:80/").authority) == ("example.com:8443", "[::1]")


@pytest.mark.req("AMB-71")
def test_a_host_of_other_letters_is_the_name_that_servers_know() -> None:
    target = parse_target("https://Bücher。example/ä")

    assert (target.host, target.authority, target.path) == ("xn--bcher-kva.example", "xn--bcher-kva.example", "/ä")


def test_shown_addresses_hold_no_secrets_and_no_control_characters() -> None:
    assert shown("https://user:pw@h/p?token=1#f") == "https://h/p"
    assert "\n" not in shown("http://h/\nx")
    assert len(shown("http://h/" + "x" * 1000)) < 210


@pytest.mark.req("PUSH-08", "AMB-71")
@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "10.1.2.3",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "0.0.0.0",
        "100.64.0.1",
        "224.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "fc00::1",
        "fd00:ec2::254",
        "fe80::1",
        "fec0::1",
        "ff02::1",
        "::ffff:127.0.0.1",
        "::ffff:169.254.169.254",
        "64:ff9b::a00:1",
        "2002:7f00:1::",
    ],
)
def test_addresses_inside_are_not_public(address: str) -> None:
    assert not is_public(ip_address(address))


@pytest.mark.parametrize("address", ["8.8.8.8", "172.32.0.1", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"])
def test_addresses_outside_are_public(address: str) -> None:
    assert is_public(ip_address(address))


@pytest.mark.req("SEC-15", "AMB-71")
@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "127.1",
        "0x7f.1",
        "2130706433",
        "017700000001",
        "[::1]",
        "[::ffff:7f00:1]",
        "localhost",
        "a.localhost",
        "LOCALHOST.",
        "127。0。0。1",
    ],
)
async def test_every_spelling_of_this_machine_is_refused(host: str) -> None:
    with pytest.raises(OutboundUrlError):
        await vet(f"http://{host}/", resolving("8.8.8.8"))


@pytest.mark.req("AMB-71")
async def test_a_name_with_one_private_address_among_public_ones_is_refused() -> None:
    with pytest.raises(OutboundUrlError):
        await vet("https://rebind.example/", resolving("8.8.8.8", "10.0.0.1"))


async def test_a_public_name_is_let_through_with_the_address_to_connect_to() -> None:
    target, address = await vet("https://good.example/x", resolving("8.8.8.8", "8.8.4.4"))

    assert (target.host, str(address)) == ("good.example", "8.8.8.8")
