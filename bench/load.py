"""A load generator: one request over and over on a number of connections, with as little work as possible."""

from __future__ import annotations

import asyncio
import time

END_OF_CHUNKS = b"\r\n0\r\n\r\n"


class Connection(asyncio.Protocol):
    """Sends the request again as soon as its answer is complete."""

    def __init__(self, request: bytes, tally: Tally) -> None:
        self._request = request
        self._tally = tally
        self._buffer = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        """Look whether the answer is complete."""
        self._buffer = buffer = self._buffer + data if self._buffer else data
        if not _is_complete(buffer):
            return
        self._tally.add(buffer)
        self._buffer = b""
        assert self._transport is not None
        self._transport.write(self._request)

    def connection_lost(self, exc: Exception | None) -> None:
        """The server must not close."""
        self._tally.closed += 1


def _is_complete(buffer: bytes) -> bool:
    head = buffer.find(b"\r\n\r\n")
    if head < 0:
        return False
    at = buffer.find(b"content-length: ", 0, head)
    if at < 0:
        return buffer.endswith(END_OF_CHUNKS)
    length = int(buffer[at + 16 : buffer.find(b"\r\n", at)])
    return len(buffer) >= head + 4 + length


class Tally:
    """What came back."""

    def __init__(self) -> None:
        self.answers = 0
        self.bytes = 0
        self.wrong = 0
        self.closed = 0
        self.sample = b""

    def add(self, answer: bytes) -> None:
        """Count one answer."""
        self.answers += 1
        self.bytes += len(answer)
        if not answer.startswith(b"HTTP/1.1 200") or b'"error"' in answer:
            self.wrong += 1
            self.sample = answer
        elif not self.sample:
            self.sample = answer


async def generate(port: int, request: bytes, seconds: float, connections: int) -> tuple[float, Tally]:
    """Answers per second over ``seconds``, after half a second of warming up, and the tally of the measured time."""
    loop = asyncio.get_running_loop()
    tally = Tally()
    pairs = [
        await loop.create_connection(lambda: Connection(request, tally), "127.0.0.1", port) for _ in range(connections)
    ]
    await asyncio.sleep(0.5)
    before, began = tally.answers, time.perf_counter()
    await asyncio.sleep(seconds)
    rate = (tally.answers - before) / (time.perf_counter() - began)
    for transport, _ in pairs:
        transport.abort()
    return rate, tally


async def once(port: int, request: bytes) -> bytes:
    """One answer, with its head."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    buffer = b""
    while not _is_complete(buffer):
        piece = await asyncio.wait_for(reader.read(65536), 10)
        if not piece:
            break
        buffer += piece
    writer.close()
    return buffer
