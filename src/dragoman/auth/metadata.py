"""Metadata of protected resources and of authorization servers: where it may be, and what it has to say. Pure.

A document that another party could have put in the way is worth nothing: the metadata of a resource is taken from the
resource's own origin, and must name the resource that was called; that of an authorization server must name the issuer
that it was asked for.

Spec: RFC 9728 §3, RFC 8414 §3, OpenID Connect Discovery §4, AC-C-91 to AC-C-93.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar
from urllib.parse import parse_qsl, urlsplit

import msgspec
from msgspec.structs import replace

from dragoman.errors import ClientError, OutboundUrlError
from dragoman.http.guard import is_loopback_host, parse_target, shown

T = TypeVar("T")

MAX_BYTES = 64 * 1024
"""How large a document of metadata may be."""


class MetadataError(ClientError):
    """A document of metadata is missing, is not what it should be, or must not be fetched."""


class ProtectedResource(msgspec.Struct, frozen=True, kw_only=True):
    """Metadata of a protected resource (RFC 9728), as far as it matters here."""

    resource: str
    authorization_servers: tuple[str, ...] = ()
    scopes_supported: tuple[str, ...] = ()


class AuthorizationServer(msgspec.Struct, frozen=True, kw_only=True):
    """Metadata of an authorization server (RFC 8414), as far as it matters here.

    ``refresh_endpoint`` is where tokens are refreshed, if that is another place; only cards of agents know one.
    """

    issuer: str
    token_endpoint: str = ""
    authorization_endpoint: str = ""
    device_authorization_endpoint: str = ""
    refresh_endpoint: str = ""
    jwks_uri: str = ""
    scopes_supported: tuple[str, ...] = ()
    grant_types_supported: tuple[str, ...] = ()
    token_endpoint_auth_methods_supported: tuple[str, ...] = ()


def check_secure(url: str) -> None:
    """Refuse an address to which no credential and no question about one may go: https only, http on this machine.

    Raises MetadataError.
    """
    try:
        target = parse_target(url)
    except OutboundUrlError as error:
        raise MetadataError(str(error), url=shown(url)) from None
    if target.scheme != "https" and not is_loopback_host(target.host):
        raise MetadataError(f"{shown(url)} is refused: it is not https", url=shown(url))


def check_metadata_url(url: str, called: str) -> None:
    """Refuse an address of resource metadata that is not https, or of another origin than what was ``called``.

    Raises MetadataError. Spec: AC-C-91.
    """
    check_secure(url)
    if parse_target(url).origin != parse_target(called).origin:
        text = f"The challenge of {shown(called)} points to {shown(url)}, which is another origin"
        raise MetadataError(text, url=shown(url))


def read_resource(body: bytes, url: str, *called: str) -> ProtectedResource:
    """The metadata at ``url`` of the resource that was ``called``, by one of its addresses.

    Raises MetadataError. Spec: AC-C-92.
    """
    found = _decode(body, ProtectedResource, url)
    if not any(stands_for(found.resource, address) for address in called):
        text = f"The metadata at {shown(url)} is that of {shown(found.resource)}, not of {shown(called[0])}"
        raise MetadataError(text, url=shown(url))
    return found


def stands_for(resource: str, called: str) -> bool:
    """Whether a resource's identifier means the address called: the same but for one trailing slash, and for a
    qualifier that is the default one."""
    try:
        return _identity(resource) == _identity(called)
    except OutboundUrlError:
        return False


def _identity(url: str) -> tuple[object, ...]:
    target = parse_target(url)
    query = sorted(pair for pair in parse_qsl(target.query, keep_blank_values=True) if pair != _DEFAULT_QUALIFIER)
    return (*target.origin, target.path.removesuffix("/"), *query)


_DEFAULT_QUALIFIER = ("qualifier", "DEFAULT")


def server_urls(issuer: str) -> list[str]:
    """Where the metadata of an authorization server may be, in order. Raises MetadataError. Spec: AC-C-93."""
    check_secure(issuer)
    parts = urlsplit(issuer)
    if parts.query or parts.fragment:
        raise MetadataError(f"The issuer {shown(issuer)} has a query or a fragment", url=shown(issuer))
    origin, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
    return [
        f"{origin}/.well-known/oauth-authorization-server{path}",
        f"{origin}{path}/.well-known/openid-configuration",
    ]


def read_server(body: bytes, url: str, issuer: str) -> AuthorizationServer:
    """The metadata at ``url`` of an issuer. Raises MetadataError."""
    found = _decode(body, AuthorizationServer, url)
    if found.issuer != issuer:
        text = f"The metadata at {shown(url)} is of the issuer {shown(found.issuer)}, not of {shown(issuer)}"
        raise MetadataError(text, url=shown(url))
    if found.token_endpoint:
        check_secure(found.token_endpoint)
    return found if not found.refresh_endpoint else replace(found, refresh_endpoint="")


def _decode(body: bytes, kind: type[T], url: str) -> T:
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.DecodeError, RecursionError):
        raise MetadataError(f"What is at {shown(url)} is no such metadata", url=shown(url)) from None


class Discovery(msgspec.Struct, frozen=True, kw_only=True):
    """What a refused request and the metadata behind it told of the way to a token.

    * ``resource``: the identifier of what was called, empty when it is not known;
    * ``metadata_url``: where its metadata was looked for, or empty;
    * ``issuers``: the authorization servers that it names; ``servers``: the metadata of those that showed some;
    * ``scopes``: to ask for; ``error``, ``error_description``: what the challenge said;
    * ``problem``: why there is no more than this, or empty.
    """

    resource: str = ""
    metadata_url: str = ""
    issuers: Sequence[str] = ()
    servers: Sequence[AuthorizationServer] = ()
    scopes: Sequence[str] = ()
    error: str = ""
    error_description: str = ""
    problem: str = ""
