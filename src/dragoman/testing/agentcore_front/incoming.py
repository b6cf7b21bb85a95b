"""A request as the front received it.

Spec: AC-F-01, agentcore 7.4.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from dragoman.http.asgi import Header, Headers, Scope


class Incoming(msgspec.Struct, frozen=True, kw_only=True):
    """One request with its body. ``now`` is the front's time in seconds, ``region`` that of the runtime.

    ``repr`` shows names of headers only.
    """

    method: str
    target: str
    raw_headers: Sequence[Header]
    headers: Headers
    body: bytes = b""
    now: float = 0.0
    region: str = ""
    qualifier: str = "DEFAULT"

    @property
    def origin(self) -> str:
        """Scheme and host, by which the caller came."""
        return f"http://{self.headers.get('host', 'localhost')}"

    @property
    def url(self) -> str:
        """The whole address."""
        return self.origin + self.target

    def __repr__(self) -> str:
        return f"Incoming({self.method} {self.target}, {self.headers!r})"


def raw_target(scope: Scope) -> str:
    """Path and query as they were on the line."""
    raw: bytes = (scope.get("raw_path") or scope["path"].encode()).partition(b"?")[0]
    query: bytes = scope.get("query_string", b"")
    return (raw + b"?" + query if query else raw).decode("latin-1")


class Authorizer(Protocol):
    """Says who calls."""

    name: str

    def check(self, request: Incoming) -> str:
        """The name of the caller, empty for nobody in particular. Raises Refusal."""
        ...


class Open:
    """Lets everybody in. No runtime is like this; it is for rehearsals of everything else."""

    name = "open"

    def check(self, request: Incoming) -> str:
        """Nobody in particular."""
        return ""
