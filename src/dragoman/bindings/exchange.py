"""One HTTP request and its answer, as the bindings see it: headers read once, errors in the binding's form."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from urllib.parse import parse_qsl

from dragoman.bindings import rest
from dragoman.bindings.codec import A2A_JSON
from dragoman.errors import A2AError, PayloadTooLargeError
from dragoman.http.asgi import ClientGoneError, Header, Headers, Receive, Scope, Send, read_body, relative_path
from dragoman.ports.operations import CallContext, Caller

EncodeError = Callable[[A2AError], tuple[int, bytes]]


_NO_STORE: Header = (b"cache-control", b"no-store")
"""What a GET about tasks says is for its caller, and for now, however credentials came: what stands between and knows
of ``Authorization`` only must not keep it."""
_PRIVATE: tuple[Header, ...] = ((b"cache-control", b"private, no-cache"), (b"vary", b"Authorization, A2A-Version"))
"""Of an answer that is made for one caller: it is asked for again each time, and sent again when it changed."""


class Exchange:
    """A request with its way back.

    ``encode_error`` and ``content_type`` say in which form it is answered; they start as HTTP+JSON and are set by
    the binding that takes the request. ``extra`` are headers that every answer gets, ``extensions_header`` is the name
    of the one that tells of activated extensions.
    """

    __slots__ = (
        "_fields",
        "_send",
        "content_type",
        "context",
        "encode_error",
        "extensions_header",
        "extra",
        "method",
        "path",
        "receive",
        "scope",
        "started",
    )

    def __init__(self, scope: Scope, receive: Receive, send: Send, extra: tuple[Header, ...]) -> None:
        self.scope = scope
        self.receive = receive
        self._send = send
        self.extra = extra
        self.method: str = scope["method"]
        self.path = relative_path(scope)
        self._fields: dict[bytes, bytes] = dict(scope["headers"])  # of repeated fields, the last
        self.encode_error: EncodeError = rest.encode_error
        self.content_type = A2A_JSON
        self.extensions_header = b"a2a-extensions"
        self.context: CallContext | None = None
        self.started = False

    def header(self, name: bytes) -> str:
        """A request header, ``""`` when absent. ``name`` in lower case."""
        value = self._fields.get(name)
        return value.decode("latin-1").strip() if value else ""

    def raw_header(self, name: bytes) -> bytes | None:
        """The same in bytes, None when absent."""
        return self._fields.get(name)

    @property
    def query(self) -> str:
        """The query string, percent-encoded."""
        query: bytes = self.scope.get("query_string", b"")
        return query.decode("latin-1")

    @property
    def version(self) -> str:
        """``A2A-Version``: the header, else a query parameter of that name in any case. Spec: AMB-18."""
        version = self.header(b"a2a-version")
        if version or b"a2a-version" not in self.scope.get("query_string", b"").lower():
            return version
        pairs = parse_qsl(self.query, keep_blank_values=True)
        return next((value.strip() for name, value in pairs if name.lower() == "a2a-version"), "")

    def open_context(self, caller: Caller) -> CallContext:
        """The context of the call that this request makes."""
        self.context = CallContext(
            version=self.version,
            extensions=self._extensions(),
            caller=caller,
            parameters=Headers(self.scope["headers"]),
            last_event_id=_number(self._fields.get(b"last-event-id")),
        )
        return self.context

    def _extensions(self) -> tuple[str, ...]:
        """URIs of ``A2A-Extensions`` and its older name, in order, each once. Spec: EXT-02, PARAM-07, AMB-22."""
        if b"a2a-extensions" not in self._fields and b"x-a2a-extensions" not in self._fields:
            return ()
        values = [v for n, v in self.scope["headers"] if n in (b"a2a-extensions", b"x-a2a-extensions")]
        uris = (uri.strip() for uri in b",".join(values).decode("latin-1").split(","))
        return tuple(dict.fromkeys(uri for uri in uris if uri))

    @staticmethod
    def _keeps(headers: Iterable[Header]) -> bool:
        """Whether the headers say what may be kept of an answer."""
        return any(name == b"cache-control" for name, _ in headers)

    @property
    def _etag(self) -> bytes:
        assert self.context is not None
        return b'W/"%b"' % _field(self.context.etag)

    @property
    def is_known(self) -> bool:
        """Whether the caller has the answer already, by ``If-None-Match``. Spec: XCARD-12."""
        if self.context is None or not self.context.etag or self.method not in ("GET", "HEAD"):
            return False
        tags = self._fields.get(b"if-none-match", b"")
        return self._etag.removeprefix(b"W/") in (tag.strip().removeprefix(b"W/") for tag in tags.split(b","))

    async def read_body(self, limit: int) -> bytes:
        """The request's body. Raises PayloadTooLargeError, ClientGoneError."""
        return await read_body(self.receive, limit, self._fields.get(b"content-length"))

    async def start(self, status: int, headers: Iterable[Header]) -> None:
        """Send status and headers, with those that every answer of this exchange has."""
        self.started = True
        all_headers = [*headers, *self.extra]
        if self.context is not None and self.context.activated:
            # Spec: EXT-09, AMB-25
            all_headers.append((self.extensions_header, _field(", ".join(self.context.activated))))
        if self.context is not None and self.context.etag:
            all_headers += (*_PRIVATE, (b"etag", self._etag))
        elif self.context is not None and self.method in ("GET", "HEAD") and not self._keeps(all_headers):
            all_headers.append(_NO_STORE)
        await self._send({"type": "http.response.start", "status": status, "headers": all_headers})

    async def send_piece(self, data: bytes, *, more: bool = True) -> None:
        """Send a piece of the answer's body. Raises ClientGoneError when the server tells of a lost connection."""
        try:
            await self._send({"type": "http.response.body", "body": data, "more_body": more})
        except OSError:
            raise ClientGoneError from None

    async def answer(self, status: int, body: bytes, headers: Iterable[Header] = ()) -> None:
        """Send a whole answer of this exchange's content type."""
        content = (
            (b"content-type", self.content_type.encode("latin-1")),
            (b"content-length", b"%d" % len(body)),
        )
        await self.start(status, (*content, *headers))
        await self._send({"type": "http.response.body", "body": b"" if self.method == "HEAD" else body})

    async def answer_empty(self, status: int, headers: Iterable[Header]) -> None:
        """Send an answer that has no body by its status (204, 304)."""
        await self.start(status, headers)
        await self._send({"type": "http.response.body", "body": b""})

    async def refuse(self, error: A2AError) -> None:
        """Answer with an error, in the form of the binding."""
        status, body = self.encode_error(error)
        await self.answer(status, body, self._error_headers(error, status))

    def _error_headers(self, error: A2AError, status: int) -> list[Header]:
        headers: list[Header] = []
        if status == 401 or (status == 403 and "challenge" in error.metadata):
            headers.append((b"www-authenticate", _field(error.metadata.get("challenge", "Bearer"))))
        elif status == 405:
            headers.append((b"allow", _field(error.metadata.get("allow", ""))))
        if error.retry_after is not None:
            headers.append((b"retry-after", b"%d" % max(0, math.ceil(error.retry_after))))
        if isinstance(error, PayloadTooLargeError) and self.scope.get("http_version", "1.1").startswith("1"):
            headers.append((b"connection", b"close"))  # the rest of the request stays unread
        return headers


def _number(value: bytes | None) -> int | None:
    """A plain number of at most 18 digits; anything else is no event number of ours."""
    return int(value) if value is not None and value.isdigit() and len(value) <= 18 else None


def _field(text: str) -> bytes:
    """Text as the value of a header field, which has one line and no more than Latin-1."""
    return " ".join(text.splitlines()).encode("latin-1", "replace")
