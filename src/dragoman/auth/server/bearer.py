"""Bearer tokens that are JWTs: keys found, kept and changed without a restart.

Spec: RFC 6750, RFC 8414, OpenID Connect Discovery §4, AUTH-05, AUTH-07, SEC-06; DATA-32.
"""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dragoman.auth.discovery import fetch_server
from dragoman.auth.metadata import MetadataError, check_secure
from dragoman.auth.server.jwt import (
    DEFAULT_ALGORITHMS,
    DEFAULT_TYPES,
    TokenRules,
    check_rules,
    check_signature,
    check_token,
    read_token,
    scopes_of,
    subject_of,
)
from dragoman.auth.server.presented import Presented
from dragoman.auth.server.scheme import Scheme, fingerprint
from dragoman.errors import A2AError, ClientError, ConfigurationError, UnavailableError
from dragoman.http.client import HttpxClient
from dragoman.http.fetching import OccasionalFetcher
from dragoman.jose import KeySets, PublicKey, read_keys
from dragoman.model import HTTPAuthSecurityScheme, SecurityScheme
from dragoman.ports.operations import Caller

_log = logging.getLogger("dragoman.auth")

ToCaller = Callable[[Mapping[str, Any]], Caller]

_KEPT = 3600.0
_AGAIN = 10.0
_BELIEVED = 60.0
"""Seconds that a token which was verified is not verified again: less than keys are kept."""
_MOST_GOOD = 4096


class BearerScheme(Scheme):
    """What is sent as ``Authorization: Bearer``."""

    challenge = "Bearer"

    def find(self, presented: Presented) -> str:
        """See :class:`Scheme`."""
        return presented.authorization("bearer")


class JwtBearer(BearerScheme):
    """JWTs as bearer tokens, such as the access tokens of an authorization server (extra ``auth``).

    * ``issuer``: must be their ``iss``; ``audience``: one of these must be in their ``aud``;
    * ``keys``: public keys to verify with, as a JWK set, a JWK or PEM text; or ``jwks_url``: where the issuer shows
      its keys; default: where its metadata says. They are fetched when they are needed, kept for as long as their
      headers say, and fetched again for a key that is not among them, so that an issuer may change its keys;
    * ``algorithms``: those that are allowed, default ES256, RS256, PS256 and EdDSA; never ``none`` or a shared secret;
    * ``types``: what ``typ`` may be, default ``at+jwt``, ``JWT`` or nothing;
    * ``leeway``: seconds by which clocks may differ, default 30;
    * ``to_caller``: from the claims to the Caller. By default its id is ``issuer#subject``, since a subject is one of
      its issuer only, and its scopes are those of ``scope`` or ``scp``;
    * ``http``: an httpx2 client to fetch with, and not to close; ``now``: seconds since the epoch.

    Raises ConfigurationError. What is fetched is fetched over https, or from this very machine.
    """

    kind = "bearer"

    def __init__(
        self,
        issuer: str,
        audience: str | Sequence[str],
        *,
        jwks_url: str = "",
        keys: bytes | str | Mapping[str, Any] | None = None,
        algorithms: Sequence[str] = DEFAULT_ALGORITHMS,
        types: Sequence[str] = DEFAULT_TYPES,
        leeway: float = 30.0,
        to_caller: ToCaller | None = None,
        description: str = "",
        http: HttpxClient | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        audiences = [audience] if isinstance(audience, str) else audience
        self.rules = check_rules(
            TokenRules(
                issuer=issuer,
                audiences=frozenset(audiences),
                algorithms=frozenset(algorithms),
                types=frozenset(kind.lower().removeprefix("application/") for kind in types),
                leeway=leeway,
            )
        )
        self._keys = _KeySource(issuer, jwks_url, keys, http)
        self._to_caller = to_caller or self._caller
        self._description = description
        self._now = now
        self._good: OrderedDict[bytes, tuple[Caller, float]] = OrderedDict()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.rules.issuer!r}, {sorted(self.rules.audiences)})"

    def declare(self) -> SecurityScheme:
        """See :class:`Scheme`."""
        found = HTTPAuthSecurityScheme(description=self._description, scheme="Bearer", bearer_format="JWT")
        return SecurityScheme(http_auth_security_scheme=found)

    @property
    def issuers(self) -> tuple[str, ...]:
        """See :class:`Scheme`."""
        return (self.rules.issuer,)

    async def verify(self, credential: str) -> Caller:
        """See :class:`Scheme`."""
        digest, now = fingerprint(credential), self._now()
        known = self._good.get(digest)
        if known is not None and now < known[1]:
            return known[0]
        token = read_token(credential)
        check_token(token, self.rules, now)
        check_signature(token, await self._keys.find(token.kid), now)
        caller = self._to_caller(token.claims)
        self._good[digest] = caller, min(now + _BELIEVED, float(token.claims["exp"]) + self.rules.leeway)
        if len(self._good) > _MOST_GOOD:
            self._good.popitem(last=False)
        return caller

    def _caller(self, claims: Mapping[str, Any]) -> Caller:
        id = f"{self.rules.issuer}#{subject_of(claims)}"
        return Caller(id=id, scopes=scopes_of(claims), claims=dict(claims), expires_at=float(claims["exp"]))


class _KeySource:
    """The keys of an issuer."""

    def __init__(
        self, issuer: str, url: str, keys: bytes | str | Mapping[str, Any] | None, http: HttpxClient | None
    ) -> None:
        if keys is not None and url:
            raise ConfigurationError("JwtBearer takes keys, or a jwks_url, not both")
        self._fixed: list[PublicKey] | None = None if keys is None else read_keys(keys)
        if self._fixed == []:
            raise ConfigurationError("JwtBearer: keys holds no public key that can be used")
        if keys is None:
            try:
                check_secure(url or issuer)
            except MetadataError as error:
                raise ConfigurationError(f"JwtBearer: {error}") from None
        self._issuer = issuer
        self._url = url
        self._discovers = not url
        self._asked = float("-inf")
        self._failed = float("-inf")
        self._http = OccasionalFetcher(http)
        self._sets = KeySets()

    async def find(self, kid: str) -> list[PublicKey]:
        """The keys that a token may be signed with. Raises UnavailableError."""
        if self._fixed is not None:
            return [key for key in self._fixed if not kid or not key.kid or key.kid == kid]
        try:
            return await self._sets.find(await self._where(), kid, self._http, local=True)
        except (ClientError, A2AError) as error:
            _log.warning("tokens of %s cannot be verified now: %s", self._issuer, error)
            raise UnavailableError("The credentials cannot be verified now", retry_after=_AGAIN) from error

    async def _where(self) -> str:
        """The address of the keys; the metadata that tells it is read again from time to time."""
        now = time.monotonic()
        if not self._discovers or (self._url and now < self._asked + _KEPT):
            return self._url
        if now < self._failed + _AGAIN:
            if self._url:
                return self._url
            raise MetadataError("the metadata of the issuer could not be had a moment ago")
        try:
            server = await fetch_server(self._http, self._issuer)
            if not server.jwks_uri:
                raise MetadataError("the metadata of the issuer names no jwks_uri")
            check_secure(server.jwks_uri)
        except ClientError:
            self._failed = now
            if self._url:
                return self._url
            raise
        self._url, self._asked = server.jwks_uri, now
        return self._url
