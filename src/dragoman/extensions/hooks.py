"""Hooks: what the code of an extension may do to the calls for which the extension is active.

Theory. An extension is a layer over Operations, on the server below admission and on the client above the transports.
A call passes through the layers of those extensions that are active for it, in the order in which they were given, and
is a plain call for all the others. The layer of an extension that overrides nothing does nothing.

Spec: §4.6, EXT-02, EXT-10, EXT-11.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any

import msgspec

from dragoman.errors import ConfigurationError
from dragoman.model import Operation, StreamResponse
from dragoman.ports.operations import CallContext, Event, EventStream, Operations


class Hooks:
    """The part of an extension that sees calls, the same on both sides. Override what is needed.

    * ``uri``: its name, with its version in it; a breaking change needs another one (Spec: EXT-04, EXT-05);
    * ``depends``: URIs of those that it cannot do without (Spec: EXT-15).

    What comes in and goes out may be shared with others: change copies
    (:func:`~dragoman.extensions.with_metadata`), and neither fields nor enums of the protocol (Spec: EXT-11).
    """

    uri: str = ""
    depends: Sequence[str] = ()

    async def on_request(self, op: Operation, request: msgspec.Struct, context: CallContext) -> msgspec.Struct:
        """See a request and give what is to be done instead. May raise A2AError, which refuses it."""
        return request

    async def on_response(self, op: Operation, response: msgspec.Struct, context: CallContext) -> msgspec.Struct:
        """See the response of a call and give what is to be answered instead."""
        return response

    def on_event(self, op: Operation, event: StreamResponse, context: CallContext) -> StreamResponse:
        """See an event of a stream and give what is to be shown instead. Called for each reader, so be quick."""
        return event

    async def call(
        self, op: Operation, request: msgspec.Struct, context: CallContext, inner: Operations
    ) -> msgspec.Struct:
        """Do a unary call by way of ``inner``; override it to answer without, or to make several calls of one."""
        response = await inner.call(op, await self.on_request(op, request, context), context)
        return await self.on_response(op, response, context)

    async def stream(
        self, op: Operation, request: msgspec.Struct, context: CallContext, inner: Operations
    ) -> EventStream:
        """Open a stream by way of ``inner``."""
        stream = await inner.stream(op, await self.on_request(op, request, context), context)
        if type(self).on_event is Hooks.on_event:
            return stream
        return SeenStream(stream, lambda event: self.on_event(op, event, context))


class SeenStream(EventStream):
    """A stream whose events pass through a function. Events that it leaves alone stay shared, numbers stay."""

    def __init__(self, stream: EventStream, see: Callable[[StreamResponse], StreamResponse]) -> None:
        self._stream = stream
        self._see = see

    async def next_batch(self) -> list[Event]:
        """See :class:`~dragoman.ports.operations.EventStream`."""
        batch = [self._seen(event) for event in await self._stream.next_batch()]
        self.concluded = self._stream.concluded
        return batch

    def _seen(self, event: Event) -> Event:
        shown = self._see(event.response)
        return event if shown is event.response else Event(shown, number=event.number)

    async def aclose(self) -> None:
        """Let go of the stream."""
        await self._stream.aclose()


IsActive = Callable[[str, CallContext], bool]
"""Whether the extension of a URI is active for a call."""


def layered(operations: Operations, hooks: Iterable[Hooks], is_active: IsActive) -> Operations:
    """Operations below these extensions, the first of which is outermost."""
    for hook in reversed(list(hooks)):
        operations = _Layer(hook, operations, is_active)
    return operations


class _Layer:
    def __init__(self, hooks: Hooks, inner: Operations, is_active: IsActive) -> None:
        self._hooks = hooks
        self._inner = inner
        self._is_active = is_active

    def call(self, op: Operation, request: msgspec.Struct, context: CallContext) -> Coroutine[Any, Any, msgspec.Struct]:
        if self._is_active(self._hooks.uri, context):
            return self._hooks.call(op, request, context, self._inner)
        return self._inner.call(op, request, context)

    def stream(self, op: Operation, request: msgspec.Struct, context: CallContext) -> Coroutine[Any, Any, EventStream]:
        if self._is_active(self._hooks.uri, context):
            return self._hooks.stream(op, request, context, self._inner)
        return self._inner.stream(op, request, context)


def check_uri(uri: str) -> str:
    """The URI of an extension. Raises ConfigurationError for what cannot be named in ``A2A-Extensions``."""
    if not uri or ":" not in uri or "," in uri or not uri.isascii() or not uri.isprintable() or " " in uri:
        raise ConfigurationError(f"extensions: {uri!r} is no absolute URI that A2A-Extensions can name")
    return uri
