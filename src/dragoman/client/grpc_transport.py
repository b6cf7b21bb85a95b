"""The gRPC caller: Operations over one gRPC interface of an agent. One of the doors to grpcio.

Theory. A call first waits until the channel is connected, or has failed to. What fails before that was never sent,
and is a ConnectError, so that another interface may be tried; what fails later without a status of the peer is a lost
connection. A status of the peer is one that comes with details, or on a connection that still stands.

Spec: §10, GRPC-01, GRPC-02, GRPC-05, PARAM-06, PARAM-07, VER-04, EXT-02, TEN-02, AMB-09, AMB-10, AMB-77, B037, B039.
"""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from dragoman.bindings.grpc.addresses import GrpcAddress, parse_address
from dragoman.bindings.grpc.client_form import CURRENT_CLIENT_FORM, ClientForm
from dragoman.bindings.grpc.library import aio, grpc
from dragoman.bindings.grpc.settings import ClientTls, GrpcClientSettings
from dragoman.bindings.grpc.status import DETAILS_KEY
from dragoman.bindings.remote_error import Answer, bad_answer
from dragoman.client.grpc_stream import GrpcEventStream
from dragoman.client.repeating import REPEATABLE
from dragoman.errors import (
    ClientError,
    ConnectError,
    ConnectionLostError,
    DragomanError,
    InvalidAgentResponseError,
    InvalidParamsError,
    RequestTimeoutError,
)
from dragoman.http.client import CONNECT_TIMEOUT, resolve
from dragoman.http.guard import Resolver, is_loopback_host, shown, vet
from dragoman.http.pem import read_pem
from dragoman.model import AgentInterface, Operation
from dragoman.ports.operations import CallContext, EventStream

_READY, _IDLE, _CONNECTING = (
    grpc.ChannelConnectivity.READY,
    grpc.ChannelConnectivity.IDLE,
    grpc.ChannelConnectivity.CONNECTING,
)

#: How gRPC's core tells that a call was never sent.
_NOT_SENT = ("failed to connect to all addresses", "errors resolving", "DNS resolution failed")


