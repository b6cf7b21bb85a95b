"""Showing credentials to one agent: what goes with every request, and what is done when it is refused.

Spec: AUTH-04, AUTH-06, SEC-05; RFC 6750 §3, RFC 9728 §5; section 12.6 of the register of the command line.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from dragoman.auth.choosing import Part
from dragoman.auth.credentials import ApiKey, Basic, ClientCertificate
from dragoman.auth.discovery import discover
from dragoman.auth.metadata import Discovery
from dragoman.auth.schemes import SchemeTokenSource, SchemeUse
from dragoman.auth.tokens import BearerToken, FixedToken, TokenCache, TokenSource
from dragoman.errors import ConfigurationError
from dragoman.http.client import HttpClient

_KEPT_SECONDS = 60.0


class Refusal(msgspec.Struct, frozen=True):
    """An answer 401: the address that was called, and the headers of the answer, names in lower case."""

    url: str
    headers: Mapping[str, str]
    resources: tuple[str, ...] = ()


class Presenter:
    """Shows credentials. Calls may run together without limit: they share one request for a token.

    * ``headers``, ``query``: what always goes along; :meth:`headers` adds the token;
    * ``make_http``: makes a client for the metadata of authorization servers, one without credentials.
    """

    def __init__(
        self,
        parts: Sequence[Part],
        *,
        make_http: Callable[[], HttpClient] = HttpClient,
        allow_private: bool = True,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._fixed: dict[str, str] = {}
        self.query: dict[str, str] = {}
        self._tokens: TokenCache | None = None
        self._make_http = make_http
        self._now = now
        self._renewing = asyncio.Lock()
        self._discovered: tuple[str, float, Discovery] | None = None
        self._allow_private = allow_private
        for part in parts:
            self._add(part)

    @property
    def names(self) -> frozenset[str]:
        """The names of the headers that hold credentials, in lower case."""
        return frozenset((*self._fixed, *(("authorization",) if self._tokens is not None else ())))

    @property
    def any(self) -> bool:
        """Whether anything goes with requests."""
        return bool(self._fixed or self.query or self._tokens is not None)

    async def headers(self) -> Mapping[str, str]:
        """The headers of a request that is about to be sent. Raises what the source of tokens raises."""
        if self._tokens is None:
            return self._fixed
        return self._with(await self._tokens.get())

    @property
    def renewed(self) -> Mapping[str, str]:
        """The headers with what a renewal brought, without asking the source once more."""
        return self._with(self._tokens.kept if self._tokens is not None else None)

    async def renew(self, sent: Mapping[str, str], refusal: Refusal) -> bool:
        """Get something better after a refusal; whether there is something to try again with.

        ``sent`` are the headers that were refused. Raises what the source of tokens raises.
        """
        if self._tokens is None:
            return False
        async with self._renewing:  # of many calls that are refused together, one asks
            kept = self._tokens.kept
            if kept is not None and sent.get("authorization") != f"Bearer {kept.value}":
                return True
            return await self._tokens.renew(await self._discover(refusal)) is not None

    def _with(self, token: BearerToken | None) -> Mapping[str, str]:
        return self._fixed if token is None else {**self._fixed, "authorization": f"Bearer {token.value}"}

    async def aclose(self) -> None:
        """End what is under way."""
        if self._tokens is not None:
            await self._tokens.aclose()

    async def _discover(self, refusal: Refusal) -> Discovery:
        """What the challenge leads to; the same one is followed once in a while only."""
        challenge, now = refusal.headers.get("www-authenticate", ""), self._now()
        if self._discovered is not None and self._discovered[0] == challenge and now < self._discovered[1]:
            return self._discovered[2]
        http = self._make_http()
        try:
            found = await discover(http, refusal.url, refusal.headers, refusal.resources)
        finally:
            await http.aclose()
        self._discovered = (challenge, now + _KEPT_SECONDS, found)
        return found

    def _add(self, part: Part) -> None:
        credential = part.credential
        if isinstance(credential, ClientCertificate):
            return
        if isinstance(credential, ApiKey):
            self._add_key(credential, part.use)
        elif isinstance(credential, Basic):
            self._fixed["authorization"] = credential.header
        elif isinstance(credential, FixedToken):
            self._fixed["authorization"] = f"Bearer {credential.token.value}"
        elif self._tokens is None:
            self._tokens = TokenCache(self._bound(credential, part.use), self._now)

    def _add_key(self, credential: ApiKey, use: SchemeUse | None) -> None:
        key = use.scheme.api_key_security_scheme if use is not None else None
        if key is None:
            if not credential.header:
                raise ConfigurationError("the card does not say where an API key goes: give ApiKey a header")
            self._fixed[credential.header.lower()] = credential.key
        elif key.location == "query":
            self.query[key.name] = credential.key
        elif key.location == "cookie":
            before = self._fixed.get("cookie")
            self._fixed["cookie"] = (
                f"{before}; {key.name}={credential.key}" if before else f"{key.name}={credential.key}"
            )
        else:
            self._fixed[key.name.lower()] = credential.key

    def _bound(self, source: TokenSource, use: SchemeUse | None) -> TokenSource:
        if use is None or not isinstance(source, SchemeTokenSource):
            return source
        return source.for_scheme(replace(use, allow_private=self._allow_private))
