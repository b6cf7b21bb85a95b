"""Form of a service: what a generation of the protocol says over gRPC, whoever carries it.

Spec: §10, GRPC-02, GRPC-05, VER-07.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

from dragoman.bindings.grpc.events import encode_event
from dragoman.bindings.grpc.messages import decode_request, encode_message
from dragoman.bindings.grpc.metadata import head_of
from dragoman.bindings.grpc.schema import SERVICE
from dragoman.bindings.grpc.status import EncodedStatus, encode_status
from dragoman.errors import A2AError, MethodNotFoundError
from dragoman.model import OPERATIONS
from dragoman.ports.operations import CallContext, EventStream, Operations
from dragoman.protocol.extensions import RESUMABLE_STREAMS


class EventSource(ABC):
    """An open stream, as messages. One reader only."""

    @abstractmethod
    async def next_messages(self) -> list[bytes]:
        """Wait for the next messages: one or more, in order; an empty list is the end."""

    @abstractmethod
    async def aclose(self) -> None:
        """Let go of the stream. Safe to call twice."""


class ServerForm(ABC):
    """How a service reads requests and writes what it has to say. What it raises, the service tells with
    :meth:`status`.

    ``service`` is its full name; ``methods`` has the name of each method, and whether it streams.
    """

    def __init__(self, service: str, methods: Mapping[str, bool]) -> None:
        self.service = service
        self.methods = methods

    @abstractmethod
    def adopt(self, context: CallContext) -> None:
        """Look at the context of a call before its request is read, and make it one of the current generation.

        Raises VersionNotSupportedError.
        """

    @abstractmethod
    def answers_to(self, path: str) -> bool:
        """Whether a path that is no method of the service is this one's to refuse."""

    @abstractmethod
    async def call(self, method: str, data: bytes, operations: Operations, context: CallContext) -> bytes:
        """Run a method that does not stream."""

    @abstractmethod
    async def stream(self, method: str, data: bytes, operations: Operations, context: CallContext) -> EventSource:
        """Open the stream of a method that does. Errors known by then are raised here (Spec: AMB-09)."""

    @abstractmethod
    def head(self, context: CallContext) -> tuple[tuple[str, str], ...]:
        """The initial metadata of an answer."""

    @abstractmethod
    def status(self, error: A2AError) -> EncodedStatus:
        """What a call ends with that failed."""

    def unknown(self) -> EncodedStatus:
        """What a call ends with of a method that there is not. gRPC itself says so in the same way."""
        missing = MethodNotFoundError(f"Method not found: the service here is {self.service}")
        return encode_status(missing, text=self.status(missing).text)


class _CurrentForm(ServerForm):
    """The form of 1.0, which refuses what is asked of services of other versions as well."""

    def __init__(self) -> None:
        super().__init__(SERVICE, {op.name: op.streaming for op in OPERATIONS.values()})

    def adopt(self, context: CallContext) -> None:
        """It is one already; its version was checked by whoever made the service."""

    def answers_to(self, path: str) -> bool:
        return "A2AService/" in path

    async def call(self, method: str, data: bytes, operations: Operations, context: CallContext) -> bytes:
        op = OPERATIONS[method]
        return encode_message(await operations.call(op, decode_request(op, data), context))

    async def stream(self, method: str, data: bytes, operations: Operations, context: CallContext) -> EventSource:
        op = OPERATIONS[method]
        stream = await operations.stream(op, decode_request(op, data), context)
        return _Events(stream, numbered=RESUMABLE_STREAMS in context.activated)

    def head(self, context: CallContext) -> tuple[tuple[str, str], ...]:
        return head_of(context)

    def status(self, error: A2AError) -> EncodedStatus:
        return encode_status(error)


class _Events(EventSource):
    def __init__(self, stream: EventStream, *, numbered: bool) -> None:
        self._stream = stream
        self._numbered = numbered

    async def next_messages(self) -> list[bytes]:
        return [encode_event(event, numbered=self._numbered) for event in await self._stream.next_batch()]

    async def aclose(self) -> None:
        await self._stream.aclose()


CURRENT_FORM = _CurrentForm()
