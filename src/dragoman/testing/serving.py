"""Serving an app on a real socket, in the event loop of a test."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from dragoman.bindings.grpc.settings import GrpcServerSettings
from dragoman.server.serving import Servable, base_url, listen, serve

START_TIMEOUT = 10.0


@asynccontextmanager
async def serving(
    app: Servable, *, host: str = "127.0.0.1", port: int = 0, grpc: GrpcServerSettings | None = None
) -> AsyncIterator[str]:
    """Serve an app with uvicorn until the block ends; gives its base URL. ``port`` 0 takes any free one.

    With ``grpc`` also over gRPC, whose address is on the card.

    The shutdown at the end is that of a server: running handlers have ``limits.shutdown_grace`` seconds.
    """
    listening = listen(host, port)
    ready = asyncio.Event()
    server = asyncio.create_task(serve(app, listening, grpc=grpc, on_ready=ready.set, handle_signals=False))
    waiting = asyncio.create_task(ready.wait())
    try:
        await asyncio.wait({server, waiting}, timeout=START_TIMEOUT, return_when=asyncio.FIRST_COMPLETED)
        if server.done():
            server.result()
        yield base_url(listening)
    finally:
        waiting.cancel()
        server.cancel()
        await asyncio.gather(server, waiting, return_exceptions=True)
