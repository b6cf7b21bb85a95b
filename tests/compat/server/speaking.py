"""Raw requests of 0.3 to a served agent, written by hand, and what every answer to them has to look like."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from dragoman.cli.echo import make_echo
from tests.conformance.wire import Events, Told, Wire, served

ECHO = make_echo()
NO_HEADERS: Mapping[str, str] = {}


def told(text: str = "hello", **more: Any) -> dict[str, Any]:
    """MessageSendParams in kind-JSON; ``more`` are members of its message."""
    parts = [{"kind": "text", "text": text}]
    return {"message": {"kind": "message", "messageId": "m-1", "role": "user", "parts": parts, **more}}


def told_in_proto(text: str = "hello", **more: Any) -> dict[str, Any]:
    """A SendMessageRequest in the JSON of the protobuf messages."""
    return {"message": {"messageId": "m-1", "role": "ROLE_USER", "content": [{"text": text}], **more}}


def envelope(method: str, params: Any = None, id: Any = 1) -> bytes:
    """The text of a request object."""
    value = {"jsonrpc": "2.0", "id": id, "method": method}
    return json.dumps(value if params is None else {**value, "params": params}).encode()


class Old:
    """A caller of 0.3, which names no version, as native ones do."""

    def __init__(self, wire: Wire) -> None:
        self.wire = wire

    async def rpc(
        self, method: str, params: Any = None, *, id: Any = 1, headers: Mapping[str, str] = NO_HEADERS
    ) -> Told:
        """One JSON-RPC call."""
        return await self.post("/", envelope(method, params, id), headers)

    async def result(self, method: str, params: Any = None) -> Any:
        """What a JSON-RPC call that succeeds answers."""
        found = await self.rpc(method, params)
        assert found.status == 200
        assert set(found.json) == {"jsonrpc", "id", "result"}, found.json
        return found.json["result"]

    async def error(self, method: str, params: Any = None) -> Any:
        """The error of a JSON-RPC call that fails."""
        found = await self.rpc(method, params)
        assert found.status == 200
        return checked_error(found.json, 1)

    async def post(self, path: str, body: bytes, headers: Mapping[str, str] = NO_HEADERS) -> Told:
        return await self.wire.ask("POST", path, body, {"Content-Type": "application/json", **headers})

    async def rest(self, method: str, path: str, body: Any = None, *, headers: Mapping[str, str] = NO_HEADERS) -> Told:
        """One HTTP+JSON call, by a path below ``/v1``."""
        if body is None:
            return await self.wire.ask(method, f"/v1{path}", None, headers)
        content = {"Content-Type": "application/json"} if method == "POST" else {}
        return await self.wire.ask(method, f"/v1{path}", json.dumps(body).encode(), {**content, **headers})

    @asynccontextmanager
    async def stream(
        self, path: str, body: bytes | None, method: str = "POST", headers: Mapping[str, str] = NO_HEADERS
    ) -> AsyncIterator[Events]:
        """A request whose answer is read event by event."""
        head = {"Content-Type": "application/json", **headers} if body is not None else headers
        request = self.wire.http.build_request(method, self.wire.url + path, content=body, headers=head)
        response = await self.wire.http.send(request, stream=True)
        try:
            yield Events(response)
        finally:
            await response.aclose()

    async def rpc_events(self, method: str, params: Any, id: Any = 1) -> list[Any]:
        """All events of a stream, out of their envelopes, which are checked; an error as ``{"error": …}``."""
        async with self.stream("/", envelope(method, params, id)) as events:
            assert (events.status, events.headers["content-type"]) == (200, "text/event-stream")
            return [opened(event, id) for event in await events.rest()]


def opened(event: Any, id: Any) -> Any:
    """What is in a response object of a stream."""
    assert (event["jsonrpc"], event["id"]) == ("2.0", id)
    assert len(event) == 3
    return event["result"] if "result" in event else {"error": checked_error(event, id)}


def checked_error(answer: Any, id: Any) -> Any:
    """The error of a response object, of which readers of 0.3 can decode everything. Spec: V03-P30."""
    assert set(answer) == {"jsonrpc", "id", "error"}, answer
    assert answer["id"] == id
    error = answer["error"]
    assert isinstance(error["code"], int)
    assert isinstance(error["message"], str)
    assert "data" not in error or isinstance(error["data"], dict), error
    return error


def checked_body(told: Told, status: int, code: int, name: str) -> Any:
    """The body of an HTTP+JSON error, with the members that the known clients look for. Spec: V03-P20."""
    assert told.status == status, told.body
    assert told.headers["content-type"] == "application/json"
    body = told.json
    assert (body["code"], body["type"], body["error"]) == (code, name, f"io.a2a.spec.{name}")
    assert isinstance(body["message"], str)
    assert "data" not in body or isinstance(body["data"], dict)
    return body


def check_kinds(value: Any) -> None:
    """Every object of kind-JSON that has a kind says so, and every message has an id. Spec: B153."""
    if isinstance(value, list):
        for item in value:
            check_kinds(item)
    elif isinstance(value, dict):
        if "parts" in value:
            assert value.get("kind") == "message" or "artifactId" in value, value
            assert all(part["kind"] in ("text", "file", "data") for part in value["parts"])
        if value.get("kind") == "message":
            assert value["messageId"]
            assert value["role"] in ("user", "agent")
        if "status" in value:
            assert value["kind"] in ("task", "status-update"), value
        for item in value.values():
            check_kinds(item)


@asynccontextmanager
async def serving(agent: Any = ECHO, **settings: Any) -> AsyncIterator[Old]:
    """Serve an agent on a real socket, and call it as 0.3 does."""
    async with served(agent, **settings) as wire:
        yield Old(wire)
