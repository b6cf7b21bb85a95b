"""A gRPC server for an App, beside its HTTP server: one process, one runtime. One of the doors to grpcio.

Spec: GRPC-01, CARD-06, AMB-77, SEC-01, SEC-03, ERR-11.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from dragoman.bindings.grpc.addresses import format_address
from dragoman.bindings.grpc.form import ServerForm
from dragoman.bindings.grpc.library import aio, grpc
from dragoman.bindings.grpc.methods_form import MethodsForm
from dragoman.bindings.grpc.schema import POOL, SERVICE
from dragoman.bindings.grpc.service import Service
from dragoman.bindings.grpc.settings import GrpcServerSettings, ServerTls
from dragoman.errors import ConfigurationError, MissingExtraError
from dragoman.http.pem import read_pem
from dragoman.model import AgentInterface
from dragoman.server.app import Application
from dragoman.server.dialects import CURRENT, grpc_forms

logger = logging.getLogger("dragoman.server")

BINDING = "GRPC"

_LAST_WORDS = 1.0
"""Seconds that open calls have to end after the work behind them has ended."""


class GrpcServer:
    """A server that takes calls for an app. Made by :func:`start_grpc`; the app is started and stopped by others.

    ``port`` is the one it listens on, ``interface`` its entry on the card; ``interfaces`` are all its entries, one for
    each generation of the protocol that the app serves.
    """

    def __init__(self, app: Application, settings: GrpcServerSettings, host: str) -> None:
        self._app = app
        self._loop = asyncio.get_running_loop()
        limit = settings.max_message_bytes or app.settings.max_body_bytes
        self._server = aio.server(options=_options(settings, limit))
        others = grpc_forms(app.versions, app.v03)
        self._services = (SERVICE, *(form.service for form in others.values()))
        self._server.add_generic_rpc_handlers(_handlers(app, limit, others.values()))
        self._health = _add_health(self._server) if settings.health else None
        if settings.reflection:
            _add_reflection(self._server, self._services, health=settings.health)
        self._leaving: asyncio.Task[None] | None = None
        self.port = _bind(self._server, host, settings)
        address = settings.public_address or format_address(_public_host(app, host), self.port)
        self.interfaces = tuple(
            AgentInterface(url=address, protocol_binding=BINDING, protocol_version=version)
            for version in (CURRENT, *others)
        )
        self.interface = self.interfaces[0]

    async def start(self) -> None:
        """Take calls, and say so on the card."""
        await self._server.start()
        await self._tell_health(serving=True)
        for interface in self.interfaces:
            self._app.add_interface(interface)

    def begin_stop(self) -> None:
        """Tell those who watch the health that this server is going. May be called from a signal handler."""
        self._loop.call_soon_threadsafe(self._leave)

    async def stop(self, grace: float = _LAST_WORDS) -> None:
        """Take no more calls; those that are open after ``grace`` seconds are cancelled. May be called again for
        less."""
        self._leave()
        if self._leaving is not None:
            await asyncio.shield(self._leaving)
        for interface in self.interfaces:
            self._app.remove_interface(interface)
        await self._server.stop(grace)

    def _leave(self) -> None:
        if self._leaving is None:
            self._leaving = self._loop.create_task(self._tell_health(serving=False))

    async def _tell_health(self, *, serving: bool) -> None:
        if self._health is None:
            return
        if not serving:
            await self._health.enter_graceful_shutdown()
            return
        status = _health_pb2().HealthCheckResponse.SERVING
        for name in ("", *self._services):
            await self._health.set(name, status)


async def start_grpc(app: Application, settings: GrpcServerSettings, host: str = "127.0.0.1") -> GrpcServer:
    """Serve a started app over gRPC as well. ``host`` is where to listen, unless the settings say.

    The caller owes a :meth:`GrpcServer.stop`, and calls :meth:`GrpcServer.begin_stop` with ``app.begin_stop()``. Raises
    ConfigurationError when the port cannot be had or the certificates are no good, MissingExtraError.
    """
    server = GrpcServer(app, settings, settings.host or host)
    await server.start()
    return server


def _handlers(app: Application, limit: int, others: Iterable[ServerForm]) -> tuple[Service, ...]:
    """The services; the current one comes last, since it refuses what is asked of services that are not there."""
    make = partial(
        Service,
        app.operations,
        identify=app.settings.identify,
        max_message_bytes=limit,
        stall_timeout=app.settings.stall_timeout,
    )
    current = partial(make, check_version=app.settings.check_version)
    methods = app.settings.methods
    added = (current(form=MethodsForm(methods)),) if methods else ()
    return (*(make(form=form) for form in others), *added, current())


def _options(settings: GrpcServerSettings, limit: int) -> list[tuple[str, Any]]:
    ours: dict[str, Any] = {
        # The core's own refusal of what is too large has no details; ours has, for what is not far beyond.
        "grpc.max_receive_message_length": 2 * limit,
        "grpc.max_send_message_length": -1,
        "grpc.so_reuseport": 0,  # else a second server takes half of the calls instead of being told
        "grpc.keepalive_time_ms": _ms(settings.keepalive),
        "grpc.keepalive_timeout_ms": _ms(settings.keepalive_timeout),
        "grpc.http2.min_recv_ping_interval_without_data_ms": _ms(settings.ping_interval),
    }
    return list({**ours, **dict(settings.options)}.items())


def _ms(seconds: float) -> int:
    return max(1, min(int(seconds * 1000), 2**31 - 1))


def _bind(server: aio.Server, host: str, settings: GrpcServerSettings) -> int:
    authority = f"[{host}]:{settings.port}" if ":" in host else f"{host}:{settings.port}"
    try:
        if settings.tls is None:
            port = server.add_insecure_port(authority)
        else:
            port = server.add_secure_port(authority, _credentials(settings.tls))
    except (RuntimeError, ValueError) as error:
        port = 0
        logger.debug("gRPC could not listen", exc_info=error)
    if not port:
        hint = "is it taken? Set another gRPC port, or 0 for any free one"
        raise ConfigurationError(f"cannot listen on {authority} for gRPC: {hint}")
    return int(port)


def _credentials(tls: ServerTls) -> grpc.ServerCredentials:
    certificate, key = read_pem(tls.certificate, "the gRPC certificate"), read_pem(tls.key, "the gRPC key")
    if tls.client_roots is None:
        return grpc.ssl_server_credentials([(key, certificate)])
    roots = read_pem(tls.client_roots, "the roots of gRPC clients")
    return grpc.ssl_server_credentials([(key, certificate)], roots, tls.require_client)


def _public_host(app: Application, host: str) -> str:
    return (urlsplit(app.public_url).hostname if app.public_url else None) or host


def _health_pb2() -> Any:
    try:
        from grpc_health.v1 import health_pb2
    except ImportError as error:
        raise MissingExtraError("the gRPC health service", "grpc") from error
    return health_pb2


def _add_health(server: aio.Server) -> Any:
    pb2 = _health_pb2()
    from grpc_health.v1 import health, health_pb2_grpc

    servicer = health.aio.HealthServicer()
    health_pb2_grpc.add_HealthServicer_to_server(servicer, server)
    POOL.AddSerializedFile(pb2.DESCRIPTOR.serialized_pb)  # so that reflection can tell of it
    return servicer


def _add_reflection(server: aio.Server, services: Sequence[str], *, health: bool) -> None:
    try:
        from grpc_reflection.v1alpha import reflection, reflection_pb2
    except ImportError as error:
        raise MissingExtraError("gRPC reflection", "grpc") from error
    POOL.AddSerializedFile(reflection_pb2.DESCRIPTOR.serialized_pb)
    names = (*services, *(("grpc.health.v1.Health",) if health else ()), reflection.SERVICE_NAME)
    reflection.enable_server_reflection(names, server, pool=POOL)
