"""Form of a call: what a generation of the protocol says over gRPC, from the caller's side.

Spec: §10, GRPC-02, GRPC-05, PARAM-06, TEN-02.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import msgspec

from dragoman.bindings.grpc.events import decode_event
from dragoman.bindings.grpc.library import grpc
from dragoman.bindings.grpc.messages import decode_message, encode_message
from dragoman.bindings.grpc.metadata import encode_context, read_activated
from dragoman.bindings.grpc.open_messages import METHODS_SERVICE, decode_open, encode_open
from dragoman.bindings.grpc.schema import SERVICE
from dragoman.bindings.grpc.status import read_status
from dragoman.errors import A2AError
from dragoman.model import OpenMessage, Operation
from dragoman.ports.operations import CallContext, Event

Pairs = tuple[tuple[str, str | bytes], ...]


class EventReader(ABC):
    """Reads the messages of one stream, in order. ``over``: the peer has said that this is the end."""

    over: bool = False

    @abstractmethod
    def read(self, data: bytes) -> list[Event]:
        """What a message stands for: none, one or several events. Raises InvalidParamsError for what is no event."""


class ClientForm(ABC):
    """How requests are written, and answers read. Takes and gives the current Structs."""

    @abstractmethod
    def path(self, op: Operation) -> str:
        """Service and method. Raises UnsupportedOperationError for an operation that there is no method for."""

    @abstractmethod
    def encode(self, op: Operation, request: msgspec.Struct, tenant: str) -> bytes:
        """The request. ``tenant`` is that of the interface, ``""`` when it has none. Raises EncodingError."""

    @abstractmethod
    def decode(self, op: Operation, body: bytes) -> msgspec.Struct:
        """The answer of an operation that does not stream. Raises InvalidParamsError for what is none."""

    @abstractmethod
    def begin_stream(self, op: Operation) -> EventReader:
        """A reader for the answer of one that does."""

    @abstractmethod
    def metadata(self, context: CallContext) -> Pairs:
        """What goes beside a request. Raises ConfigurationError for what metadata cannot carry."""

    @abstractmethod
    def activated(self, head: Any) -> tuple[str, ...]:
        """The extensions that the metadata of an answer says are active."""

    @abstractmethod
    def error(self, op: Operation, code: grpc.StatusCode, text: str, trailers: Pairs, url: str) -> A2AError:
        """The error for a status that the peer sent."""


class _EachForItself(EventReader):
    def read(self, data: bytes) -> list[Event]:
        event = decode_event(data)
        return [] if event is None else [event]


class _CurrentForm(ClientForm):
    """The form of 1.0."""

    def path(self, op: Operation) -> str:
        return f"/{METHODS_SERVICE if op.request is OpenMessage else SERVICE}/{op.name}"

    def encode(self, op: Operation, request: msgspec.Struct, tenant: str) -> bytes:
        named = msgspec.structs.replace(request, tenant=tenant) if tenant else request
        return encode_open(named) if isinstance(named, OpenMessage) else encode_message(named)

    def decode(self, op: Operation, body: bytes) -> msgspec.Struct:
        return decode_open(body) if op.response is OpenMessage else decode_message(op.response, body)

    def begin_stream(self, op: Operation) -> EventReader:
        return _EACH_FOR_ITSELF

    def metadata(self, context: CallContext) -> Pairs:
        return encode_context(context)

    def activated(self, head: Any) -> tuple[str, ...]:
        return read_activated(head)

    def error(self, op: Operation, code: grpc.StatusCode, text: str, trailers: Pairs, url: str) -> A2AError:
        return read_status(op, code, text, trailers, url=url)


_EACH_FOR_ITSELF = _EachForItself()
CURRENT_CLIENT_FORM: ClientForm = _CurrentForm()
