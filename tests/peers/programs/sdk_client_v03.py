"""The client of the official SDK of the 0.3 line, driven from outside: ``python sdk_client_v03.py``.

Runs under that SDK's own interpreter. It takes the same lines as ``sdk_client.py``, where they are told; requests and
answers are the SDK's own objects, as the JSON of protocol 0.3.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import typing
from collections.abc import AsyncIterator
from typing import Any

import grpc
import httpx
from a2a.client import A2ACardResolver, Client, ClientConfig, ClientFactory
from a2a.client.errors import A2AClientHTTPError, A2AClientJSONRPCError
from a2a.types import (
    A2AError,
    GetTaskPushNotificationConfigParams,
    MessageSendConfiguration,
    MessageSendParams,
    TaskIdParams,
    TaskPushNotificationConfig,
    TaskQueryParams,
)
from pydantic import BaseModel

CALLS = {
    "get_task": ("get_task", TaskQueryParams),
    "cancel_task": ("cancel_task", TaskIdParams),
    "create_task_push_notification_config": ("set_task_callback", TaskPushNotificationConfig),
    "get_task_push_notification_config": ("get_task_callback", GetTaskPushNotificationConfigParams),
}


KINDS = typing.get_args(A2AError.model_fields["root"].annotation)
NAMES = {kind.model_fields["code"].default: kind.__name__ for kind in KINDS}
"""Of the errors that the SDK knows by their codes; its client raises them all as the same."""


class NotThere(Exception):
    """The client has no method for it."""


def told(value: BaseModel) -> Any:
    return value.model_dump(mode="json", by_alias=True, exclude_none=True)


def event_of(seen: Any) -> Any:
    """A stream tells the task so far and the update, which is what was sent."""
    task, update = seen if isinstance(seen, tuple) else (seen, None)
    return told(task if update is None else update)


class Driver:
    """One connection, and the streams that are open on it."""

    def __init__(self) -> None:
        self._clients: dict[str, Client] = {}
        self._streams: dict[str, AsyncIterator[Any]] = {}

    async def run(self, command: dict[str, Any]) -> Any:
        name = command["do"]
        if hasattr(self, f"_{name}"):
            return await getattr(self, f"_{name}")(command)
        if name not in CALLS:
            raise NotThere(f"the SDK's client has nothing for {name}")
        method, kind = CALLS[name]
        return told(await getattr(self._clients["unary"], method)(kind.model_validate(command["request"])))

    async def _connect(self, command: dict[str, Any]) -> Any:
        async with httpx.AsyncClient() as http:
            card = await A2ACardResolver(http, command["url"]).get_agent_card()
        # What the card does not offer is asked for all the same: the answer of the server is what is looked at.
        asking = card.model_copy(deep=True, update={"supports_authenticated_extended_card": True})
        for kind, streaming in (("unary", False), ("streaming", True)):
            config = ClientConfig(
                streaming=streaming,
                supported_transports=[command["binding"]],
                grpc_channel_factory=grpc.aio.insecure_channel,
                httpx_client=httpx.AsyncClient(timeout=20),
            )
            self._clients[kind] = ClientFactory(config).create(asking)
        return told(card)

    async def _send_message(self, command: dict[str, Any]) -> Any:
        return event_of(await anext(self._sending("unary", command["request"])))

    def _sending(self, kind: str, request: dict[str, Any]) -> AsyncIterator[Any]:
        params = MessageSendParams.model_validate(request)
        client, configuration = self._clients[kind], params.configuration
        # A webhook of one call becomes a dict, which two of the transports cannot read; one of the client does not.
        client._config.push_notification_configs = []
        if configuration is not None and configuration.push_notification_config is not None:
            client._config.push_notification_configs = [configuration.push_notification_config]
            configuration = MessageSendConfiguration(blocking=configuration.blocking)
        return client.send_message(params.message, configuration=configuration, request_metadata=params.metadata)

    async def _get_extended_agent_card(self, command: dict[str, Any]) -> Any:
        return told(await self._clients["unary"].get_card())

    async def _open(self, command: dict[str, Any]) -> Any:
        if command["call"] == "subscribe":
            stream = self._clients["streaming"].resubscribe(TaskIdParams.model_validate(command["request"]))
        else:
            stream = self._sending("streaming", command["request"])
        self._streams[command["stream"]] = stream
        return {}

    async def _next(self, command: dict[str, Any]) -> Any:
        try:
            return event_of(await anext(self._streams[command["stream"]]))
        except StopAsyncIteration:
            return None

    async def _close(self, command: dict[str, Any]) -> Any:
        await self._streams.pop(command["stream"]).aclose()
        return {}


def name_of(error: Exception) -> str:
    """The protocol's name of an error: as the client tells it, else as stands in what it was told.

    Over HTTP+JSON the client keeps nothing but the status, and the response as its cause; over gRPC it adds nothing.
    """
    if isinstance(error, A2AClientJSONRPCError):
        return NAMES.get(error.error.code, f"{type(error.error).__name__} {error.error.code}")
    if isinstance(error, A2AClientHTTPError):
        with contextlib.suppress(Exception):
            return json.loads(error.__cause__.response.content)["type"]
        return f"HTTP {error.status_code}"
    if isinstance(error, grpc.RpcError):
        name = (error.details() or "").partition(": ")[0]
        return name if name.endswith("Error") else error.code().name
    return type(error).__name__


async def answer(driver: Driver, command: dict[str, Any]) -> None:
    try:
        line = {"id": command["id"], "saw": await driver.run(command)}
    except Exception as error:  # whatever the client raises is what it saw
        line = {"id": command["id"], "error": name_of(error), "message": str(error)}
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
