"""What the tests of the bindings are built from: operations that record, an ASGI driver, a real server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import unquote

import msgspec
import uvicorn

from dragoman.bindings.endpoint import Endpoint
from dragoman.bindings.settings import EndpointSettings
from dragoman.model import (
    SEND_MESSAGE,
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    Artifact,
    Empty,
    Message,
    Operation,
    Part,
    Role,
    SendMessageRequest,
    SendMessageResponse,
    StreamResponse,
    Task,
    TaskArtifactUpdateEvent,
    TaskState,
    TaskStatus,
    TaskStatusUpdateEvent,
    encode_json,
)
from dragoman.ports.operations import CallContext, Event, EventStream

PATIENCE = 5.0  # seconds that a test waits for what has to happen

MESSAGE = Message(message_id="m-1", role=Role.USER, parts=[Part(text="Hello — 你好 👋")])
REPLY = SendMessageResponse(message=Message(message_id="m-2", role=Role.AGENT, parts=[Part(text="You said: Hello")]))
TASK = Task(id="t-1", context_id="c-1", status=TaskStatus(state=TaskState.WORKING))
PARAMS = encode_json(SendMessageRequest(message=MESSAGE)).decode()

Respond = Callable[[Operation, Any, CallContext], Any]


def text_event(text: str, number: int | None = None) -> Event:
    """An artifact chunk."""
    artifact = Artifact(artifact_id="a-1", parts=[Part(text=text)])
    update = TaskArtifactUpdateEvent(task_id="t-1", context_id="c-1", artifact=artifact, append=True)
    return Event(StreamResponse(artifact_update=update), number=number)


def status_event(state: TaskState, number: int | None = None) -> Event:
    """A status update."""
    update = TaskStatusUpdateEvent(task_id="t-1", context_id="c-1", status=TaskStatus(state=state))
    return Event(StreamResponse(status_update=update), number=number)


class ScriptedStream(EventStream):
    """A stream that a test feeds: batches, an error, or the end (an empty batch)."""

    def __init__(self, *script: list[Event] | Exception) -> None:
        self._queue: asyncio.Queue[list[Event] | Exception] = asyncio.Queue()
        self.closed = asyncio.Event()
        self.waiting = asyncio.Event()
        for item in script:
            self.feed(item)

    def feed(self, item: list[Event] | Exception) -> None:
        """Add what comes next."""
        self._queue.put_nowait(item)

    async def next_batch(self) -> list[Event]:
        """The next item of the script."""
        if self._queue.empty():
            self.waiting.set()
        item = await self._queue.get()
        if isinstance(item, Exception):
            raise item
        return item

    async def aclose(self) -> None:
        """Remember that it was closed."""
        self.closed.set()


def usual_answer(op: Operation, request: Any, context: CallContext) -> Any:
    """A plausible response of each unary operation."""
    if op is SEND_MESSAGE:
        return REPLY
    if op.response is Task:
        return TASK
    if op.response is Empty:
        return Empty()
    if op.response is AgentCard:
        return card("http://agent.example")
    if op.name == "ListTasks":
        return op.response(tasks=[TASK], next_page_token="", page_size=50, total_size=1)
    return request if op.request is op.response else op.response(**_required(op.response))


def _required(kind: type[msgspec.Struct]) -> dict[str, Any]:
    return {field.name: "x" for field in msgspec.structs.fields(kind) if field.required}


class RecordingOperations:
    """Operations that write down what they are asked and answer by a function."""

    def __init__(self, respond: Respond = usual_answer, stream: EventStream | Exception | None = None) -> None:
        self.respond = respond
        self.opened = stream
        self.calls: list[tuple[Operation, Any, CallContext]] = []
        self.called = asyncio.Event()

    @property
    def context(self) -> CallContext:
        """That of the last call."""
        return self.calls[-1][2]

    async def call(self, op: Operation, request: msgspec.Struct, context: CallContext) -> msgspec.Struct:
        """Record, then answer or raise."""
        self._record(op, request, context)
        answer = self.respond(op, request, context)
        if isinstance(answer, Awaitable):
            answer = await answer
        if isinstance(answer, Exception):
            raise answer
        return answer  # type: ignore[no-any-return]

    async def stream(self, op: Operation, request: msgspec.Struct, context: CallContext) -> EventStream:
        """Record, then hand out the scripted stream."""
        self._record(op, request, context)
        if isinstance(self.opened, Exception):
            raise self.opened
        return self.opened or ScriptedStream([Event(StreamResponse(task=TASK), number=1)], [])

    def _record(self, op: Operation, request: msgspec.Struct, context: CallContext) -> None:
        self.calls.append((op, request, context))
        self.called.set()


def card(base_url: str) -> AgentCard:
    """A card for a base URL."""
    return AgentCard(
        name="Echo",
        description="Repeats what you say",
        version="1.0.0",
        supported_interfaces=[AgentInterface(url=base_url, protocol_binding="JSONRPC", protocol_version="1.0")],
        capabilities=AgentCapabilities(streaming=True),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[AgentSkill(id="echo", name="Echo", description="Repeats", tags=["echo"])],
    )


def endpoint(operations: Any = None, **settings: Any) -> Endpoint:
    """An endpoint over these operations."""
    return Endpoint(operations or RecordingOperations(), card=card, settings=EndpointSettings(**settings))


class Answer:
    """What came back from an application."""

    def __init__(self, status: int, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
        self.status = status
        self.headers = [(name.decode(), value.decode("latin-1")) for name, value in headers]
        self.body = body

    def header(self, name: str) -> str | None:
        """The header of this name; a test that wants one value fails when there are two."""
        found = [value for key, value in self.headers if key == name]
        assert len(found) < 2, f"{name} is there {len(found)} times"
        return found[0] if found else None

    @property
    def json(self) -> Any:
        """The body, parsed."""
        return json.loads(self.body)

    @property
    def error(self) -> Any:
        """The error in the body, of either form."""
        return self.json["error"]


async def ask(
    app: Any,
    method: str,
    path: str,
    body: bytes | str | list[bytes] = b"",
    *,
    headers: dict[str, str] | list[tuple[str, str]] | None = None,
    **scope: Any,
) -> Answer:
    """Send one request to an ASGI application in this process; ``path`` may have a query."""
    raw_path, _, query = path.partition("?")
    pairs = list(headers.items()) if isinstance(headers, dict) else headers or []
    chunks = [body.encode()] if isinstance(body, str) else body if isinstance(body, list) else [body]
    sent: list[Any] = []
    whole = {
        "type": "http",
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": unquote(raw_path),
        "raw_path": raw_path.encode(),
        "root_path": "",
        "query_string": query.encode(),
        "headers": [(name.lower().encode(), value.encode("latin-1")) for name, value in pairs],
        "server": ("127.0.0.1", 8000),
        "client": ("127.0.0.1", 50000),
        **scope,
    }
    messages = [
        {"type": "http.request", "body": chunk, "more_body": i < len(chunks) - 1} for i, chunk in enumerate(chunks)
    ]
    await app(whole, _receiver(messages), _collector(sent))
    assert [message["type"] for message in sent[:1]] == ["http.response.start"]
    assert not sent[-1].get("more_body", False)
    return Answer(sent[0]["status"], sent[0]["headers"], b"".join(message["body"] for message in sent[1:]))


def _receiver(messages: list[dict[str, Any]]) -> Callable[[], Awaitable[dict[str, Any]]]:
    async def receive() -> dict[str, Any]:
        if messages:
            return messages.pop(0)
        return await asyncio.Future()

    return receive


def _collector(sent: list[Any]) -> Callable[[Any], Awaitable[None]]:
    async def send(message: Any) -> None:
        sent.append(message)

    return send


def rpc(method: str = "SendMessage", params: str = PARAMS, id: str = "1") -> str:
    """A JSON-RPC request; ``params`` and ``id`` are JSON text."""
    return f'{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}'


@asynccontextmanager
async def served(app: Any) -> AsyncIterator[tuple[str, int]]:
    """Serve an application on a real socket of this loop; gives host and port."""
    config = uvicorn.Config(
        app, host="127.0.0.1", port=0, lifespan="off", log_config=None, ws="none", proxy_headers=False
    )
    config.load()
    server = uvicorn.Server(config)
    server.lifespan = config.lifespan_class(config)
    await server.startup()
    try:
        yield server.servers[0].sockets[0].getsockname()[:2]
    finally:
        server.force_exit = True
        await server.shutdown()


class Connection:
    """A raw HTTP/1.1 connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def send(self, data: bytes | str) -> None:
        """Write bytes."""
        self._writer.write(data.encode() if isinstance(data, str) else data)
        await self._writer.drain()

    async def post(self, path: str, body: bytes | str, headers: str = "") -> None:
        """Send a POST."""
        data = body.encode() if isinstance(body, str) else body
        head = f"POST {path} HTTP/1.1\r\nHost: test\r\nContent-Length: {len(data)}\r\n{headers}\r\n"
        await self.send(head.encode() + data)

    async def until(self, mark: bytes) -> bytes:
        """Read up to and with ``mark``."""
        async with asyncio.timeout(PATIENCE):
            return await self._reader.readuntil(mark)

    async def head(self) -> tuple[int, dict[str, str]]:
        """Read status and headers."""
        lines = (await self.until(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        pairs = (line.split(": ", 1) for line in lines[1:] if line)
        return int(lines[0].split()[1]), {name.lower(): value for name, value in pairs}

    async def body(self, size: int) -> bytes:
        """Read a body of this size."""
        async with asyncio.timeout(PATIENCE):
            return await self._reader.readexactly(size)

    async def chunk(self) -> bytes:
        """Read one chunk of a chunked body; the last is empty."""
        size = int(await self.until(b"\r\n"), 16)
        return (await self.body(size + 2))[:-2]

    async def at_end(self) -> bool:
        """Whether the server closes the connection without another byte."""
        async with asyncio.timeout(PATIENCE):
            return await self._reader.read(1) == b""

    def close(self) -> None:
        """Close, in order."""
        self._writer.close()

    def abort(self) -> None:
        """Reset the connection."""
        self._writer.transport.abort()


@asynccontextmanager
async def connected(app: Any) -> AsyncIterator[Connection]:
    """A connection to a real server of this application."""
    async with served(app) as (host, port):
        connection = Connection(*await asyncio.open_connection(host, port))
        try:
            yield connection
        finally:
            connection.close()


async def happens(event: asyncio.Event) -> None:
    """Wait for an event, not for ever."""
    async with asyncio.timeout(PATIENCE):
        await event.wait()
