"""A card of 1.0 as one of 0.3. Pure.

Spec: v0.3 §5.2, §7.8, V03-P12, V03-P14, V03-P25, B141.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from dragoman.compat.v03 import types as v03
from dragoman.compat.v03.card_fields import FLOWS, SCHEMES, copy_fields
from dragoman.model import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    OAuthFlows,
    SecurityRequirement,
    SecurityScheme,
)
from dragoman.protocol.versions import parse_version

CARD_VERSION: Final = "0.3.0"
"""Of a whole card, in one of 0.3."""

_MISLEADING: Final = "schemes"
"""A scheme of this name makes one SDK take a card for one in the JSON of the proto. Spec: v0.3 §8.2."""


def speaks_03(interface: AgentInterface) -> bool:
    """Whether an interface is one of 0.3: its version is below 1.0. Spec: v0.3 §8.4, V03-P22."""
    version = parse_version(interface.protocol_version)
    return version is not None and version < (1, 0)


def down_card(card: AgentCard) -> v03.AgentCard | None:
    """A card of 1.0 as one of 0.3; None when it names no interface that speaks 0.3. Spec: B141, V03-P12, V03-P14.

    It names the interfaces of 0.3 only, the first as the main one. What 0.3 cannot say is left out: signatures,
    tenants, schemes that have nothing but a device code flow or are called ``schemes``, with all requirements that name
    them.
    """
    entries = [entry for entry in card.supported_interfaces if speaks_03(entry)]
    if not entries:
        return None
    schemes = {name: down_scheme(scheme) for name, scheme in card.security_schemes.items() if name != _MISLEADING}
    told = {name: scheme for name, scheme in schemes.items() if scheme is not None}
    hidden = {*card.security_schemes, _MISLEADING} - told.keys()
    return v03.AgentCard(
        name=card.name,
        description=card.description,
        url=entries[0].url,
        provider=copy_fields(v03.AgentProvider, card.provider) if card.provider else None,
        version=card.version,
        documentation_url=card.documentation_url or "",
        capabilities=_down_capabilities(card.capabilities),
        security_schemes=told,
        security=_down_requirements(card.security_requirements, hidden),
        default_input_modes=card.default_input_modes,
        default_output_modes=card.default_output_modes,
        skills=[_down_skill(skill, hidden) for skill in card.skills],
        supports_authenticated_extended_card=bool(card.capabilities.extended_agent_card),
        preferred_transport=entries[0].protocol_binding,
        additional_interfaces=_down_interfaces(entries),
        protocol_version=CARD_VERSION,
        icon_url=card.icon_url or "",
    )


def _down_interfaces(entries: Iterable[AgentInterface]) -> list[v03.AgentInterface]:
    pairs = dict.fromkeys((entry.url, entry.protocol_binding) for entry in entries)
    return [v03.AgentInterface(url=url, transport=transport) for url, transport in pairs]


def _down_capabilities(capabilities: AgentCapabilities) -> v03.AgentCapabilities:
    return v03.AgentCapabilities(
        streaming=capabilities.streaming,
        push_notifications=capabilities.push_notifications,
        extensions=[copy_fields(v03.AgentExtension, extension) for extension in capabilities.extensions],
    )


def down_scheme(scheme: SecurityScheme) -> v03.SecurityScheme | None:
    """The scheme, None when 0.3 cannot say it."""
    oauth2 = scheme.oauth2_security_scheme
    if oauth2 is not None:
        flows = _down_flows(oauth2.flows)
        made = v03.OAuth2SecurityScheme(
            description=oauth2.description, flows=flows, oauth2_metadata_url=oauth2.oauth2_metadata_url
        )
        return None if flows == v03.OAuthFlows() else v03.SecurityScheme(oauth2_security_scheme=made)
    for field in SCHEMES:
        held = getattr(scheme, field)
        if held is not None:
            return v03.SecurityScheme(**{field: copy_fields(getattr(v03, type(held).__name__), held)})
    return None


def _down_flows(flows: OAuthFlows) -> v03.OAuthFlows:
    held = {name: getattr(flows, name) for name in FLOWS}
    return v03.OAuthFlows(
        **{
            name: copy_fields(getattr(v03, type(flow).__name__), flow)
            for name, flow in held.items()
            if flow is not None
        }
    )


def _down_requirements(requirements: list[SecurityRequirement], hidden: set[str]) -> list[v03.Security]:
    return [
        v03.Security(schemes={name: v03.StringList(list=scopes.list) for name, scopes in needed.schemes.items()})
        for needed in requirements
        if not needed.schemes.keys() & hidden
    ]


def _down_skill(skill: AgentSkill, hidden: set[str]) -> v03.AgentSkill:
    found: v03.AgentSkill = copy_fields(v03.AgentSkill, skill)
    found.security = _down_requirements(skill.security_requirements, hidden)
    return found
