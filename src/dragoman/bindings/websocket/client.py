"""The client half of the WebSocket binding: Operations of a remote agent over sockets that are opened when needed.

Spec: §12, BIND-05, BIND-09, PARAM-04, PARAM-07, VER-04, TEN-02, CARD-12.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from urllib.parse import urlsplit

import msgspec

from dragoman.bindings.websocket.frames import SUBPROTOCOL, OpenFrame, ResultFrame, extensions_of
from dragoman.bindings.websocket.library import open_connection
from dragoman.bindings.websocket.parameters import CREDENTIALS, belongs_to_handshake
from dragoman.bindings.websocket.settings import WebSocketSettings
from dragoman.bindings.websocket.socket import ClientSocket, PendingCall, SocketStream, read_result
from dragoman.errors import CardError, ClientError, ConnectionLostError, InvalidAgentResponseError, RequestTimeoutError
from dragoman.http.client import default_tls
from dragoman.http.guard import shown
from dragoman.model import AgentInterface, Operation, encode_json
from dragoman.ports.binding import ClientEdge
from dragoman.ports.operations import CallContext, EventStream

HEARTBEAT = 15.0
"""Seconds of quiet after which a client asks whether the server is there."""

Credentials = tuple[tuple[str, str], ...]


class WebSocketTransport:
    """Operations of the agent behind one interface.

    One socket serves all calls with the same credentials; it is opened by the first of them, and anew when it was
    lost or its server asks for that. Raises CardError for an address that is none of a WebSocket.
    """

    def __init__(self, interface: AgentInterface, edge: ClientEdge, settings: WebSocketSettings) -> None:
        self._url = _checked(interface.url)
        self._tenant = interface.tenant
        self._edge = edge
        self._settings = settings
        self._credentials = CREDENTIALS | settings.credentials | edge.credentials
        self._headers = {name.lower(): value for name, value in edge.headers.items()}
        self._sockets: dict[Credentials, ClientSocket] = {}
        self._opening: dict[Credentials, asyncio.Task[ClientSocket]] = {}
        self._leaving: dict[asyncio.Task[None], ClientSocket] = {}
        self._closed = False

    async def call(self, op: Operation, request: msgspec.Struct, context: CallContext) -> msgspec.Struct:
        """See :class:`~dragoman.ports.operations.Operations`. ``context.timeout`` bounds the whole call."""
        socket, call = await self._answered(op, request, context)
        head = call.head.result()
        if not isinstance(head, ResultFrame):
            socket.forget(call)
            raise InvalidAgentResponseError(f"The agent opened a stream in answer to {op.name}")
        return read_result(call, head.result, self._url)

    async def stream(self, op: Operation, request: msgspec.Struct, context: CallContext) -> EventStream:
        """See :class:`~dragoman.ports.operations.Operations`. ``context.timeout`` bounds the time until it is
        open."""
        socket, call = await self._answered(op, request, context)
        if not isinstance(call.head.result(), OpenFrame):
            raise InvalidAgentResponseError(f"The agent answered {op.name} without a stream")
        return SocketStream(socket, call)

    async def aclose(self) -> None:
        """Close the sockets; calls and streams that are open fail. Safe to call twice."""
        self._closed = True
        opening = list(self._opening.values())
        for task in opening:
            task.cancel()
        await asyncio.gather(*opening, return_exceptions=True)
        sockets, self._sockets = [*self._sockets.values(), *self._leaving.values()], {}
        await asyncio.gather(*(socket.aclose() for socket in sockets), *self._leaving)

    # A call.

    async def _answered(
        self, op: Operation, request: msgspec.Struct, context: CallContext
    ) -> tuple[ClientSocket, PendingCall]:
        """Make a call, and wait until its answer begins."""
        if self._tenant:
            request = msgspec.structs.replace(request, tenant=self._tenant)
        body = encode_json(request)
        try:
            async with asyncio.timeout(context.timeout):
                socket, call = await self._exchange(op, body, context)
        except TimeoutError as error:
            place = shown(self._url)
            text = f"{op.name} was not answered by {place} within {context.timeout:g} s"
            raise RequestTimeoutError(text, url=place) from error
        context.activated = extensions_of(call.head.result().parameters)
        return socket, call

    async def _exchange(self, op: Operation, body: bytes, context: CallContext) -> tuple[ClientSocket, PendingCall]:
        # What changes nothing may be asked again when the connection broke (GET-05).
        repeatable = op.http_method == "GET" and not op.streaming
        try:
            return await self._exchange_once(op, body, context)
        except ConnectionLostError:
            if not repeatable or self._closed:
                raise
        return await self._exchange_once(op, body, context)

    async def _exchange_once(
        self, op: Operation, body: bytes, context: CallContext
    ) -> tuple[ClientSocket, PendingCall]:
        socket, call = await self._begin(op, body, context)
        try:
            await asyncio.shield(call.head)
        except BaseException:
            socket.forget(call)
            raise
        return socket, call

    async def _begin(self, op: Operation, body: bytes, context: CallContext) -> tuple[ClientSocket, PendingCall]:
        """Send the call; once more over a new socket when the one at hand turns out to be closed."""
        credentials = self._credentials_of(context.parameters)
        parameters = self._parameters(context)
        socket = await self._socket(op, credentials)
        try:
            return socket, await socket.begin(op, body, parameters)
        except ConnectionLostError:
            if self._closed:
                raise
        socket = await self._socket(op, credentials)
        return socket, await socket.begin(op, body, parameters)

    def _credentials_of(self, parameters: Mapping[str, str]) -> Credentials:
        return tuple((name, value) for name, value in sorted(parameters.items()) if name in self._credentials)

    def _parameters(self, context: CallContext) -> dict[str, str]:
        """What a message carries: what the handshake did not say already. Spec: BIND-05."""
        known = self._headers
        found = {
            name: value
            for name, value in context.parameters.items()
            if known.get(name) != value and name not in self._credentials and not belongs_to_handshake(name)
        }
        found["a2a-version"] = context.version
        if context.extensions:
            found["a2a-extensions"] = ", ".join(context.extensions)
        if context.last_event_id is not None:
            found["last-event-id"] = str(context.last_event_id)
        return found

    # The sockets.

    async def _socket(self, op: Operation, credentials: Credentials) -> ClientSocket:
        """The socket for these credentials. Raises what opening one raises."""
        if self._closed:
            raise ClientError("This client is closed", url=shown(self._url))
        socket = self._sockets.get(credentials)
        if socket is not None and socket.usable:
            return socket
        opening = self._opening.get(credentials)
        if opening is None:
            opening = asyncio.create_task(self._open(op, credentials))
            self._opening[credentials] = opening
        # Many calls may wait for one socket: one of them that is cancelled takes nothing from the others.
        return await asyncio.shield(opening)

    async def _open(self, op: Operation, credentials: Credentials) -> ClientSocket:
        edge, settings = self._edge, self._settings
        heartbeat = HEARTBEAT if settings.heartbeat is None else settings.heartbeat
        handshake = {name: value for name, value in self._headers.items() if name not in self._credentials}
        try:
            connection = await open_connection(
                self._url,
                op,
                subprotocol=SUBPROTOCOL,
                headers={**handshake, **dict(credentials)},
                tls=self._tls(),
                connect_timeout=edge.connect_timeout,
                heartbeat=heartbeat or None,
                max_bytes=settings.max_message_bytes,
                allow_private=edge.allow_private,
            )
            socket = ClientSocket(
                connection,
                self._url,
                window=settings.window,
                max_bytes=settings.max_message_bytes,
                idle=edge.idle_timeout,
            )
            self._put(credentials, socket)
            return socket
        finally:
            del self._opening[credentials]

    def _tls(self) -> ssl.SSLContext | None:
        return (self._settings.tls or self._edge.tls or default_tls()) if self._url.startswith("wss:") else None

    def _put(self, credentials: Credentials, socket: ClientSocket) -> None:
        """Keep a new socket; those that nobody uses go."""
        former = self._sockets.pop(credentials, None)
        if former is not None:
            self._leave(former)
        for other in [key for key, value in self._sockets.items() if not value.busy]:
            self._leave(self._sockets.pop(other))
        self._sockets[credentials] = socket

    def _leave(self, socket: ClientSocket) -> None:
        """Close a socket once its calls are over."""
        task = asyncio.create_task(socket.finish())
        self._leaving[task] = socket
        task.add_done_callback(self._leaving.pop)


def _checked(url: str) -> str:
    try:
        parts = urlsplit(url)
        usable = parts.scheme.lower() in ("ws", "wss") and bool(parts.hostname) and not parts.username
        _ = parts.port
    except ValueError:
        usable = False
    if not usable or parts.fragment or any(character <= " " for character in url):
        raise CardError(f"{shown(url)} is no address of a WebSocket (ws: or wss:)", url=shown(url))
    return f"{parts.scheme.lower()}{url[len(parts.scheme) :]}"
