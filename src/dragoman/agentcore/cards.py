"""The card of a hosted agent: only what passes the front, at the address that others use.

Pure: a card is never changed, but a new one made of it.

Spec: AC-S-30 to AC-S-35, AC-S-38.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Sequence

import msgspec

from dragoman.agentcore.address import public_address
from dragoman.errors import ConfigurationError
from dragoman.model import (
    AgentCard,
    AgentInterface,
    HTTPAuthSecurityScheme,
    OpenIdConnectSecurityScheme,
    SecurityRequirement,
    SecurityScheme,
    StringList,
)

logger = logging.getLogger("dragoman.agentcore")

JSONRPC = "JSONRPC"
SIGV4 = "AWS4-HMAC-SHA256"
SCHEME_NAME = "agentcore"


def present_card(
    card: AgentCard,
    *,
    address: str | None,
    own_address: str,
    versions: Sequence[str],
    auth: str | None = None,
) -> AgentCard:
    """A new card for others.

    Its interfaces are the JSON-RPC ones, for each of ``versions``, at ``address``, or where None is known at the
    address that they have, and where they have none at ``own_address``. ``auth``: see :func:`security_of`.
    """
    card = copy.copy(card)
    card.supported_interfaces = _interfaces(card.supported_interfaces, address, own_address, versions)
    if auth is not None:
        card.security_schemes = {**card.security_schemes, SCHEME_NAME: security_of(auth)}
        requirement = SecurityRequirement(schemes={SCHEME_NAME: StringList()})
        card.security_requirements = [*card.security_requirements, requirement]
    return card


def left_out(card: AgentCard) -> list[str]:
    """The bindings of a card that do not pass the front. Spec: AC-S-38."""
    return sorted({entry.protocol_binding for entry in card.supported_interfaces if not _is_rpc(entry)})


def _interfaces(
    given: Sequence[AgentInterface], address: str | None, own_address: str, versions: Sequence[str]
) -> list[AgentInterface]:
    kept = [_at(entry, address or entry.url) for entry in given if _is_rpc(entry)]
    place = kept[0].url if kept else public_address(address or own_address)
    named = {entry.protocol_version for entry in kept}
    more = [version for version in versions if not any(name.startswith(version) for name in named)]
    return kept + [AgentInterface(url=place, protocol_binding=JSONRPC, protocol_version=version) for version in more]


def _is_rpc(entry: AgentInterface) -> bool:
    return entry.protocol_binding.upper() == JSONRPC


def _at(entry: AgentInterface, url: str) -> AgentInterface:
    return msgspec.structs.replace(entry, url=public_address(url))


def security_of(auth: str) -> SecurityScheme:
    """The scheme that ``"sigv4"``, ``"bearer"``, or the OpenID Connect discovery URL of a JWT authorizer stands for.

    Raises ConfigurationError for anything else. Spec: AC-S-35.
    """
    if auth == "sigv4":
        return SecurityScheme(http_auth_security_scheme=HTTPAuthSecurityScheme(scheme=SIGV4))
    if auth == "bearer":
        return SecurityScheme(http_auth_security_scheme=HTTPAuthSecurityScheme(scheme="Bearer", bearer_format="JWT"))
    if auth.startswith(("https://", "http://")):
        return SecurityScheme(open_id_connect_security_scheme=OpenIdConnectSecurityScheme(open_id_connect_url=auth))
    raise ConfigurationError('auth is "sigv4", "bearer", or the OpenID Connect discovery URL of a JWT authorizer')
