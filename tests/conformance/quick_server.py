"""An app on a real socket, by uvicorn's protocol without uvicorn's server, whose end sleeps a fifth of a second."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import uvicorn
from uvicorn.server import ServerState

from dragoman.server import Application, GrpcServerSettings
from dragoman.server.grpc_serving import start_grpc
from dragoman.server.serving import base_url, listen, websocket_options


@asynccontextmanager
async def quick_serving(app: Application, *, grpc: bool = False) -> AsyncIterator[str]:
    """Serve an app until the block ends, with ``grpc`` over gRPC as well; gives its base URL.

    The app is stopped first, then the connections.
    """
    config = uvicorn.Config(
        app, lifespan="off", log_config=None, access_log=False, proxy_headers=False, **websocket_options(app)
    )
    config.load()
    state = ServerState()
    protocol = partial(config.http_protocol_class, config=config, server_state=state, app_state={})
    await app.start()
    beside = await start_grpc(app, GrpcServerSettings(port=0)) if grpc else None
    with listen("127.0.0.1", 0) as listening:
        server = await asyncio.get_running_loop().create_server(protocol, sock=listening)
        try:
            yield base_url(listening)
        finally:
            server.close()
            await app.stop()
            if beside is not None:
                await beside.stop(grace=0.5)
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
