"""The endpoint: an ASGI application that serves JSON-RPC, HTTP+JSON, the card and the health of one agent.

Below its mount point: ``POST /`` is JSON-RPC, ``/.well-known/agent-card.json`` the public card, ``/health`` for
load balancers, and everything else HTTP+JSON. It runs over any :class:`~dragoman.ports.operations.Operations`:
the runtime, a proxy, an interceptor. Every answer is a protocol answer, also where nothing of the protocol was
asked for.

Spec: §9, §11, JRPC-01, JRPC-05, HTTP-01, HTTP-10, AMB-09, AMB-10, AMB-35, AMB-88, AUTH-05, SEC-03.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import msgspec

from dragoman.bindings import jsonrpc, rest
from dragoman.bindings.codec import JSON, Call
from dragoman.bindings.cors import Cors
from dragoman.bindings.dialect import Dialect
from dragoman.bindings.exchange import Exchange
from dragoman.bindings.failure import as_protocol_error
from dragoman.bindings.guest import Guest
from dragoman.bindings.routes import Route, match_method, match_route
from dragoman.bindings.settings import EndpointSettings
from dragoman.bindings.streaming import StreamPump
from dragoman.bindings.waiting import while_connected
from dragoman.bindings.wellknown import ALLOW, CARD_PATH, HEALTH_PATH, CardResource, serve_document, serve_health
from dragoman.errors import A2AError, ConfigurationError, MethodNotAllowedError
from dragoman.http.asgi import ClientGoneError, Header, Receive, Scope, Send, server_url
from dragoman.http.sse import SseFraming
from dragoman.model import GET_EXTENDED_AGENT_CARD, AgentCard
from dragoman.ports.deadlines import Deadlines
from dragoman.ports.operations import ANONYMOUS, CallContext, Caller, Operations
from dragoman.protocol.versions import check_version

#: Seconds after which a call that is still pending looks whether its client is there.
_PATIENCE = 5.0

_RPC_ALLOW = "OPTIONS, POST"
_NO_SNIFF: Header = (b"x-content-type-options", b"nosniff")
"""What browsers are told of every answer: it is data, whatever it looks like. Spec: SEC-14."""
_PRIVATE: tuple[Header, ...] = (
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"referrer-policy", b"no-referrer"),
)
"""And of those that are for some only: nobody is to show them within a page, nor tell where they are."""
_HSTS: Header = (b"strict-transport-security", b"max-age=31536000")


class Endpoint:
    """An ASGI 3 application for ``http`` scopes.

    * ``operations``: what it serves;
    * ``card``: builds the public card for a base URL; is called once for each, and must not change what is shared;
    * ``settings``: see :class:`~dragoman.bindings.settings.EndpointSettings`;
    * ``dialect``: another generation of the protocol to serve as well, see :mod:`dragoman.bindings.dialect`;
    * ``seal``: signs the card in the form for both generations.

    ``card_paths`` is where the card is found.

    Requests may run together without limit. A cancelled request lets go of its call or stream. ``lifespan`` is
    the business of whoever mounts it: that scope is refused with ConfigurationError.
    """

    def __init__(
        self,
        operations: Operations,
        *,
        card: Callable[[str], AgentCard],
        settings: EndpointSettings | None = None,
        dialect: Dialect | None = None,
        seal: Callable[[bytes], bytes] | None = None,
    ) -> None:
        self._operations = operations
        self._settings = settings = settings or EndpointSettings()
        self._patience = Deadlines(_PATIENCE)
        self._methods = {op.http_path: op for op in settings.methods.values()}
        self._card = CardResource(card, settings.public_url, settings.card_max_age, dialect, seal)
        self.card_paths = (CARD_PATH, *(dialect.card_paths if dialect is not None else ()))
        self._guest = Guest(dialect, operations, settings, self._patience) if dialect is not None else None
        older = (dialect.extensions_header.decode(),) if dialect is not None else ()
        self._cors = Cors(settings.cors, older, settings.credential_headers) if settings.cors else None
        extra = (_NO_SNIFF, *_PRIVATE) if settings.identify is not None else (_NO_SNIFF,)
        self._extra: tuple[Header, ...] = (*extra, _HSTS) if settings.sends_hsts else extra

    def forget_card(self) -> None:
        """The card has changed."""
        self._card.forget()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await _refuse_scope(scope, receive, send)
            return
        exchange = Exchange(scope, receive, send, self._extra)
        try:
            await self._serve(exchange)
        except ClientGoneError:
            return
        except Exception as error:
            if not exchange.started:
                await exchange.refuse(as_protocol_error(error, f"{exchange.method} {exchange.path[:200]}"))
            elif not isinstance(error, OSError):  # which is how servers tell of a lost connection
                raise

    async def _serve(self, exchange: Exchange) -> None:
        if self._cors is not None:
            exchange.extra += self._cors.headers(exchange.raw_header(b"origin"), preflight=exchange.method == "OPTIONS")
        path = exchange.path
        if exchange.method == "OPTIONS":
            await exchange.answer_empty(204, ((b"allow", self._allowed(path).encode()),))
        elif path in ("/", ""):
            await self._serve_rpc(exchange)
        elif path in self.card_paths:
            await self._card.serve(exchange)
        elif path == HEALTH_PATH:
            await serve_health(exchange, self._settings.healthy)
        elif path in self._settings.documents:
            await serve_document(exchange, self._document(exchange, path), self._settings.card_max_age)
        elif self._guest is not None and self._guest.takes_path(exchange):
            await self._guest.serve_rest(exchange, self._identify)
        else:
            await self._serve_rest(exchange)

    def _document(self, exchange: Exchange, path: str) -> bytes:
        document = self._settings.documents[path]
        if isinstance(document, bytes):
            return document
        return document((self._settings.public_url or server_url(exchange.scope)).rstrip("/"))

    async def _serve_rpc(self, exchange: Exchange) -> None:
        if exchange.method != "POST":
            raise MethodNotAllowedError(metadata={"allow": _RPC_ALLOW})
        exchange.content_type = JSON
        exchange.encode_error = partial(jsonrpc.encode_error, jsonrpc.NULL)
        guest = self._guest if exchange.raw_header(b"a2a-version") != b"1.0" else None
        if guest is not None:
            guest.shape_early_errors(exchange)
        caller = await self._identify(exchange)
        body = await exchange.read_body(self._settings.max_body_bytes)
        try:
            envelope = jsonrpc.decode_envelope(body)
        except A2AError:
            exchange.encode_error = partial(jsonrpc.encode_error, jsonrpc.read_id(body))
            if guest is not None:
                guest.shape_broken(exchange, body)
            raise
        if guest is not None and guest.takes_method(exchange, envelope.method):
            await guest.serve_rpc(exchange, caller, envelope)
            return
        exchange.encode_error = partial(jsonrpc.encode_error, bytes(envelope.id))
        context = self._open_context(exchange, caller)
        if not context.version.strip() and jsonrpc.is_old_name(envelope.method):
            check_version("")  # such a method is of the version that is not served, however lenient one is
        call = jsonrpc.decode_params(envelope, self._settings.methods)
        if call.op.streaming:
            encode_error = partial(jsonrpc.encode_stream_error, call)
            await self._stream(exchange, call, context, jsonrpc.stream_framing(call), encode_error)
        else:
            response = await self._call(exchange, call, context)
            await exchange.answer(200, jsonrpc.encode_result(call, response))

    async def _serve_rest(self, exchange: Exchange) -> None:
        exchange.content_type = rest.response_type(exchange.header(b"accept"))
        method = exchange.method
        route = self._find_route(method, exchange.path)
        caller = await self._identify(exchange)
        context = self._open_context(exchange, caller)
        rest.check_content_type(method, exchange.header(b"content-type"))
        takes_body = rest.takes_body(route.op, method)
        body = await exchange.read_body(self._settings.max_body_bytes) if takes_body else b""
        call = rest.decode_request(route, method, exchange.query, body)
        if call.op.streaming:
            encode_error = partial(rest.encode_stream_error, call)
            await self._stream(exchange, call, context, rest.stream_framing(call), encode_error)
        else:
            response = await self._call(exchange, call, context)
            if exchange.is_known:
                await exchange.answer_empty(304, ())
            else:
                await exchange.answer(200, rest.encode_result(call, response))

    def _find_route(self, method: str, path: str) -> Route:
        """Raises MethodNotFoundError or MethodNotAllowedError."""
        found = match_method(self._methods, method, path) if self._methods else None
        return found or match_route(method, path)

    def _allowed(self, path: str) -> str:
        """The methods of a path, for ``Allow``. Raises MethodNotFoundError."""
        if path in ("/", ""):
            return _RPC_ALLOW
        if path in self.card_paths or path == HEALTH_PATH or path in self._settings.documents:
            return ALLOW
        allowed = self._guest.allowed(path) if self._guest is not None else None
        if allowed is not None:
            return allowed
        try:
            self._find_route("OPTIONS", path)
        except MethodNotAllowedError as error:
            return error.metadata["allow"]
        return ""

    async def _identify(self, exchange: Exchange) -> Caller:
        identify = self._settings.identify
        return ANONYMOUS if identify is None else await identify(exchange.scope)

    def _open_context(self, exchange: Exchange, caller: Caller) -> CallContext:
        context = exchange.open_context(caller)
        if self._settings.check_version is not None:
            self._settings.check_version(context.version)
        return context

    async def _call(self, exchange: Exchange, call: Call, context: CallContext) -> msgspec.Struct:
        if call.op is GET_EXTENDED_AGENT_CARD:
            context.base_url = self._settings.public_url or server_url(exchange.scope)
        pending = self._operations.call(call.op, call.request, context)
        return await while_connected(exchange.receive, pending, self._patience)

    async def _stream(
        self,
        exchange: Exchange,
        call: Call,
        context: CallContext,
        framing: SseFraming,
        encode_error: Callable[[A2AError], bytes],
    ) -> None:
        """Open the stream, so that an early error is a plain answer (Spec: AMB-09), then carry it over."""
        opening = self._operations.stream(call.op, call.request, context)
        stream = await while_connected(exchange.receive, opening, self._patience)
        pump = StreamPump(
            exchange,
            stream,
            framing,
            encode_error,
            heartbeat=self._settings.heartbeat,
            stall_timeout=self._settings.stall_timeout,
        )
        await pump.run()


async def _refuse_scope(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] != "websocket":
        raise ConfigurationError(f"the endpoint serves http, not {scope['type']}")
    await receive()
    await send({"type": "websocket.close", "code": 1000})