class GrpcTransport:
    """Operations of the agent behind one gRPC interface. Close it when done.

    * ``form``: how it is spoken to, default that of 1.0;
    * ``connect_timeout``: seconds for making a connection;
    * ``allow_private``: False lets only public addresses through, resolved here and connected to as checked (Spec:
      AMB-71);
    * ``resolver``: how names are resolved then.

    Raises CardError for what is no gRPC address, ConfigurationError for certificates that cannot be read.
    """

    def __init__(
        self,
        interface: AgentInterface,
        settings: GrpcClientSettings | None = None,
        *,
        form: ClientForm = CURRENT_CLIENT_FORM,
        connect_timeout: float = CONNECT_TIMEOUT,
        allow_private: bool = True,
        resolver: Resolver = resolve,
    ) -> None:
        self._settings = settings = settings or GrpcClientSettings()
        self._form = form
        self._tenant = interface.tenant
        self._url = shown(interface.url)
        self._address = parse_address(interface.url)
        preferred = settings.tls if not isinstance(settings.tls, ClientTls) else True
        self._tls = self._address.with_tls(preferred)
        self._credentials = _credentials(settings.tls) if self._tls else None
        self._connect_timeout = connect_timeout
        self._resolver = None if allow_private else resolver
        self._channel: aio.Channel | None = None
        self._opening = asyncio.Lock()
        self._methods: dict[Operation, Any] = {}
        self._closed = False

    async def call(self, op: Operation, request: msgspec.Struct, context: CallContext) -> msgspec.Struct:
        """See :class:`~dragoman.ports.operations.Operations`. ``context.timeout`` bounds the whole call."""
        data = self._form.encode(op, request, self._tenant)
        limit = asyncio.timeout(context.timeout)
        try:
            async with limit:
                body = await self._repeat(op, data, context)
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise self._too_long(op, context) from error
        return self._decode(op, body)

    async def stream(self, op: Operation, request: msgspec.Struct, context: CallContext) -> EventStream:
        """See :class:`~dragoman.ports.operations.Operations`. ``context.timeout`` bounds the time until it is open."""
        data = self._form.encode(op, request, self._tenant)
        limit = asyncio.timeout(context.timeout)
        try:
            async with limit:
                return await self._open(op, data, context)
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise self._too_long(op, context) from error

    async def aclose(self) -> None:
        """Close the connection; open calls and streams break. Safe to call twice."""
        self._closed = True
        channel, self._channel = self._channel, None
        if channel is not None:
            await channel.close()

    async def _repeat(self, op: Operation, data: bytes, context: CallContext) -> bytes:
        """Make a call, once more when the connection broke under one that changes nothing (Spec: GET-05)."""
        try:
            return await self._call(op, data, context)
        except ConnectionLostError:
            if op not in REPEATABLE:
                raise
        return await self._call(op, data, context)

    async def _call(self, op: Operation, data: bytes, context: CallContext) -> bytes:
        metadata = self._form.metadata(context)
        channel = await self._connect()
        started = self._begin(channel, op, data, metadata, context.timeout)
        try:
            body: bytes = await started
            head, tail = await started.initial_metadata(), await started.trailing_metadata()
            context.activated = self._form.activated((*(head or ()), *(tail or ())))
        except aio.AioRpcError as error:
            raise self._translate(op, error) from error
        except asyncio.CancelledError as error:
            self._raise_if_closed(error)
            raise
        return body

    async def _open(self, op: Operation, data: bytes, context: CallContext) -> EventStream:
        metadata = self._form.metadata(context)
        channel = await self._connect()
        started = self._begin(channel, op, data, metadata, None)
        stream = GrpcEventStream(
            started, self._form.begin_stream(op), lambda error: self._translate(op, error), self._url
        )
        try:
            context.activated = self._form.activated(await stream.opened())
        except asyncio.CancelledError as error:
            await stream.aclose()
            self._raise_if_closed(error)
            raise
        except BaseException:
            await stream.aclose()
            raise
        return stream

    def _begin(self, channel: aio.Channel, op: Operation, data: bytes, metadata: Any, timeout: float | None) -> Any:
        method = self._methods.get(op)
        if method is None:
            make = channel.unary_stream if op.streaming else channel.unary_unary
            method = self._methods[op] = make(self._form.path(op))
        try:
            return method(data, metadata=metadata, timeout=timeout)
        except aio.UsageError as error:
            raise ClientError("This client is closed", url=self._url) from error

    # The channel.

    async def _connect(self) -> aio.Channel:
        """The channel once it stands, or once it has failed: then a call tells the reason. Raises ConnectError."""
        channel = self._channel or await self._make_channel()
        state = channel.get_state(try_to_connect=True)
        if state is not _READY:
            try:
                async with asyncio.timeout(self._connect_timeout):
                    while state in (_IDLE, _CONNECTING):
                        await channel.wait_for_state_change(state)
                        state = channel.get_state(try_to_connect=True)
            except TimeoutError as error:
                raise ConnectError(f"Cannot connect to {self._url}: no connection in time", url=self._url) from error
            except aio.UsageError as error:
                raise ClientError("This client is closed", url=self._url) from error
        return channel

    async def _make_channel(self) -> aio.Channel:
        async with self._opening:
            if self._closed:
                raise ClientError("This client is closed", url=self._url)
            if self._channel is None:
                self._channel = await self._dial()
        return self._channel

    async def _dial(self) -> aio.Channel:
        options = _options(self._settings, self._connect_timeout, self._address)
        target = self._address.authority(self._tls)
        if self._resolver is not None:
            options["grpc.default_authority"] = target
            if self._tls:
                options.setdefault("grpc.ssl_target_name_override", self._address.host)
            target = await self._pin(target, self._resolver)
        if self._credentials is None:
            return aio.insecure_channel(target, options=list(options.items()))
        return aio.secure_channel(target, self._credentials, options=list(options.items()))

    async def _pin(self, authority: str, resolver: Resolver) -> str:
        """The one checked address to connect to, so that nobody resolves the name anew. Raises OutboundUrlError."""
        try:
            target, address = await vet(f"{'https' if self._tls else 'http'}://{authority}", resolver)
        except OSError as error:
            raise ConnectError(f"Cannot find the host of {self._url}: {error.strerror}", url=self._url) from error
        return GrpcAddress(str(address), target.port).authority(self._tls)

    # Bytes and errors.

    def _decode(self, op: Operation, body: bytes) -> msgspec.Struct:
        try:
            return self._form.decode(op, body)
        except InvalidParamsError as error:
            raise bad_answer(Answer(op=op, status=0, body=body, url=self._url), str(error)) from None

    def _too_long(self, op: Operation, context: CallContext) -> RequestTimeoutError:
        return RequestTimeoutError(f"{op.name} at {self._url} took longer than {context.timeout:g} s", url=self._url)

    def _raise_if_closed(self, error: BaseException) -> None:
        """gRPC tells the calls of a channel that was closed by cancelling them; who asked for that is told
        otherwise."""
        task = asyncio.current_task()
        if self._closed and (task is None or not task.cancelling()):
            raise ConnectionLostError("This client was closed", url=self._url) from error

    def _translate(self, op: Operation, error: aio.AioRpcError) -> DragomanError:
        code, text = error.code(), error.details() or ""
        trailers = tuple(error.trailing_metadata() or ())
        if any(key == DETAILS_KEY for key, _ in trailers):
            return self._form.error(op, code, text, trailers, self._url)
        if code is grpc.StatusCode.DEADLINE_EXCEEDED:
            return RequestTimeoutError(f"{op.name} at {self._url} took too long", url=self._url)
        if "CLIENT: " in text and code is grpc.StatusCode.RESOURCE_EXHAUSTED:
            most = self._settings.max_message_bytes
            return InvalidAgentResponseError(f"The answer of {self._url} is larger than {most} bytes")
        if code is grpc.StatusCode.UNAVAILABLE and text.startswith(_NOT_SENT):
            return ConnectError(f"Cannot connect to {self._url}: {_reason(text)}", url=self._url)
        if self._is_broken(code):
            return ConnectionLostError(f"The connection to {self._url} broke: {_reason(text)}", url=self._url)
        return self._form.error(op, code, text, trailers, self._url)

    def _is_broken(self, code: grpc.StatusCode) -> bool:
        """Whether a status without details comes from a connection that is gone."""
        if code is grpc.StatusCode.CANCELLED:
            return True
        if code not in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN):
            return False
        channel = self._channel
        return self._closed or channel is None or channel.get_state() is not _READY


