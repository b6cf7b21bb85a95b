"""An agent as seen by a client that nobody here wrote: the ``wire`` fixture's calls, by operation and JSON."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

import httpx2

from dragoman.model import OPERATIONS

ERROR_INFO = "type.googleapis.com/google.rpc.ErrorInfo"
BAD_REQUEST = "type.googleapis.com/google.rpc.BadRequest"


BOUND = 5.0
"""Seconds that anything a test waits for may take."""


async def eventually(look: Callable[[], Any]) -> Any:
    """What ``look`` finds, or its awaitable, as soon as that is true; looks again at each turn of the loop."""
    async with asyncio.timeout(BOUND):
        while True:
            found = look()
            if inspect.isawaitable(found):
                found = await found
            if found:
                return found
            await asyncio.sleep(0)


def say(text: str = "hello", **members: Any) -> dict[str, Any]:
    """Parameters of SendMessage; keywords are members of the message, some (``configuration``) of the request."""
    request = {name: members.pop(name) for name in ("configuration", "metadata", "tenant") if name in members}
    message = {"messageId": f"m-{text}", "role": "ROLE_USER", "parts": [{"text": text}], **members}
    return {"message": message, **request}


@dataclass(frozen=True)
class Answer:
    """What came: status, headers, bytes, and the JSON in them."""

    binding: str
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def result(self) -> Any:
        """The response message, out of its envelope. Fails the test when it is an error."""
        value = self.json
        assert "error" not in value, value
        assert self.status == 200
        return value["result"] if self.binding == "JSONRPC" else value

    @property
    def error(self) -> dict[str, Any]:
        """The error object. Fails the test when there is none."""
        found = self.json["error"]
        assert isinstance(found, dict)
        return found

    @property
    def details(self) -> list[dict[str, Any]]:
        found = self.error.get("data" if self.binding == "JSONRPC" else "details", [])
        assert isinstance(found, list)
        return found

    @property
    def reason(self) -> str:
        """``reason`` of the ErrorInfo, or the code of an error that has none."""
        for detail in self.details:
            if detail["@type"] == ERROR_INFO:
                assert detail["domain"] == "a2a-protocol.org"
                return str(detail["reason"])
        return str(self.error["code"])

    @property
    def fields(self) -> list[str]:
        """The fields that a validation error names. Fails the test when it is no validation error."""
        expected = (200, -32602) if self.binding == "JSONRPC" else (400, 400)
        assert (self.status, self.error["code"]) == expected, self.json
        found = next(detail for detail in self.details if detail["@type"] == BAD_REQUEST)
        return [violation["field"] for violation in found["fieldViolations"]]


class Frames:
    """The SSE frames of an open stream."""

    def __init__(self, binding: str, response: httpx2.Response) -> None:
        self.binding = binding
        self.response = response
        self._chunks = response.aiter_raw()
        self._rest = b""

    async def raw(self) -> bytes | None:
        """The next frame that is no comment, without the empty line; None at the end."""
        while True:
            while b"\n\n" in self._rest:
                frame, _, self._rest = self._rest.partition(b"\n\n")
                if not frame.startswith(b":"):
                    return frame
            try:
                self._rest += await anext(self._chunks)
            except StopAsyncIteration:
                assert not self._rest, "the stream ended within a frame"
                return None

    async def next(self) -> Any:
        """The next StreamResponse, or the object with ``error``; None at the end."""
        frame = await self.raw()
        if frame is None:
            return None
        value = json.loads(frame.partition(b"data: ")[2])
        if self.binding == "HTTP+JSON":
            return value
        assert (value["jsonrpc"], value["id"]) == ("2.0", "r-1")
        return value.get("result", value)

    async def rest(self) -> list[Any]:
        """Everything up to the end."""
        found = []
        while (event := await self.next()) is not None:
            found.append(event)
        return found


class RawCalls:
    """Calls of one binding."""

    def __init__(self, binding: str, url: str, http: httpx2.AsyncClient) -> None:
        self.binding = binding
        self.url = url
        self.http = http

    async def call(self, op: str, params: Mapping[str, Any], **headers: str) -> Answer:
        """A call by the operation's name and its request in JSON; underscores in headers stand for hyphens."""
        response = await self.http.send(self._request(op, params, headers))
        return Answer(self.binding, response.status_code, response.headers, response.content)

    @asynccontextmanager
    async def stream(self, op: str, params: Mapping[str, Any], **headers: str) -> AsyncIterator[Frames]:
        """An open stream; fails the test when the answer is none."""
        response = await self.http.send(self._request(op, params, headers), stream=True)
        try:
            if not response.headers["content-type"].startswith("text/event-stream"):
                raise AssertionError((await response.aread()).decode())
            yield Frames(self.binding, response)
        finally:
            await response.aclose()

    def _request(self, op: str, params: Mapping[str, Any], headers: Mapping[str, str]) -> httpx2.Request:
        beside = {"a2a-version": "1.0", **{name.replace("_", "-"): value for name, value in headers.items()}}
        if self.binding == "JSONRPC":
            body = {"jsonrpc": "2.0", "id": "r-1", "method": op, "params": params}
            return self.http.build_request("POST", self.url + "/", json=body, headers=beside)
        operation, members = OPERATIONS[op], dict(params)
        method = "POST" if op == "SubscribeToTask" else operation.http_method
        path = operation.http_path
        if "{id}" in path:
            path = path.replace("{id}", quote(str(members.pop("id")), safe=""))
        if method == "GET":
            query = urlencode({name: _text(value) for name, value in members.items()})
            return self.http.build_request("GET", f"{self.url}{path}?{query}", headers=beside)
        beside["content-type"] = "application/a2a+json"
        return self.http.build_request(method, self.url + path, content=json.dumps(members), headers=beside)


def _text(value: Any) -> str:
    return json.dumps(value) if isinstance(value, bool) else str(value)
