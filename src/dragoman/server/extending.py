"""From the extensions that an author gives to what an app needs of them.

Spec: EXT-01, EXT-13, EXT-17.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dragoman.bindings.jsonrpc import is_old_name
from dragoman.card import CardFacts
from dragoman.errors import ConfigurationError
from dragoman.extensions import ResumableStreams, ServerExtension, ServerExtensions
from dragoman.model import AgentExtension, Operation
from dragoman.protocol.extensions import RESUMABLE_STREAMS

Given = str | AgentExtension | ServerExtension


def declaration_of(given: Given) -> AgentExtension:
    """The entry on the card."""
    if isinstance(given, ServerExtension):
        return given.declaration()
    if isinstance(given, AgentExtension):
        return given
    description = ResumableStreams.description if given == RESUMABLE_STREAMS else ""
    return AgentExtension(uri=given, description=description)


def with_code(given: Sequence[Given]) -> tuple[ServerExtension, ...]:
    """Those that are more than a name."""
    return tuple(extension for extension in given if isinstance(extension, ServerExtension))


def extensions_of(agent: Any, facts: CardFacts) -> ServerExtensions:
    """The extensions of an agent. Raises ConfigurationError for what they cannot be."""
    given: Sequence[ServerExtension] = getattr(agent, "extensions", ())
    found = ServerExtensions(given, [extension.uri for extension in facts.extensions], facts.name)
    for method in found.methods:
        if is_old_name(method.op.name):
            raise ConfigurationError(f"extensions: {method.op.name} is a method of version 0.3")
    return found


def methods_by_name(extensions: ServerExtensions) -> Mapping[str, Operation]:
    """The operations that they add, as the bindings look for them."""
    return {method.op.name: method.op for method in extensions.methods}
