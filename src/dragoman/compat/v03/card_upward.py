"""A card of 0.3 as one of 1.0. Pure.

Spec: v0.3 §5.2, §7.8, V03-P22, V03-P25, B143.
"""

from __future__ import annotations

from typing import Final

from dragoman.compat.v03 import types as v03
from dragoman.compat.v03.card_fields import FLOWS, SCHEMES, copy_fields
from dragoman.model import (
    AgentCapabilities,
    AgentCard,
    AgentExtension,
    AgentInterface,
    AgentProvider,
    AgentSkill,
    OAuth2SecurityScheme,
    OAuthFlows,
    SecurityRequirement,
    SecurityScheme,
    StringList,
)
from dragoman.protocol.versions import parse_version

VERSION: Final = "0.3"
"""Of an interface, in a card of 1.0."""

_PREFERRED_FLOWS: Final = ("authorization_code", "client_credentials", "implicit", "password")


def up_card(card: v03.AgentCard) -> AgentCard:
    """A card of 0.3 as one of 1.0: the main address first, then the others, each once.

    Of several OAuth flows in one scheme the first of authorizationCode, clientCredentials, implicit and password is
    kept. Signatures are left out.
    """
    return AgentCard(
        name=card.name,
        description=card.description,
        supported_interfaces=_up_interfaces(card),
        provider=copy_fields(AgentProvider, card.provider) if card.provider else None,
        version=card.version,
        documentation_url=card.documentation_url or None,
        capabilities=_up_capabilities(card),
        security_schemes={name: up_scheme(scheme) for name, scheme in card.security_schemes.items()},
        security_requirements=_up_requirements(card.security),
        default_input_modes=card.default_input_modes,
        default_output_modes=card.default_output_modes,
        skills=[_up_skill(skill) for skill in card.skills],
        icon_url=card.icon_url or None,
    )


def _up_interfaces(card: v03.AgentCard) -> list[AgentInterface]:
    pairs = [(card.url, card.preferred_transport or "JSONRPC")] if card.url else []
    pairs += [(entry.url, entry.transport) for entry in card.additional_interfaces]
    version = _major_minor(card.protocol_version)
    return [
        AgentInterface(url=url, protocol_binding=transport, protocol_version=version)
        for url, transport in dict.fromkeys(pairs)
    ]


def _major_minor(version: str) -> str:
    numbers = parse_version(version)
    return f"{numbers[0]}.{numbers[1]}" if numbers else VERSION


def _up_capabilities(card: v03.AgentCard) -> AgentCapabilities:
    capabilities = card.capabilities or v03.AgentCapabilities()
    return AgentCapabilities(
        streaming=capabilities.streaming,
        push_notifications=capabilities.push_notifications,
        extensions=[copy_fields(AgentExtension, extension) for extension in capabilities.extensions],
        extended_agent_card=True if card.supports_authenticated_extended_card else None,
    )


def up_scheme(scheme: v03.SecurityScheme) -> SecurityScheme:
    """A security scheme; one of a kind that is not known is empty."""
    if scheme.oauth2_security_scheme is not None:
        return SecurityScheme(oauth2_security_scheme=_up_oauth2(scheme.oauth2_security_scheme))
    for field, kind in SCHEMES.items():
        held = getattr(scheme, field)
        if held is not None:
            return SecurityScheme(**{field: copy_fields(kind, held)})
    return SecurityScheme()


def _up_oauth2(scheme: v03.OAuth2SecurityScheme) -> OAuth2SecurityScheme:
    flows = scheme.flows or v03.OAuthFlows()
    chosen = next((name for name in _PREFERRED_FLOWS if getattr(flows, name) is not None), None)
    return OAuth2SecurityScheme(
        description=scheme.description,
        flows=OAuthFlows(**{chosen: copy_fields(FLOWS[chosen], getattr(flows, chosen))}) if chosen else OAuthFlows(),
        oauth2_metadata_url=scheme.oauth2_metadata_url,
    )


def _up_requirements(requirements: list[v03.Security]) -> list[SecurityRequirement]:
    return [
        SecurityRequirement(schemes={name: StringList(list=scopes.list) for name, scopes in needed.schemes.items()})
        for needed in requirements
    ]


def _up_skill(skill: v03.AgentSkill) -> AgentSkill:
    found: AgentSkill = copy_fields(AgentSkill, skill)
    found.security_requirements = _up_requirements(skill.security)
    return found
