"""Raw requests to a served agent, written by hand: no codec of ours stands between a test and the bytes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlencode

import httpx2

from dragoman import Agent, App, Limits
from dragoman.errors import UnauthenticatedError
from dragoman.model import OPERATIONS
from dragoman.ports.operations import Caller
from tests.bindings.parts import served as on_socket

SPOKEN = ("JSONRPC", "HTTP+JSON")
BOUND = 5.0
"""Seconds that anything a test waits for may take."""

QUICK = Limits(shutdown_grace=0.2, lease=2, cancel_wait=2)
ERROR_INFO = "type.googleapis.com/google.rpc.ErrorInfo"
BAD_REQUEST = "type.googleapis.com/google.rpc.BadRequest"

Headers = Mapping[str, str | None]
"""Request headers over the usual ones; None leaves a usual one out."""

NO_HEADERS: Headers = {}
_VERSION: Headers = {"A2A-Version": "1.0"}


def said(text: str = "hello", **more: Any) -> dict[str, Any]:
    """A SendMessageRequest; ``more`` are members of its message."""
    return {"message": {"messageId": "m-1", "role": "ROLE_USER", "parts": [{"text": text}], **more}}


class Told:
    """An answer, with its error read the same way on both bindings."""

    def __init__(self, status: int, headers: httpx2.Headers, body: bytes) -> None:
        self.status = status
        self.headers = headers
        self.body = body

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def result(self) -> Any:
        """What was answered, out of the envelope where there is one. Fails on an error."""
        value = self.json
        assert "error" not in value, value
        return value["result"] if "jsonrpc" in value else value

    @property
    def error(self) -> Any:
        assert "error" in self.json, self.json
        return self.json["error"]

    @property
    def details(self) -> list[dict[str, Any]]:
        """The detail objects, wherever the binding has them."""
        return list(self.error.get("data", self.error.get("details", [])))

    def detail(self, kind: str) -> dict[str, Any]:
        """The one detail of a type, or an empty one."""
        found = [detail for detail in self.details if detail["@type"] == kind]
        assert len(found) < 2
        return found[0] if found else {}

    @property
    def reason(self) -> str:
        """``ErrorInfo.reason``, empty when there is none."""
        info = self.detail(ERROR_INFO)
        assert not info or info["domain"] == "a2a-protocol.org"
        return str(info.get("reason", ""))

    @property
    def metadata(self) -> dict[str, str]:
        return dict(self.detail(ERROR_INFO).get("metadata", {}))

    @property
    def fields(self) -> list[str]:
        """The fields that failed validation."""
        return [violation["field"] for violation in self.detail(BAD_REQUEST).get("fieldViolations", [])]

    @property
    def code(self) -> int:
        """The code of the error object: JSON-RPC's, or the HTTP status."""
        return int(self.error["code"])


class Events:
    """An open stream, event by event."""

    def __init__(self, response: httpx2.Response) -> None:
        self.status = response.status_code
        self.headers = response.headers
        self.raw = b""
        self.ids: list[str] = []
        self._chunks = response.aiter_bytes()
        self._buffer = b""

    async def next(self) -> Any:
        """The next event's data, parsed; None at the end of the stream."""
        while (frame := await self._frame()) is not None:
            lines = frame.decode().split("\n")
            self.ids += [line[4:] for line in lines if line.startswith("id: ")]
            data = [line[6:] for line in lines if line.startswith("data: ")]
            assert len(data) < 2, "an event has one line of data"
            if data:
                return json.loads(data[0])
        return None

    async def rest(self) -> list[Any]:
        """All events up to the end."""
        found = []
        while (event := await self.next()) is not None:
            found.append(event)
        return found

    async def _frame(self) -> bytes | None:
        async with asyncio.timeout(BOUND):
            while b"\n\n" not in self._buffer:
                chunk = await anext(self._chunks, None)
                if chunk is None:
                    assert not self._buffer, "the stream ends in the middle of an event"
                    return None
                self.raw += chunk
                self._buffer += chunk
        frame, _, self._buffer = self._buffer.partition(b"\n\n")
        return frame


def bare(event: Any) -> Any:
    """The StreamResponse of an event of either binding."""
    return event["result"] if "jsonrpc" in event else event


