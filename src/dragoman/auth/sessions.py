"""Logins that last: a source of tokens that keeps what was granted, refreshes it, and asks anew only when it must.

Theory. What was granted lies in a keeper: in memory, or on disk where several processes share it. A token is used until
a minute before it expires; then it is refreshed under the keeper's lock, by one process, and the others find what that
one left. A server that refuses the refresh token ends the login, and the grant is asked for again where that is
possible without a person, or where a person was promised to be there.

Spec: RFC 6749 §6; section 12.6 of the register of the command line.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Protocol

from dragoman.auth.metadata import AuthorizationServer, Discovery
from dragoman.auth.token_endpoint import GrantRefusedError, OAuthClient, TokenSet, refresh_tokens
from dragoman.auth.tokens import BearerToken, TokenError
from dragoman.http.client import HttpClient, HttpxClient


class Keeper(Protocol):
    """Where the tokens of one login lie."""

    async def load(self) -> TokenSet | None:
        """What is there."""
        ...

    async def save(self, tokens: TokenSet) -> None:
        """Put something in its place."""
        ...

    def locked(self) -> AbstractAsyncContextManager[None]:
        """Nobody else loads and saves meanwhile."""
        ...


class InMemory:
    """A keeper of this process."""

    def __init__(self, tokens: TokenSet | None = None) -> None:
        self._tokens = tokens
        self._lock = asyncio.Lock()

    async def load(self) -> TokenSet | None:
        """See :class:`Keeper`."""
        return self._tokens

    async def save(self, tokens: TokenSet) -> None:
        """See :class:`Keeper`."""
        self._tokens = tokens

    @asynccontextmanager
    async def locked(self) -> AsyncIterator[None]:
        """See :class:`Keeper`."""
        async with self._lock:
            yield


_LAST_WAIT = 3.0


async def _to_the_end(work: Coroutine[Any, Any, TokenSet | None]) -> TokenSet | None:
    """Do some work, also when whoever waits for it gives up, for some seconds at most.

    A refresh token is spent by using it: who is cancelled before the next one is kept has lost the login.
    """
    doing = asyncio.create_task(work)
    try:
        return await asyncio.shield(doing)
    except asyncio.CancelledError:
        await asyncio.wait((doing,), timeout=_LAST_WAIT)
        doing.cancel()
        raise


Find = Callable[[HttpClient, Discovery | None], Awaitable[AuthorizationServer | None]]
Grant = Callable[[HttpClient, AuthorizationServer, tuple[str, ...]], Awaitable[TokenSet]]


class Login:
    """A :class:`~dragoman.auth.TokenSource` over a keeper.

    * ``find``: the authorization server, None when it takes a refused request to find it;
    * ``grant``: asks for new tokens; None: only those that are kept are used and refreshed;
    * ``scopes``: to ask for, default those that the agent names;
    * ``allow_private``: whether its servers may be private addresses.
    """

    def __init__(
        self,
        client: OAuthClient,
        find: Find,
        grant: Grant | None,
        *,
        scopes: tuple[str, ...] = (),
        keeper: Keeper | None = None,
        http: HttpxClient | None = None,
        allow_private: bool = True,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._client = client
        self._find = find
        self._grant = grant
        self._scopes = scopes
        self._keeper = keeper or InMemory()
        self._http = http
        self._allow_private = allow_private
        self._now = now
        self._sent: TokenSet | None = None

    def __repr__(self) -> str:
        return f"Login({self._client.id!r}, <hidden>)"

    async def fetch(self, discovery: Discovery | None) -> BearerToken | None:
        """See :class:`~dragoman.auth.TokenSource`. Raises TokenError when there is nothing left to try."""
        held = await self._keeper.load()
        if not self._is_usable(held, discovery):
            async with self._keeper.locked():
                held = await self._keeper.load()
                if not self._is_usable(held, discovery):
                    held = await self._get(held, discovery)
        self._sent = held
        return None if held is None else held.bearer

    def _is_usable(self, held: TokenSet | None, discovery: Discovery | None) -> bool:
        """Whether what is held may be sent: not what was refused just now, and not what is about to expire."""
        if held is None or (discovery is not None and self._sent is not None and held == self._sent):
            return False
        if discovery is not None and self._sent is None:
            return False
        return held.expires_at is None or held.bearer.good_at(self._now())

    async def _get(self, held: TokenSet | None, discovery: Discovery | None) -> TokenSet | None:
        http = HttpClient(self._http, allow_private=self._allow_private)
        try:
            server = await self._find(http, discovery)
            if server is None:
                return None
            found = await _to_the_end(self._refresh_and_save(http, server, held))
            if found is None:
                found = await self._ask(http, server, held, discovery)
                await self._keeper.save(found)
        finally:
            await http.aclose()
        return found

    async def _refresh_and_save(
        self, http: HttpClient, server: AuthorizationServer, held: TokenSet | None
    ) -> TokenSet | None:
        found = await self._refresh(http, server, held)
        if found is not None:
            await self._keeper.save(found)
        return found

    async def _refresh(self, http: HttpClient, server: AuthorizationServer, held: TokenSet | None) -> TokenSet | None:
        """New tokens by the refresh token; None when there is none, or it is worth nothing any more."""
        if held is None or not held.refresh_token:
            return None
        try:
            return await refresh_tokens(http, server, self._client, held, self._now())
        except GrantRefusedError as error:
            if self._grant is None or error.code != "invalid_grant":
                raise
            return None

    async def _ask(
        self, http: HttpClient, server: AuthorizationServer, held: TokenSet | None, discovery: Discovery | None
    ) -> TokenSet:
        if self._grant is None:
            why = "was refused" if discovery is not None else "has expired"
            raise TokenError(f"The token {why}, and there is no way to another one but a new login")
        named = tuple(discovery.scopes) if discovery is not None else ()
        return await self._grant(http, server, self._scopes or named)
