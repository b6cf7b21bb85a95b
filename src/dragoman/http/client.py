"""The one HTTP client: the door to httpx2.

It knows nothing of the protocol. It gives every failure one of four classes of its own (no connection, out of time,
connection lost, answer too large), each with the address and the cause chained, bounds what it reads, and gives
``timeout`` one meaning: the whole call for :meth:`HttpClient.fetch`, the time to the head of the answer for
:meth:`HttpClient.open`. Redirects are never followed here; proxies of the environment are used as httpx2 does.

Spec: §9.1, §11.1, SEC-02, SEC-15, AMB-71, AMB-80.
"""

from __future__ import annotations

import asyncio
import functools
import os
import socket
import ssl
import weakref
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping

import httpx2
import msgspec

from dragoman.errors import (
    ClientError,
    ConnectError,
    ConnectionLostError,
    DragomanError,
    InvalidAgentResponseError,
    OutboundUrlError,
    RequestTimeoutError,
)
from dragoman.http.authentication import Authenticator, Reply
from dragoman.http.guard import Resolver, Target, shown, vet
from dragoman.http.signing import as_outgoing, have_signed

MAX_ANSWER_BYTES = 64 * 1024 * 1024
MAX_ERROR_BYTES = 1024 * 1024
"""How much of the body of an error answer is read."""
CONNECT_TIMEOUT = 10.0

HttpxClient = httpx2.AsyncClient
"""What a caller may bring along."""

_FAILURES = (httpx2.HTTPError, httpx2.InvalidURL, OSError, UnicodeError)
"""SSLError: an alert that comes after the handshake passes through httpx2 as it is."""

_NO_HEADERS: Mapping[str, str] = {}
# Below the five seconds after which the commonest servers close an idle connection, so that both never race.
_KEEPALIVE_SECONDS = 4.0
NAME = {"user-agent": "dragoman"}
LIMITS = httpx2.Limits(max_connections=None, max_keepalive_connections=100, keepalive_expiry=_KEEPALIVE_SECONDS)


class Answer(msgspec.Struct, frozen=True):
    """A whole answer. Names of headers are in lower case, repeated ones joined by commas."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    url: str


async def resolve(host: str, port: int) -> Iterable[str]:
    """The addresses of a name by the system's resolver. Raises OSError."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except UnicodeError as error:  # a label that is empty, or too long
        raise socket.gaierror(socket.EAI_NONAME, "there is no such name") from error
    return [str(address[0]) for *_, address in found]


