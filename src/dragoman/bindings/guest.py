"""Requests of another generation, served: what the endpoint does for its own, by way of a dialect.

Spec: AMB-09, AMB-10, AUTH-05, SEC-03.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import msgspec

from dragoman.bindings import jsonrpc, rest
from dragoman.bindings.codec import JSON
from dragoman.bindings.dialect import (
    Dialect,
    GuestCall,
    check_guest_version,
    check_path_version,
    is_below,
    may_be_guest,
    takes_method,
)
from dragoman.bindings.exchange import Exchange
from dragoman.bindings.failure import as_protocol_error
from dragoman.bindings.settings import EndpointSettings
from dragoman.bindings.streaming import STREAM_HEADERS, StreamPump
from dragoman.bindings.waiting import while_connected
from dragoman.errors import MethodNotAllowedError
from dragoman.http.asgi import ClientGoneError, server_url
from dragoman.http.sse import encode_sse
from dragoman.model import OPERATIONS
from dragoman.ports.deadlines import Deadlines
from dragoman.ports.operations import CURRENT_VERSION, CallContext, Caller, Operations

Identify = Callable[[Exchange], Awaitable[Caller]]


class _Named(msgspec.Struct, frozen=True):
    method: Any = None


_NAMES = msgspec.json.Decoder(_Named)


class Guest:
    """Serves what a dialect reads, over the same operations as the endpoint whose settings these are."""

    def __init__(
        self, dialect: Dialect, operations: Operations, settings: EndpointSettings, patience: Deadlines
    ) -> None:
        self._dialect = dialect
        self._operations = operations
        self._settings = settings
        self._patience = patience

    # JSON-RPC.

    def shape_early_errors(self, exchange: Exchange) -> None:
        """Errors from before the request is read are in the form of the version that it names or means."""
        if may_be_guest(self._dialect, exchange.version):
            exchange.encode_error = partial(self._dialect.encode_rpc_error, jsonrpc.NULL)

    def shape_broken(self, exchange: Exchange, body: bytes) -> None:
        """The error of a body that is no request is in the form of what can be seen of it."""
        method = _method_of(body)
        if method not in OPERATIONS and takes_method(self._dialect, exchange.version, method):
            exchange.encode_error = partial(self._dialect.encode_rpc_error, jsonrpc.read_id(body))

    def takes_method(self, exchange: Exchange, method: str) -> bool:
        """Whether a request by this name is served, or refused, here."""
        return takes_method(self._dialect, exchange.version, method)

    async def serve_rpc(self, exchange: Exchange, caller: Caller, envelope: jsonrpc.Envelope) -> None:
        """Serve a JSON-RPC request. Errors of a method that streams are an event, since its callers read nothing
        else."""
        dialect, method, request_id = self._dialect, envelope.method, bytes(envelope.id)
        exchange.encode_error = partial(dialect.encode_rpc_error, request_id)
        context = self._open_context(exchange, caller)
        try:
            check_guest_version(dialect, exchange.version)
            call = dialect.read_rpc(method, request_id, bytes(envelope.params))
            if not call.streaming:
                await self._run(exchange, call, context)
                return
            pump = await self._open(exchange, call, context)
        except Exception as error:
            if isinstance(error, ClientGoneError) or method not in dialect.streaming_methods:
                raise
            told = as_protocol_error(error, method)
            status, body = dialect.encode_rpc_error(request_id, told)
            if status != 200:
                raise told from error
            await exchange.start(200, STREAM_HEADERS)
            await exchange.send_piece(encode_sse(body), more=False)
            return
        await pump.run()

    # HTTP+JSON.

    def takes_path(self, exchange: Exchange) -> bool:
        """Whether a path is served, or refused, here."""
        return is_below(self._dialect.path_prefix, exchange.path)

    def allowed(self, path: str) -> str | None:
        """The methods of a path, for ``Allow``; None when the path is not one of the dialect's.

        Raises MethodNotFoundError.
        """
        if not is_below(self._dialect.path_prefix, path):
            return None
        try:
            self._dialect.match_route("OPTIONS", path)
        except MethodNotAllowedError as error:
            return error.metadata["allow"]
        return ""

    async def serve_rest(self, exchange: Exchange, identify: Identify) -> None:
        """Serve an HTTP+JSON request."""
        exchange.content_type = rest.response_type(exchange.header(b"accept"))
        check_path_version(self._dialect, exchange.version, exchange.method, exchange.path)
        exchange.content_type = JSON
        exchange.encode_error = self._dialect.encode_rest_error
        route = self._dialect.match_route(exchange.method, exchange.path, exchange.header(b"content-type"))
        context = self._open_context(exchange, await identify(exchange))
        check_guest_version(self._dialect, exchange.version)
        body = await exchange.read_body(self._settings.max_body_bytes) if route.takes_body else b""
        call = route.read(exchange.query, body)
        if call.streaming:
            pump = await self._open(exchange, call, context)
            await pump.run()
        else:
            await self._run(exchange, call, context)

    # Both.

    def _open_context(self, exchange: Exchange, caller: Caller) -> CallContext:
        context = exchange.open_context(caller)
        exchange.extensions_header = self._dialect.extensions_header
        context.version = CURRENT_VERSION
        context.wire = self._dialect.version
        context.base_url = self._settings.public_url or server_url(exchange.scope)
        context.last_event_id = None  # its events are numbered by nobody
        return context

    async def _run(self, exchange: Exchange, call: GuestCall, context: CallContext) -> None:
        status, body = await while_connected(exchange.receive, call.run(self._operations, context), self._patience)
        if status == 204:
            await exchange.answer_empty(status, ())
        elif exchange.is_known:
            await exchange.answer_empty(304, ())
        else:
            await exchange.answer(status, body)

    async def _open(self, exchange: Exchange, call: GuestCall, context: CallContext) -> StreamPump:
        stream = await while_connected(exchange.receive, call.open(self._operations, context), self._patience)
        return StreamPump(
            exchange,
            stream,
            call.framing,
            call.encode_stream_error,
            heartbeat=self._settings.heartbeat,
            stall_timeout=self._settings.stall_timeout,
        )


def _method_of(body: bytes) -> str:
    """The method that a broken request names, empty when there is none to be read."""
    try:
        method = _NAMES.decode(body).method
    except (msgspec.DecodeError, RecursionError):
        return ""
    return method if isinstance(method, str) else ""
