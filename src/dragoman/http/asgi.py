"""ASGI by hand: the types, the path below a mount, reading a body, sending an answer.

Spec: SEC-03 (size limit).
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from typing import Any
from urllib.parse import quote, unquote

from dragoman.errors import PayloadTooLargeError

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Header = tuple[bytes, bytes]


class ClientGoneError(Exception):
    """The client closed the connection. Nobody is left to be told."""


class Texts(Mapping[str, str], ABC):
    """What came beside a request as text, keys in lower case, repeated ones joined by commas; made on first use.

    Its ``repr`` shows keys only: values may be secrets (Spec: SEC-09).
    """

    __slots__ = ("_values",)

    def __init__(self) -> None:
        self._values: dict[str, str] | None = None

    @abstractmethod
    def _pairs(self) -> Iterable[tuple[str, str]]:
        """Keys in lower case, and values."""

    @property
    def _all(self) -> dict[str, str]:
        if self._values is None:
            values: dict[str, str] = {}
            for key, text in self._pairs():
                values[key] = f"{values[key]}, {text}" if key in values else text
            self._values = values
        return self._values

    def __getitem__(self, name: str) -> str:
        return self._all[name.lower()]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(self._all)})"


class Headers(Texts):
    """Request headers."""

    __slots__ = ("_raw",)

    def __init__(self, raw: Sequence[Header]) -> None:
        super().__init__()
        self._raw = raw

    def _pairs(self) -> Iterable[tuple[str, str]]:
        return ((name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in self._raw)


def relative_path(scope: Scope) -> str:
    """The path below the mount point, percent-encoded.

    Some frameworks leave the mount's prefix in ``path`` and repeat it in ``root_path``, others cut it off.
    """
    root: str = scope.get("root_path", "")
    raw: bytes = scope.get("raw_path") or b""
    if b"%" in raw:
        text = raw.partition(b"?")[0].decode("latin-1")
        return _below_encoded(_prefixes(scope, root), text) if root else text
    path: str = scope["path"]
    if root:
        path = _below(_prefixes(scope, root), path)
    return path if path.isascii() and "%" not in path else quote(path, safe="/:")


def _prefixes(scope: Scope, root: str) -> list[str]:
    """What the path may begin with: the whole ``root_path``, or Starlette's mounts less what a proxy cut off."""
    root = root.rstrip("/")
    outer: str = scope.get("app_root_path", "").rstrip("/")
    return [root, root.removeprefix(outer)] if outer else [root]


def _below(prefixes: list[str], path: str) -> str:
    for prefix in prefixes:
        if prefix and (path == prefix or path.startswith(prefix + "/")):
            return path[len(prefix) :]
    return path


def _below_encoded(prefixes: list[str], path: str) -> str:
    segments = path.split("/")
    for prefix in prefixes:
        depth = prefix.count("/") + 1
        if prefix and unquote("/".join(segments[:depth])) == prefix:
            return "".join(f"/{segment}" for segment in segments[depth:])
    return path


def server_url(scope: Scope) -> str:
    """Scheme, the server's own address, and mount prefix. What the client says of them is not looked at."""
    scheme = scope.get("scheme", "http")
    host, port = scope.get("server") or ("localhost", None)
    if ":" in host:
        host = f"[{host}]"
    elif host.startswith("/"):  # a Unix socket
        host = "localhost"
    usual = {"http": 80, "https": 443}.get(scheme)
    place = host if port is None or port == usual else f"{host}:{port}"
    return f"{scheme}://{place}{quote(scope.get('root_path', '').rstrip('/'))}"


async def read_body(receive: Receive, limit: int, declared: bytes | None = None) -> bytes:
    """The whole body of a request, of ``limit`` bytes at most; ``declared`` is its Content-Length.

    Raises PayloadTooLargeError at once when it is declared to be, or turns out, larger (the rest is not read),
    and ClientGoneError when the connection closes on the way.
    """
    if declared is not None and declared.isdigit() and int(declared[:20]) > limit:
        raise _too_large(limit)
    chunks: list[bytes] = []
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGoneError
        chunk: bytes = message.get("body", b"")
        more = message.get("more_body", False)
        size += len(chunk)
        if size > limit:
            raise _too_large(limit)
        chunks.append(chunk)
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def _too_large(limit: int) -> PayloadTooLargeError:
    return PayloadTooLargeError(f"The request is larger than {limit} bytes")


async def until_disconnected(receive: Receive) -> None:
    """Return when the client has closed the connection. The request's body must have been read."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def serve_lifespan(
    receive: Receive,
    send: Send,
    start: Callable[[], Awaitable[object]],
    stop: Callable[[], Awaitable[object]],
    logger: logging.Logger,
) -> None:
    """Answer the ``lifespan`` scope: start when the server starts, stop when it ends.

    What ``start`` raises goes to ``logger``, and the server is told that it failed.
    """
    await receive()
    try:
        await start()
    except Exception as error:
        logger.exception("The server could not start")
        await send({"type": "lifespan.startup.failed", "message": str(error)})
        return
    await send({"type": "lifespan.startup.complete"})
    await receive()
    await stop()
    await send({"type": "lifespan.shutdown.complete"})
