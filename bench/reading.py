"""A client that reads streams: ``python -m bench.reading raw|lines|client PORT TIMES``.

Prints how many events came, and the seconds of processor time that they took. A first stream is not counted.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable

import httpx2
import uvloop

import dragoman
from bench.requests import message
from dragoman.model import AgentInterface

Read = Callable[[], Awaitable[int]]


async def read_raw(port: int, tell: Callable[[Read], Awaitable[None]]) -> None:
    """Bytes as they come."""
    async with httpx2.AsyncClient() as http:

        async def read() -> int:
            events = 0
            request = http.stream("POST", f"http://127.0.0.1:{port}/message:stream", json=message())
            async with request as response:
                async for piece in response.aiter_bytes():
                    events += piece.count(b"\n\n")
            return events

        await tell(read)


async def read_lines(port: int, tell: Callable[[Read], Awaitable[None]]) -> None:
    """Lines of text."""
    async with httpx2.AsyncClient() as http:

        async def read() -> int:
            events = 0
            request = http.stream("POST", f"http://127.0.0.1:{port}/message:stream", json=message())
            async with request as response:
                async for line in response.aiter_lines():
                    events += not line
            return events

        await tell(read)


async def read_client(port: int, tell: Callable[[Read], Awaitable[None]]) -> None:
    """Events of our client."""
    interface = AgentInterface(url=f"http://127.0.0.1:{port}", protocol_binding="HTTP+JSON", protocol_version="1.0")
    async with dragoman.connect(interface) as client:

        async def read() -> int:
            events = 0
            async for _ in client.stream("Hello there"):
                events += 1
            return events

        await tell(read)


READERS = {"raw": read_raw, "lines": read_lines, "client": read_client}


async def main(kind: str, port: int, times: int) -> None:
    """Read, and print."""

    async def tell(read: Read) -> None:
        await read()
        began = time.process_time()
        events = sum([await read() for _ in range(times)])
        print(events, time.process_time() - began)

    await READERS[kind](port, tell)


if __name__ == "__main__":
    run = asyncio.run if "--asyncio" in sys.argv else uvloop.run
    run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
