"""A bare ASGI app: reads the request, sends bytes that were prepared. What the HTTP server itself can do."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

Send = Callable[[dict[str, Any]], Awaitable[None]]
Receive = Callable[[], Awaitable[dict[str, Any]]]


class Bare:
    """Answers every request with ``pieces``: one body, or a stream with one send for each, ``pause`` seconds apart."""

    def __init__(self, pieces: list[bytes], content_type: bytes, *, stream: bool, pause: float = 0.0) -> None:
        self._pieces = pieces
        self._headers = [(b"content-type", content_type)]
        if not stream:
            self._headers.append((b"content-length", b"%d" % len(pieces[0])))
        self._stream = stream
        self._pause = pause

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] == "lifespan":
            await _live(receive, send)
            return
        while (await receive()).get("more_body"):
            continue
        await send({"type": "http.response.start", "status": 200, "headers": self._headers})
        if not self._stream:
            await send({"type": "http.response.body", "body": self._pieces[0]})
            return
        for piece in self._pieces:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
            if self._pause:
                await asyncio.sleep(self._pause)
        await send({"type": "http.response.body", "body": b""})


async def _live(receive: Receive, send: Send) -> None:
    await receive()
    await send({"type": "lifespan.startup.complete"})
    await receive()
    await send({"type": "lifespan.shutdown.complete"})
