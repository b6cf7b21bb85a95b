"""Tokens by the client-credentials grant.

Spec: RFC 6749 §2.3.1 and §4.4, RFC 8707, AC-C-95.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from dragoman.auth.metadata import AuthorizationServer, Discovery, check_secure
from dragoman.auth.schemes import SchemeUse, find_server, takes_tokens
from dragoman.auth.token_endpoint import OAuthClient, request_tokens
from dragoman.auth.tokens import BearerToken, TokenError
from dragoman.errors import ConfigurationError
from dragoman.http.client import HttpClient, HttpxClient
from dragoman.http.guard import shown


class ClientCredentials:
    """A source of tokens for a client that has an id and a secret at an authorization server.

    * ``scopes`` to ask for; default those that the agent names;
    * ``token_url``: the token endpoint; default that of the card's scheme, or else of the authorization server that the
      agent names, which is found when a first request is refused. ``issuer`` lets the secret go to this authorization
      server only, which is advisable whenever it is known;
    * ``resource``: the identifier of what the token is for (RFC 8707), ``audience``: the same in the words of other
      servers; sent when they are given;
    * ``http``: an httpx2 client to use and not to close; ``now``: the time in seconds since the epoch.

    The secret goes to the token endpoint only, over https (or to this machine), in the way its server prefers.
    """

    def __init__(
        self,
        client_id: str,
        client_secret: str,
        *,
        scopes: Sequence[str] = (),
        token_url: str = "",
        issuer: str = "",
        resource: str = "",
        audience: str = "",
        http: HttpxClient | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        if not client_id or not client_secret:
            raise ConfigurationError("ClientCredentials needs a client_id and a client_secret")
        if token_url:
            check_secure(token_url)
        self._client = OAuthClient(client_id, client_secret)
        self._scopes = tuple(scopes)
        self._server = AuthorizationServer(issuer=issuer, token_endpoint=token_url)
        self._more = {name: value for name, value in (("resource", resource), ("audience", audience)) if value}
        self._use: SchemeUse | None = None
        self._http = http
        self._now = now

    def __repr__(self) -> str:
        return f"ClientCredentials({self._client.id!r}, <hidden>)"

    def for_scheme(self, use: SchemeUse) -> ClientCredentials:
        """A source that asks where a scheme of a card says, unless it was told otherwise.

        A scheme that only wants bearer tokens says nothing of the kind.
        """
        if not takes_tokens(use.scheme):
            return self
        bound = ClientCredentials.__new__(ClientCredentials)
        bound.__dict__.update(self.__dict__)
        bound._use = use
        return bound

    async def fetch(self, discovery: Discovery | None) -> BearerToken | None:
        """See :class:`~dragoman.auth.TokenSource`. Raises TokenError when the server refuses."""
        http = HttpClient(self._http, allow_private=self._use is None or self._use.allow_private)
        try:
            server = await self._choose(http, discovery)
            if server is None:
                return None
            form = {"grant_type": "client_credentials", **self._more}
            if scopes := self._wanted(discovery):
                form["scope"] = " ".join(scopes)
            return (await request_tokens(http, server, self._client, form, self._now())).bearer
        finally:
            await http.aclose()

    def _wanted(self, discovery: Discovery | None) -> tuple[str, ...]:
        if self._scopes:
            return self._scopes
        named = tuple(discovery.scopes) if discovery is not None else ()
        return named or (self._use.scopes if self._use is not None else ())

    async def _choose(self, http: HttpClient, discovery: Discovery | None) -> AuthorizationServer | None:
        """The server to ask, None when it has to be found first."""
        if self._server.token_endpoint:
            return self._server
        if self._use is not None:
            found = await find_server(http, self._use, "client-credentials")
            self._check_issuer(found)
            self._server = found
            return found
        return None if discovery is None else self._by_discovery(discovery)

    def _by_discovery(self, discovery: Discovery) -> AuthorizationServer:
        for server in discovery.servers:
            if server.token_endpoint and self._server.issuer in ("", server.issuer):
                self._server = server
                return server
        wanted = f"{shown(self._server.issuer)}, as it was asked for" if self._server.issuer else "a token endpoint"
        named = ", ".join(map(shown, discovery.issuers)) or discovery.problem or "none"
        raise TokenError(f"The agent names no authorization server with {wanted}; it names: {named}")

    def _check_issuer(self, found: AuthorizationServer) -> None:
        """A card that gives nothing but addresses says of no issuer that it is that one."""
        if self._server.issuer and found.issuer != self._server.issuer:
            known = shown(found.issuer) or "none"
            raise TokenError(f"The card names the issuer {known}, and not {shown(self._server.issuer)}")
