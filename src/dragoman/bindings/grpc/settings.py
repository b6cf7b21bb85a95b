"""What the gRPC binding can be told, on both sides. Needs no gRPC library."""

from __future__ import annotations

from typing import Any

import msgspec

from dragoman.bindings.grpc.addresses import parse_address
from dragoman.errors import CardError, ConfigurationError
from dragoman.http.pem import Pem

DEFAULT_PORT = 50051

Options = tuple[tuple[str, Any], ...]


class ServerTls(msgspec.Struct, frozen=True, kw_only=True):
    """TLS of a server (Spec: GRPC-01, SEC-01).

    * ``certificate``: its certificate, with the chain behind it; ``key``: the private key;
    * ``client_roots``: mutual TLS: the certificates that sign those of clients. None: clients need none;
    * ``require_client``: with ``client_roots``, whether a client without a certificate is turned away, default True.
    """

    certificate: Pem
    key: Pem
    client_roots: Pem | None = None
    require_client: bool = True

    def __repr__(self) -> str:
        return f"ServerTls(mutual={self.client_roots is not None})"


class ClientTls(msgspec.Struct, frozen=True, kw_only=True):
    """TLS of a client.

    * ``roots``: the certificates to trust; None: those that come with gRPC;
    * ``certificate``, ``key``: what the client shows of itself (mutual TLS);
    * ``server_name``: the name that the server's certificate must have, if it is not that of the address.
    """

    roots: Pem | None = None
    certificate: Pem | None = None
    key: Pem | None = None
    server_name: str = ""

    def __post_init__(self) -> None:
        if (self.certificate is None) != (self.key is None):
            raise ConfigurationError("a client certificate needs its key, and a key its certificate")

    def __repr__(self) -> str:
        return f"ClientTls(mutual={self.certificate is not None})"


class GrpcServerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How an agent is served over gRPC.

    * ``port``: default 50051, 0 for any free one; ``host``: default that of the HTTP server;
    * ``public_address``: ``hostname:port`` for the card (Spec: AMB-77). Default: the host of the app's public URL, or
      else the one it listens on, and the port;
    * ``tls``: default none, for work at the desk and behind proxies;
    * ``max_message_bytes``: largest request, default that of the HTTP bodies (Spec: SEC-03);
    * ``keepalive``: seconds of quiet after which a client is pinged, 30; ``keepalive_timeout``: seconds that it may
      take to answer until its connection counts as lost, 20;
    * ``ping_interval``: seconds between pings that clients may send, 10;
    * ``health``: serve ``grpc.health.v1.Health``; ``reflection``: serve the reflection service. Both are on;
    * ``options``: further options of gRPC's core, which win.

    Raises ConfigurationError for a value out of range.
    """

    port: int = DEFAULT_PORT
    host: str = ""
    public_address: str = ""
    tls: ServerTls | None = None
    max_message_bytes: int | None = None
    keepalive: float = 30.0
    keepalive_timeout: float = 20.0
    ping_interval: float = 10.0
    health: bool = True
    reflection: bool = True
    options: Options = ()

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65535:
            raise ConfigurationError("the gRPC port must be 0 to 65535")
        if self.max_message_bytes is not None and self.max_message_bytes < 1:
            raise ConfigurationError("max_message_bytes must be at least 1")
        if self.public_address:
            _check_address(self.public_address)
        _check_times(self, "keepalive", "keepalive_timeout")


class GrpcClientSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How agents are called over gRPC.

    * ``tls``: ClientTls; or True or False for addresses that do not say (``hostname:port``). None: TLS, except for
      this very machine (Spec: AMB-77);
    * ``max_message_bytes``: largest answer, default 64 MiB;
    * ``keepalive``: seconds of quiet on an open call after which the server is pinged, default 330: most servers close
      connections that are pinged more often than every five minutes. ``keepalive_timeout``: seconds that it may take
      to answer until the connection counts as lost, 20;
    * ``options``: further options of gRPC's core, which win.

    Raises ConfigurationError for a value out of range.
    """

    tls: ClientTls | bool | None = None
    max_message_bytes: int = 64 * 1024 * 1024
    keepalive: float = 330.0
    keepalive_timeout: float = 20.0
    options: Options = ()

    def __post_init__(self) -> None:
        if self.max_message_bytes < 1:
            raise ConfigurationError("max_message_bytes must be at least 1")
        _check_times(self, "keepalive", "keepalive_timeout")


def _check_address(text: str) -> None:
    try:
        parse_address(text)
    except CardError as error:
        raise ConfigurationError(f"public_address: {error}") from None


def _check_times(settings: object, *names: str) -> None:
    for name in names:
        if getattr(settings, name) <= 0:
            raise ConfigurationError(f"{name} must be more than 0 seconds")
