"""A service over any Operations, by generic handlers of ``grpc.aio``: ``lf.a2a.v1.A2AService``, unless told otherwise.

Bytes come in and go out; what is in them is read here, so that every failure is answered in the protocol's own form. A
cancelled call, or one whose deadline has passed, lets go of its operation or stream; the task of the protocol goes on.
What the bytes are is the business of a :class:`~dragoman.bindings.grpc.form.ServerForm`.

Spec: §10, GRPC-01 to GRPC-05, PARAM-06, PARAM-08, STRM-04, AMB-09, AMB-10, AMB-98, AUTH-05, SEC-03.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, NoReturn
from urllib.parse import unquote

from dragoman.bindings.failure import as_protocol_error
from dragoman.bindings.grpc.form import CURRENT_FORM, EventSource, ServerForm
from dragoman.bindings.grpc.library import grpc
from dragoman.bindings.grpc.metadata import read_context
from dragoman.bindings.grpc.status import EncodedStatus
from dragoman.errors import PayloadTooLargeError, UnavailableError
from dragoman.http.asgi import Scope
from dragoman.ports.operations import ANONYMOUS, CallContext, Caller, Operations

_log = logging.getLogger("dragoman.bindings")

Peer = Any
"""The ``ServicerContext`` of a call, which is not generic in bytes."""


class Service(grpc.GenericRpcHandler):
    """The handlers of the methods.

    * ``operations``: what it serves; ``form``: how it is spoken of, default that of 1.0;
    * ``identify``: authenticates a call by a scope like that of ASGI, see :func:`as_scope`. Raises UnauthenticatedError
      or PermissionDeniedError. None: every caller is anonymous (Spec: AUTH-05);
    * ``check_version``: is given the ``a2a-version`` of a call before anything else of it is looked at;
    * ``max_message_bytes``: largest request; ``stall_timeout``: seconds that a client may leave a stream unread.
    """

    def __init__(
        self,
        operations: Operations,
        *,
        form: ServerForm = CURRENT_FORM,
        identify: Callable[[Scope], Awaitable[Caller]] | None = None,
        check_version: Callable[[str], None] | None = None,
        max_message_bytes: int,
        stall_timeout: float,
    ) -> None:
        self._operations = operations
        self._form = form
        self._identify = identify
        self._check_version = check_version
        self._max_message_bytes = max_message_bytes
        self._stall_timeout = stall_timeout
        self._unknown: Any = grpc.unary_unary_rpc_method_handler(self._refuse_unknown)
        self._handlers = {
            f"/{form.service}/{name}": self._handler(name, streaming) for name, streaming in form.methods.items()
        }

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:
        """The handler of a method; one that refuses for methods and versions of the service that are not there."""
        method = handler_call_details.method
        found = self._handlers.get(method)
        if found is None and self._form.answers_to(method):
            return self._unknown
        return found

    def _handler(self, method: str, streaming: bool) -> Any:
        if streaming:

            async def stream(data: bytes, peer: Peer) -> None:
                await self._stream(method, data, peer)

            return grpc.unary_stream_rpc_method_handler(stream)

        async def call(data: bytes, peer: Peer) -> bytes:
            return await self._call(method, data, peer)

        return grpc.unary_unary_rpc_method_handler(call)

    async def _call(self, method: str, data: bytes, peer: Peer) -> bytes:
        try:
            context = await self._open_context(method, peer)
            answer = await self._form.call(method, self._checked(data), self._operations, context)
        except Exception as error:
            await self._refuse(peer, error, method)
        if context.activated:
            await peer.send_initial_metadata(self._form.head(context))
        return answer

    async def _stream(self, method: str, data: bytes, peer: Peer) -> None:
        """Open the stream, so that an early error is a status without messages (Spec: AMB-09), then carry it over."""
        try:
            context = await self._open_context(method, peer)
            source = await self._form.stream(method, self._checked(data), self._operations, context)
        except Exception as error:
            await self._refuse(peer, error, method)
        try:
            await peer.send_initial_metadata(self._form.head(context))
            await self._carry(source, peer)
        finally:
            await source.aclose()

    async def _open_context(self, method: str, peer: Peer) -> CallContext:
        path = f"/{self._form.service}/{method}"
        caller = ANONYMOUS if self._identify is None else await self._identify(as_scope(path, peer))
        context = read_context(peer.invocation_metadata() or (), caller, peer.time_remaining())
        if self._check_version is not None:
            self._check_version(context.version)
        self._form.adopt(context)
        return context

    def _checked(self, data: bytes) -> bytes:
        if len(data) > self._max_message_bytes:
            raise PayloadTooLargeError(f"The request is larger than {self._max_message_bytes} bytes")
        return data

    async def _carry(self, source: EventSource, peer: Peer) -> None:
        write, watch = peer.write, StallWatch(self._stall_timeout)
        try:
            while messages := await self._next_messages(source, peer):
                watch.writing = True
                for message in messages:
                    await write(message)
                    watch.written += 1
                watch.writing = False
        except asyncio.CancelledError:
            if not watch.caused_it():
                raise
            _log.info("a client left its stream unread for %g s; it is closed", self._stall_timeout)
            await source.aclose()  # before the status, which has to wait for the client, too
            unread = UnavailableError("The stream was left unread for too long; subscribe again")
            await self._refuse(peer, unread, "stream")
        finally:
            watch.end()

    async def _next_messages(self, source: EventSource, peer: Peer) -> list[bytes]:
        try:
            return await source.next_messages()
        except Exception as error:
            await source.aclose()
            await self._refuse(peer, error, "stream")

    async def _refuse(self, peer: Peer, error: Exception, where: str) -> NoReturn:
        """End a call with the status for an error. Spec: GRPC-04, AMB-10."""
        await _abort(peer, self._form.status(as_protocol_error(error, where)))

    async def _refuse_unknown(self, data: bytes, peer: Peer) -> bytes:
        await _abort(peer, self._form.unknown())


async def _abort(peer: Peer, status: EncodedStatus) -> NoReturn:
    await peer.abort(status.code, status.text, status.trailers)
    raise AssertionError("abort raises")


class StallWatch:
    """Cancels the task that makes it when a write takes as long as ``seconds``, twice that at most.

    One timer for a stream, which looks from time to time whether anything was written: a write has no timer of its own.
    """

    def __init__(self, seconds: float) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.writing = False
        self.written = 0
        self._task = task
        self._seconds = seconds
        self._seen = -1
        self._stalled = False
        self._loop = asyncio.get_running_loop()
        self._timer = self._loop.call_later(seconds, self._look)

    def caused_it(self) -> bool:
        """Whether the cancellation of the task is this one's, and nobody else's besides."""
        return self._stalled and not self._task.uncancel()

    def end(self) -> None:
        """Nothing is written any more."""
        self._timer.cancel()

    def _look(self) -> None:
        if self.writing and self._seen == self.written:
            self._stalled = True
            self._task.cancel()
            return
        self._seen = self.written
        self._timer = self._loop.call_later(self._seconds, self._look)


def as_scope(path: str, peer: Peer) -> Scope:
    """A call of the method at ``path`` in the form of an ASGI scope, so that one ``identify`` serves all bindings.

    ``type`` is ``"grpc"``; ``headers`` are the metadata, ``client`` and ``scheme`` as in ASGI;
    the certificates of a client that showed some are in ``extensions["tls"]["client_cert_chain"]``, PEM, as ASGI's
    extension for TLS has them. Spec: AUTH-05.
    """
    properties = peer.auth_context() or {}
    chain = [pem.decode("latin-1") for pem in properties.get("x509_pem_cert", ())]
    return {
        "type": "grpc",
        "method": "POST",
        "http_version": "2",
        "scheme": "https" if properties.get("transport_security_type") else "http",
        "path": path,
        "query_string": b"",
        "headers": [(_bytes(key), _bytes(value)) for key, value in peer.invocation_metadata() or ()],
        "client": _client(peer.peer()),
        "extensions": {"tls": {"client_cert_chain": chain}} if properties else {},
    }


def _bytes(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else text.encode("latin-1", "replace")


def _client(peer: str) -> tuple[str, int] | None:
    """Host and port of ``ipv4:127.0.0.1:40000`` and ``ipv6:%5B::1%5D:40000``."""
    kind, _, place = unquote(peer).partition(":")
    host, _, port = place.rpartition(":")
    if kind not in ("ipv4", "ipv6") or not port.isdecimal():
        return None
    return host.strip("[]"), int(port)
