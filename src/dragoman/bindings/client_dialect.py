"""The client half of a wire that is not of the present version: what a caller over HTTP has to know of it.

Like a :class:`~dragoman.bindings.codec.ClientCodec` it takes and gives the present version's Structs. Beside that it
names the headers of its version, and it reads streams whose events mean something only in their order.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar

import msgspec

from dragoman.bindings.codec import HttpRequest
from dragoman.model import Operation, StreamResponse


class StreamDecoder(ABC):
    """Reads the events of one stream, in their order."""

    #: Whether the peer said that this was the last event; what follows is not looked at.
    over: bool = False

    @abstractmethod
    def decode(self, data: bytes, event: bytes = b"") -> list[StreamResponse]:
        """The events that the ``data`` of one server-sent event stands for: none, one, or more.

        ``event`` is the type of the server-sent event, or empty. Raises the A2AError that it carries, or
        InvalidAgentResponseError.
        """


class ClientDialect(ABC):
    """A codec of another version, for one peer: it may remember what it has learned of it."""

    #: What is sent as ``A2A-Version``.
    version: ClassVar[str]
    #: The header in which extensions are asked for.
    extensions_header: ClassVar[str]

    @abstractmethod
    def encode_request(
        self, op: Operation, request: msgspec.Struct, tenant: str = "", *, request_id: int | str = 1
    ) -> HttpRequest:
        """See :class:`~dragoman.bindings.codec.ClientCodec`. Raises UnsupportedOperationError for what the version
        has no words for."""

    @abstractmethod
    def decode_result(
        self,
        op: Operation,
        status: int,
        headers: Mapping[str, str],
        body: bytes,
        *,
        url: str = "",
        request_id: int | str | None = None,
    ) -> msgspec.Struct:
        """See :class:`~dragoman.bindings.codec.ClientCodec`."""

    @abstractmethod
    def begin_stream(self, op: Operation, *, url: str = "", request_id: int | str | None = None) -> StreamDecoder:
        """A decoder for the events of one answer to a streaming call."""
