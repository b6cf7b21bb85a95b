"""Several agents in one process: ``dragoman run billing:agent travel:agent``.

Spec: TEN-03 to TEN-05.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import click

from dragoman.cli.failures import UsageError
from dragoman.cli.loading import load
from dragoman.cli.options import option
from dragoman.cli.protecting import read_security
from dragoman.server import Agent, AgentGroup

BY = option(
    "--by",
    metavar="HOW",
    type=click.Choice(("path", "tenant")),
    default="path",
    help="How several agents are told apart: path or tenant.",
)
MORE = click.Argument(["more"], metavar="[NAME=]MODULE:AGENT…", nargs=-1, required=False)


def load_several(targets: Sequence[str]) -> dict[str, Agent]:
    """Agents by the names in their addresses: what is said before ``=``, else made of what the agent is called.

    Raises UsageError for two of one name, and for what is no Agent; ConfigurationError for what is not there.
    """
    found: dict[str, Agent] = {}
    for target in targets:
        given, _, place = target.rpartition("=")
        agent = load(place)
        if not isinstance(agent, Agent):
            raise UsageError(f"{place} is {type(agent).__name__}; of several, each has to be an Agent")
        name = given or re.sub(r"[^a-z0-9]+", "-", agent.name.lower()).strip("-")
        if name in found:
            raise UsageError(f"two agents would be called {name!r}; say NAME={place}")
        found[name] = agent
    return found


def make_group(
    agents: Mapping[str, Agent], beside: Mapping[str, Any], by: str, settings: Mapping[str, Any]
) -> AgentGroup:
    """The agents as one application, protected as the options say. Raises UsageError, ConfigurationError."""
    demands = [read_security(beside, agent) for agent in agents.values()]
    return AgentGroup(agents, by="tenant" if by == "tenant" else "path", security=demands[0], **settings)


def announce_several(group: AgentGroup, address: str) -> None:
    """Say where the card of each agent is."""
    base = address.rstrip("/")
    for name, app in group.items():
        card = app.card(f"{base}/{name}")
        bindings = ", ".join(dict.fromkeys(entry.protocol_binding for entry in card.supported_interfaces))
        versions = " and ".join(dict.fromkeys(entry.protocol_version for entry in card.supported_interfaces))
        print(f"{card.name} {card.version} serves A2A {versions} over {bindings}")
        print(f"  card   {base}/{name}/.well-known/agent-card.json")
        print(f"  url    {card.supported_interfaces[0].url}")
