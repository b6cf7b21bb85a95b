"""The public card and the health of a server: plain GET resources beside the bindings.

The card is encoded once for each base URL and served from memory, with a validator made of its content.

Spec: CARD-01, CARD-02, CARD-18 to CARD-21, AMB-74, AMB-75.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from email.utils import formatdate, parsedate_to_datetime

from dragoman.bindings.dialect import Dialect
from dragoman.bindings.exchange import Exchange
from dragoman.errors import MethodNotAllowedError
from dragoman.http.asgi import Header, Scope, server_url
from dragoman.model import AgentCard, encode_json
from dragoman.protocol.versions import parse_version

CARD_PATH = "/.well-known/agent-card.json"
HEALTH_PATH = "/health"
ALLOW = "GET, HEAD, OPTIONS"

#: Base URLs whose card is kept; more than any sane server has addresses.
_MOST_BASES = 64

_NO_STORE: tuple[Header, ...] = ((b"cache-control", b"no-store"),)


class _Encoded:
    """A card ready to be sent, and what a conditional request is compared with."""

    __slots__ = ("body", "etag", "headers")

    def __init__(self, body: bytes, max_age: int, modified: bytes, more: tuple[Header, ...]) -> None:
        self.body = body
        self.etag = b'"%b"' % hashlib.sha256(self.body).hexdigest()[:32].encode()
        self.headers: tuple[Header, ...] = (
            (b"etag", self.etag),
            (b"cache-control", b"public, max-age=%d" % max_age),
            (b"last-modified", modified),
            *more,
        )


class CardResource:
    """``/.well-known/agent-card.json``.

    ``build`` makes the card for a base URL, ``public_url`` is that URL when it is known, ``max_age`` is in seconds.
    With a ``dialect``, who does not name the current version is shown the card in a form for both generations; ``seal``
    is what that text goes through, for signatures over it.
    """

    def __init__(
        self,
        build: Callable[[str], AgentCard],
        public_url: str | None,
        max_age: int,
        dialect: Dialect | None = None,
        seal: Callable[[bytes], bytes] | None = None,
    ) -> None:
        self._build = build
        self._seal = seal
        self._dialect = dialect
        self._vary: tuple[Header, ...] = ((b"vary", b"A2A-Version"),) if dialect is not None else ()
        self._public_url = public_url.rstrip("/") if public_url else None
        self._max_age = max_age
        self._started = int(time.time())
        self._modified = formatdate(self._started, usegmt=True).encode()
        self._encoded: dict[object, _Encoded] = {}

    def forget(self) -> None:
        """The card has changed: build it anew when it is asked for next."""
        self._encoded.clear()
        self._started = int(time.time())
        self._modified = formatdate(self._started, usegmt=True).encode()

    async def serve(self, exchange: Exchange) -> None:
        """Answer GET and HEAD, conditional ones included. Raises MethodNotAllowedError."""
        _check_readable(exchange)
        card = self._card(exchange.scope, self._dialect if self._is_for_both(exchange) else None)
        if self._is_current(exchange, card):
            await exchange.answer_empty(304, card.headers)
            return
        exchange.content_type = "application/json"
        await exchange.answer(200, card.body, card.headers)

    def _is_for_both(self, exchange: Exchange) -> bool:
        if self._dialect is None or exchange.raw_header(b"a2a-version") == b"1.0":
            return False
        version = parse_version(exchange.version)
        return version is None or version < (1, 0)

    def _card(self, scope: Scope, dialect: Dialect | None) -> _Encoded:
        # What the URL is made of, so that it is not put together for each request.
        key: object = self._public_url
        if key is None:
            server = scope.get("server")
            key = (scope.get("scheme"), tuple(server) if server else None, scope.get("root_path"))
        if dialect is not None:
            key = (dialect.version, key)
        found = self._encoded.get(key)
        if found is None:
            if len(self._encoded) >= _MOST_BASES:
                self._encoded.clear()
            base = self._public_url or server_url(scope)
            card = self._build(base)
            body = encode_json(card) if dialect is None else self._encode_for_both(dialect, card)
            found = self._encoded[key] = _Encoded(body, self._max_age, self._modified, self._vary)
        return found

    def _encode_for_both(self, dialect: Dialect, card: AgentCard) -> bytes:
        body = dialect.encode_card(card)
        return body if self._seal is None else self._seal(body)

    def _is_current(self, exchange: Exchange, card: _Encoded) -> bool:
        """Whether the client's copy is still good. ``If-None-Match`` decides alone when it is there (RFC 9110)."""
        tags = exchange.raw_header(b"if-none-match")
        if tags is not None:
            known = [tag.strip().removeprefix(b"W/") for tag in tags.split(b",")]
            return card.etag in known or b"*" in known
        since = exchange.header(b"if-modified-since")
        return bool(since) and self._started <= _epoch(since)


async def serve_health(exchange: Exchange, healthy: Callable[[], bool] | None) -> None:
    """Answer ``/health``: 200, or 503 while the server is stopping. Raises MethodNotAllowedError."""
    _check_readable(exchange)
    exchange.content_type = "application/json"
    if healthy is None or healthy():
        await exchange.answer(200, b'{"status":"ok"}', _NO_STORE)
    else:
        await exchange.answer(503, b'{"status":"stopping"}', _NO_STORE)


async def serve_document(exchange: Exchange, body: bytes, max_age: int) -> None:
    """Answer a public JSON document that does not change; ``max_age`` in seconds. Raises MethodNotAllowedError."""
    _check_readable(exchange)
    exchange.content_type = "application/json"
    await exchange.answer(200, body, ((b"cache-control", b"public, max-age=%d" % max_age),))


def _check_readable(exchange: Exchange) -> None:
    if exchange.method not in ("GET", "HEAD"):
        raise MethodNotAllowedError(metadata={"allow": ALLOW})


def _epoch(text: str) -> float:
    """Seconds since the epoch, or -1 for what is no date: the condition is then ignored."""
    try:
        return parsedate_to_datetime(text).timestamp()
    except (ValueError, TypeError, OverflowError):
        return -1
