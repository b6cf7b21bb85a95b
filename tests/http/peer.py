"""A peer that answers over a real socket with exactly the bytes a test wants."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
import struct
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

BOUND = 10.0
"""Seconds that anything a test waits for may take."""


@dataclass
class Received:
    """One request as it came."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes
    reader: asyncio.StreamReader = field(repr=False, compare=False)

    async def hang_up(self) -> None:
        """Wait until the client ends the connection."""
        await self.reader.read(1)

    @property
    def json(self) -> Any:
        return json.loads(self.body)


Answer = Callable[[Received, asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Peer:
    """Answers by method and path. A route's answers are used in order, the last one again and again."""

    url: str = ""
    received: list[Received] = field(default_factory=list)
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    hung_up: asyncio.Event = field(default_factory=asyncio.Event)
    connections: int = 0
    _routes: dict[tuple[str, str], deque[Answer]] = field(default_factory=lambda: defaultdict(deque))

    def on(self, method: str, path: str, *answers: Answer) -> Peer:
        self._routes[method, path].extend(answers)
        return self

    def targets(self) -> list[str]:
        """What was asked for so far."""
        return [f"{request.method} {request.target}" for request in self.received]

    def _next(self, request: Received) -> Answer:
        answers = self._routes.get((request.method, request.target.partition("?")[0]))
        if not answers:
            return plain(404, b"nothing here", kind="text/plain")
        return answers.popleft() if len(answers) > 1 else answers[0]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while (request := await _read_request(reader)) is not None:
                self.received.append(request)
                self.arrived.set()
                await self._next(request)(request, writer)
                await writer.drain()
                if writer.is_closing():
                    break
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            self.hung_up.set()
            writer.close()


async def _read_request(reader: asyncio.StreamReader) -> Received | None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.strip().split("\r\n")
    method, target, _ = first.split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Received(method, target, headers, body, reader)


@asynccontextmanager
async def peer(tls: ssl.SSLContext | None = None) -> AsyncIterator[Peer]:
    """A peer on a free port of this machine; with TLS, if given."""
    made = Peer()
    connections: set[asyncio.Task[None]] = set()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(made.serve(reader, writer))
        connections.add(task)

    server = await asyncio.start_server(accept, "127.0.0.1", 0, ssl=tls)
    made.url = f"{'https' if tls else 'http'}://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield made
    finally:
        server.close()
        for task in connections:
            task.cancel()
        await asyncio.gather(*connections, return_exceptions=True)


def free_url() -> str:
    """An address of this machine where nobody listens."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{held.getsockname()[1]}"


def head(status: int, headers: Mapping[str, str]) -> bytes:
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 {status} Whatever\r\n{lines}\r\n".encode()


def plain(status: int, body: bytes, *, kind: str = "application/json", **headers: str) -> Answer:
    """A whole answer. Underscores in names of headers stand for hyphens."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    typed = {"content-type": kind} if kind else {}

    async def answer(request: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(head(status, {**typed, "content-length": str(len(body)), **named}) + body)

    return answer


def as_json(value: Any, status: int = 200, **headers: str) -> Answer:
    """A JSON answer."""
    return plain(status, json.dumps(value).encode(), **headers)


def result(value: Any, **headers: str) -> Answer:
    """A JSON-RPC result for the request's own id."""

    async def answer(request: Received, writer: asyncio.StreamWriter) -> None:
        await as_json({"jsonrpc": "2.0", "id": request.json["id"], "result": value}, **headers)(request, writer)

    return answer


def error(code: int, message: str, reason: str = "", status: int = 200, **headers: str) -> Answer:
    """A JSON-RPC error for the request's own id."""
    info = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason, "domain": "a2a-protocol.org"}
    body = {"code": code, "message": message, "data": [info] if reason else []}

    async def answer(request: Received, writer: asyncio.StreamWriter) -> None:
        await as_json({"jsonrpc": "2.0", "id": request.json["id"], "error": body}, status, **headers)(request, writer)

    return answer


def raw(data: bytes) -> Answer:
    """Exactly these bytes, then the end of the connection."""

    async def answer(request: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(data)
        await writer.drain()
        writer.close()

    return answer


async def silence(request: Received, writer: asyncio.StreamWriter) -> None:
    """No answer, as long as the client waits."""
    await request.hang_up()


async def reset(request: Received, writer: asyncio.StreamWriter) -> None:
    """The connection is torn down."""
    sock = writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


async def _cut(request: Received, writer: asyncio.StreamWriter) -> None:
    writer.close()


async def _end(request: Received, writer: asyncio.StreamWriter) -> None:
    writer.write(b"0\r\n\r\n")


async def _open(request: Received, writer: asyncio.StreamWriter) -> None:
    """Nothing more: the test goes on writing."""


ENDS: dict[str, Answer] = {"end": _end, "open": _open, "cut": _cut, "reset": reset, "stay": silence}


def stream(
    *pieces: bytes | dict[str, Any] | tuple[int, dict[str, Any]],
    end: str = "end",
    rpc: bool = True,
    kind: str = "text/event-stream",
    **headers: str,
) -> Answer:
    """An event stream, each piece in a chunk of its own.

    A dict is an event, with a number before it one with an id; bytes go out as they are. ``end`` ends the answer in
    order, ``cut`` the connection, ``reset`` tears it down, ``stay`` waits for the client to hang up, ``open`` leaves
    the rest to the test.
    """

    async def answer(request: Received, writer: asyncio.StreamWriter) -> None:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        typed = {"content-type": kind} if kind else {}
        writer.write(head(200, {**typed, "transfer-encoding": "chunked", **named}))
        for piece in pieces:
            data = _event(piece, request if rpc else None)
            writer.write(b"%x\r\n%s\r\n" % (len(data), data))
            await writer.drain()
            await asyncio.sleep(0)
        await ENDS[end](request, writer)

    return answer


def _event(piece: bytes | dict[str, Any] | tuple[int, dict[str, Any]], request: Received | None) -> bytes:
    if isinstance(piece, bytes):
        return piece
    number, value = piece if isinstance(piece, tuple) else (None, piece)
    if request is not None:
        value = {"jsonrpc": "2.0", "id": request.json["id"], **(value if "error" in value else {"result": value})}
    line = f"data: {json.dumps(value, ensure_ascii=False)}\n\n"
    return (f"id: {number}\n{line}" if number is not None else line).encode()
