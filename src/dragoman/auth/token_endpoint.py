"""Asking a token endpoint: whoever the client is, whatever the grant.

Nothing that the server says is quoted but the code of its error, which is a word of the standard.

Spec: RFC 6749 §2.3.1, §4 to §6, A2ACLI_AUTH_006.
"""

from __future__ import annotations

import base64
from urllib.parse import quote_plus, urlencode

import msgspec

from dragoman.auth.metadata import AuthorizationServer, check_secure
from dragoman.auth.tokens import BearerToken, TokenError, as_token
from dragoman.errors import ConfigurationError
from dragoman.http.client import Answer, HttpClient
from dragoman.http.guard import shown

TIMEOUT = 30.0
"""Seconds that an answer may take."""
MAX_BYTES = 64 * 1024
_HEADERS = {"content-type": "application/x-www-form-urlencoded", "accept": "application/json"}
_BASIC, _POST = "client_secret_basic", "client_secret_post"


class OAuthClient(msgspec.Struct, frozen=True):
    """Who asks: the id of the client, and its secret if it has one. The secret is never shown."""

    id: str
    secret: str = ""

    def __repr__(self) -> str:
        return f"OAuthClient({self.id!r}{', <hidden>' if self.secret else ''})"


class TokenSet(msgspec.Struct, frozen=True, kw_only=True):
    """What a server granted. ``expires_at`` is in seconds since the epoch, None when nobody says. Never shown."""

    access_token: str
    refresh_token: str = ""
    expires_at: float | None = None
    scopes: tuple[str, ...] = ()
    id_token: str = ""

    def __repr__(self) -> str:
        return f"TokenSet(<hidden>, expires_at={self.expires_at}, scopes={self.scopes})"

    @property
    def bearer(self) -> BearerToken:
        """The token to be sent."""
        return BearerToken(self.access_token, self.expires_at)


class GrantRefusedError(TokenError):
    """The server refused; ``code`` is its word for why, or empty."""

    def __init__(self, message: str, *, url: str, code: str) -> None:
        super().__init__(message, url=url)
        self.code = code


class _Granted(msgspec.Struct, frozen=True):
    access_token: str
    token_type: str = "Bearer"
    expires_in: float | str | None = None
    refresh_token: str | None = None
    scope: str | None = None
    id_token: str | None = None


class _Refused(msgspec.Struct, frozen=True):
    error: str = ""


async def request_tokens(
    http: HttpClient, server: AuthorizationServer, client: OAuthClient, form: dict[str, str], now: float, url: str = ""
) -> TokenSet:
    """The tokens for a grant. ``url`` is another endpoint than the server's own, such as that for refreshing.

    Raises GrantRefusedError when the server says no, TokenError when its answer holds no bearer token, MetadataError
    for an endpoint without encryption, and what HttpClient raises.
    """
    url = url or server.token_endpoint
    check_secure(url)
    answer = await _post(http, url, server, client, form)
    if answer.status != 200:
        raise refused(url, answer.status, answer.body)
    return _read(answer.body, url, now, tuple(form.get("scope", "").split()))


async def refresh_tokens(
    http: HttpClient, server: AuthorizationServer, client: OAuthClient, held: TokenSet, now: float
) -> TokenSet:
    """New tokens for a refresh token; the same one stays when the server gives no other. Raises like the above."""
    form = {"grant_type": "refresh_token", "refresh_token": held.refresh_token}
    found = await request_tokens(http, server, client, form, now, server.refresh_endpoint)
    return msgspec.structs.replace(
        found, refresh_token=found.refresh_token or held.refresh_token, scopes=found.scopes or held.scopes
    )


async def post_form(
    http: HttpClient, url: str, server: AuthorizationServer, client: OAuthClient, form: dict[str, str]
) -> bytes:
    """The answer of another endpoint of the server to a form. Raises like :func:`request_tokens`."""
    check_secure(url)
    answer = await _post(http, url, server, client, form)
    if answer.status != 200:
        raise refused(url, answer.status, answer.body)
    return answer.body


async def _post(
    http: HttpClient, url: str, server: AuthorizationServer, client: OAuthClient, form: dict[str, str]
) -> Answer:
    headers, form = dict(_HEADERS), dict(form)
    methods = server.token_endpoint_auth_methods_supported
    if not client.secret:
        form["client_id"] = client.id
    elif _POST in methods and _BASIC not in methods:
        form |= {"client_id": client.id, "client_secret": client.secret}
    else:
        pair = f"{quote_plus(client.id)}:{quote_plus(client.secret)}"
        headers["authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
    body = urlencode(form).encode()
    return await http.fetch("POST", url, headers=headers, body=body, timeout=TIMEOUT, max_bytes=MAX_BYTES)


def _read(body: bytes, url: str, asked: float, scopes: tuple[str, ...]) -> TokenSet:
    try:
        granted = msgspec.json.decode(body, type=_Granted)
        seconds = None if granted.expires_in is None else float(granted.expires_in)
    except (msgspec.DecodeError, ValueError, RecursionError):
        raise TokenError(f"The answer of {shown(url)} holds no token", url=shown(url)) from None
    if granted.token_type.lower() != "bearer":
        raise TokenError(f"The token of {shown(url)} is no bearer token", url=shown(url))
    _check(granted.access_token, url)
    return TokenSet(
        access_token=granted.access_token,
        refresh_token=granted.refresh_token or "",
        expires_at=None if seconds is None else asked + seconds,
        scopes=scopes if granted.scope is None else tuple(granted.scope.split()),
        id_token=granted.id_token or "",
    )


def _check(token: str, url: str) -> None:
    try:
        as_token(token)
    except ConfigurationError:
        raise TokenError(f"The token of {shown(url)} cannot be sent in a header", url=shown(url)) from None


def refused(url: str, status: int, body: bytes) -> GrantRefusedError:
    """The error for an answer that is no grant."""
    try:
        code = msgspec.json.decode(body, type=_Refused).error
    except (msgspec.DecodeError, RecursionError):
        code = ""
    code = "".join(c for c in code[:60] if c.isascii() and (c.isalnum() or c in "_-."))
    text = f"{shown(url)} gave no token: {f'HTTP {status} {code}'.strip()}"
    return GrantRefusedError(text, url=shown(url), code=code)
