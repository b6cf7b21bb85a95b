"""A card from what an agent says and what its server really serves.

Spec: CARD-04 to CARD-08, CARD-25, DATA-12, DATA-14, AMB-41, AMB-42, AMB-73.
"""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlsplit

import msgspec

from dragoman.card.faults import HTTP_BINDINGS, find_faults
from dragoman.card.signing import CardSigner
from dragoman.errors import ConfigurationError
from dragoman.model import (
    AgentCapabilities,
    AgentCard,
    AgentExtension,
    AgentInterface,
    AgentProvider,
    AgentSkill,
    SecurityRequirement,
    SecurityScheme,
)


class CardFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent says of itself; the addresses come from the server. ``signers`` sign the card."""

    name: str
    description: str
    version: str
    skills: tuple[AgentSkill, ...]
    input_modes: tuple[str, ...] = ("text/plain",)
    output_modes: tuple[str, ...] = ("text/plain",)
    streaming: bool = True
    push: bool = False
    extended_card: bool = False
    extensions: tuple[AgentExtension, ...] = ()
    provider: AgentProvider | None = None
    documentation_url: str | None = None
    icon_url: str | None = None
    security_schemes: dict[str, SecurityScheme] = {}
    security_requirements: tuple[SecurityRequirement, ...] = ()
    signers: tuple[CardSigner, ...] = ()


def capabilities_of(facts: CardFacts) -> AgentCapabilities:
    """The capabilities that the card declares; each is stated, true or false. Spec: CARD-25."""
    return AgentCapabilities(
        streaming=facts.streaming,
        push_notifications=facts.push,
        extended_agent_card=facts.extended_card,
        extensions=list(facts.extensions),
    )


def build_card(
    facts: CardFacts,
    base_url: str,
    bindings: Sequence[str] = HTTP_BINDINGS,
    more: Sequence[AgentInterface] = (),
    versions: Sequence[str] = ("1.0",),
) -> AgentCard:
    """A new card whose interfaces are the given bindings at ``base_url``, in order of preference, and ``more``.

    Those of the first of ``versions`` come first.
    """
    return AgentCard(
        name=facts.name,
        description=facts.description,
        version=facts.version,
        supported_interfaces=list_interfaces(base_url, bindings, more, versions),
        capabilities=capabilities_of(facts),
        security_schemes=dict(facts.security_schemes),
        security_requirements=list(facts.security_requirements),
        default_input_modes=list(facts.input_modes),
        default_output_modes=list(facts.output_modes),
        skills=list(facts.skills),
        provider=facts.provider,
        documentation_url=facts.documentation_url,
        icon_url=facts.icon_url,
    )


def list_interfaces(
    base_url: str,
    bindings: Sequence[str] = HTTP_BINDINGS,
    more: Sequence[AgentInterface] = (),
    versions: Sequence[str] = ("1.0",),
) -> list[AgentInterface]:
    """The entries of a card: the bindings at ``base_url`` in each version and ``more``, ordered by version."""
    entries = [entry for version in versions for entry in interfaces_at(base_url, bindings, version)] + list(more)
    order = {version: number for number, version in enumerate(versions)}
    return sorted(entries, key=lambda entry: order.get(entry.protocol_version, len(order)))


def interfaces_at(base_url: str, bindings: Sequence[str] = HTTP_BINDINGS, version: str = "1.0") -> list[AgentInterface]:
    """The entries of a card for bindings that are served at one address.

    JSON-RPC posts to the very address in the card: below a path it ends with a slash, since frameworks answer the bare
    path of a mount with a redirect, which no client follows with a POST.
    """
    return [
        AgentInterface(url=_address(base_url, binding), protocol_binding=binding, protocol_version=version)
        for binding in bindings
    ]


def _address(base_url: str, binding: str) -> str:
    base = base_url.rstrip("/")
    return f"{base}/" if binding == "JSONRPC" and urlsplit(base).path else base


def check_card(card: AgentCard, *, offered: AgentCapabilities | None = None) -> None:
    """Raise ConfigurationError that names the first field which is missing or wrong. Spec: CARD-08, CARD-25, DATA-12.

    ``offered`` is what the server does: a card that declares more is wrong.
    """
    for fault in find_faults(card):
        raise ConfigurationError(fault.text)
    for name in ("streaming", "push_notifications", "extended_agent_card"):
        if offered is not None and getattr(card.capabilities, name) and not getattr(offered, name):
            field = f"capabilities.{_CAPABILITIES[name]}"
            raise ConfigurationError(f"{field} of the agent card is true, but the server does not offer it")


_CAPABILITIES = {
    "streaming": "streaming",
    "push_notifications": "pushNotifications",
    "extended_agent_card": "extendedAgentCard",
}
