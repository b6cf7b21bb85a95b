"""gRPC as somebody else writes it: a bare channel, and messages by the protobuf library out of the proto itself."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
from google.protobuf import json_format
from google.rpc import error_details_pb2, status_pb2
from grpc import aio

from dragoman import Agent, App, Limits
from dragoman.model import OPERATIONS
from dragoman.server import GrpcServerSettings
from dragoman.server.grpc_serving import GrpcServer, start_grpc
from tests.model import oracle

SERVICE = "/lf.a2a.v1.A2AService/"
BOUND = 5.0
"""Seconds that anything a test waits for may take."""
QUICK = Limits(shutdown_grace=0.2, lease=2, cancel_wait=2)
VERSION = (("a2a-version", "1.0"),)

Metadata = tuple[tuple[str, str | bytes], ...]


class Refused(Exception):
    """A call that ended with a status."""

    def __init__(self, error: aio.AioRpcError) -> None:
        super().__init__(error.code().name, error.details())
        self.code = error.code().name
        self.text = error.details() or ""
        self.head = dict(tuple(error.initial_metadata() or ()))
        self.trailers = dict(tuple(error.trailing_metadata() or ()))

    @property
    def status(self) -> Any:
        """``google.rpc.Status`` by the package that everybody reads it with."""
        return status_pb2.Status.FromString(self.trailers["grpc-status-details-bin"])

    def detail(self, kind: Any) -> Any:
        """The one detail of a type, or None."""
        found = [item for item in self.status.details if item.Is(kind.DESCRIPTOR)]
        assert len(found) < 2
        if not found:
            return None
        detail = kind()
        found[0].Unpack(detail)
        return detail

    @property
    def reason(self) -> str:
        info = self.detail(error_details_pb2.ErrorInfo)
        assert info is None or info.domain == "a2a-protocol.org"
        return info.reason if info is not None else ""

    @property
    def fields(self) -> list[str]:
        found = self.detail(error_details_pb2.BadRequest)
        return [violation.field for violation in found.field_violations] if found is not None else []


class Caller:
    """Calls by the name of an operation, with requests and answers as JSON values."""

    def __init__(self, channel: aio.Channel) -> None:
        self.channel = channel

    async def call(self, op: str, request: Any = None, metadata: Metadata = VERSION, **options: Any) -> Any:
        """The answer as a JSON value. Raises Refused."""
        return read(op, await self.send(op, write(op, request), metadata, **options))

    async def send(self, op: str, data: bytes, metadata: Metadata = VERSION, **options: Any) -> bytes:
        """The same in bytes."""
        method: Any = self.channel.unary_unary(SERVICE + op)
        options.setdefault("timeout", BOUND)
        try:
            return bytes(await method(data, metadata=metadata, **options))
        except aio.AioRpcError as error:
            raise Refused(error) from None

    def stream(self, op: str, request: Any = None, metadata: Metadata = VERSION, **options: Any) -> Any:
        """An open call of a streaming operation."""
        method: Any = self.channel.unary_stream(SERVICE + op)
        return method(write(op, request), metadata=metadata, **options)

    async def events(self, op: str, request: Any, metadata: Metadata = VERSION) -> list[Any]:
        """All events of a stream. Raises Refused."""
        try:
            async with asyncio.timeout(BOUND):
                return [read(op, data) async for data in self.stream(op, request, metadata)]
        except aio.AioRpcError as error:
            raise Refused(error) from None


async def rest_of(op: str, call: Any) -> list[Any]:
    """What is still to come on an open call."""
    found = []
    async with asyncio.timeout(BOUND):
        while (data := await call.read()) is not aio.EOF:
            found.append(read(op, data))
    return found


def write(op: str, request: Any) -> bytes:
    """A request, by the protobuf library."""
    data: bytes = json_format.ParseDict(request or {}, oracle.new(OPERATIONS[op].request)).SerializeToString()
    return data


def read(op: str, data: bytes) -> Any:
    """An answer, by the protobuf library."""
    message = oracle.new(OPERATIONS[op].response)
    message.ParseFromString(data)
    return json.loads(oracle.print_json(message))


def say(text: str = "hello", **members: Any) -> dict[str, Any]:
    """A SendMessageRequest; keywords are members of the message."""
    return {"message": {"messageId": "m-1", "role": "ROLE_USER", "parts": [{"text": text}], **members}}


@asynccontextmanager
async def grpc_served(
    agent: Agent | App, settings: GrpcServerSettings | None = None, **more: Any
) -> AsyncIterator[GrpcServer]:
    """An agent over gRPC only; keywords are settings of App."""
    app = agent if isinstance(agent, App) else App(agent, **{"limits": QUICK, **more})
    await app.start()
    server = await start_grpc(app, settings or GrpcServerSettings(port=0))
    try:
        yield server
    finally:
        await app.stop()
        await server.stop(0.2)


@asynccontextmanager
async def called(agent: Agent | App, settings: GrpcServerSettings | None = None, **more: Any) -> AsyncIterator[Caller]:
    """The same with a caller."""
    async with (
        grpc_served(agent, settings, **more) as server,
        aio.insecure_channel(f"127.0.0.1:{server.port}") as channel,
    ):
        yield Caller(channel)


@asynccontextmanager
async def scripted(**methods: Any) -> AsyncIterator[str]:
    """A server that nobody here wrote: bytes in, what the functions do with ``(data, context)``; its address."""

    class Handler(grpc.GenericRpcHandler):
        def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:
            name = handler_call_details.method.removeprefix(SERVICE)
            if name not in methods:
                return None
            make = grpc.unary_unary_rpc_method_handler
            if OPERATIONS[name].streaming:
                make = grpc.unary_stream_rpc_method_handler  # type: ignore[assignment]
            return make(methods[name])

    server = aio.server(options=[("grpc.so_reuseport", 0)])
    server.add_generic_rpc_handlers((Handler(),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        await server.stop(0)
