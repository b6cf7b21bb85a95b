"""Subscribers as bare sockets: cheap enough for a thousand, and free to stop reading."""

from __future__ import annotations

import asyncio
import re
import socket
from urllib.parse import urlsplit

import msgspec

_ID = re.compile(rb"^id: (\d+)$", re.MULTILINE)


class RawStream:
    """A subscription to a task over HTTP+JSON. ``body`` is what was read of it, without the framing of HTTP."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self.body = b""

    @classmethod
    async def open(cls, url: str, task_id: str, *, buffer: int | None = None) -> RawStream:
        """Subscribe and read the head. ``buffer``: size in bytes of the socket's buffer for what comes."""
        place = urlsplit(url)
        connection = socket.socket()
        connection.setblocking(False)
        if buffer is not None:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        await asyncio.get_running_loop().sock_connect(connection, (place.hostname, place.port))
        reader, writer = await asyncio.open_connection(sock=connection, limit=buffer or 2**16)
        writer.write(
            f"POST /tasks/{task_id}:subscribe HTTP/1.1\r\nHost: {place.netloc}\r\nA2A-Version: 1.0\r\n"
            "Content-Type: application/json\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}".encode()
        )
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200"), head
        return cls(reader, writer)

    async def read_piece(self) -> bytes:
        """The next chunk of the body, empty at its end."""
        size = int(await self._reader.readline(), 16)
        data = await self._reader.readexactly(size)
        await self._reader.readexactly(2)
        self.body += data
        return data

    async def read_to_the_end(self) -> None:
        """Read everything."""
        while await self.read_piece():
            pass

    async def count_to_the_end(self) -> tuple[int, int]:
        """Read everything and keep nothing of it: how many events, and how many bytes."""
        events = size = 0
        while data := await self.read_piece():
            events += data.count(b"\ndata: ") + data.startswith(b"data: ")
            size += len(data)
            self.body = b""
        return events, size

    @property
    def numbers(self) -> list[int]:
        """Numbers of the events."""
        return [int(number) for number in _ID.findall(self.body)]

    def close(self) -> None:
        """Hang up."""
        self._writer.transport.abort()


async def time_card(url: str) -> float:
    """Seconds that the card takes on a connection of its own."""
    place, loop = urlsplit(url), asyncio.get_running_loop()
    begun = loop.time()
    reader, writer = await asyncio.open_connection(place.hostname, place.port)
    try:
        writer.write(b"GET /.well-known/agent-card.json HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        answer = await reader.read()
    finally:
        writer.close()
    assert answer.startswith(b"HTTP/1.1 200"), answer
    msgspec.json.decode(answer.partition(b"\r\n\r\n")[2])
    return loop.time() - begun
