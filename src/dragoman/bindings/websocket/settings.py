"""What the WebSocket binding can be told, on both sides. Needs no library."""

from __future__ import annotations

import ssl
from urllib.parse import urlsplit

import msgspec

from dragoman.errors import ConfigurationError
from dragoman.ports.binding import ServerEdge

KIB = 1024


class WebSocketSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of both sides; see :class:`~dragoman.bindings.websocket.WebSocketBinding`.

    Raises ConfigurationError for a value out of range.
    """

    path: str = "/ws"
    max_calls: int = 1000
    max_age: float | None = 3600.0
    heartbeat: float | None = None
    window: int = 256 * KIB
    tls: ssl.SSLContext | None = None
    max_message_bytes: int = 64 * KIB * KIB
    credentials: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if not self.path.startswith("/") or self.path.endswith("/") or set(self.path) & set("?#%{}"):
            raise ConfigurationError("path of the WebSocket binding must be like '/ws'")
        for name in ("max_calls", "window", "max_message_bytes"):
            if getattr(self, name) < 1:
                raise ConfigurationError(f"{name} of the WebSocket binding must be at least 1")
        if self.max_age is not None and self.max_age <= 0:
            raise ConfigurationError("max_age of the WebSocket binding must be more than 0 seconds")
        if self.heartbeat is not None and self.heartbeat < 0:
            raise ConfigurationError("heartbeat of the WebSocket binding must be at least 0 seconds")


def allowed_origins(edge: ServerEdge) -> frozenset[str]:
    """The origins of pages that may connect: those of the app's ``cors``, and that of its public URL."""
    origins = {origin.rstrip("/") for origin in edge.origins}
    if edge.public_url:
        parts = urlsplit(edge.public_url)
        origins.add(f"{parts.scheme}://{parts.netloc}")
    return frozenset(origins)
