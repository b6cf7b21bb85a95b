"""Serving an App with uvicorn, and over gRPC beside it: the one door to uvicorn."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import signal
import socket
from collections.abc import Callable, Generator
from importlib.util import find_spec
from types import FrameType
from typing import TYPE_CHECKING, Any, Protocol

from dragoman.bindings.grpc.settings import GrpcServerSettings, ServerTls
from dragoman.bindings.settings import EndpointSettings
from dragoman.errors import ConfigurationError, MissingExtraError
from dragoman.http.asgi import Receive, Scope, Send
from dragoman.server.app import Application
from dragoman.server.tls import TlsExtension, make_context, with_certificates

try:
    import uvicorn
    from uvicorn.protocols.http.auto import AutoHTTPProtocol
except ImportError as error:
    raise MissingExtraError("dragoman's HTTP server", "cli") from error

if TYPE_CHECKING:
    from dragoman.server.grpc_serving import GrpcServer

_MARGIN = 5.0
"""Seconds that open calls have beyond the grace of the work behind them."""

PORT_HINT = "set another port, or 0 for any free one"


class Servable(Protocol):
    """What is served here: an :class:`~dragoman.server.Application`, or something of its shape."""

    @property
    def scopes(self) -> frozenset[str]:
        """The types of ASGI scope that calls come by."""
        ...

    @property
    def settings(self) -> EndpointSettings:
        """Settings of its endpoint."""
        ...

    @property
    def shutdown_grace(self) -> float:
        """Seconds that running work has when the end was asked for."""
        ...

    async def start(self) -> object:
        """Open what is needed."""
        ...

    def begin_stop(self) -> None:
        """Refuse new work from now on."""
        ...

    async def stop(self) -> None:
        """Give running work its grace, then close what is open."""
        ...

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection scope."""
        ...


