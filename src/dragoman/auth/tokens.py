"""Bearer tokens: where they come from, and how long one is used.

Spec: RFC 6750, AC-C-21, AC-C-24, AC-C-94.
"""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import Protocol, runtime_checkable

import msgspec

from dragoman.auth.metadata import Discovery
from dragoman.errors import ClientError, ConfigurationError, DragomanError

EARLY = 60.0
"""Seconds before its expiry at which a token is no longer used."""


class TokenError(ClientError):
    """No token could be obtained. The message holds no secret."""


class BearerToken(msgspec.Struct, frozen=True):
    """A token, and when it expires: seconds since the epoch, None when nobody says. Its text is never shown."""

    value: str
    expires_at: float | None = None

    def __repr__(self) -> str:
        return f"BearerToken(<hidden>, expires_at={self.expires_at})"

    def good_at(self, now: float) -> bool:
        """Whether it may be used without asking for another: its expiry is known and not near."""
        return self.expires_at is not None and now < self.expires_at - EARLY


@runtime_checkable
class TokenSource(Protocol):
    """Obtains tokens. One call at a time is made."""

    async def fetch(self, discovery: Discovery | None) -> BearerToken | None:
        """A fresh token.

        ``discovery`` is what a refused request led to, None before there was one. None as an answer: no token can be
        had without it. Raises DragomanError.
        """
        ...


Provider = Callable[[], str | BearerToken | Awaitable[str | BearerToken]]
Bearer = str | BearerToken | TokenSource | Provider
"""What tokens may come from: a text, a function (also an async one), or a source."""


class FixedToken:
    """The same token each time. It cannot be refreshed."""

    def __init__(self, token: BearerToken) -> None:
        self.token = token

    async def fetch(self, discovery: Discovery | None) -> BearerToken | None:
        """See :class:`TokenSource`; no token after a refusal, since there is no other."""
        return self.token if discovery is None else None


class ProvidedToken:
    """A token out of a function of the user's."""

    def __init__(self, provide: Provider) -> None:
        self._provide = provide

    async def fetch(self, discovery: Discovery | None) -> BearerToken | None:
        """See :class:`TokenSource`. Raises TokenError for a failure of the function, which is chained."""
        try:
            found = self._provide()
            token = await found if inspect.isawaitable(found) else found
        except DragomanError:
            raise
        except Exception as error:
            raise TokenError(f"The provider of bearer tokens failed: {type(error).__name__}") from error
        return as_token(token)


def as_token(value: str | BearerToken) -> BearerToken:
    """A token from what a user gives. Raises ConfigurationError for what cannot be sent."""
    token = BearerToken(value) if isinstance(value, str) else value
    if not isinstance(token, BearerToken):
        raise ConfigurationError(f"a bearer token must be a text or a BearerToken, not {type(token).__name__}")
    if not token.value or not token.value.isascii() or not token.value.isprintable() or " " in token.value:
        raise ConfigurationError("a bearer token must be printable ASCII without blanks")
    return token


def as_source(bearer: Bearer) -> TokenSource:
    """The source of tokens that a user's word means. Raises ConfigurationError."""
    if isinstance(bearer, str | BearerToken):
        return FixedToken(as_token(bearer))
    if isinstance(bearer, TokenSource):
        return bearer
    if not callable(bearer):
        raise ConfigurationError(f"bearer must be a text, a function or a TokenSource, not {type(bearer).__name__}")
    return ProvidedToken(bearer)


class TokenCache:
    """Keeps the token of a source until shortly before it expires.

    A token whose expiry nobody says is asked for each time, unless the source is a fixed one. Callers that need one at
    the same time share one request; it goes on when one of them is cancelled.
    """

    def __init__(self, source: TokenSource, now: Callable[[], float] = time.time) -> None:
        self._source = source
        self._now = now
        self._token: BearerToken | None = None
        self._asking: asyncio.Task[BearerToken | None] | None = None

    async def get(self) -> BearerToken | None:
        """A token to use, None when there is none without a discovery. Raises what the source raises."""
        if self._token is not None and self._token.good_at(self._now()):
            return self._token
        return await self._ask(None)

    @property
    def kept(self) -> BearerToken | None:
        """The token that was obtained last, as long as it was not refused."""
        return self._token

    async def renew(self, discovery: Discovery) -> BearerToken | None:
        """Another token after one was refused. Raises what the source raises."""
        self._token = None
        return await self._ask(discovery)

    async def aclose(self) -> None:
        """Give up on a request that is under way."""
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.gather(self._asking, return_exceptions=True)

    async def _ask(self, discovery: Discovery | None) -> BearerToken | None:
        asking = self._asking
        if asking is None or asking.done():
            asking = self._asking = asyncio.create_task(self._fetch(discovery))
        return await asyncio.shield(asking)

    async def _fetch(self, discovery: Discovery | None) -> BearerToken | None:
        token = await self._source.fetch(discovery)
        self._token = token
        return token
