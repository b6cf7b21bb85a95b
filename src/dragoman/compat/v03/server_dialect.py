"""Protocol 0.3 at the HTTP endpoint of a server: JSON-RPC at its root, HTTP+JSON below ``/v1``, one card for both
generations.

Spec: 0.3 register, sections 2, 3, 5.1, 8.1, 8.2.
"""

from __future__ import annotations

import msgspec

from dragoman.bindings.dialect import Answer, Dialect, GuestCall, GuestRoute
from dragoman.compat.v03 import server_rest, server_rpc
from dragoman.compat.v03.cards import hybrid_card
from dragoman.errors import A2AError
from dragoman.model import AgentCard


class V03Dialect(Dialect):
    """``form``: how HTTP+JSON is answered: A, B, C, or empty to do as the caller does. ``raw_bytes``: in A, the content
    of files as base64 once, not twice."""

    version = "0.3"
    rpc_methods = server_rpc.METHODS
    streaming_methods = server_rpc.STREAMING
    path_prefix = server_rest.PREFIX
    card_paths = ("/.well-known/agent.json",)
    extensions_header = b"x-a2a-extensions"

    def __init__(self, *, form: str = "", raw_bytes: bool = False) -> None:
        self._forms = server_rest.Forms(form, raw_bytes=raw_bytes)

    def read_rpc(self, method: str, request_id: bytes, params: bytes) -> GuestCall:
        """See :class:`~dragoman.bindings.dialect.Dialect`."""
        return server_rpc.read_call(method, request_id, params)

    def encode_rpc_error(self, request_id: bytes, error: A2AError) -> Answer:
        """See :class:`~dragoman.bindings.dialect.Dialect`."""
        return server_rpc.encode_error(request_id, error)

    def match_route(self, method: str, path: str, content_type: str = "") -> GuestRoute:
        """See :class:`~dragoman.bindings.dialect.Dialect`."""
        return server_rest.match_route(self._forms, method, path, content_type)

    def encode_rest_error(self, error: A2AError) -> Answer:
        """See :class:`~dragoman.bindings.dialect.Dialect`."""
        return server_rest.encode_error(error)

    def encode_card(self, card: AgentCard) -> bytes:
        """See :class:`~dragoman.bindings.dialect.Dialect`."""
        return msgspec.json.encode(hybrid_card(card))
