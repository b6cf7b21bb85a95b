"""What agents of version 0.3 say, in the JSON of the SDKs that speak it, and a client for one of them."""

from __future__ import annotations

import json
from typing import Any

from dragoman.client import Connection, connect
from tests.client.words import QUICK, QUICK_POLL
from tests.http.peer import BOUND, Answer, Peer, Received, as_json, head

RPC, REST = "JSONRPC", "HTTP+JSON"
CARD_PATH = "/.well-known/agent-card.json"
OLD_CARD_PATH = "/.well-known/agent.json"


def old_card(url: str, transport: str = RPC, **more: Any) -> dict[str, Any]:
    """A card of 0.3 with all capabilities."""
    return {
        "protocolVersion": "0.3.0",
        "name": "Elder",
        "description": "An agent of a test",
        "version": "1",
        "url": url,
        "preferredTransport": transport,
        "capabilities": {"streaming": True, "pushNotifications": True},
        "supportsAuthenticatedExtendedCard": True,
        "defaultInputModes": ["text/plain"],
        "defaultOutputModes": ["text/plain"],
        "skills": [],
        **more,
    }


def connect_to(peer: Peer, transport: str = RPC, **options: Any) -> Connection:
    """A client of a peer, by an old card at hand; quick to come back."""
    settings = {"reconnect": QUICK, "poll": QUICK_POLL, "timeout": BOUND, "idle_timeout": BOUND, **options}
    return connect(settings.pop("card", None) or old_card(peer.url, transport), **settings)


# The JSON of JSON-RPC.


def task(state: str, task_id: str = "t1", **more: Any) -> dict[str, Any]:
    return {"kind": "task", "id": task_id, "contextId": "c1", "status": {"state": state}, **more}


def message(text: str, **more: Any) -> dict[str, Any]:
    parts = [{"kind": "text", "text": text}]
    return {"kind": "message", "messageId": f"m-{text}", "role": "agent", "parts": parts, **more}


def status(state: str, *, final: bool = False, text: str = "", task_id: str = "t1") -> dict[str, Any]:
    found = {"state": state, **({"message": message(text)} if text else {})}
    return {"kind": "status-update", "taskId": task_id, "contextId": "c1", "status": found, "final": final}


def artifact(text: str, *, append: bool = False, artifact_id: str = "a1") -> dict[str, Any]:
    piece = {"artifactId": artifact_id, "parts": [{"kind": "text", "text": text}]}
    return {"kind": "artifact-update", "taskId": "t1", "contextId": "c1", "artifact": piece, "append": append}


# The same as the ProtoJSON of HTTP+JSON.


def proto(event: dict[str, Any]) -> dict[str, Any]:
    """An event in dialect A."""
    names = {"task": "task", "message": "message", "status-update": "statusUpdate", "artifact-update": "artifactUpdate"}
    return {names[event["kind"]]: _proto(event)}


def _proto(value: Any) -> Any:
    if isinstance(value, list):
        return [_proto(item) for item in value]
    if not isinstance(value, dict):
        return value
    kind = value.get("kind")
    found = {name: _proto(item) for name, item in value.items() if name != "kind" and item is not False}
    if kind == "message":
        found["content"] = found.pop("parts")
        found["role"] = f"ROLE_{value['role'].upper()}"
    if kind == "data":
        found["data"] = {"data": value["data"]}
    if "state" in found:
        found["state"] = {"canceled": "TASK_STATE_CANCELLED"}.get(
            value["state"], f"TASK_STATE_{value['state'].upper().replace('-', '_')}"
        )
    return found


# Answers.


def rpc_error(code: int, text: str, *, with_id: bool = True, status: int = 200, data: Any = None) -> Answer:
    """A JSON-RPC error."""

    async def answer(request: Received, writer: Any) -> None:
        body: dict[str, Any] = {"jsonrpc": "2.0", "error": {"code": code, "message": text}}
        if data is not None:
            body["error"]["data"] = data
        if with_id:
            body["id"] = request.json["id"]
        await as_json(body, status)(request, writer)

    return answer


def events(*found: dict[str, Any] | bytes, stay: bool = False, pretty: bool = False) -> Answer:
    """A stream of these events, in the JSON of the binding that was asked by; bytes go as they are.

    ``stay`` leaves the connection open at the end, ``pretty`` spreads the JSON over many data lines.
    """

    async def answer(request: Received, writer: Any) -> None:
        writer.write(head(200, {"content-type": "text/event-stream", "connection": "close"}))
        for event in found:
            writer.write(event if isinstance(event, bytes) else _framed(_in_words_of(request, event), pretty=pretty))
            await writer.drain()
        if stay:
            await request.hang_up()
        writer.close()

    return answer


def _in_words_of(request: Received, event: dict[str, Any]) -> dict[str, Any]:
    if request.target.startswith("/v1/"):
        return proto(event) if "kind" in event else event
    outcome = {"result": event} if "kind" in event or "error" not in event else event
    return {"jsonrpc": "2.0", "id": request.json["id"], **outcome}


def _framed(value: dict[str, Any], *, pretty: bool) -> bytes:
    lines = json.dumps(value, indent=2 if pretty else None).splitlines()
    return b"".join(b"data: " + line.encode() + b"\r\n" for line in lines) + b"\r\n"
