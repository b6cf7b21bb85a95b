"""``dragoman card new``: a card to begin with. Spec: CARD-08, DATA-12; section 20.4 of the register."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dragoman.cli.card_files import create_files, pretty
from dragoman.cli.options import Leaf, Run, option
from dragoman.cli.program import run_client
from dragoman.cli.session import Session
from dragoman.cli.text import Record

_URL = "https://agent.example.com"


def _new(run: Run, name: str, description: str, url: str, skill: Sequence[str], out: str | None) -> int:
    card = pretty(make_card(name, description, url.rstrip("/"), skill))

    async def body(session: Session) -> int:
        if out is None:
            session.screen.write(card)
            return 0
        create_files({Path(out): (card.encode(), 0o644)})
        if session.output.json:
            session.output.document({"saved": out})
        else:
            record = Record()
            record.field("Saved", out)
            session.output.record(record)
        return 0

    return run_client(run, body)


def make_card(name: str, description: str, url: str, skills: Sequence[str]) -> dict[str, Any]:
    """A card in which nothing is missing, and in which every reader sees the same."""
    return {
        "name": name,
        "description": description,
        "version": "1.0.0",
        "supportedInterfaces": [
            {"url": url, "protocolBinding": binding, "protocolVersion": "1.0"} for binding in ("JSONRPC", "HTTP+JSON")
        ],
        "capabilities": {"streaming": True, "pushNotifications": False, "extendedAgentCard": False},
        "securitySchemes": {"token": {"httpAuthSecurityScheme": {"scheme": "Bearer", "bearerFormat": "JWT"}}},
        "securityRequirements": [{"schemes": {"token": {"list": ["agent.call"]}}}],
        "defaultInputModes": ["text/plain"],
        "defaultOutputModes": ["text/plain"],
        "skills": [_skill(text) for text in skills or ("chat:Chat",)],
    }


def _skill(text: str) -> dict[str, Any]:
    skill_id, _, name = text.partition(":")
    name = name or skill_id.replace("-", " ").replace("_", " ").capitalize()
    return {
        "id": skill_id,
        "name": name,
        "description": f"{name}: say here what it does",
        "tags": [skill_id],
        "examples": ["An example of what one may ask"],
    }


NEW = Leaf(
    "new",
    _new,
    "Print a card to begin with, in which nothing is missing.",
    [
        option("--name", metavar="TEXT", default="My agent", help="Name of the agent."),
        option("--description", metavar="TEXT", default="Says what it is for", help="What it is for."),
        option("--url", metavar="URL", default=_URL, help="Where it is called."),
        option("--skill", metavar="ID[:NAME]", multiple=True, help="A skill; repeat it for several."),
        option("-O", "--out", metavar="FILE", help="Write it there, where nothing may be yet."),
    ],
    calls_agents=False,
    examples=("dragoman card new --name 'Pricing desk' --skill quote:'Price quotes' -O card.json",),
)
