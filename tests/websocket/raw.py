"""A socket whose messages are written by hand."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed
from websockets.typing import Origin, Subprotocol

SUBPROTOCOL = Subprotocol("a2a-dragoman.v1")
BOUND = 5.0
"""Seconds that anything a test waits for may take."""


def say(text: str = "hello") -> dict[str, Any]:
    """The request of SendMessage."""
    return {"message": {"messageId": f"m-{text}", "role": "ROLE_USER", "parts": [{"text": text}]}}


def call(call_id: int, operation: str = "SendMessage", request: Any = None, **members: Any) -> dict[str, Any]:
    """A call, in version 1.0 unless ``parameters`` say otherwise."""
    found = say() if request is None else request
    frame = {"type": "call", "id": call_id, "operation": operation, "request": found}
    return {**frame, "parameters": {"a2a-version": "1.0"}, **members}


class RawSocket:
    """An open socket."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection

    async def send(self, *frames: Any) -> None:
        """Send objects as JSON, text and bytes as they are."""
        for frame in frames:
            await self.connection.send(frame if isinstance(frame, str | bytes) else json.dumps(frame))

    async def next(self) -> dict[str, Any]:
        """The next message that is no ping."""
        async with asyncio.timeout(BOUND):
            while True:
                found: dict[str, Any] = json.loads(await self.connection.recv())
                if found["type"] != "ping":
                    return found

    async def ask(self, *frames: Any) -> dict[str, Any]:
        """Send, and take the next message."""
        await self.send(*frames)
        return await self.next()

    async def until_closed(self) -> tuple[int, list[dict[str, Any]]]:
        """The code it is closed with, and what came before."""
        came: list[dict[str, Any]] = []
        try:
            while True:
                came.append(await self.next())
        except ConnectionClosed as error:
            return error.rcvd.code if error.rcvd is not None else 1006, came


@asynccontextmanager
async def dialed(url: str, *, origin: str | None = None, **headers: str) -> AsyncIterator[RawSocket]:
    """A socket to the app at this address; underscores in headers stand for hyphens."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    async with connect(
        "ws" + url.removeprefix("http") + "/ws",
        subprotocols=[SUBPROTOCOL],
        origin=None if origin is None else Origin(origin),
        additional_headers=named,
        compression=None,
        ping_interval=None,
        close_timeout=0.5,
    ) as connection:
        yield RawSocket(connection)
