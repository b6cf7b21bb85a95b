"""Metadata of resources and servers: what is believed."""

from __future__ import annotations

import json

import pytest

from dragoman.auth.metadata import (
    MetadataError,
    check_metadata_url,
    read_resource,
    read_server,
    server_urls,
    stands_for,
)

CALLED = "https://a.example/runtimes/arn%3Ax/invocations/?qualifier=DEFAULT"


@pytest.mark.req("AC-C-91")
@pytest.mark.parametrize(
    ("url", "called"),
    [
        ("http://a.example/m", "https://a.example/x"),
        ("http://a.example/m", "http://a.example/x"),
        ("https://b.example/m", "https://a.example/x"),
        ("https://a.example:444/m", "https://a.example/x"),
        ("https://a.example.evil.example/m", "https://a.example/x"),
        ("https://user@a.example/m", "https://a.example/x"),
        ("file:///etc/passwd", "https://a.example/x"),
        ("", "https://a.example/x"),
    ],
)
def test_metadata_elsewhere_is_refused(url: str, called: str) -> None:
    with pytest.raises(MetadataError):
        check_metadata_url(url, called)


@pytest.mark.req("AC-C-91")
@pytest.mark.parametrize(
    ("url", "called"),
    [("https://a.example/m", "https://a.example:443/x"), ("http://127.0.0.1:81/m", "http://127.0.0.1:81/x")],
)
def test_metadata_of_the_same_origin_is_taken(url: str, called: str) -> None:
    check_metadata_url(url, called)


@pytest.mark.req("AC-C-92")
@pytest.mark.parametrize(
    ("resource", "called", "same"),
    [
        ("https://a.example/r", "https://a.example/r", True),
        ("https://a.example/r/", "https://a.example/r", True),
        ("https://a.example/r", "https://a.example/r/", True),
        ("https://A.example:443/r", "https://a.example/r", True),
        ("https://a.example/r?qualifier=DEFAULT", "https://a.example/r/", True),
        ("https://a.example/r", "https://a.example/r?qualifier=DEFAULT", True),
        ("https://a.example/r?qualifier=prod", "https://a.example/r/?qualifier=prod", True),
        ("https://a.example/r?qualifier=prod", "https://a.example/r", False),
        ("https://a.example/r?qualifier=prod", "https://a.example/r?qualifier=dev", False),
        ("https://a.example/r//", "https://a.example/r", False),
        ("https://a.example/R", "https://a.example/r", False),
        ("https://a.example/arn%3Ay", "https://a.example/arn%3Ax", False),
        ("http://a.example/r", "https://a.example/r", False),
        ("https://b.example/r", "https://a.example/r", False),
        ("nonsense", "https://a.example/r", False),
    ],
)
def test_a_resource_stands_for_just_what_was_called(resource: str, called: str, same: bool) -> None:
    assert stands_for(resource, called) is same


@pytest.mark.req("AC-C-92")
def test_metadata_of_another_resource_is_refused() -> None:
    body = json.dumps({"resource": "https://a.example/other", "authorization_servers": ["https://i.example"]})

    with pytest.raises(MetadataError, match="not of"):
        read_resource(body.encode(), "https://a.example/m", CALLED)


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'{"authorization_servers":[]}', b'{"resource":1}'])
def test_what_is_no_metadata_is_refused(body: bytes) -> None:
    with pytest.raises(MetadataError):
        read_resource(body, "https://a.example/m", CALLED)


@pytest.mark.req("AC-C-93")
def test_server_metadata_is_looked_for_at_two_places() -> None:
    assert server_urls("https://i.example/pool-9") == [
        "https://i.example/.well-known/oauth-authorization-server/pool-9",
        "https://i.example/pool-9/.well-known/openid-configuration",
    ]
    assert server_urls("https://i.example/")[0] == "https://i.example/.well-known/oauth-authorization-server"


@pytest.mark.req("AC-C-93")
@pytest.mark.parametrize("issuer", ["http://i.example", "https://i.example?x=1", "ftp://i.example", ""])
def test_an_issuer_is_an_https_address(issuer: str) -> None:
    with pytest.raises(MetadataError):
        server_urls(issuer)


@pytest.mark.req("AC-C-93")
@pytest.mark.parametrize("said", ["https://evil.example", "https://i.example/", "https://i.example/other"])
def test_another_issuer_is_not_believed(said: str) -> None:
    with pytest.raises(MetadataError, match="issuer"):
        read_server(json.dumps({"issuer": said}).encode(), "https://i.example/x", "https://i.example")


def test_a_token_endpoint_without_encryption_is_refused() -> None:
    body = json.dumps({"issuer": "https://i.example", "token_endpoint": "http://i.example/token"})

    with pytest.raises(MetadataError):
        read_server(body.encode(), "https://i.example/x", "https://i.example")
