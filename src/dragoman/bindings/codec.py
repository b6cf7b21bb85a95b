"""What the two HTTP codecs have in common: the values that go in and come out, and the client half's shape."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import msgspec

from dragoman.model import Operation, StreamResponse

A2A_JSON = "application/a2a+json"
JSON = "application/json"
EVENT_STREAM = "text/event-stream"


class Call(msgspec.Struct, frozen=True, gc=False):
    """A request that was read: which operation, with what, and for JSON-RPC the ``id`` as it stood there."""

    op: Operation
    request: msgspec.Struct
    id: bytes = b""


class HttpRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request to send.

    * ``path``: percent-encoded, to be appended to the interface URL (less its final slash); may be empty;
    * ``query``: encoded, without the question mark; may be empty;
    * ``headers``: what the codec needs; the caller adds service parameters and credentials;
    * ``request_id``: of a JSON-RPC request, to be handed to the decoder of its answer.
    """

    method: str
    path: str = ""
    query: str = ""
    headers: Mapping[str, str]
    body: bytes = b""
    request_id: int | str | None = None

    @property
    def target(self) -> str:
        """Path and query in one."""
        return f"{self.path}?{self.query}" if self.query else self.path


class ClientCodec(Protocol):
    """The client half of a codec. The modules :mod:`jsonrpc` and :mod:`rest` are of this shape."""

    def encode_request(
        self, op: Operation, request: msgspec.Struct, tenant: str = "", *, request_id: int | str = 1
    ) -> HttpRequest:
        """The HTTP request for a call. ``tenant`` is that of the chosen interface (Spec: CARD-10, TEN-02).

        Raises InvalidParamsError for what cannot be put on this wire (an empty id in a path).
        """
        ...

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
        """The response Struct of a complete answer. ``headers`` have names in lower case.

        Also for the plain answer to a streaming call, which is an error (Spec: AMB-09); a lone StreamResponse is read.
        Raises the typed A2AError that the answer stands for; InvalidAgentResponseError for an answer that
        cannot be understood.
        """
        ...

    def decode_event(
        self, op: Operation, data: bytes, *, url: str = "", request_id: int | str | None = None
    ) -> StreamResponse | None:
        """One stream event from its ``data``; None for an empty one, to be skipped.

        Raises the A2AError that the event carries (Spec: AMB-10), or InvalidAgentResponseError.
        """
        ...
