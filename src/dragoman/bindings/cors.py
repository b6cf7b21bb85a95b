"""Cross-origin requests: which pages of other origins may call. Off unless origins are named.

Credentials of the browser (cookies) are not allowed in; a page sends its own ``Authorization``.
"""

from __future__ import annotations

from collections.abc import Sequence

from dragoman.http.asgi import Header

_REQUEST_HEADERS = b"A2A-Version, A2A-Extensions, Authorization, Content-Type, Last-Event-ID"
_EXPOSED = (
    b"access-control-expose-headers",
    b"A2A-Extensions, WWW-Authenticate, Retry-After, ETag",
)
_PREFLIGHT: tuple[Header, ...] = (
    (b"access-control-allow-methods", b"GET, HEAD, POST, DELETE, OPTIONS"),
    (b"access-control-allow-headers", _REQUEST_HEADERS),
    (b"access-control-max-age", b"600"),
)
_VARY = (b"vary", b"Origin")


class Cors:
    """The headers for one set of origins; ``("*",)`` allows every page."""

    def __init__(self, origins: Sequence[str]) -> None:
        self._everyone = "*" in origins
        self._origins = frozenset(origin.rstrip("/").encode() for origin in origins)

    def headers(self, origin: bytes | None, *, preflight: bool = False) -> tuple[Header, ...]:
        """What to add to an answer for a request with this ``Origin`` (None: it has none)."""
        if self._everyone:
            allowed: tuple[Header, ...] = ((b"access-control-allow-origin", b"*"),)
        elif origin in self._origins and origin is not None:
            allowed = (_VARY, (b"access-control-allow-origin", origin))
        else:
            return (_VARY,) if self._origins else ()
        return (*allowed, *_PREFLIGHT) if preflight else (*allowed, _EXPOSED)
