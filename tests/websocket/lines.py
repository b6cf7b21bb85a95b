"""A custom binding of another kind: it listens by itself, by the hooks of its server half. One line a message.

Each call has a TCP connection. The client sends two lines, the service parameters and a JSON-RPC request; the server
answers with lines, the first of which has the parameters of the answer.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any
from urllib.parse import urlsplit

import msgspec

from dragoman.bindings import jsonrpc
from dragoman.bindings.failure import as_protocol_error
from dragoman.errors import ConnectError, PayloadTooLargeError
from dragoman.model import AgentInterface, Operation
from dragoman.ports.binding import ClientEdge, ServerEdge, ServerHalf
from dragoman.ports.operations import ANONYMOUS, CallContext, Event, EventStream

URI = "https://example.com/bindings/lines/v1"
LINE = 64 * 1024 * 1024


class LinesBinding:
    """Both halves."""

    uri = URI

    def server(self, edge: ServerEdge) -> LinesServer:
        return LinesServer(edge)

    def client(self, interface: AgentInterface, edge: ClientEdge) -> LinesTransport:
        return LinesTransport(interface.url)


class LinesServer(ServerHalf):
    """Takes connections between start and stop."""

    def __init__(self, edge: ServerEdge) -> None:
        self._edge = edge
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.Task[None]] = set()

    def interface(self, base_url: str) -> AgentInterface | None:
        if self._server is None:
            return None
        port = self._server.sockets[0].getsockname()[1]
        return AgentInterface(url=f"lines://127.0.0.1:{port}", protocol_binding=URI, protocol_version="1.0")

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._take, "127.0.0.1", 0, limit=LINE)

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head, body = await reader.readline(), await reader.readline()
        work = asyncio.create_task(self._serve(json.loads(head or b"{}"), body, writer))
        self._open.add(work)
        gone = asyncio.create_task(reader.read())
        await asyncio.wait((work, gone), return_when=asyncio.FIRST_COMPLETED)
        work.cancel()
        gone.cancel()
        await asyncio.wait((work, gone))
        self._open.discard(work)
        writer.close()

    async def _serve(self, head: dict[str, Any], body: bytes, writer: asyncio.StreamWriter) -> None:
        try:
            context, call = await self._read(head, body)
            if call.op.streaming:
                await self._stream(call, context, writer)
                return
            response = await self._edge.operations.call(call.op, call.request, context)
            lines = [_head_of(context), jsonrpc.encode_result(call, response)]
        except Exception as error:
            lines = [b"{}", jsonrpc.encode_error(b"1", as_protocol_error(error, "lines"))[1]]
        await _write(writer, *lines)

    async def _read(self, head: dict[str, Any], body: bytes) -> tuple[CallContext, Any]:
        if len(body) > self._edge.max_message_bytes:
            raise PayloadTooLargeError()
        headers = [(name.encode(), value.encode()) for name, value in head["parameters"].items()]
        identify = self._edge.identify
        caller = ANONYMOUS if identify is None else await identify({"type": "lines", "headers": headers})
        context = CallContext(
            version=head["version"],
            extensions=tuple(head["extensions"]),
            caller=caller,
            parameters=head["parameters"],
            last_event_id=head["last"],
        )
        if self._edge.check_version is not None:
            self._edge.check_version(context.version)
        return context, jsonrpc.decode_call(body)

    async def _stream(self, call: Any, context: CallContext, writer: asyncio.StreamWriter) -> None:
        stream = await self._edge.operations.stream(call.op, call.request, context)
        async with stream:
            await _write(writer, _head_of(context))
            try:
                while batch := await stream.next_batch():
                    for event in batch:
                        await _write(writer, b"%d" % (event.number or 0), event.json)
            except Exception as error:
                await _write(writer, b"!", jsonrpc.encode_error(b"1", as_protocol_error(error, "lines"))[1])


class LinesTransport:
    """A connection for each call."""

    def __init__(self, url: str) -> None:
        self._place = urlsplit(url)

    async def call(self, op: Operation, request: msgspec.Struct, context: CallContext) -> msgspec.Struct:
        async with asyncio.timeout(context.timeout):
            reader, writer = await self._ask(op, request, context)
            try:
                return await _answer(op, reader, context)
            finally:
                writer.close()

    async def stream(self, op: Operation, request: msgspec.Struct, context: CallContext) -> EventStream:
        reader, writer = await self._ask(op, request, context)
        context.activated = tuple(json.loads(await reader.readline()).get("active", ()))
        stream = LinesStream(op, reader, writer)
        await stream.look()
        return stream

    async def aclose(self) -> None: ...

    async def _ask(self, op: Operation, request: msgspec.Struct, context: CallContext) -> Any:
        try:
            reader, writer = await asyncio.open_connection(self._place.hostname, self._place.port, limit=LINE)
        except OSError as error:
            raise ConnectError("Nobody is there") from error
        head = {"version": context.version, "extensions": context.extensions, "last": context.last_event_id}
        parameters = {name.lower(): value for name, value in context.parameters.items()}
        lines = (json.dumps({**head, "parameters": parameters}).encode(), jsonrpc.encode_request(op, request).body)
        await _write(writer, *lines)
        return reader, writer


class LinesStream(EventStream):
    """Two lines an event. An error in place of the first is that of the call."""

    def __init__(self, op: Operation, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._op = op
        self._reader = reader
        self._writer = writer
        self._first: list[Event] | None = None

    async def look(self) -> None:
        self._first = await self.next_batch()

    async def next_batch(self) -> list[Event]:
        if self._first is not None:
            first, self._first = self._first, None
            return first
        number, data = await self._reader.readline(), await self._reader.readline()
        if number[:1] in (b"!", b"{"):
            jsonrpc.decode_result(self._op, 200, {}, data if number[:1] == b"!" else number)
        return [Event(json=data, number=int(number) or None)] if number else []

    async def aclose(self) -> None:
        self._writer.close()


async def _answer(op: Operation, reader: asyncio.StreamReader, context: CallContext) -> msgspec.Struct:
    context.activated = tuple(json.loads(await reader.readline()).get("active", ()))
    return jsonrpc.decode_result(op, 200, {}, await reader.readline(), url="lines")


def _head_of(context: CallContext) -> bytes:
    return json.dumps({"active": context.activated}).encode()


async def _write(writer: asyncio.StreamWriter, *lines: bytes) -> None:
    writer.write(b"".join(line + b"\n" for line in lines))
    await writer.drain()