def _credentials(tls: ClientTls | bool | None) -> grpc.ChannelCredentials:
    if not isinstance(tls, ClientTls):
        return grpc.ssl_channel_credentials()
    roots = None if tls.roots is None else read_pem(tls.roots, "the roots to trust")
    if tls.certificate is None or tls.key is None:
        return grpc.ssl_channel_credentials(roots)
    key, certificate = read_pem(tls.key, "the client's key"), read_pem(tls.certificate, "the client's certificate")
    return grpc.ssl_channel_credentials(roots, key, certificate)


def _options(settings: GrpcClientSettings, connect_timeout: float, address: GrpcAddress) -> dict[str, Any]:
    found: dict[str, Any] = {
        "grpc.max_receive_message_length": settings.max_message_bytes,
        "grpc.max_send_message_length": -1,
        "grpc.primary_user_agent": "dragoman",
        "grpc.keepalive_time_ms": _ms(settings.keepalive),
        "grpc.keepalive_timeout_ms": _ms(settings.keepalive_timeout),
        # The next attempt comes soon: how often to try at all is for the caller to say.
        "grpc.initial_reconnect_backoff_ms": 100,
        "grpc.max_reconnect_backoff_ms": 1000,
        "grpc.min_reconnect_backoff_ms": max(100, _ms(connect_timeout)),
        # One channel's bad luck is not another's.
        "grpc.use_local_subchannel_pool": 1,
    }
    if isinstance(settings.tls, ClientTls) and settings.tls.server_name:
        found["grpc.ssl_target_name_override"] = settings.tls.server_name
    if is_loopback_host(address.host):
        found["grpc.enable_http_proxy"] = 0
    return {**found, **dict(settings.options)}


def _ms(seconds: float) -> int:
    return max(1, min(int(seconds * 1000), 2**31 - 1))


def _reason(text: str) -> str:
    """What gRPC's core says, less its own words around it."""
    reason = text.rpartition("last error: ")[2].removeprefix("UNKNOWN: ")
    clean = "".join(c if c.isprintable() else " " for c in reason).strip()
    return clean[:300] or "no reason was given"
