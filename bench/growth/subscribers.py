"""Many subscribers of one task: each event is encoded once, whatever their number."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import cast

import msgspec

from bench.agents import PIECE
from bench.growth.curve import Curve, Sizes
from bench.load import END_OF_CHUNKS, PATIENCE, WrongAnswer, once
from bench.processes import Server, command_for, serving, wait_until_up
from bench.requests import body_of, http, message, request_for, sends_of, unchunked

EVENTS = 101
"""Those that come after the subscription: a hundred chunks and the end."""
SNAPSHOT = b'"task"'
"""What the first event of a subscription is."""


async def measure_subscribers(sizes: Sizes, sdk: Path | None) -> Curve:
    """Have some numbers of subscribers follow one task, each from a fresh server."""
    rows = []
    for kind, python, counts in (("dragoman", None, sizes.subscribers), ("a2a-sdk", sdk, sizes.sdk_subscribers)):
        if kind == "dragoman" or python is not None:
            rows += [await _follow(kind, python, count) for count in counts]
    return Curve(
        "Many subscribers of one task, 100 chunks one by one",
        "µs for each event of each subscriber do not grow with their number",
        ("server", "subscribers", "sends to one", "µs an event of one", "s", "KB a subscriber"),
        rows,
    )


class Subscriber(asyncio.Protocol):
    """Reads until the end of its stream."""

    def __init__(self, request: bytes) -> None:
        self._request = request
        self._pieces: list[bytes] = []
        self.joined = asyncio.Event()
        self.ended = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Subscribe."""
        cast("asyncio.Transport", transport).write(self._request)

    def data_received(self, data: bytes) -> None:
        """Keep it."""
        self._pieces.append(data)
        if not self.joined.is_set() and SNAPSHOT in self.answer:
            self.joined.set()
        if data.endswith(END_OF_CHUNKS) or b"".join(self._pieces[-2:]).endswith(END_OF_CHUNKS):
            self.ended.set()

    @property
    def answer(self) -> bytes:
        """All that came."""
        return b"".join(self._pieces)


async def _follow(kind: str, python: Path | None, count: int) -> list[str]:
    with serving(command_for(kind, python), "broadcast", "") as server:
        await wait_until_up(server.port)
        request = http("POST", f"/tasks/{await _begin(server)}:subscribe", {})
        memory = server.memory()
        readers = await _join(server, request, count)
        cpu, loop = server.cpu(), asyncio.get_running_loop()
        began = loop.time()
        await once(server.port, request_for("send", "HTTP+JSON", text="go"))
        await _all(reader.ended for reader in readers)
        took, spent, grown = loop.time() - began, server.cpu() - cpu, server.memory() - memory
    _check(readers)
    each = spent / count / EVENTS * 1e6
    sends = len(sends_of(body_of(readers[0].answer)))
    return [kind, f"{count:,}", str(sends), f"{each:.1f}", f"{took:.2f}", f"{grown / count * 1e3:.0f}"]


async def _begin(server: Server) -> str:
    asked = message("wait") | {"configuration": {"returnImmediately": True}}
    answer = await once(server.port, http("POST", "/message:send", asked))
    return str(msgspec.json.decode(body_of(answer))["task"]["id"])


async def _join(server: Server, request: bytes, count: int) -> list[Subscriber]:
    loop = asyncio.get_running_loop()
    readers = [Subscriber(request) for _ in range(count)]
    for reader in readers:
        await loop.create_connection(partial(_as_it_is, reader), "127.0.0.1", server.port)
    await _all(reader.joined for reader in readers)
    return readers


def _as_it_is(reader: Subscriber) -> Subscriber:
    return reader


async def _all(events: Iterable[asyncio.Event]) -> None:
    async with asyncio.timeout(PATIENCE):
        for event in events:
            await event.wait()


def _check(readers: list[Subscriber]) -> None:
    for reader in readers:
        body = unchunked(body_of(reader.answer))
        if body.count(PIECE.encode()) != 100 or b"TASK_STATE_COMPLETED" not in body:
            raise WrongAnswer(f"a subscriber saw {body.count(PIECE.encode())} of 100 chunks")