class Wire:
    """A served agent, to be asked in raw HTTP."""

    def __init__(self, url: str, http: httpx2.AsyncClient, app: Any = None) -> None:
        self.url = url
        self.http = http
        self.app = app

    async def ask(
        self, method: str, path: str, body: bytes | None = None, headers: Headers | list[tuple[str, str]] = _VERSION
    ) -> Told:
        """One request with exactly these headers."""
        request = self._request(method, path, body, headers)
        response = await self.http.send(request)
        return Told(response.status_code, response.headers, response.content)

    def _request(
        self, method: str, path: str, body: bytes | None, headers: Headers | list[tuple[str, str]]
    ) -> httpx2.Request:
        pairs = headers if isinstance(headers, list) else [(k, v) for k, v in headers.items() if v is not None]
        return self.http.build_request(method, self.url + path, content=body, headers=pairs)

    async def rpc(self, method: str, params: Any = None, *, id: Any = 1, headers: Headers = NO_HEADERS) -> Told:
        """One JSON-RPC call. Headers go over A2A-Version and Content-Type."""
        return await self.ask(
            "POST", "/", _rpc_body(method, params, id), {**_VERSION, "Content-Type": "application/json", **headers}
        )

    async def rest(self, method: str, path: str, body: Any = None, *, headers: Headers = NO_HEADERS) -> Told:
        """One HTTP+JSON call. Headers go over A2A-Version and, with a body, Content-Type."""
        return await self.ask(method, path, *_rest_body(body, headers))

    async def call(self, binding: str, operation: str, request: Any = None, *, headers: Headers = NO_HEADERS) -> Told:
        """An operation by either binding."""
        if binding == "JSONRPC":
            return await self.rpc(operation, request or {}, headers=headers)
        method, path, body = rest_request(operation, request or {})
        return await self.rest(method, path, body, headers=headers)

    @asynccontextmanager
    async def stream(
        self, binding: str, operation: str, request: Any, *, headers: Headers = NO_HEADERS
    ) -> AsyncIterator[Events]:
        """An operation whose answer is read event by event."""
        if binding == "JSONRPC":
            head = {**_VERSION, "Content-Type": "application/json", **headers}
            raw = self._request("POST", "/", _rpc_body(operation, request, 1), head)
        else:
            method, path, body = rest_request(operation, request)
            raw = self._request(method, path, *_rest_body(body, headers))
        response = await self.http.send(raw, stream=True)
        try:
            yield Events(response)
        finally:
            await response.aclose()


def _rpc_body(method: str, params: Any, id: Any) -> bytes:
    value = {"jsonrpc": "2.0", "id": id, "method": method}
    if params is not None:
        value["params"] = params
    return json.dumps(value).encode()


def _rest_body(body: Any, headers: Headers) -> tuple[bytes | None, Headers]:
    if body is None:
        return None, {**_VERSION, **headers}
    return json.dumps(body).encode(), {**_VERSION, "Content-Type": "application/a2a+json", **headers}


def rest_request(operation: str, request: Mapping[str, Any]) -> tuple[str, str, Any]:
    """Method, path with query, and body of an operation."""
    op = OPERATIONS[operation]
    left = dict(request)
    path = op.http_path
    for name in op.path_fields:
        member = "taskId" if name == "task_id" else name
        path = path.replace(f"{{{name}}}", left.pop(member))
    if tenant := left.pop("tenant", ""):
        path = f"/{tenant}{path}"
    method = "POST" if operation == "SubscribeToTask" else op.http_method
    if method == "POST":
        return method, path, left
    query = {name: str(value).lower() if isinstance(value, bool) else value for name, value in left.items()}
    return method, path + (f"?{urlencode(query)}" if query else ""), None


@asynccontextmanager
async def served(agent: Agent | App, **settings: Any) -> AsyncIterator[Wire]:
    """Serve an agent on a real socket; settings are those of App."""
    app = agent if isinstance(agent, App) else App(agent, **{"limits": QUICK, **settings})
    async with asgi_served(app) as wire:
        await app.start()
        try:
            yield wire
        finally:
            await app.stop()


@asynccontextmanager
async def asgi_served(app: Any) -> AsyncIterator[Wire]:
    """Serve any ASGI application, without its lifespan, by a uvicorn in the test's own loop."""
    async with on_socket(app) as (host, port), httpx2.AsyncClient(timeout=BOUND) as http:
        yield Wire(f"http://{host}:{port}", http, app)


async def by_header(scope: Any) -> Caller:
    """Identify by ``x-test-caller``; no caller, no access."""
    name = dict(scope["headers"]).get(b"x-test-caller", b"").decode()
    if not name:
        raise UnauthenticatedError(metadata={"challenge": 'Bearer realm="agents"'})
    return Caller(id=name)


def as_caller(name: str) -> dict[str, str | None]:
    """The header that :func:`by_header` reads."""
    return {"x-test-caller": name}
