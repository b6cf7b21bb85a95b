"""What came in, and what of it went on to the container.

Spec: AC-F-14.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from dragoman.http.asgi import Header, Headers


class _Envelope(msgspec.Struct):
    id: str | int | float | msgspec.UnsetType | None = msgspec.UNSET
    method: str = ""


def read_envelope(body: bytes) -> tuple[Any, str]:
    """The ``id`` and the ``method`` of a JSON-RPC body; UNSET and empty where they cannot be read."""
    try:
        found = msgspec.json.decode(body, type=_Envelope)
    except msgspec.MsgspecError:
        return msgspec.UNSET, ""
    return found.id, found.method


class Forwarded(msgspec.Struct, frozen=True):
    """What the container was sent. ``repr`` shows names of headers only."""

    url: str
    headers: Mapping[str, str]

    def __repr__(self) -> str:
        return f"Forwarded({self.url}, {', '.join(self.headers)})"


class Recorded(msgspec.Struct, kw_only=True):
    """One request as it was received. ``repr`` shows names of headers only.

    * ``target``: path and query as they were on the line;
    * ``headers``: as a mapping, keys in lower case; ``raw_headers``: every line;
    * ``body_digest``, ``body_size``: SHA-256 in hex, bytes; ``rpc_id``, ``rpc_method``: of its envelope;
    * ``forwarded``: None when it was not passed on; ``status``: 0 when no answer was begun.
    """

    method: str
    target: str
    raw_headers: Sequence[Header]
    headers: Headers
    body_digest: str = ""
    body_size: int = 0
    rpc_id: Any = msgspec.UNSET
    rpc_method: str = ""
    session: str = ""
    forwarded: Forwarded | None = None
    status: int = 0

    def take_body(self, body: bytes) -> None:
        """Note what the body was."""
        self.body_digest, self.body_size = hashlib.sha256(body).hexdigest(), len(body)
        self.rpc_id, self.rpc_method = read_envelope(body)

    def __repr__(self) -> str:
        return f"Recorded({self.method} {self.target} {self.rpc_method or '-'} → {self.status}, {self.headers!r})"
