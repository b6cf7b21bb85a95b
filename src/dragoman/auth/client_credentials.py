"""Tokens by the client-credentials grant.

Spec: RFC 6749 §2.3.1 and §4.4, RFC 8707, AC-C-95.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Callable, Sequence
from urllib.parse import quote_plus, urlencode

import msgspec

from dragoman.auth.metadata import AuthorizationServer, Discovery, check_secure
from dragoman.auth.tokens import BearerToken, TokenError, as_token
from dragoman.errors import ConfigurationError
from dragoman.http.client import HttpClient, HttpxClient
from dragoman.http.guard import shown

TIMEOUT = 30.0
MAX_BYTES = 64 * 1024
_FORM = {"content-type": "application/x-www-form-urlencoded", "accept": "application/json"}
_BASIC, _POST = "client_secret_basic", "client_secret_post"


class _Granted(msgspec.Struct, frozen=True):
    access_token: str
    token_type: str = "Bearer"
    expires_in: float | str | None = None


class _Refused(msgspec.Struct, frozen=True):
    error: str = ""


class ClientCredentials:
    """A source of tokens for a client that has an id and a secret at an authorization server.

    * ``scopes`` to ask for; default those that the agent names;
    * ``token_url``: the token endpoint; default that of the authorization server that the agent names, which is found
      when a first request is refused. ``issuer`` lets the secret go to this authorization server only, which is
      advisable whenever it is known;
    * ``resource``: the identifier of what the token is for (RFC 8707), sent when it is given;
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
        http: HttpxClient | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        if not client_id or not client_secret:
            raise ConfigurationError("ClientCredentials needs a client_id and a client_secret")
        if token_url:
            check_secure(token_url)
        self._id = client_id
        self._secret = client_secret
        self._scopes = tuple(scopes)
        self._server = AuthorizationServer(issuer=issuer, token_endpoint=token_url)
        self._resource = resource
        self._http = http
        self._now = now

    def __repr__(self) -> str:
        return f"ClientCredentials({self._id!r}, <hidden>)"

    async def fetch(self, discovery: Discovery | None) -> BearerToken | None:
        """See :class:`~dragoman.auth.TokenSource`. Raises TokenError when the server refuses."""
        server = self._choose(discovery)
        if server is None:
            return None
        scopes = self._scopes or (tuple(discovery.scopes) if discovery is not None else ())
        form = {"grant_type": "client_credentials"}
        if scopes:
            form["scope"] = " ".join(scopes)
        if self._resource:
            form["resource"] = self._resource
        return await self._request(server, form)

    def _choose(self, discovery: Discovery | None) -> AuthorizationServer | None:
        """The server to ask, None when it has to be found first."""
        if self._server.token_endpoint:
            return self._server
        if discovery is None:
            return None
        for server in discovery.servers:
            if server.token_endpoint and self._server.issuer in ("", server.issuer):
                self._server = server
                return server
        wanted = f"{shown(self._server.issuer)}, as it was asked for" if self._server.issuer else "a token endpoint"
        named = ", ".join(map(shown, discovery.issuers)) or discovery.problem or "none"
        raise TokenError(f"The agent names no authorization server with {wanted}; it names: {named}")

    async def _request(self, server: AuthorizationServer, form: dict[str, str]) -> BearerToken:
        url, headers = server.token_endpoint, dict(_FORM)
        methods = server.token_endpoint_auth_methods_supported
        if _POST in methods and _BASIC not in methods:
            form |= {"client_id": self._id, "client_secret": self._secret}
        else:
            pair = f"{quote_plus(self._id)}:{quote_plus(self._secret)}"
            headers["authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
        http, asked = HttpClient(self._http), self._now()
        try:
            body = urlencode(form).encode()
            answer = await http.fetch("POST", url, headers=headers, body=body, timeout=TIMEOUT, max_bytes=MAX_BYTES)
        finally:
            await http.aclose()
        if answer.status != 200:
            raise TokenError(f"{shown(url)} gave no token: {_why(answer.status, answer.body)}", url=shown(url))
        return _read(answer.body, url, asked)


def _read(body: bytes, url: str, asked: float) -> BearerToken:
    try:
        granted = msgspec.json.decode(body, type=_Granted)
        seconds = None if granted.expires_in is None else float(granted.expires_in)
    except (msgspec.DecodeError, ValueError, RecursionError):
        raise TokenError(f"The answer of {shown(url)} holds no token", url=shown(url)) from None
    if granted.token_type.lower() != "bearer":
        raise TokenError(f"The token of {shown(url)} is no bearer token", url=shown(url))
    return as_token(BearerToken(granted.access_token, None if seconds is None else asked + seconds))


def _why(status: int, body: bytes) -> str:
    """The error's code, which is a word of the standard; its description may say anything."""
    try:
        error = msgspec.json.decode(body, type=_Refused).error
    except (msgspec.DecodeError, RecursionError):
        error = ""
    return f"HTTP {status} {error}".strip()[:100]
