"""The JSON that peers of the client tests say, and a client for one of them."""

from __future__ import annotations

from typing import Any

from dragoman.client import Connection, Poll, Reconnect, connect
from tests.http.peer import BOUND, Peer, as_json

CARD_PATH = "/.well-known/agent-card.json"
QUICK = Reconnect(attempts=3, first=0.001, longest=0.01)
QUICK_POLL = Poll(first=0.001, longest=0.01)


def card(url: str, *bindings: str, **more: Any) -> dict[str, Any]:
    """A card with all capabilities, whose interfaces are all at one address."""
    return {
        "name": "Peer",
        "description": "A peer of a test",
        "version": "1",
        "supportedInterfaces": [
            {"url": url, "protocolBinding": binding, "protocolVersion": "1.0"} for binding in bindings or ("JSONRPC",)
        ],
        "capabilities": {"streaming": True, "pushNotifications": True, "extendedAgentCard": True},
        "defaultInputModes": ["text/plain"],
        "defaultOutputModes": ["text/plain"],
        "skills": [],
        **more,
    }


def task(state: str, task_id: str = "t1", **more: Any) -> dict[str, Any]:
    return {"id": task_id, "contextId": "c1", "status": {"state": f"TASK_STATE_{state}"}, **more}


def status(state: str, text: str = "", task_id: str = "t1") -> dict[str, Any]:
    found: dict[str, Any] = {"state": f"TASK_STATE_{state}"}
    if text:
        found["message"] = message(text)
    return {"statusUpdate": {"taskId": task_id, "contextId": "c1", "status": found}}


def artifact(text: str, *, append: bool = False, task_id: str = "t1", artifact_id: str = "a1") -> dict[str, Any]:
    piece = {"artifactId": artifact_id, "parts": [{"text": text}]}
    return {"artifactUpdate": {"taskId": task_id, "contextId": "c1", "artifact": piece, "append": append}}


def message(text: str, **more: Any) -> dict[str, Any]:
    return {"messageId": f"m-{text}", "role": "ROLE_AGENT", "parts": [{"text": text}], **more}


def connect_to(peer: Peer, *bindings: str, **options: Any) -> Connection:
    """A client of a peer, by a card at hand; quick to come back."""
    settings = {"reconnect": QUICK, "poll": QUICK_POLL, "timeout": BOUND, "idle_timeout": BOUND, **options}
    made = settings.pop("card", None) or card(peer.url, *bindings)
    return connect(made, **settings)


def serve_card(peer: Peer, value: dict[str, Any] | None = None, **headers: str) -> Peer:
    """Have a peer show its card at the usual place."""
    return peer.on("GET", CARD_PATH, as_json(value or card(peer.url), **headers))
