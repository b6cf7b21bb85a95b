"""Cross-origin requests: which pages of other origins may call. Off unless origins are named.

Credentials of the browser (cookies) are not allowed in; a page sends its own ``Authorization``.
"""

from __future__ import annotations

from collections.abc import Sequence

from dragoman.http.asgi import Header

_REQUEST_HEADERS = ("A2A-Version", "A2A-Extensions", "Authorization", "Content-Type", "Last-Event-ID")
_EXPOSED = ("A2A-Extensions", "WWW-Authenticate", "Retry-After", "ETag")
_VARY = (b"vary", b"Origin")


class Cors:
    """The headers for one set of origins; ``("*",)`` allows every page. ``more`` are names of headers that pages may
    send and read, besides the usual ones; ``sent`` of those that they may send."""

    def __init__(self, origins: Sequence[str], more: Sequence[str] = (), sent: Sequence[str] = ()) -> None:
        self._exposed = (b"access-control-expose-headers", ", ".join((*_EXPOSED, *more)).encode())
        self._preflight: tuple[Header, ...] = (
            (b"access-control-allow-methods", b"GET, HEAD, POST, DELETE, OPTIONS"),
            (b"access-control-allow-headers", ", ".join((*_REQUEST_HEADERS, *more, *sent)).encode()),
            (b"access-control-max-age", b"600"),
        )
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
        return (*allowed, *self._preflight) if preflight else (*allowed, self._exposed)
