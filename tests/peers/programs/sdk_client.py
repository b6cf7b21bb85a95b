"""The official SDK's client, driven from outside: ``python sdk_client.py``. Runs under the SDK's own interpreter.

Reads commands, one JSON object a line, and prints for each a line of what the client saw, as ProtoJSON:

    {"id": 1, "do": "connect", "url": "http://…", "binding": "JSONRPC"}     → {"id": 1, "saw": {…card…}}
    {"id": 2, "do": "send_message", "request": {…}, "headers": {…}}         → {"id": 2, "saw": {"task": {…}}}
    {"id": 3, "do": "open", "stream": "s", "call": "subscribe", "request": {…}}
    {"id": 4, "do": "next", "stream": "s"}                                  → {"id": 4, "saw": {…event…}} or null
    {"id": 5, "do": "close", "stream": "s"}

An exception is ``{"id": …, "error": "its class", "message": "its text"}``. Commands run side by side.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from typing import Any

import grpc
import httpx
from a2a import types
from a2a.client import A2ACardResolver, Client, ClientCallContext, ClientConfig, ClientFactory
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.message import Message

REQUESTS = {
    "send_message": types.SendMessageRequest,
    "get_task": types.GetTaskRequest,
    "list_tasks": types.ListTasksRequest,
    "cancel_task": types.CancelTaskRequest,
    "subscribe": types.SubscribeToTaskRequest,
    "create_task_push_notification_config": types.TaskPushNotificationConfig,
    "get_task_push_notification_config": types.GetTaskPushNotificationConfigRequest,
    "list_task_push_notification_configs": types.ListTaskPushNotificationConfigsRequest,
    "delete_task_push_notification_config": types.DeleteTaskPushNotificationConfigRequest,
    "get_extended_agent_card": types.GetExtendedAgentCardRequest,
}


def told(message: Message | None) -> Any:
    return {} if message is None else MessageToDict(message)


class Driver:
    """One connection, and the streams that are open on it."""

    def __init__(self) -> None:
        self._clients: dict[str, Client] = {}
        self._streams: dict[str, AsyncIterator[types.StreamResponse]] = {}

    async def run(self, command: dict[str, Any]) -> Any:
        if command["do"] in ("connect", "open", "next", "close"):
            return await getattr(self, f"_{command['do']}")(command)
        name, request, context = self._read(command)
        if name == "send_message":
            async for answer in self._clients["unary"].send_message(request, context=context):
                return told(answer)
        return told(await getattr(self._clients["unary"], name)(request, context=context))

    def _read(self, command: dict[str, Any]) -> tuple[str, Message, ClientCallContext]:
        name = command.get("call") or command["do"]
        request = ParseDict(command["request"], REQUESTS[name]())
        return name, request, ClientCallContext(service_parameters=command.get("headers") or {}, timeout=20)

    async def _connect(self, command: dict[str, Any]) -> Any:
        async with httpx.AsyncClient() as http:
            card = await A2ACardResolver(http, command["url"]).get_agent_card()
        # What the card does not offer is asked for all the same: the answer of the server is what is looked at.
        asking = types.AgentCard()
        asking.CopyFrom(card)
        asking.capabilities.extended_agent_card = True
        for kind, streaming in (("unary", False), ("streaming", True)):
            config = ClientConfig(
                streaming=streaming,
                supported_protocol_bindings=[command["binding"]],
                grpc_channel_factory=grpc.aio.insecure_channel,
            )
            self._clients[kind] = ClientFactory(config).create(asking)
        return told(card)

    async def _open(self, command: dict[str, Any]) -> Any:
        name, request, context = self._read(command)
        self._streams[command["stream"]] = getattr(self._clients["streaming"], name)(request, context=context)
        return {}

    async def _next(self, command: dict[str, Any]) -> Any:
        try:
            return told(await anext(self._streams[command["stream"]]))
        except StopAsyncIteration:
            return None

    async def _close(self, command: dict[str, Any]) -> Any:
        await self._streams.pop(command["stream"]).aclose()
        return {}


async def answer(driver: Driver, command: dict[str, Any]) -> None:
    try:
        line = {"id": command["id"], "saw": await driver.run(command)}
    except Exception as error:  # whatever the client raises is what it saw
        line = {"id": command["id"], "error": type(error).__name__, "message": str(error)}
    print(json.dumps(line), flush=True)


async def main() -> None:
    reader = asyncio.StreamReader(limit=2**24)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    driver = Driver()
    async with asyncio.TaskGroup() as running:
        while line := await reader.readline():
            running.create_task(answer(driver, json.loads(line)))


if __name__ == "__main__":
    asyncio.run(main())
