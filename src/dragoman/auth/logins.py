"""The logins of persons as sources of tokens: by device code, or by a browser on this machine.

Spec: RFC 8628, RFC 6749 §4.1, A2ACLI_AUTH_005, A2ACLI_AUTH_010.
"""

from __future__ import annotations

import asyncio
import time
import webbrowser
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from dragoman.auth.authorization_code import WAIT, Open, login_by_browser
from dragoman.auth.device import Show, login_by_device
from dragoman.auth.id_tokens import IdTokenChecks
from dragoman.auth.metadata import AuthorizationServer, Discovery
from dragoman.auth.schemes import Flow, SchemeUse, fetch_metadata, find_server, has_flow, takes_tokens
from dragoman.auth.sessions import Keeper, Login
from dragoman.auth.token_endpoint import OAuthClient, TokenSet
from dragoman.auth.tokens import BearerToken, TokenError, TokenSource
from dragoman.errors import ConfigurationError
from dragoman.http.client import HttpClient, HttpxClient
from dragoman.http.guard import shown
from dragoman.jose import KeySets

OPENID = "openid"


class DeviceCode:
    """A person allows the login on another device.

    * ``show`` is given the :class:`~dragoman.auth.DevicePrompt`: the address to go to, and the code;
    * ``client_id``, ``client_secret``: of the client, which need not have a secret; ``scopes`` to ask for, default
      those that the card asks for; ``audience``, ``resource``: what the token is for, sent when given;
    * ``metadata``: where the metadata of the authorization server is, default what the card says; ``issuer``: the only
      one that is taken;
    * ``keeper``: where tokens lie, default in memory; ``http``: an httpx2 client to use and not to close; ``now``:
      seconds since the epoch; ``sleep``: waits for some seconds.

    The token is refreshed as long as the server does that; then the person is asked again.
    """

    def __init__(
        self,
        client_id: str,
        show: Show,
        *,
        client_secret: str = "",
        scopes: Sequence[str] = (),
        audience: str = "",
        resource: str = "",
        metadata: str = "",
        issuer: str = "",
        keeper: Keeper | None = None,
        http: HttpxClient | None = None,
        now: Callable[[], float] = time.time,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._asking = _Asking(client_id, client_secret, scopes, audience, resource, metadata, issuer, now)
        self._show = show
        self._keeper = keeper
        self._http = http
        self._sleep = sleep
        self._plain: TokenSource | None = None

    def __repr__(self) -> str:
        return f"DeviceCode({self._asking.client.id!r})"

    def for_scheme(self, use: SchemeUse | None) -> TokenSource:
        """The source for a scheme of a card."""
        asking = self._asking

        async def grant(http: HttpClient, server: AuthorizationServer, scopes: tuple[str, ...]) -> TokenSet:
            form = asking.form(scopes)
            found = await login_by_device(
                http, server, asking.client, form, self._show, sleep=self._sleep, now=asking.now
            )
            await asking.check(http, server, found, scopes)
            return found

        return asking.login(use, "device", grant, self._keeper, self._http)

    async def fetch(self, discovery: Discovery | None) -> BearerToken | None:
        """See :class:`~dragoman.auth.TokenSource`. Without a card, it takes ``metadata``."""
        self._plain = self._plain or self.for_scheme(None)
        return await self._plain.fetch(discovery)


class AuthorizationCode:
    """A person logs in with a browser on this machine, which comes back to a loopback address. PKCE is always used.

    ``open_url`` shows the address to the person, default the system's browser; ``port`` is that of the loopback
    address, 0 (default) for any; ``timeout`` are the seconds that the person has. The others are those of
    :class:`DeviceCode`.
    """

    def __init__(
        self,
        client_id: str,
        *,
        open_url: Open | None = None,
        port: int = 0,
        timeout: float = WAIT,
        client_secret: str = "",
        scopes: Sequence[str] = (),
        audience: str = "",
        resource: str = "",
        metadata: str = "",
        issuer: str = "",
        keeper: Keeper | None = None,
        http: HttpxClient | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._asking = _Asking(client_id, client_secret, scopes, audience, resource, metadata, issuer, now)
        self._open = open_url or open_browser
        self._port = port
        self._timeout = timeout
        self._keeper = keeper
        self._http = http
        self._plain: TokenSource | None = None

    def __repr__(self) -> str:
        return f"AuthorizationCode({self._asking.client.id!r})"

    def for_scheme(self, use: SchemeUse | None) -> TokenSource:
        """The source for a scheme of a card."""
        asking = self._asking

        async def grant(http: HttpClient, server: AuthorizationServer, scopes: tuple[str, ...]) -> TokenSet:
            checks = asking.checks(server, scopes)
            return await login_by_browser(
                http,
                server,
                asking.client,
                asking.form(scopes),
                self._open,
                port=self._port,
                timeout=self._timeout,
                checks=checks,
                now=asking.now,
            )

        return asking.login(use, "auth-code", grant, self._keeper, self._http)

    async def fetch(self, discovery: Discovery | None) -> BearerToken | None:
        """See :class:`~dragoman.auth.TokenSource`. Without a card, it takes ``metadata``."""
        self._plain = self._plain or self.for_scheme(None)
        return await self._plain.fetch(discovery)


class _Asking:
    """What both ask by."""

    def __init__(
        self,
        client_id: str,
        client_secret: str,
        scopes: Sequence[str],
        audience: str,
        resource: str,
        metadata: str,
        issuer: str,
        now: Callable[[], float],
    ) -> None:
        if not client_id:
            raise ConfigurationError("a login needs a client_id")
        self.client = OAuthClient(client_id, client_secret)
        self.scopes = tuple(scopes)
        self.now = now
        self._more = {name: value for name, value in (("audience", audience), ("resource", resource)) if value}
        self._metadata = metadata
        self._issuer = issuer
        self._keys = KeySets()
        self._is_openid = False

    def form(self, scopes: tuple[str, ...]) -> dict[str, str]:
        return {**({"scope": " ".join(scopes)} if scopes else {}), **self._more}

    def checks(self, server: AuthorizationServer, scopes: tuple[str, ...]) -> IdTokenChecks | None:
        """Those of the ID token, where OpenID Connect is spoken."""
        return IdTokenChecks(server, self.client.id, self._keys, self.now) if OPENID in scopes else None

    async def check(
        self, http: HttpClient, server: AuthorizationServer, tokens: TokenSet, scopes: tuple[str, ...]
    ) -> None:
        checks = self.checks(server, scopes)
        if checks is not None and tokens.id_token:
            await checks.check(http, tokens.id_token)

    def login(
        self,
        use: SchemeUse | None,
        flow: Flow,
        grant: Callable[[HttpClient, AuthorizationServer, tuple[str, ...]], Awaitable[TokenSet]],
        keeper: Keeper | None,
        http: HttpxClient | None,
    ) -> Login:
        scopes = self.scopes or wanted_scopes(use)
        find = partial(self._find, use, flow)
        return Login(
            self.client,
            find,
            grant,
            scopes=scopes,
            keeper=keeper,
            http=http,
            allow_private=use is None or use.allow_private,
            now=self.now,
        )

    async def _find(
        self, use: SchemeUse | None, flow: Flow, http: HttpClient, discovery: Discovery | None
    ) -> AuthorizationServer | None:
        if self._metadata:
            found = await fetch_metadata(http, self._metadata)
        elif use is not None and takes_tokens(use.scheme):
            found = await find_server(http, use, flow)
        elif discovery is None:
            return None
        else:
            return self._by_discovery(flow, discovery)
        if self._issuer and found.issuer != self._issuer:
            raise TokenError("The card names another issuer than the one that is taken")
        return found

    def _by_discovery(self, flow: Flow, discovery: Discovery) -> AuthorizationServer:
        """The first server behind a refused request that has this way to log in."""
        for server in discovery.servers:
            if has_flow(server, flow) and self._issuer in ("", server.issuer):
                return server
        named = ", ".join(map(shown, discovery.issuers)) or discovery.problem or "none"
        raise TokenError(f"The agent names no authorization server to log in at by {flow}; it names: {named}")


def wanted_scopes(use: SchemeUse | None) -> tuple[str, ...]:
    """The scopes that a card asks for; with OpenID Connect, ``openid`` is among them."""
    if use is None:
        return ()
    if use.scheme.open_id_connect_security_scheme is None or OPENID in use.scopes:
        return use.scopes
    return (OPENID, *use.scopes)


def open_browser(url: str) -> None:
    """Have the system's browser open an address. Raises TokenError when there is none."""
    if not webbrowser.open(url):
        raise TokenError("There is no browser here: log in by device code, or pass open_url")