class HttpClient:
    """Makes HTTP requests. Calls may run together without limit.

    * ``client``: an httpx2 client to use, with its own TLS, proxies and authentication; it is not closed here. Default:
      one of its own, TLS verified, HTTP/1.1 with kept-alive connections.
    * ``connect_timeout``: seconds for making a connection, default 10.
    * ``allow_private``: False lets only public addresses through, resolved here and connected to as checked
      (Spec: AMB-71). Default True.
    * ``resolver``: how names are resolved then; default the system's way.
    * ``authenticator``: signs every request as the last thing before it is sent, hooks of ``client`` included.
    * ``tls``: of its own client; default: the system's authorities, no certificate of the client's.
    """

    def __init__(
        self,
        client: HttpxClient | None = None,
        *,
        connect_timeout: float = CONNECT_TIMEOUT,
        allow_private: bool = True,
        resolver: Resolver = resolve,
        authenticator: Authenticator | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._authenticator = authenticator
        self._own = client is None
        self._tls = tls
        self._client = client or _new_client(tls)
        self._former: list[HttpxClient] = []
        _OPEN.add(self)
        self._connect_timeout = connect_timeout
        self._allow_private = allow_private
        self._resolver = resolver

    async def fetch(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] = _NO_HEADERS,
        body: bytes = b"",
        timeout: float | None = None,
        max_bytes: int = MAX_ANSWER_BYTES,
    ) -> Answer:
        """Make a request and read the whole answer, whatever its status.

        ``timeout`` bounds the whole call in seconds (None: no bound but that of connecting), ``max_bytes`` the body.
        Raises ConnectError, RequestTimeoutError, ConnectionLostError, OutboundUrlError, and
        InvalidAgentResponseError for a body that is too large or badly encoded.
        """
        try:
            async with asyncio.timeout(timeout):
                opened = await self._open(method, url, headers, body, idle=None)
                return Answer(opened.status, opened.headers, await opened.read(max_bytes), opened.url)
        except TimeoutError as error:
            raise _too_long(f"{method} {shown(url)} took longer than {timeout:g} s", url) from error

    async def open(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] = _NO_HEADERS,
        body: bytes = b"",
        timeout: float | None = None,
        idle: float | None = None,
    ) -> OpenAnswer:
        """Make a request and return when the head of its answer is there.

        ``timeout`` bounds the time until then, ``idle`` every wait for further bytes, both in seconds, None
        for no bound. Raises like :meth:`fetch`. The caller closes the answer.
        """
        try:
            async with asyncio.timeout(timeout):
                return await self._open(method, url, headers, body, idle=idle)
        except TimeoutError as error:
            text = f"{method} {shown(url)} was not answered within {timeout:g} s"
            raise _too_long(text, url) from error

    async def aclose(self) -> None:
        """Close the connections. Safe to call twice."""
        if self._own:
            await self._client.aclose()
            while self._former:
                await self._former.pop().aclose()

    def forget_connections(self) -> None:
        """Make new connections from now on; calls under way keep theirs. Those of a client brought along stay."""
        if self._own and not self._client.is_closed:
            self._former.append(self._client)
            self._client = _new_client(self._tls)

    async def _open(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes, *, idle: float | None
    ) -> OpenAnswer:
        if self._client.is_closed:
            raise ClientError("This client is closed", url=shown(url))
        try:
            if self._authenticator is not None:
                return await self._open_signed(self._authenticator, method, url, headers, body, idle)
            request = await self._build(method, url, headers, body, idle)
            response = await self._client.send(request, stream=True, follow_redirects=False)
        except _FAILURES as error:
            raise translate(error, url) from error
        return OpenAnswer(response, url)

    async def _open_signed(
        self,
        authenticator: Authenticator,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes,
        idle: float | None,
    ) -> OpenAnswer:
        """Send with a signature, and once more when the authenticator wants it."""
        repeated = False
        while True:
            request = await self._build(method, url, headers, body, idle)
            have_signed(self._client, request, authenticator)
            response = await self._client.send(request, stream=True, auth=None, follow_redirects=False)
            opened = OpenAnswer(response, url)
            try:
                ahead = await opened.read_ahead(MAX_ERROR_BYTES) if opened.status >= 400 else b""
                reply = Reply(opened.status, opened.headers, ahead, repeated)
                again = await authenticator.review(as_outgoing(request), reply)
            except BaseException:
                await opened.aclose()
                raise
            if repeated or not again:
                return opened
            repeated = True
            await opened.aclose()

    async def _build(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes, idle: float | None
    ) -> httpx2.Request:
        timeout = httpx2.Timeout(connect=self._connect_timeout, read=idle, write=idle, pool=None)
        if self._allow_private:
            return self._client.build_request(method, _url(url), headers=headers, content=body or None, timeout=timeout)
        pinned, host = await self._pin(url)
        # A kept connection belongs to an address, not to a name: another name there must not get it.
        own = {**headers, "Host": host.authority, "Connection": "close"}
        return self._client.build_request(
            method,
            pinned,
            headers=own,
            content=body or None,
            timeout=timeout,
            extensions={"sni_hostname": host.host},
        )

    async def _pin(self, url: str) -> tuple[httpx2.URL, Target]:
        try:
            target, address = await vet(url, self._resolver)
        except OSError as error:
            raise ConnectError(f"Cannot find the host of {shown(url)}: {_words(error)}", url=shown(url)) from error
        return httpx2.URL(url).copy_with(host=str(address)), target


def has_credentials(client: HttpxClient) -> bool:
    """Whether a client that was brought along shows credentials to whoever it calls."""
    return client.auth is not None or any(name in client.headers for name in _SECRETS)


_SECRETS = ("authorization", "cookie", "x-api-key")

_OPEN: weakref.WeakSet[HttpClient] = weakref.WeakSet()


def _new_client(tls: ssl.SSLContext | None) -> HttpxClient:
    return httpx2.AsyncClient(verify=tls or default_tls(), limits=LIMITS, headers=NAME)


def forget_connections() -> None:
    """Have all clients of this process make new connections.

    For a process that was restored from a snapshot: what it kept alive is dead, and its clock does not tell how long.
    """
    for client in list(_OPEN):
        client.forget_connections()


