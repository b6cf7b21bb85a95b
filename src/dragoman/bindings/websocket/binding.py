"""The WebSocket binding as one object for both sides."""

from __future__ import annotations

import ssl
from collections.abc import Iterable
from typing import TYPE_CHECKING

from dragoman.bindings.websocket.endpoint import WebSocketEndpoint
from dragoman.bindings.websocket.settings import KIB, WebSocketSettings
from dragoman.model import AgentInterface
from dragoman.ports.binding import ClientEdge, ServerEdge

if TYPE_CHECKING:
    from dragoman.bindings.websocket.client import WebSocketTransport

WEBSOCKET = "https://a2a-dragoman.org/bindings/websocket/v1"
"""The URI of the binding. It is a name; nothing has to be found there (Spec: BIND-10, BIND-11)."""


class WebSocketBinding:
    """Many calls and streams over one socket. ``App(bindings=[WebSocketBinding()])`` serves it, ``connect(target,
    bindings=[WebSocketBinding(), "JSONRPC"])`` speaks it; both need the extra ``websocket``.

    On the server:

    * ``path``: of the endpoint below the app's address, default ``/ws``;
    * ``max_calls``: that may be open on one socket at a time, default 1000;
    * ``max_age``: seconds after which a socket is closed in order, so that the caller is authenticated anew, default
      one hour; None: never. It counts only where the app has ``identify``.

    On the client:

    * ``window``: bytes of events that each stream may have on the way, default 256 KiB. What is not read is kept, up
      to about so much for each stream;
    * ``max_message_bytes``: largest message, default 64 MiB;
    * ``tls``: an SSL context, default that of HTTP calls;
    * ``credentials``: names of headers that hold credentials, besides Authorization, Proxy-Authorization, Cookie and
      X-API-Key. They go with the handshake; a call with others gets a socket of its own.

    On both: ``heartbeat``: seconds of quiet after which the other side is asked whether it is there, default that of
    the app (15), and 15 on the client; 0: never.

    Spec: §12, BIND-02 to BIND-14; ``docs/websocket.md`` is the binding's specification.
    """

    uri = WEBSOCKET

    def __init__(
        self,
        *,
        path: str = "/ws",
        max_calls: int = 1000,
        max_age: float | None = 3600.0,
        heartbeat: float | None = None,
        window: int = 256 * KIB,
        max_message_bytes: int = 64 * KIB * KIB,
        tls: ssl.SSLContext | None = None,
        credentials: Iterable[str] = (),
    ) -> None:
        self._settings = WebSocketSettings(
            path=path,
            max_calls=max_calls,
            max_age=max_age,
            heartbeat=heartbeat,
            window=window,
            max_message_bytes=max_message_bytes,
            tls=tls,
            credentials=frozenset(name.lower() for name in credentials),
        )

    def server(self, edge: ServerEdge) -> WebSocketEndpoint:
        """See :class:`~dragoman.ports.binding.Binding`."""
        return WebSocketEndpoint(self.uri, self._settings, edge)

    def client(self, interface: AgentInterface, edge: ClientEdge) -> WebSocketTransport:
        """See :class:`~dragoman.ports.binding.Binding`. Raises MissingExtraError without the library."""
        from dragoman.bindings.websocket.client import WebSocketTransport

        return WebSocketTransport(interface, edge, self._settings)