def listen(host: str, port: int) -> socket.socket:
    """A listening socket. Raises ConfigurationError that says why there is none."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Named, since asyncio turns Nagle's algorithm off (40 ms an answer) only on sockets that say they are TCP.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except (OSError, OverflowError) as error:
        listening.close()
        raise ConfigurationError(f"cannot listen on {host}:{port}: {error}; {PORT_HINT}") from error
    listening.listen(2048)
    listening.set_inheritable(True)
    return listening


def base_url(listening: socket.socket, *, tls: bool = False) -> str:
    """The address of a listening socket as clients on this machine write it."""
    scheme = "https" if tls else "http"
    host, port = listening.getsockname()[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


def websocket_options(app: Servable) -> dict[str, Any]:
    """What uvicorn is told of WebSockets: nothing, unless a binding of the app takes them. Raises MissingExtraError.

    Heartbeats are the binding's own; compression is off, since it costs memory, and tells of secrets by its sizes.
    """
    if "websocket" not in app.scopes:
        return {"ws": "none"}
    if find_spec("websockets") is None:
        raise MissingExtraError("The server of the WebSocket binding", "websocket")
    return {
        "ws": "websockets-sansio",
        # Beyond the limit of requests, so that what is not far beyond gets an answer that says why.
        "ws_max_size": 2 * app.settings.max_body_bytes + 64 * 1024,
        "ws_ping_interval": None,
        "ws_per_message_deflate": False,
    }


class _Beside:
    """An app and, perhaps, the gRPC server beside it, which begin and end together."""

    def __init__(self, app: Servable, grpc: GrpcServer | None) -> None:
        self._app = app
        self._grpc = grpc
        self.has_sockets = "websocket" in app.scopes

    def begin_stop(self) -> None:
        """No new work from here on."""
        self._app.begin_stop()
        if self._grpc is not None:
            self._grpc.begin_stop()

    async def stop(self) -> None:
        """End the work, and with it calls and streams."""
        if self._grpc is None:
            await self._app.stop()
            return
        # New calls are refused at once; those that are open end by the end of the work behind them.
        leaving = asyncio.create_task(self._grpc.stop(self._app.shutdown_grace + _MARGIN))
        await self._app.stop()
        await self._grpc.stop()
        await leaving


async def _start(app: Servable, grpc: GrpcServerSettings | None, listening: socket.socket) -> _Beside:
    if grpc is not None and not isinstance(app, Application):
        raise ConfigurationError("gRPC cannot be served beside this application")
    await app.start()
    if grpc is None or not isinstance(app, Application):
        return _Beside(app, None)
    try:
        from dragoman.server.grpc_serving import start_grpc

        return _Beside(app, await start_grpc(app, grpc, listening.getsockname()[0]))
    except BaseException:
        await app.stop()
        raise


class _Server(uvicorn.Server):
    """uvicorn's server, which tells the app of the end as soon as it is asked for."""

    def __init__(
        self, config: uvicorn.Config, app: _Beside, on_ready: Callable[[], None] | None, signals: bool
    ) -> None:
        super().__init__(config)
        self._app = app
        self._on_ready = on_ready
        self._signals = signals
        self._stopping: asyncio.Task[None] | None = None

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Take SIGTERM and SIGINT, if that is wanted; both are an order to end, not a failure."""
        if not self._signals:
            yield
            return
        before = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to take connections."""
        await super().startup(sockets)
        if self.started and self._on_ready is not None:
            self._on_ready()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """A signal: no new work from here on. A second one ends without waiting."""
        super().handle_exit(sig, frame)
        self._app.begin_stop()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End calls and streams by ending the work behind them, then the connections."""
        self._stopping = asyncio.create_task(self._app.stop())
        if self._app.has_sockets:
            await asyncio.wait((self._stopping,))  # uvicorn cuts WebSockets off at once
        await super().shutdown(sockets)
        await self._stopping


async def serve(
    app: Servable,
    listening: socket.socket,
    *,
    grpc: GrpcServerSettings | None = None,
    tls: ServerTls | None = None,
    on_ready: Callable[[], None] | None = None,
    handle_signals: bool = True,
) -> None:
    """Serve until SIGTERM or SIGINT (or cancellation), then shut down in order.

    With ``grpc``, a gRPC server runs beside it, and the card names it (extra ``grpc``). ``tls``: speak HTTPS, and wss,
    by TLS 1.2 or 1.3; with ``client_roots``, clients show certificates, of which :class:`~dragoman.auth.MutualTls`
    makes callers.

    At the signal new work is refused at once, while calls and streams of running tasks may end; handlers that are not
    done after ``limits.shutdown_grace`` seconds are interrupted and recorded. ``on_ready`` is called when connections
    are taken. Raises what :meth:`Application.start` raises, which says what is wrong, before anything else is done; and
    ConfigurationError when the server could not start for another reason, of which its log tells.
    """
    try:
        options = websocket_options(app)
        context = None if tls is None else make_context(tls)
        served = await _start(app, grpc, listening)
    except BaseException:
        listening.close()
        raise
    config = uvicorn.Config(
        app if context is None else TlsExtension(app),
        http="auto" if context is None else with_certificates(AutoHTTPProtocol),
        lifespan="on",
        log_config=None,
        access_log=False,
        **options,
        server_header=False,
        proxy_headers=False,  # what a request says of the way it took is no address of ours; public_url is
    )
    if context is not None:
        config.load()
        config.ssl = context
    server = _Server(config, served, on_ready, handle_signals)
    serving = asyncio.ensure_future(server.serve(sockets=[listening]))
    try:
        await asyncio.shield(serving)
    except asyncio.CancelledError:
        served.begin_stop()
        server.should_exit = True
        await serving
        raise
    if not server.started:
        await served.stop()
        raise ConfigurationError("the server could not start")


def run_app(
    app: Servable,
    listening: socket.socket,
    *,
    grpc: GrpcServerSettings | None = None,
    tls: ServerTls | None = None,
    on_ready: Callable[[], None] | None = None,
) -> None:
    """:func:`serve` in an event loop of its own, that of uvloop where it is installed. Blocks until the end.

    The process is taken to be the server's: what was imported by then is left out of garbage collection.
    """

    def ready() -> None:
        gc.collect()
        gc.freeze()
        if on_ready is not None:
            on_ready()

    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(serve(app, listening, grpc=grpc, tls=tls, on_ready=ready))


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop
