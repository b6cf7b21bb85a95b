"""The server half of the WebSocket binding: the handshake, and the sockets of one app.

Spec: §12.6, BIND-05, BIND-09, BIND-10, BIND-13, AUTH-02, AUTH-05, SEC-01; ``docs/websocket.md`` is the text to this.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Mapping

from dragoman.bindings.failure import as_protocol_error
from dragoman.bindings.status import encode_status
from dragoman.bindings.websocket.frames import SUBPROTOCOL
from dragoman.bindings.websocket.parameters import read_handshake
from dragoman.bindings.websocket.session import Session
from dragoman.bindings.websocket.settings import WebSocketSettings, allowed_origins
from dragoman.errors import A2AError, InvalidRequestError, PermissionDeniedError, UnavailableError
from dragoman.http.asgi import Header, Receive, Scope, Send
from dragoman.model import AgentInterface
from dragoman.ports.binding import ServerEdge, ServerHalf
from dragoman.ports.deadlines import Deadlines
from dragoman.ports.operations import ANONYMOUS, CURRENT_VERSION, Caller

_SCHEMES: Mapping[str, str] = {"http": "ws", "https": "wss"}

#: Seconds that open calls have to end at shutdown, after the work behind them has ended.
_LAST_CALLS = 2.0

_JSON: Header = (b"content-type", b"application/json")


class WebSocketEndpoint(ServerHalf):
    """Takes sockets for one app."""

    scopes = frozenset({"websocket"})

    def __init__(self, uri: str, settings: WebSocketSettings, edge: ServerEdge) -> None:
        self.path = settings.path
        self._uri = uri
        self._settings = settings
        self._edge = edge
        self._origins = allowed_origins(edge)
        self._deadlines = Deadlines(edge.stall_timeout)
        self._sessions: dict[Session, asyncio.Task[None]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping = False

    def interface(self, base_url: str) -> AgentInterface:
        """See :class:`~dragoman.ports.binding.ServerHalf`."""
        scheme, mark, rest = base_url.partition("://")
        url = f"{_SCHEMES.get(scheme.lower(), scheme)}{mark}{rest.rstrip('/')}{self.path}"
        return AgentInterface(url=url, protocol_binding=self._uri, protocol_version=CURRENT_VERSION)

    async def start(self) -> None:
        """Nothing is opened: the app's server listens."""
        self._loop = asyncio.get_running_loop()

    def begin_stop(self) -> None:
        """Take no more sockets, and tell the clients to use others."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._drain)

    async def stop(self) -> None:
        """Let the open calls tell their ends, and close the sockets."""
        self._drain()
        sessions = list(self._sessions.items())
        if sessions:
            await asyncio.gather(*(session.close(_LAST_CALLS) for session, _ in sessions))
            await asyncio.wait([task for _, task in sessions], timeout=_LAST_CALLS)

    def _drain(self) -> None:
        self._stopping = True
        for session in self._sessions:
            session.drain()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one socket."""
        await receive()
        try:
            caller = await self._greet(scope)
        except Exception as error:
            await _refuse(scope, send, as_protocol_error(error, "the handshake of a WebSocket"))
            return
        await send({"type": "websocket.accept", "subprotocol": SUBPROTOCOL})
        await self._serve(scope, receive, send, caller)

    async def _serve(self, scope: Scope, receive: Receive, send: Send, caller: Caller) -> None:
        settings, edge = self._settings, self._edge
        session = Session(
            edge,
            receive,
            send,
            caller=caller,
            parameters=read_handshake(scope["headers"]),
            max_calls=settings.max_calls,
            heartbeat=edge.heartbeat if settings.heartbeat is None else settings.heartbeat,
            reserved=settings.credentials,
            max_age=_max_age(settings.max_age, caller) if edge.identify is not None else None,
            deadlines=self._deadlines,
        )
        task = asyncio.current_task()
        assert task is not None
        self._sessions[session] = task
        if self._stopping:
            session.drain()
        try:
            await session.run()
        finally:
            del self._sessions[session]

    async def _greet(self, scope: Scope) -> Caller:
        """Who comes. Raises the A2AError that refuses the handshake."""
        self._check_origin(scope)
        if SUBPROTOCOL not in scope.get("subprotocols", ()):
            raise InvalidRequestError(f"The subprotocol must be {SUBPROTOCOL}")
        caller = ANONYMOUS if self._edge.identify is None else await self._edge.identify(scope)
        if self._stopping:  # which may have come about in the meantime
            raise UnavailableError("The server is shutting down")
        return caller

    def _check_origin(self, scope: Scope) -> None:
        """A browser lets any page connect, and sends its cookies along: here is where pages are told apart."""
        origins = [value.decode("latin-1").rstrip("/") for name, value in scope["headers"] if name == b"origin"]
        if origins and "*" not in self._origins and not self._origins.issuperset(origins):
            raise PermissionDeniedError("Pages of this origin may not connect")


def _max_age(most: float | None, caller: Caller) -> float | None:
    """Seconds that a socket may last: no longer than the credentials of who opened it."""
    if caller.expires_at is None:
        return most
    left = max(caller.expires_at - time.time(), 0.0)
    return left if most is None else min(most, left)


async def _refuse(scope: Scope, send: Send, error: A2AError) -> None:
    """Answer a handshake with the error as HTTP+JSON has it, where the server can do so; else with its plain 403."""
    if "websocket.http.response" not in scope.get("extensions", {}):
        await send({"type": "websocket.close", "code": 1008, "reason": error.reason or error.grpc_status})
        return
    body = encode_status(error)
    headers: list[Header] = [_JSON, (b"content-length", b"%d" % len(body))]
    if error.http_status == 401 or "challenge" in error.metadata:
        challenge = " ".join(error.metadata.get("challenge", "Bearer").splitlines())
        headers.append((b"www-authenticate", challenge.encode("latin-1", "replace")))
    if error.retry_after is not None:
        headers.append((b"retry-after", b"%d" % max(0, math.ceil(error.retry_after))))
    await send({"type": "websocket.http.response.start", "status": error.http_status, "headers": headers})
    await send({"type": "websocket.http.response.body", "body": body})
