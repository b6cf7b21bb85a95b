"""Operation: one row of the operation table."""

from __future__ import annotations

from typing import Literal

import msgspec

from dragoman.model.wire import WireMessage

Capability = Literal["", "streaming", "push_notifications", "extended_agent_card"]


class Operation(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """One operation of the protocol. There are eleven, compare them with ``is``.

    * ``name``: as in JSON-RPC and gRPC (``SendMessage``);
    * ``request``, ``response``: the types; for a streaming operation ``response`` is that of each event;
    * ``streaming``: whether the answer is a stream;
    * ``http_method``, ``http_path``: the route, relative to the interface URL, with proto names in braces
      (``/tasks/{id}:cancel``); every route also exists below ``/{tenant}``;
    * ``path_fields``: the names in the path, in order, without ``tenant``;
    * ``body``: ``"*"`` when the request travels in the body, ``""`` when in path and query;
    * ``capability``: the field of AgentCapabilities that must be true, or ``""``.

    Spec: §5.3, HTTP-12, AMB-49.
    """

    name: str
    request: type[WireMessage]
    response: type[WireMessage]
    streaming: bool
    http_method: str
    http_path: str
    path_fields: tuple[str, ...]
    body: str
    capability: Capability
