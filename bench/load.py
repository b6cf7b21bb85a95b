"""A load generator: one request over and over on a number of connections, with as little work as possible."""

from __future__ import annotations

import asyncio
import time
from typing import cast

END_OF_CHUNKS = b"\r\n0\r\n\r\n"
WARM_UP = 0.3
"""Seconds of load before anything is measured."""
PATIENCE = 120.0
"""Seconds that the answers which are under way at the end may take."""


class WrongAnswer(Exception):
    """A server answered something else than what is measured; the text is the answer's beginning."""


class Connection(asyncio.Protocol):
    """Sends the request again as soon as its answer is complete, as long as the load goes on."""

    def __init__(self, load: Load) -> None:
        self._load = load
        self._buffer = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep it."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop's do not derive from it

    def begin(self) -> None:
        """Ask."""
        assert self._transport is not None
        self._transport.write(self._load.request)

    def data_received(self, data: bytes) -> None:
        """Look whether the answer is complete."""
        self._buffer = buffer = self._buffer + data if self._buffer else data
        if not is_complete(buffer):
            return
        self._buffer = b""
        if self._load.take(buffer):
            self.begin()

    def connection_lost(self, exc: Exception | None) -> None:
        """The server must not close."""
        self._load.lose()

    def close(self) -> None:
        """Let go."""
        assert self._transport is not None
        self._transport.abort()


def is_complete(buffer: bytes) -> bool:
    """Whether an HTTP answer is all there."""
    head = buffer.find(b"\r\n\r\n")
    if head < 0:
        return False
    at = buffer.find(b"content-length: ", 0, head)
    if at < 0:
        return buffer.endswith(END_OF_CHUNKS)
    length = int(buffer[at + 16 : buffer.find(b"\r\n", at)])
    return len(buffer) >= head + 4 + length


class Load:
    """A number of connections that ask the same, in periods that begin and end with nothing under way.

    Every answer must be a 200 with ``proof`` in it. So what a server spent in a period is what its answers cost.
    """

    def __init__(self, request: bytes, proof: bytes) -> None:
        self.request = request
        self._proof = proof
        self._connections: list[Connection] = []
        self._answers = 0
        self._under_way = 0
        self._until = 0.0
        self._limit = 0
        self._failure: WrongAnswer | None = None
        self.last = b""
        self._idle = asyncio.Event()

    async def connect(self, port: int, connections: int) -> None:
        """Open the connections."""
        loop = asyncio.get_running_loop()
        for _ in range(connections):
            _, connection = await loop.create_connection(lambda: Connection(self), "127.0.0.1", port)
            self._connections.append(connection)

    async def run(self, *, seconds: float = 0.0, answers: int = 0) -> tuple[int, float]:
        """Ask for some seconds, or for a number of answers; how many there were, and in how many seconds.

        Raises WrongAnswer, and TimeoutError when the last ones do not come.
        """
        began = time.perf_counter()
        self._until, self._limit = began + (seconds or PATIENCE), answers
        self._answers, self._under_way = 0, 0
        self._idle.clear()
        for connection in self._connections:
            self._under_way += 1
            connection.begin()
        async with asyncio.timeout(seconds + PATIENCE):
            await self._idle.wait()
        if self._failure is not None:
            raise self._failure
        return self._answers, time.perf_counter() - began

    def take(self, answer: bytes) -> bool:
        """Count an answer; whether to ask again."""
        self._answers += 1
        self.last = answer
        if not answer.startswith(b"HTTP/1.1 200") or self._proof not in answer:
            self._fail(answer[:600].decode(errors="replace"))
        asked = self._answers + self._under_way - 1
        if self._failure is None and time.perf_counter() < self._until and (not self._limit or asked < self._limit):
            return True
        self._end_one()
        return False

    def lose(self) -> None:
        """A connection was closed."""
        if self._under_way:
            self._fail("the server closed the connection")
            self._end_one()

    def _fail(self, text: str) -> None:
        self._failure = self._failure or WrongAnswer(text)

    def _end_one(self) -> None:
        self._under_way -= 1
        if not self._under_way:
            self._idle.set()

    def close(self) -> None:
        """Close the connections."""
        for connection in self._connections:
            connection.close()
        self._connections.clear()


async def once(port: int, request: bytes) -> bytes:
    """One answer, with its head."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**26)
    writer.write(request)
    pieces: list[bytes] = []
    tail = b""
    async with asyncio.timeout(PATIENCE):
        while piece := await reader.read(2**18):
            pieces.append(piece)
            tail = (tail + piece)[-len(END_OF_CHUNKS) :]
            if len(pieces) == 1 or tail == END_OF_CHUNKS or b"content-length" in pieces[0]:
                whole = b"".join(pieces)
                if is_complete(whole):
                    break
    writer.close()
    return b"".join(pieces)
