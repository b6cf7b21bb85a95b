"""The WebSocket binding: many calls and streams over one socket.

A custom binding, off unless asked for. ``docs/websocket.md`` is its specification. Only
:mod:`~dragoman.bindings.websocket.client` needs the library ``websockets`` (extra ``websocket``), and only when it is
used.
"""

from dragoman.bindings.websocket.binding import WEBSOCKET, WebSocketBinding

__all__ = ["WEBSOCKET", "WebSocketBinding"]
