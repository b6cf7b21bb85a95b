"""Where a browser comes back to: one address of this machine, for one answer.

Spec: RFC 8252 §7.3, RFC 6749 §4.1.2, RFC 9207.
"""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import parse_qs, urlsplit

from dragoman.auth.tokens import TokenError
from dragoman.http.guard import shown

PATH = "/callback"
_MOST_BYTES = 16 * 1024
_SECONDS = 10.0


class Redirect:
    """Waits for the browser. ``url`` is the redirect URI."""

    def __init__(self, state: str, issuer: str) -> None:
        self.url = ""
        self._state = state
        self._issuer = issuer
        self._code: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def code(self, timeout: float) -> str:
        """The code that the browser brought. Raises TokenError for a refusal, and when nobody comes in time."""
        try:
            async with asyncio.timeout(timeout):
                return await asyncio.shield(self._code)
        except TimeoutError:
            raise TokenError("Nobody has come back from the browser in time") from None

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one connection."""
        try:
            async with asyncio.timeout(_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
                status, text = self._take(head.split(b"\r\n", 1)[0].decode("latin-1"))
                writer.write(_page(status, text))
                await writer.drain()
        except (TimeoutError, ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            return
        finally:
            writer.close()

    def discard(self) -> None:
        """Nobody waits any more."""
        self._code.cancel()

    def _take(self, line: str) -> tuple[str, str]:
        method, _, rest = line.partition(" ")
        parts = urlsplit(rest.partition(" ")[0])
        if method != "GET" or parts.path != PATH:
            return "404 Not Found", "There is nothing here."
        given = {name: values[0] for name, values in parse_qs(parts.query).items() if len(values) == 1}
        # Any page may send a browser here; only the server that was asked knows the state.
        if not hmac.compare_digest(given.get("state", "").encode(), self._state.encode()):
            return "400 Bad Request", "This is not an answer to the login that was begun here."
        if self._code.done():
            return "400 Bad Request", "There was an answer already."
        return self._finish(given)

    def _finish(self, given: dict[str, str]) -> tuple[str, str]:
        issuer = given.get("iss", "")
        if self._issuer and issuer and issuer != self._issuer:
            self._code.set_exception(TokenError(f"The answer is of another issuer, {shown(issuer)}"))
        elif given.get("code"):
            self._code.set_result(given["code"])
            return "200 OK", "You are logged in. This page may be closed."
        else:
            word = "".join(c for c in given.get("error", "")[:60] if c.isascii() and (c.isalnum() or c in "_-."))
            self._code.set_exception(TokenError(f"The login was refused: {word or 'without a reason'}"))
        return "200 OK", "The login has failed. This page may be closed."


def _page(status: str, text: str) -> bytes:
    body = f"<!doctype html><meta charset=utf-8><title>dragoman</title><p>{text}".encode()
    head = (
        f"HTTP/1.1 {status}\r\ncontent-type: text/html; charset=utf-8\r\ncontent-length: {len(body)}\r\n"
        "cache-control: no-store\r\ncontent-security-policy: default-src 'none'\r\nreferrer-policy: no-referrer\r\n"
        "x-content-type-options: nosniff\r\nconnection: close\r\n\r\n"
    )
    return head.encode() + body


@asynccontextmanager
async def waiting_redirect(state: str, issuer: str = "", port: int = 0) -> AsyncIterator[Redirect]:
    """A redirect that is listened to. Raises TokenError when the port is taken."""
    redirect = Redirect(state, issuer)
    try:
        server = await asyncio.start_server(redirect.accept, "127.0.0.1", port, limit=_MOST_BYTES)
    except OSError as error:
        raise TokenError(f"Port {port} of this machine cannot be listened to: {error.strerror}") from error
    redirect.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}{PATH}"
    try:
        yield redirect
    finally:
        redirect.discard()
        server.close()
