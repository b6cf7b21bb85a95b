"""A TCP proxy that cuts, resets, delays, splits and stalls connections by a plan.

Theory. Each connection has a :class:`Fate`, which a plan gives by the connection's number. What is sent to the server
passes untouched; what comes back is passed on in pieces, and its bytes are counted: at a count that the fate names,
nothing moves any more, or the connection ends. A plan made by :func:`seeded_plan` depends on its seed and the number
only, so a run that failed can be repeated.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import socket
import struct
from collections.abc import Callable
from types import TracebackType
from urllib.parse import urlsplit

import msgspec

HOST = "127.0.0.1"
CHUNK = 64 * 1024


class Fate(msgspec.Struct, frozen=True, kw_only=True):
    """What happens to one connection. Bytes are those from the server to the client.

    * ``cut_after``: bytes after which the connection ends; None: when one side ends it;
    * ``reset``: whether that end is a reset (RST), rather than one in order (FIN);
    * ``piece``: how many bytes are passed on at once, at most;
    * ``delay``: seconds before each piece;
    * ``stall_after``, ``stall``: bytes after which nothing moves for so many seconds.
    """

    cut_after: int | None = None
    reset: bool = False
    piece: int = CHUNK
    delay: float = 0.0
    stall_after: int | None = None
    stall: float = 0.0


UNTOUCHED = Fate()
Plan = Callable[[int], Fate]
"""The fate of a connection by its number, from 0."""


def untouched(number: int) -> Fate:
    """The plan of a proxy that does nothing."""
    return UNTOUCHED


def seeded_plan(seed: int, *, within: int = 4_000, stall: float = 60.0, mercy: int = 8) -> Plan:
    """A plan of cuts (in order and by reset), stalls, delays and small pieces, each connection another mixture.

    ``within``: bytes within which a cut or a stall comes; ``stall``: seconds of a stall; every ``mercy``-th connection
    is not cut, so that everything ends at last.
    """

    def fate(number: int) -> Fate:
        dice = random.Random(f"{seed}/{number}")
        kind = dice.choice(("cut", "cut", "cut", "stall", "pass")) if (number + 1) % mercy else "pass"
        at = dice.randrange(within)
        piece = dice.choice((1, 7, 100, CHUNK))
        return Fate(
            cut_after=at if kind == "cut" else None,
            reset=dice.random() < 0.5,
            piece=piece,
            delay=dice.choice((0.0, 0.001)) if piece >= 100 else 0.0,  # byte by byte is slow enough
            stall_after=at if kind == "stall" else None,
            stall=stall,
        )

    return fate


class CuttingProxy:
    """A proxy on a local port: ``async with CuttingProxy(server_url, seeded_plan(7)) as proxy``, then ``proxy.url``.

    ``plan`` may be replaced at any time; it is asked at the beginning of each connection. ``connections``, ``cuts`` and
    ``stalls`` count what happened.
    """

    def __init__(self, target: str, plan: Plan = untouched) -> None:
        parts = urlsplit(target)
        assert parts.hostname is not None
        self._target = parts.hostname, parts.port or 80
        self.plan = plan
        self.connections = self.cuts = self.stalls = 0
        self._server: asyncio.Server | None = None
        self._serving: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        """The address to call instead of the server's."""
        assert self._server is not None
        return f"http://{HOST}:{self._server.sockets[0].getsockname()[1]}"

    async def __aenter__(self) -> CuttingProxy:
        self._server = await asyncio.start_server(self._accept, HOST, 0)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        for serving in self._serving:
            serving.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        number = self.connections
        self.connections += 1
        serving = asyncio.create_task(self._serve(reader, writer, self.plan(number)))
        self._serving.add(serving)
        serving.add_done_callback(self._serving.discard)

    async def _serve(self, client: asyncio.StreamReader, answer: asyncio.StreamWriter, fate: Fate) -> None:
        try:
            server, request = await asyncio.open_connection(*self._target)
        except OSError:
            _reset(answer)
            return
        asking = asyncio.create_task(_copy(client, request))
        answering = asyncio.create_task(self._copy_answer(server, answer, fate))
        try:
            await asyncio.wait({asking, answering}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for copying in (asking, answering):
                copying.cancel()
            await asyncio.gather(asking, answering, return_exceptions=True)
            request.transport.abort()
            answer.close()

    async def _copy_answer(self, server: asyncio.StreamReader, answer: asyncio.StreamWriter, fate: Fate) -> None:
        passed = 0
        with contextlib.suppress(ConnectionError):
            while data := await server.read(CHUNK):
                start = 0
                while start < len(data):
                    if fate.cut_after is not None and passed >= fate.cut_after:
                        self._cut(answer, fate)
                        return
                    if fate.stall_after is not None and passed >= fate.stall_after:
                        self.stalls += 1
                        await asyncio.sleep(fate.stall)
                        fate = msgspec.structs.replace(fate, stall_after=None)
                    piece = data[start : start + _length(fate, passed)]
                    await asyncio.sleep(fate.delay)  # also without a delay: let the reader have the piece alone
                    answer.write(piece)
                    await answer.drain()
                    start += len(piece)
                    passed += len(piece)

    def _cut(self, answer: asyncio.StreamWriter, fate: Fate) -> None:
        self.cuts += 1
        if fate.reset:
            _reset(answer)


def _length(fate: Fate, passed: int) -> int:
    """How long the next piece may be: nothing beyond the next mark is passed on."""
    marks = [mark - passed for mark in (fate.cut_after, fate.stall_after) if mark is not None]
    return max(1, min(fate.piece, *marks)) if marks else fate.piece


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(CHUNK):
            writer.write(data)
            await writer.drain()


def _reset(writer: asyncio.StreamWriter) -> None:
    """End the connection by RST."""
    connection = writer.get_extra_info("socket")
    if connection is not None:
        with contextlib.suppress(OSError):
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
