"""From a security scheme of a card to the authorization server behind it.

Spec: §4.5, AUTH-04; section 12.5 of the register of the command line.
"""

from __future__ import annotations

from typing import Literal, Protocol, runtime_checkable

import msgspec
from msgspec.structs import replace

from dragoman.auth.discovery import TIMEOUT
from dragoman.auth.metadata import MAX_BYTES, AuthorizationServer, MetadataError, check_secure, read_server, server_urls
from dragoman.auth.tokens import TokenError, TokenSource
from dragoman.http.client import HttpClient
from dragoman.http.guard import shown
from dragoman.model import OAuthFlows, SecurityScheme

Flow = Literal["device", "auth-code", "client-credentials"]
"""The grants that are used here. Never ``implicit`` or ``password``."""

FLOWS: dict[Flow, str] = {
    "device": "device_code",
    "auth-code": "authorization_code",
    "client-credentials": "client_credentials",
}
_GRANTS: dict[Flow, str] = {
    "device": "urn:ietf:params:oauth:grant-type:device_code",
    "auth-code": "authorization_code",
    "client-credentials": "client_credentials",
}


class SchemeUse(msgspec.Struct, frozen=True):
    """A scheme of a card, and the scopes that the card's requirement asks of it.

    ``allow_private``: whether the servers that it names may be private addresses (Spec: AMB-71).
    """

    name: str
    scheme: SecurityScheme
    scopes: tuple[str, ...] = ()
    allow_private: bool = True


@runtime_checkable
class SchemeTokenSource(Protocol):
    """A source of tokens that can be told by a card where its authorization server is."""

    def for_scheme(self, use: SchemeUse) -> TokenSource:
        """The source for one scheme. It may be the same one."""
        ...


def takes_tokens(scheme: SecurityScheme) -> bool:
    """Whether a scheme is met by a token of OAuth 2 or OpenID Connect."""
    return scheme.oauth2_security_scheme is not None or scheme.open_id_connect_security_scheme is not None


def flow_server(scheme: SecurityScheme, flow: Flow) -> AuthorizationServer | None:
    """The endpoints that the card itself gives for a flow, None when it gives none."""
    oauth = scheme.oauth2_security_scheme
    found = getattr(oauth.flows, FLOWS[flow]) if oauth is not None else None
    if found is None:
        return None
    return AuthorizationServer(
        issuer="",
        token_endpoint=found.token_url,
        authorization_endpoint=getattr(found, "authorization_url", ""),
        device_authorization_endpoint=getattr(found, "device_authorization_url", ""),
        refresh_endpoint=found.refresh_url,
    )


def offered_flows(scheme: SecurityScheme, server: AuthorizationServer | None = None) -> list[Flow]:
    """The flows that a scheme offers, by the card and the metadata of its server, the most fitting one first."""
    oauth = scheme.oauth2_security_scheme
    flows = oauth.flows if oauth is not None else OAuthFlows()
    return [flow for flow in FLOWS if getattr(flows, FLOWS[flow]) is not None or has_flow(server, flow)]


def has_flow(server: AuthorizationServer | None, flow: Flow) -> bool:
    """Whether the metadata of a server offers a flow."""
    if server is None:
        return False
    if flow == "device":
        return bool(server.device_authorization_endpoint)
    if flow == "auth-code":
        return bool(server.authorization_endpoint)
    return _GRANTS[flow] in server.grant_types_supported


def metadata_url(scheme: SecurityScheme) -> str:
    """Where a scheme says that the metadata of its server is, or empty."""
    if scheme.open_id_connect_security_scheme is not None:
        return scheme.open_id_connect_security_scheme.open_id_connect_url
    oauth = scheme.oauth2_security_scheme
    return oauth.oauth2_metadata_url if oauth is not None else ""


async def fetch_metadata(http: HttpClient, url: str) -> AuthorizationServer:
    """The metadata at an address that a card names. Its issuer must be one whose metadata is there.

    Raises MetadataError, and what HttpClient raises. Spec: RFC 8414 §3.3, OpenID Connect Discovery §4.3.
    """
    check_secure(url)
    headers = {"accept": "application/json"}
    answer = await http.fetch("GET", url, headers=headers, timeout=TIMEOUT, max_bytes=MAX_BYTES)
    if answer.status != 200:
        raise MetadataError(f"No metadata at {shown(url)}: HTTP {answer.status}", url=shown(url))
    issuer = _issuer(answer.body)
    found = read_server(answer.body, url, issuer)
    if url not in server_urls(issuer):
        text = f"The metadata at {shown(url)} is of the issuer {shown(issuer)}, whose metadata is elsewhere"
        raise MetadataError(text, url=shown(url))
    return found


async def find_server(http: HttpClient, use: SchemeUse, flow: Flow) -> AuthorizationServer:
    """The server for one flow of a scheme: what the card gives, the rest by the metadata.

    Raises TokenError when the scheme has no such flow, and like :func:`fetch_metadata`.
    """
    given, place = flow_server(use.scheme, flow), metadata_url(use.scheme)
    known = await fetch_metadata(http, place) if place else None
    if given is None and not has_flow(known, flow) and not (known and flow == "client-credentials"):
        raise TokenError(f"The scheme {use.name} offers no {flow}")
    if given is None or known is None:
        found = given or known
        assert found is not None
        return found
    own = {name: value for name, value in msgspec.structs.asdict(given).items() if value}
    return replace(known, **own)


class _Issuer(msgspec.Struct, frozen=True):
    issuer: str = ""


def _issuer(body: bytes) -> str:
    try:
        return msgspec.json.decode(body, type=_Issuer).issuer
    except (msgspec.DecodeError, RecursionError):
        return ""
