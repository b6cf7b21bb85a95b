"""Authentication of httpx2 by whatever shows credentials: an auth flow for clients of one's own.

Spec: AUTH-04, SEC-05; RFC 6750 §3.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping

import httpx2

Show = Callable[[], Awaitable[Mapping[str, str]]]
"""The headers of a request that is about to be sent."""

Renew = Callable[[Mapping[str, str], str, Mapping[str, str]], Awaitable[Mapping[str, str] | None]]
"""After a refusal: by the headers that were sent, the address, and the headers of the answer; the headers to try again
with, None when there are no better ones."""


class ShowingAuth(httpx2.Auth):
    """Shows credentials where ``covers`` says so, and once more with better ones after a 401. For AsyncClient only."""

    def __init__(self, show: Show, renew: Renew, covers: Callable[[str], bool]) -> None:
        self._show = show
        self._renew = renew
        self._covers = covers

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """See httpx2."""
        url = str(request.url)
        if not self._covers(url):
            yield request
            return
        request.headers.update(await self._show())
        answer = yield request
        if answer.status_code != 401:
            return
        better = await self._renew(dict(request.headers.items()), url, dict(answer.headers.items()))
        if better is not None:
            request.headers.update(better)
            yield request

    def sync_auth_flow(self, request: httpx2.Request) -> Generator[httpx2.Request, httpx2.Response]:
        """Refused: tokens are obtained by an event loop."""
        raise RuntimeError("these credentials are for httpx2.AsyncClient")