class OpenAnswer:
    """An answer whose body is still coming. One reader only; close it when done."""

    __slots__ = ("_ahead", "_chunks", "_response", "headers", "status", "url")

    def __init__(self, response: httpx2.Response, url: str) -> None:
        self._response = response
        self._ahead: bytes | None = None
        self._chunks: AsyncIterator[bytes] | None = None
        self.status = response.status_code
        self.headers: Mapping[str, str] = dict(response.headers.items())
        self.url = url

    async def next_chunk(self) -> bytes:
        """Wait for the next bytes; ``b""`` is the end.

        Raises ConnectionLostError or RequestTimeoutError. Cancellation breaks the connection; no call may follow it but
        :meth:`aclose`.
        """
        if self._ahead is not None:
            ahead, self._ahead = self._ahead, b""
            return ahead
        if self._chunks is None:
            self._chunks = self._iterate()
        try:
            async for chunk in self._chunks:
                if chunk:
                    return chunk
        except _FAILURES as error:
            raise translate(error, self.url) from error
        return b""

    async def read(self, max_bytes: int) -> bytes:
        """Read the whole body, then close; of an error answer its first MiB (Spec: AC-C-41).

        Raises like :meth:`next_chunk`, and InvalidAgentResponseError beyond the limit.
        """
        if self.status >= 400:
            return await self.read_ahead(min(max_bytes, MAX_ERROR_BYTES))
        try:
            declared = self.headers.get("content-length", "")
            if declared.isdecimal() and int(declared[:20]) > max_bytes:
                raise _too_large(self.url, max_bytes)
            chunks = bytearray()
            while chunk := await self.next_chunk():
                chunks += chunk
                if len(chunks) > max_bytes:
                    raise _too_large(self.url, max_bytes)
            return bytes(chunks)
        finally:
            await self.aclose()

    async def read_ahead(self, max_bytes: int) -> bytes:
        """Read the body up to a limit, then close; what was read can be read again. Raises like :meth:`next_chunk`."""
        if self._ahead is None:
            chunks = bytearray()
            try:
                while len(chunks) < max_bytes and (chunk := await self.next_chunk()):
                    chunks += chunk
            finally:
                await self.aclose()
            self._ahead = bytes(chunks[:max_bytes])
        return self._ahead

    async def aclose(self) -> None:
        """Let go of the connection. Safe to call twice."""
        chunks, self._chunks = self._chunks, None
        if isinstance(chunks, AsyncGenerator):
            await chunks.aclose()
        await self._response.aclose()

    def _iterate(self) -> AsyncIterator[bytes]:
        if "content-encoding" in self.headers or not isinstance(self._response.stream, httpx2.AsyncByteStream):
            return self._response.aiter_bytes()
        # Two layers of generators less than aiter_bytes, for the same bytes.
        return self._response.stream.__aiter__()


def translate(error: Exception, url: str) -> DragomanError:
    """The error of this package for one of httpx2; chain the original to it."""
    place = shown(url)
    if isinstance(error, httpx2.ConnectTimeout):
        return ConnectError(f"Cannot connect to {place}: no connection in time", url=place)
    if isinstance(error, httpx2.TimeoutException):
        return RequestTimeoutError(f"Nothing came from {place} in time", url=place)
    if isinstance(error, httpx2.ConnectError | httpx2.ProxyError):
        return ConnectError(f"Cannot connect to {place}: {_words(error)}", url=place)
    if isinstance(error, UnicodeError):
        return OutboundUrlError(f"The address {place} cannot be called: it holds what no URL has", url=place)
    if isinstance(error, httpx2.UnsupportedProtocol | httpx2.InvalidURL):
        return OutboundUrlError(f"The address {place} cannot be called: {_words(error)}", url=place)
    if isinstance(error, httpx2.DecodingError):
        return InvalidAgentResponseError(f"The answer of {place} is not encoded as its head says")
    return ConnectionLostError(f"The connection to {place} broke: {_words(error)}", url=place)


def _words(error: BaseException) -> str:
    """What a connection failed of, from the innermost cause that has words of the system."""
    found: BaseException | None = error
    for _ in range(10):
        if found is None:
            break
        if isinstance(found, BaseExceptionGroup):
            found = found.exceptions[0]
        if isinstance(found, ssl.SSLError):
            return f"TLS failed: {_words_of_tls(found)}"
        if isinstance(found, OSError) and found.strerror:
            # asyncio puts addresses of its own making into strerror; only numbers below zero are not the system's.
            return os.strerror(found.errno) if found.errno and found.errno > 0 else found.strerror
        found = found.__cause__ or found.__context__
    return str(error) or type(error).__name__


def _words_of_tls(error: ssl.SSLError) -> str:
    words: str = getattr(error, "verify_message", "") or getattr(error, "reason", None) or "handshake"
    return words


def _too_long(text: str, url: str) -> RequestTimeoutError:
    return RequestTimeoutError(text, url=shown(url))


def _too_large(url: str, limit: int) -> InvalidAgentResponseError:
    return InvalidAgentResponseError(f"The answer of {shown(url)} is larger than {limit} bytes")


@functools.cache
def default_tls() -> ssl.SSLContext:
    """What is trusted when nobody says otherwise; made once."""
    return httpx2.create_ssl_context()


@functools.lru_cache(maxsize=256)
def _url(url: str) -> httpx2.URL:
    return httpx2.URL(url)
