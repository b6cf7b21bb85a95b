"""Answers in the form that passes the front: it drops the body of every status that is not a success.

Spec: AC-S-14, AC-S-18, AC-S-50.
"""

from __future__ import annotations

import asyncio
import contextlib

from dragoman.bindings.jsonrpc import read_id
from dragoman.bindings.status import encode_rpc_error
from dragoman.errors import UnavailableError
from dragoman.http.asgi import Header, Message, Receive, Scope, Send

#: Headers of a status that is not sent, or of a connection that is not closed.
_OF_REFUSALS = (b"www-authenticate", b"allow", b"connection")

_KEPT = 256 * 1024
"""Bytes of a request that are kept for its id."""

_DRAIN = 30.0
"""Seconds in which the rest of a refused body has to come."""


class PlainAnswers:
    """``receive`` and ``send`` of one request to JSON-RPC: the status is 200, whatever the body says.

    What is left of a request's body is read, and dropped, before it is refused: a connection that is closed with unread
    data is reset, and the front would see that instead of the answer.
    """

    __slots__ = ("_first", "_is_read", "_receive", "_send", "has_begun")

    def __init__(self, receive: Receive, send: Send) -> None:
        self._receive = receive
        self._send = send
        self._first: bytes | None = None
        self._is_read = False
        self.has_begun = False

    async def receive(self) -> Message:
        """The next message of the client."""
        message = await self._receive()
        if self._first is None:
            self._first = message.get("body", b"")[:_KEPT]
        if not message.get("more_body", False):
            self._is_read = True
        return message

    async def refuse(self, text: str) -> None:
        """Answer instead of an agent that has ended over the call."""
        await self._drain()
        body = encode_rpc_error(read_id(self._first or b""), UnavailableError(text))
        length = (b"content-length", b"%d" % len(body))
        headers = [(b"content-type", b"application/json"), length]
        await self._send({"type": "http.response.start", "status": 200, "headers": headers})
        await self._send({"type": "http.response.body", "body": body})

    async def send(self, message: Message) -> None:
        """Send a message to the client."""
        if message["type"] == "http.response.start":
            self.has_begun = True
            headers = list(message.get("headers", ()))
            if message["status"] != 200:
                await self._drain()
                headers = [(name, value) for name, value in headers if name not in _OF_REFUSALS]
            message = {**message, "status": 200, "headers": [_uncached(*header) for header in headers]}
        await self._send(message)

    async def _drain(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_DRAIN):
                while not self._is_read:
                    await self.receive()


def _uncached(name: bytes, value: bytes) -> Header:
    """What must not be stored must not be served from a cache either: the word that the contract has for streams."""
    return (name, b"no-cache, no-store") if name == b"cache-control" and value == b"no-store" else (name, value)


async def answer_json(scope: Scope, send: Send, status: int, body: bytes, *more: Header) -> None:
    """Send a small answer that nobody keeps."""
    content = ((b"content-type", b"application/json"), (b"content-length", b"%d" % len(body)))
    headers = [*content, (b"cache-control", b"no-store"), *more]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})
