"""Requests now and then: each makes its own connection and leaves none behind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from dragoman.http.client import MAX_ANSWER_BYTES, Answer, HttpClient, HttpxClient

_NO_HEADERS: Mapping[str, str] = {}


class Fetcher(Protocol):
    """What can make a request and read its whole answer: :class:`~dragoman.http.client.HttpClient` and its like."""

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
        """See :meth:`HttpClient.fetch <dragoman.http.client.HttpClient.fetch>`."""
        ...


class OccasionalFetcher:
    """Belongs to no event loop and has nothing to close. ``client`` is an httpx2 client to use, which is not closed."""

    def __init__(self, client: HttpxClient | None = None) -> None:
        self._client = client

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
        """See :class:`Fetcher`."""
        http = HttpClient(self._client)
        try:
            return await http.fetch(method, url, headers=headers, body=body, timeout=timeout, max_bytes=max_bytes)
        finally:
            await http.aclose()
