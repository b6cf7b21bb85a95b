"""ID tokens of OpenID Connect: whether a login is the one that was begun here.

Spec: OpenID Connect Core §3.1.3.7, A2ACLI_AUTH_010.
"""

from __future__ import annotations

import hmac
import time
from collections.abc import Callable

import msgspec

from dragoman.auth.metadata import AuthorizationServer, check_secure
from dragoman.auth.server.jwt import DEFAULT_ALGORITHMS, Token, TokenRules, check_signature, check_token, read_token
from dragoman.auth.server.presented import RefusedError
from dragoman.auth.tokens import TokenError
from dragoman.http.client import HttpClient
from dragoman.http.guard import shown
from dragoman.jose import KeySets

LEEWAY = 60.0
"""Seconds that clocks may differ."""


class IdTokenChecks(msgspec.Struct, frozen=True):
    """Checks the ID tokens of one server for one client. ``keys`` are those that were fetched before."""

    server: AuthorizationServer
    client_id: str
    keys: KeySets
    now: Callable[[], float] = time.time

    async def check(self, http: HttpClient, text: str, nonce: str = "") -> None:
        """Refuse a token that is missing, forged, old, or of another login than that of ``nonce``.

        Raises TokenError, MetadataError when the keys are not where they may be, KeySetError.
        """
        server = self.server
        if not text:
            raise TokenError(f"{shown(server.issuer)} gave no ID token")
        if not server.jwks_uri:
            raise TokenError(f"{shown(server.issuer)} names no keys, so that its ID token cannot be verified")
        check_secure(server.jwks_uri)
        try:
            token = read_token(text)
            check_token(token, self._rules(), self.now())
            keys = await self.keys.find(server.jwks_uri, token.kid, http, local=True)
            check_signature(token, keys, self.now())
        except RefusedError as error:
            raise TokenError(f"The ID token of {shown(server.issuer)} is refused: {error}") from None
        self._check_login(token, nonce)

    def _rules(self) -> TokenRules:
        return TokenRules(
            issuer=self.server.issuer,
            audiences=frozenset((self.client_id,)),
            algorithms=frozenset(DEFAULT_ALGORITHMS),
            types=frozenset(("jwt", "")),
            leeway=LEEWAY,
        )

    def _check_login(self, token: Token, nonce: str) -> None:
        said, audiences = token.claims.get("nonce"), token.claims.get("aud")
        if nonce and not (isinstance(said, str) and hmac.compare_digest(said.encode(), nonce.encode())):
            raise TokenError("The ID token is of another login")
        party = token.claims.get("azp")
        if (party is not None and party != self.client_id) or (
            isinstance(audiences, list) and len(audiences) > 1 and party is None
        ):
            raise TokenError("The ID token is for another client")
