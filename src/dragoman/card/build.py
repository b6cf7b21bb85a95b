"""A card from what an agent says and what its server really serves.

Spec: CARD-04 to CARD-08, CARD-25, DATA-12, DATA-14, AMB-41, AMB-42, AMB-73.
"""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlsplit

import msgspec

from dragoman.errors import ConfigurationError
from dragoman.model import (
    AgentCapabilities,
    AgentCard,
    AgentExtension,
    AgentInterface,
    AgentProvider,
    AgentSkill,
)

HTTP_BINDINGS = ("JSONRPC", "HTTP+JSON")


class CardFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent says of itself; the addresses come from the server."""

    name: str
    description: str
    version: str
    skills: tuple[AgentSkill, ...]
    input_modes: tuple[str, ...] = ("text/plain",)
    output_modes: tuple[str, ...] = ("text/plain",)
    streaming: bool = True
    extensions: tuple[AgentExtension, ...] = ()
    provider: AgentProvider | None = None
    documentation_url: str | None = None
    icon_url: str | None = None


def capabilities_of(facts: CardFacts) -> AgentCapabilities:
    """The capabilities that the card declares; each is stated, true or false. Spec: CARD-25."""
    return AgentCapabilities(
        streaming=facts.streaming,
        push_notifications=False,
        extended_agent_card=False,
        extensions=list(facts.extensions),
    )


def build_card(
    facts: CardFacts, base_url: str, bindings: Sequence[str] = HTTP_BINDINGS, more: Sequence[AgentInterface] = ()
) -> AgentCard:
    """A new card whose interfaces are the given bindings at ``base_url``, in order of preference, and then ``more``."""
    return AgentCard(
        name=facts.name,
        description=facts.description,
        version=facts.version,
        supported_interfaces=[*interfaces_at(base_url, bindings), *more],
        capabilities=capabilities_of(facts),
        default_input_modes=list(facts.input_modes),
        default_output_modes=list(facts.output_modes),
        skills=list(facts.skills),
        provider=facts.provider,
        documentation_url=facts.documentation_url,
        icon_url=facts.icon_url,
    )


def interfaces_at(base_url: str, bindings: Sequence[str] = HTTP_BINDINGS) -> list[AgentInterface]:
    """The entries of a card for bindings that are served at one address.

    JSON-RPC posts to the very address in the card: below a path it ends with a slash, since frameworks answer the bare
    path of a mount with a redirect, which no client follows with a POST.
    """
    return [
        AgentInterface(url=_address(base_url, binding), protocol_binding=binding, protocol_version="1.0")
        for binding in bindings
    ]


def _address(base_url: str, binding: str) -> str:
    base = base_url.rstrip("/")
    return f"{base}/" if binding == "JSONRPC" and urlsplit(base).path else base


def check_card(card: AgentCard) -> None:
    """Raise ConfigurationError that names the first field which is missing or wrong. Spec: CARD-08, DATA-12."""
    for field, value in _required(card):
        if not value:
            raise ConfigurationError(f"the agent card lacks {field}")
    for number, interface in enumerate(card.supported_interfaces):
        _check_interface(f"supportedInterfaces[{number}]", interface)
    _check_modes("defaultInputModes", card.default_input_modes)
    _check_modes("defaultOutputModes", card.default_output_modes)
    for number, skill in enumerate(card.skills):
        _check_skill(f"skills[{number}]", skill)
    _check_skill_ids(card.skills)


def _required(card: AgentCard) -> list[tuple[str, object]]:
    return [
        ("name", card.name),
        ("description", card.description),
        ("version", card.version),
        ("supportedInterfaces", card.supported_interfaces),
        ("defaultInputModes", card.default_input_modes),
        ("defaultOutputModes", card.default_output_modes),
        ("skills", card.skills),
    ]


def _check_interface(path: str, interface: AgentInterface) -> None:
    if not interface.protocol_binding or not interface.protocol_version:
        raise ConfigurationError(f"the agent card lacks {path}.protocolBinding or .protocolVersion")
    parts = urlsplit(interface.url)
    if interface.protocol_binding in HTTP_BINDINGS and (parts.scheme not in ("http", "https") or not parts.netloc):
        raise ConfigurationError(f"{path}.url of the agent card must be an absolute http or https URL")
    if parts.path.endswith(("/.well-known/agent-card.json", "/message:send", "/message:stream")):
        raise ConfigurationError(f"{path}.url of the agent card must be the interface's base, not one of its paths")


def _check_modes(path: str, modes: Sequence[str]) -> None:
    for mode in modes:
        kind, slash, subtype = mode.partition("/")
        if not (kind and slash and subtype):
            raise ConfigurationError(f"{path} of the agent card holds {mode!r}, which is no media type")


def _check_skill(path: str, skill: AgentSkill) -> None:
    for field in ("id", "name", "description", "tags"):
        if not getattr(skill, field):
            raise ConfigurationError(f"the agent card lacks {path}.{field}")
    _check_modes(f"{path}.inputModes", skill.input_modes)
    _check_modes(f"{path}.outputModes", skill.output_modes)


def _check_skill_ids(skills: Sequence[AgentSkill]) -> None:
    ids = [skill.id for skill in skills]
    for skill_id in ids:
        if ids.count(skill_id) > 1:
            raise ConfigurationError(f"the agent card has several skills with the id {skill_id!r}")
