"""An app on a real socket, by uvicorn's protocol without uvicorn's server, whose end sleeps a fifth of a second."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import uvicorn
from uvicorn.server import ServerState

from dragoman import App
from dragoman.server.serving import base_url, listen


@asynccontextmanager
async def quick_serving(app: App) -> AsyncIterator[str]:
    """Serve a started app until the block ends; gives its base URL. The app is stopped first, then the connections."""
    config = uvicorn.Config(app, lifespan="off", log_config=None, access_log=False, ws="none", proxy_headers=False)
    config.load()
    state = ServerState()
    protocol = partial(config.http_protocol_class, config=config, server_state=state, app_state={})
    await app.start()
    with listen("127.0.0.1", 0) as listening:
        server = await asyncio.get_running_loop().create_server(protocol, sock=listening)
        try:
            yield base_url(listening)
        finally:
            server.close()
            await app.stop()
            await _end_connections(state)


async def _end_connections(state: ServerState) -> None:
    for connection in list(state.connections):
        connection.shutdown()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(1):
            while state.tasks:
                await asyncio.wait(state.tasks)
    for connection in list(state.connections):
        connection.transport.abort()
