"""Serving a plain ASGI application of this package on the loopback; the way to a connection's end.

Spec: AC-F-10, AC-F-15.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable, Generator, Mapping
from typing import Any, NoReturn

from dragoman.errors import ConfigurationError, MissingExtraError
from dragoman.http.asgi import Receive, Scope, Send

try:
    import uvicorn
except ImportError as error:
    raise MissingExtraError("A stand-in front", "cli") from error

HOST = "127.0.0.1"
START_TIMEOUT = 10.0
AsgiApp = Callable[[Scope, Receive, Send], Awaitable[None]]


class _Server(uvicorn.Server):
    """uvicorn without signals: whoever started it ends it. ``ready`` is set when it takes connections."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to take connections."""
        await super().startup(sockets)
        self.ready.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Leave signals alone."""
        yield


class Serving:
    """An application on a port of this machine; 0 takes a free one. Begins with :meth:`start`, ends with :meth:`stop`.

    Its answers have no ``Server`` and no ``Date`` but those that the application sends.
    """

    def __init__(self, app: AsgiApp, port: int = 0) -> None:
        self._app = app
        self._port = port
        self._server: _Server | None = None
        self._running: asyncio.Task[None] | None = None

    @property
    def url(self) -> str:
        """The address, once it has started."""
        return f"http://{HOST}:{self._port}"

    async def start(self) -> None:
        """Take connections. Raises ConfigurationError when the port is taken."""
        listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((HOST, self._port))
        except OSError as error:
            listening.close()
            raise ConfigurationError(f"cannot listen on {HOST}:{self._port}: {error}") from error
        listening.listen(2048)
        self._port = listening.getsockname()[1]
        config = uvicorn.Config(
            self._app,
            lifespan="off",
            ws="none",
            log_config=None,
            access_log=False,
            server_header=False,
            date_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=1,
        )
        self._server = _Server(config)
        self._running = asyncio.create_task(self._server.serve(sockets=[listening]))
        async with asyncio.timeout(START_TIMEOUT):
            await self._server.ready.wait()

    async def stop(self) -> None:
        """End, with all connections. Safe to call twice."""
        if self._server is None or self._running is None:
            return
        self._server.should_exit = True
        await asyncio.gather(self._running, return_exceptions=True)
        self._server = self._running = None


async def answer(send: Send, status: int, body: bytes, headers: Mapping[str, str]) -> None:
    """A whole answer, JSON unless the headers say otherwise."""
    every = {"content-type": "application/json", **headers, "content-length": str(len(body))}
    await begin_answer(send, status, every)
    await send({"type": "http.response.body", "body": body})


async def begin_answer(send: Send, status: int, headers: Mapping[str, str]) -> None:
    """The head of an answer."""
    raw = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": raw})


class CutError(Exception):
    """The connection was cut in the middle of an answer, or before it."""


async def cut(receive: Receive) -> NoReturn:
    """Close the connection of a request on the spot, as ASGI has no word for it; raises CutError.

    uvicorn's ``receive`` is a method of the object that holds the transport. Under another server the exception alone
    has to do: a body that was begun then ends before its time.
    """
    transport: Any = getattr(getattr(receive, "__self__", None), "transport", None)
    if transport is not None:
        transport.abort()
        await asyncio.sleep(0.001)  # so that the server has heard of the end when the application returns
    raise CutError
