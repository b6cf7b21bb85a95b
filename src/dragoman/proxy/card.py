"""The card of an agent that is served again. Pure.

It says what the agent says, less what does not come through: the interfaces are ours, a signature of the agent does not
hold for what we say, and a capability is one that the agent has and that is passed on.

Spec: CARD-06, CARD-25, SIGN-01, XCARD-01.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from dragoman.card.build import list_interfaces
from dragoman.model import AgentCapabilities, AgentCard, AgentInterface


class CardChanges(msgspec.Struct, frozen=True, kw_only=True):
    """What the operator of a proxy has changed.

    ``name``, ``description``: instead of the agent's own; ``push``: whether webhooks are passed on.
    """

    name: str | None = None
    description: str | None = None
    push: bool = True


def derive_card(
    card: AgentCard,
    base_url: str,
    more: Sequence[AgentInterface] = (),
    changes: CardChanges | None = None,
    versions: Sequence[str] = ("1.0",),
) -> AgentCard:
    """The card for an agent that is served again at ``base_url`` in ``versions``, and by the interfaces ``more``."""
    changes = changes or CardChanges()
    return replace(
        card,
        name=card.name if changes.name is None else changes.name,
        description=card.description if changes.description is None else changes.description,
        supported_interfaces=list_interfaces(base_url, more=more, versions=versions),
        capabilities=_capabilities(card.capabilities, push=changes.push),
        signatures=[],
    )


def _capabilities(offered: AgentCapabilities, *, push: bool) -> AgentCapabilities:
    return AgentCapabilities(
        streaming=offered.streaming is True,
        push_notifications=offered.push_notifications is True and push,
        extended_agent_card=offered.extended_agent_card is True,
        extensions=list(offered.extensions),
    )
