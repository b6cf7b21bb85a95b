"""A WebSocket server that does what a test says, for what no server of ours does."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from websockets.asyncio.server import ServerConnection, serve

from dragoman.bindings.websocket import WEBSOCKET
from dragoman.model import AgentInterface
from tests.websocket.raw import SUBPROTOCOL

Play = Callable[["Peer"], Awaitable[None]]


class Peer:
    """One socket of a client. ``number`` counts them from 0."""

    def __init__(self, connection: ServerConnection, number: int) -> None:
        self.connection = connection
        self.number = number

    async def next(self) -> dict[str, Any]:
        """The next message that is no ping."""
        while (found := json.loads(await self.connection.recv()))["type"] == "ping":
            pass
        assert isinstance(found, dict)
        return found

    async def send(self, *frames: Any) -> None:
        """Objects as JSON, text as it is."""
        for frame in frames:
            await self.connection.send(frame if isinstance(frame, str) else json.dumps(frame))


class ScriptedServer:
    """``interface`` names it; ``peers`` are the sockets that it had."""

    def __init__(self, play: Play) -> None:
        self._play = play
        self.peers: list[Peer] = []
        self.interface = AgentInterface(url="", protocol_binding=WEBSOCKET, protocol_version="1.0")

    async def handle(self, connection: ServerConnection) -> None:
        peer = Peer(connection, len(self.peers))
        self.peers.append(peer)
        await self._play(peer)


@asynccontextmanager
async def playing(play: Play, **settings: Any) -> AsyncIterator[ScriptedServer]:
    """Serve until the block ends; each socket is closed when ``play`` returns."""
    server = ScriptedServer(play)
    settings = {"subprotocols": [SUBPROTOCOL], "compression": None, "ping_interval": None, **settings}
    async with serve(server.handle, "127.0.0.1", 0, close_timeout=0.2, **settings) as listening:
        port = listening.sockets[0].getsockname()[1]
        server.interface.url = f"ws://127.0.0.1:{port}/ws"
        yield server


@asynccontextmanager
async def silent_after_handshake() -> AsyncIterator[str]:
    """The address of a server that takes a handshake and then says no more, as over a dead line."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        key = next(line for line in head.split(b"\r\n") if line.lower().startswith(b"sec-websocket-key")).split()[1]
        accept = base64.b64encode(hashlib.sha1(key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest())
        writer.write(
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Accept: %b\r\nSec-WebSocket-Protocol: %b\r\n\r\n" % (accept, SUBPROTOCOL.encode())
        )
        await reader.read()
        writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    try:
        yield f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}/ws"
    finally:
        server.close()
