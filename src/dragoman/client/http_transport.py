"""The HTTP caller: Operations over one interface of an agent, in the words of a codec.

One class for both HTTP bindings. The codec turns requests into bytes and bytes into results; this module moves the
bytes, adds service parameters, and keeps what one interface has taught it (the verb of ``:subscribe``).

Spec: PARAM-04, PARAM-05, PARAM-07, VER-04, VER-12, EXT-02, AMB-09, AMB-10, AMB-88, AMB-97.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import msgspec
from msgspec.structs import replace

from dragoman.bindings.client_dialect import ClientDialect
from dragoman.bindings.codec import ClientCodec, HttpRequest
from dragoman.client.event_stream import HttpEventStream, may_be_events
from dragoman.client.repeating import Repeater, RepeatReads
from dragoman.errors import (
    A2AError,
    InvalidAgentResponseError,
    MethodNotAllowedError,
    MethodNotFoundError,
    TaskNotFoundError,
)
from dragoman.http.client import MAX_ANSWER_BYTES, HttpClient
from dragoman.http.guard import shown
from dragoman.model import SUBSCRIBE_TO_TASK, AgentInterface, Operation
from dragoman.ports.operations import CallContext, EventStream

_OWN_PARAMETERS = ("a2a-version", "a2a-extensions", "x-a2a-extensions", "last-event-id")


class HttpTransport:
    """Operations of the agent behind one interface.

    * ``codec``: its wire, that of the present version or a dialect of another one;
    * ``idle``: seconds after which a stream that brings nothing, not even a heartbeat, counts as lost; None for no
      limit;
    * ``subscribe_verb``: ``"POST"`` or ``"GET"`` fixes the verb of ``:subscribe`` (HTTP+JSON); None tries both and
      remembers;
    * ``repeater``: how often calls are made; default once, and reads again after a broken connection;
    * ``max_answer_bytes``: how large the answer to a unary call may be.
    """

    def __init__(
        self,
        http: HttpClient,
        codec: ClientCodec | ClientDialect,
        interface: AgentInterface,
        *,
        idle: float | None = None,
        subscribe_verb: str | None = None,
        repeater: Repeater | None = None,
        max_answer_bytes: int = MAX_ANSWER_BYTES,
    ) -> None:
        self._max_answer_bytes = max_answer_bytes
        self._http = http
        self._repeater = repeater or RepeatReads()
        self._codec: ClientCodec | ClientDialect = codec
        dialect = codec if isinstance(codec, ClientDialect) else None
        self._version = dialect.version if dialect else ""
        self._extensions_header = dialect.extensions_header if dialect else "A2A-Extensions"
        self._tenant = interface.tenant
        self._base, mark, query = interface.url.partition("?")
        self._query = mark + query
        self._idle = idle
        self._subscribe_verb = subscribe_verb
        self._ids = itertools.count(1)

    async def call(self, op: Operation, request: msgspec.Struct, context: CallContext) -> msgspec.Struct:
        """See :class:`~dragoman.ports.operations.Operations`. ``context.timeout`` bounds the whole call."""
        out = self._encode(op, request)
        return await self._repeater.repeat(op, context, lambda limit: self._call_once(op, out, context, limit))

    async def stream(self, op: Operation, request: msgspec.Struct, context: CallContext) -> EventStream:
        """See :class:`~dragoman.ports.operations.Operations`. ``context.timeout`` bounds the time to the head."""
        out = self._encode(op, request)
        if op is not SUBSCRIBE_TO_TASK or out.path == "":
            return await self._open(op, out, context)
        return await self._subscribe(out, context)

    async def _subscribe(self, out: HttpRequest, context: CallContext) -> EventStream:
        """Open a subscription with the verb that this interface takes. Spec: AMB-88."""
        if self._subscribe_verb is not None:
            return await self._open(SUBSCRIBE_TO_TASK, _as_get(out) if self._subscribe_verb == "GET" else out, context)
        try:
            stream = await self._open(SUBSCRIBE_TO_TASK, out, context)
            self._subscribe_verb = "POST"
        except A2AError as error:
            # Of an older version's 404 nothing is known: its servers have no name for what is missing.
            if not _may_be_the_verb(error) and not (self._version and isinstance(error, TaskNotFoundError)):
                raise
            stream = await self._subscribe_with_get(out, context, error)
        return stream

    async def _subscribe_with_get(self, out: HttpRequest, context: CallContext, first: A2AError) -> EventStream:
        try:
            stream = await self._open(SUBSCRIBE_TO_TASK, _as_get(out), context)
        except MethodNotAllowedError:
            raise first from None
        self._subscribe_verb = "GET"
        return stream

    async def _call_once(
        self, op: Operation, out: HttpRequest, context: CallContext, limit: float | None
    ) -> msgspec.Struct:
        url = self._url(out)
        headers = self._headers(out, context)
        answer = await self._http.fetch(
            out.method, url, headers=headers, body=out.body, timeout=limit, max_bytes=self._max_answer_bytes
        )
        context.activated = _extensions(answer.headers)
        _refuse_redirect(answer.status, answer.headers, url)
        return self._codec.decode_result(
            op, answer.status, answer.headers, answer.body, url=shown(url), request_id=out.request_id
        )

    async def _open(self, op: Operation, out: HttpRequest, context: CallContext) -> EventStream:
        return await self._repeater.repeat(op, context, lambda limit: self._open_once(op, out, context, limit))

    async def _open_once(
        self, op: Operation, out: HttpRequest, context: CallContext, limit: float | None
    ) -> EventStream:
        headers = {**self._headers(out, context), "accept-encoding": "identity"}
        url = self._url(out)
        opened = await self._http.open(out.method, url, headers=headers, body=out.body, timeout=limit, idle=self._idle)
        try:
            context.activated = _extensions(opened.headers)
            _refuse_redirect(opened.status, opened.headers, url)
            stream = HttpEventStream(self._codec, op, opened, out.request_id)
            if not may_be_events(opened):
                await stream.read_plain_answer()
        except BaseException:
            await opened.aclose()
            raise
        return stream

    def _encode(self, op: Operation, request: msgspec.Struct) -> HttpRequest:
        return self._codec.encode_request(op, request, self._tenant, request_id=next(self._ids))

    def _headers(self, out: HttpRequest, context: CallContext) -> dict[str, str]:
        headers = {name: value for name, value in context.parameters.items() if name not in _OWN_PARAMETERS}
        headers.update(out.headers)
        headers["A2A-Version"] = self._version or context.version
        if context.extensions:
            headers[self._extensions_header] = ", ".join(context.extensions)
        if context.last_event_id is not None:
            headers["Last-Event-ID"] = str(context.last_event_id)
        return headers

    def _url(self, out: HttpRequest) -> str:
        """The interface's address, extended; its own query, if it has one, comes first."""
        if not out.path and not out.query:
            return self._base + self._query
        base = self._base.rstrip("/") if out.path else self._base
        query = f"{self._query}&{out.query}" if self._query and out.query else self._query
        return base + out.path + (query or (f"?{out.query}" if out.query else ""))


def _extensions(headers: Mapping[str, str]) -> tuple[str, ...]:
    text = headers.get("a2a-extensions") or headers.get("x-a2a-extensions", "")
    return tuple(uri.strip() for uri in text.split(",") if uri.strip()) if text else ()


def _refuse_redirect(status: int, headers: Mapping[str, str], url: str) -> None:
    if 300 <= status < 400:
        there = shown(headers.get("location", "nowhere"))
        raise InvalidAgentResponseError(
            f"{shown(url)} redirects to {there}; the agent's card has to name the final address"
        )


def _as_get(out: HttpRequest) -> HttpRequest:
    headers = {name: value for name, value in out.headers.items() if name != "content-type"}
    return replace(out, method="GET", headers=headers, body=b"")


def _may_be_the_verb(error: A2AError) -> bool:
    """Whether a refused POST may mean that GET is the verb here: 405, a 404 that names no task, or one that took the
    verb for a part of the id. Spec: AMB-88."""
    if isinstance(error, MethodNotAllowedError | MethodNotFoundError):
        return True
    if not isinstance(error, TaskNotFoundError):
        return False
    reason = error.origin.reason if error.origin is not None else ""
    return reason != error.reason or any(":subscribe" in text for text in (error.message, *error.metadata.values()))
