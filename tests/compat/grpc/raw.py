"""Protocol 0.3 over gRPC as somebody else writes it: a bare channel, messages by the protobuf library."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
from grpc import aio

from dragoman import Agent, App
from dragoman.server import GrpcServerSettings
from tests.compat.grpc import oracle
from tests.grpc.raw import BOUND, Metadata, Refused, grpc_served

SERVICE = "/a2a.v1.A2AService/"

#: Name of each method → names of what it takes and gives, and whether that is a stream.
METHODS = {
    "SendMessage": ("SendMessageRequest", "SendMessageResponse", False),
    "SendStreamingMessage": ("SendMessageRequest", "StreamResponse", True),
    "GetTask": ("GetTaskRequest", "Task", False),
    "CancelTask": ("CancelTaskRequest", "Task", False),
    "TaskSubscription": ("TaskSubscriptionRequest", "StreamResponse", True),
    "CreateTaskPushNotificationConfig": (
        "CreateTaskPushNotificationConfigRequest",
        "TaskPushNotificationConfig",
        False,
    ),
    "GetTaskPushNotificationConfig": ("GetTaskPushNotificationConfigRequest", "TaskPushNotificationConfig", False),
    "ListTaskPushNotificationConfig": (
        "ListTaskPushNotificationConfigRequest",
        "ListTaskPushNotificationConfigResponse",
        False,
    ),
    "GetAgentCard": ("GetAgentCardRequest", "AgentCard", False),
    "DeleteTaskPushNotificationConfig": ("DeleteTaskPushNotificationConfigRequest", "Empty", False),
    "ListTasks": ("ListTasksRequest", "ListTasksResponse", False),
}


class OldCaller:
    """Calls by the name of a method, with requests and answers as JSON values. No version is sent unless asked for."""

    def __init__(self, channel: aio.Channel) -> None:
        self.channel = channel

    async def call(self, method: str, request: Any = None, metadata: Metadata = ()) -> Any:
        """The answer. Raises Refused."""
        takes, gives, _ = METHODS[method]
        return oracle.read(gives, await self.send(method, oracle.write(takes, request), metadata))

    async def send(self, method: str, data: bytes, metadata: Metadata = ()) -> bytes:
        """The same in bytes."""
        unary: Any = self.channel.unary_unary(SERVICE + method)
        try:
            return bytes(await unary(data, metadata=metadata, timeout=BOUND))
        except aio.AioRpcError as error:
            raise Refused(error) from None

    def stream(self, method: str, request: Any = None, metadata: Metadata = ()) -> Any:
        """An open call of a streaming method."""
        stream: Any = self.channel.unary_stream(SERVICE + method)
        return stream(oracle.write(METHODS[method][0], request), metadata=metadata)

    async def events(self, method: str, request: Any = None, metadata: Metadata = ()) -> list[Any]:
        """All events of a stream. Raises Refused."""
        try:
            return await events_of(self.stream(method, request, metadata))
        except aio.AioRpcError as error:
            raise Refused(error) from None


async def events_of(call: Any) -> list[Any]:
    """What is still to come on an open call."""
    found = []
    async with asyncio.timeout(BOUND):
        while (data := await call.read()) is not aio.EOF:
            found.append(oracle.read("StreamResponse", data))
    return found


async def next_event(call: Any) -> Any:
    """The next event of an open call."""
    async with asyncio.timeout(BOUND):
        return oracle.read("StreamResponse", await call.read())


def say(text: str = "hello", configuration: Any = None, **members: Any) -> dict[str, Any]:
    """A SendMessageRequest; keywords are members of the message."""
    message = {"messageId": "m-1", "role": "ROLE_USER", "content": [{"text": text}], **members}
    return {"message": message, **({"configuration": configuration} if configuration is not None else {})}


@asynccontextmanager
async def called_old(agent: Agent | App, **more: Any) -> AsyncIterator[OldCaller]:
    """An agent over gRPC, and a caller of 0.3; keywords are settings of App."""
    async with (
        grpc_served(agent, GrpcServerSettings(port=0), **more) as server,
        aio.insecure_channel(f"127.0.0.1:{server.port}") as channel,
    ):
        yield OldCaller(channel)


@asynccontextmanager
async def scripted_old(**methods: Any) -> AsyncIterator[str]:
    """A server of 0.3 that nobody here wrote: bytes in, what the functions do with ``(data, context)``; its address."""

    class Handler(grpc.GenericRpcHandler):
        def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:
            name = handler_call_details.method.removeprefix(SERVICE)
            if name not in methods:
                return None
            make: Any = (
                grpc.unary_stream_rpc_method_handler if METHODS[name][2] else grpc.unary_unary_rpc_method_handler
            )
            return make(methods[name])

    server = aio.server(options=[("grpc.so_reuseport", 0)])
    server.add_generic_rpc_handlers((Handler(),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        await server.stop(0)
