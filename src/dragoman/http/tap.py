"""A client of httpx2 with other TLS settings, and with an ear on the line.

Spec: A2ACLI_OUT_007 (the wire messages of ``--debug``), A2ACLI_AUTH_003.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, Protocol

import httpx2

from dragoman.errors import ConfigurationError
from dragoman.http.client import LIMITS, NAME, HttpxClient, default_tls


class Tap(Protocol):
    """Hears what goes over the wire, as it goes. Called from the event loop; must not block."""

    def request(self, method: str, url: str, headers: Mapping[str, str], body: bytes) -> None:
        """A request is about to be sent."""
        ...

    def response(self, status: int, headers: Mapping[str, str]) -> None:
        """The head of an answer came."""
        ...

    def chunk(self, data: bytes) -> None:
        """A piece of its body was read, encoded as the head says."""
        ...

    def end(self) -> None:
        """The answer was closed."""
        ...


def make_client(
    *, insecure: bool = False, ca_file: str = "", tap: Tap | None = None, tls: ssl.SSLContext | None = None
) -> HttpxClient:
    """A client as :class:`~dragoman.http.client.HttpClient` makes one for itself. Its maker closes it.

    ``insecure`` turns the verification of certificates off, ``ca_file`` replaces the authorities of the system; ``tls``
    is used in place of both.
    Raises ConfigurationError for a ``ca_file`` that cannot be used.
    """
    own = NAME if tap is None else {**NAME, "accept-encoding": "identity"}
    hooks: dict[str, list[Callable[..., Any]]] = {}
    if tap is not None:
        hooks = {"request": [_Requests(tap)], "response": [_Responses(tap)]}
    return httpx2.AsyncClient(verify=tls or _context(insecure, ca_file), limits=LIMITS, headers=own, event_hooks=hooks)


def _context(insecure: bool, ca_file: str) -> ssl.SSLContext:
    if insecure:
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        return context
    if not ca_file:
        return default_tls()
    try:
        return ssl.create_default_context(cafile=ca_file)
    except (OSError, ssl.SSLError) as error:
        why = error.strerror or "it holds no certificate"
        raise ConfigurationError(f"the certificates in {ca_file} cannot be used: {why}") from error


class _Requests:
    def __init__(self, tap: Tap) -> None:
        self._tap = tap

    async def __call__(self, request: httpx2.Request) -> None:
        self._tap.request(request.method, str(request.url), dict(request.headers.items()), request.content)


class _Responses:
    def __init__(self, tap: Tap) -> None:
        self._tap = tap

    async def __call__(self, response: httpx2.Response) -> None:
        self._tap.response(response.status_code, dict(response.headers.items()))
        if isinstance(response.stream, httpx2.AsyncByteStream):
            response.stream = _Overheard(response.stream, self._tap)


class _Overheard(httpx2.AsyncByteStream):
    """The body of an answer, told to a tap on its way."""

    def __init__(self, inner: httpx2.AsyncByteStream, tap: Tap) -> None:
        self._inner = inner
        self._tap = tap

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for data in self._inner:
            self._tap.chunk(data)
            yield data

    async def aclose(self) -> None:
        self._tap.end()
        await self._inner.aclose()
