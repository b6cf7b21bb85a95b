"""An authorization server that knows one grant: client credentials.

Spec: AC-F-09.
"""

from __future__ import annotations

import base64
import binascii
import time
from collections.abc import Callable
from typing import Any, Literal, Self
from urllib.parse import parse_qs, unquote

import msgspec

from dragoman.http.asgi import Headers, Receive, Scope, Send, read_body
from dragoman.testing.agentcore_front.jwt import Jwt
from dragoman.testing.agentcore_front.serving import Serving, answer

Form = Literal["oidc", "rfc8414"]
POOL = "/pool-9"
CLIENT_ID, CLIENT_SECRET = "rehearsal-client", "not-a-real-client-secret-0001"
_LIMIT = 64 * 1024


class AuthorizationServer:
    """Serves its metadata and a token endpoint: ``async with AuthorizationServer() as server``, then ``server.jwt``.

    * ``forms``: in which form its metadata is there: OpenID Connect discovery (``oidc``), RFC 8414, or both;
    * ``client_id``, ``client_secret``: the one client that it knows; ``scopes``: what its tokens have;
    * ``lifetime``: of a token, in seconds; ``issuer``: what the metadata claims, default its own address;
    * ``now``: seconds since the epoch.

    ``metadata_calls`` and ``token_calls`` count.
    """

    def __init__(
        self,
        *,
        forms: tuple[Form, ...] = ("oidc",),
        client_id: str = CLIENT_ID,
        client_secret: str = CLIENT_SECRET,
        scopes: tuple[str, ...] = (),
        lifetime: float = 3_600.0,
        issuer: str = "",
        now: Callable[[], float] = time.time,
    ) -> None:
        self._forms = forms
        self._client = client_id, client_secret
        self._scopes = scopes
        self._lifetime = lifetime
        self._claimed = issuer
        self._now = now
        self._serving = Serving(self)
        self._jwt: Jwt | None = None
        self.metadata_calls = self.token_calls = 0

    @property
    def issuer(self) -> str:
        """Its address."""
        return self._serving.url + POOL

    @property
    def jwt(self) -> Jwt:
        """What takes its tokens, for a front."""
        assert self._jwt is not None
        return self._jwt

    async def __aenter__(self) -> Self:
        await self._serving.start()
        self._jwt = Jwt(self.issuer, clients=(self._client[0],), scopes=self._scopes)
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._serving.stop()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        path, method = scope["path"], scope["method"]
        if path == f"{POOL}/oauth2/token" and method == "POST":
            self.token_calls += 1
            status, said = self._token(Headers(scope["headers"]), await read_body(receive, _LIMIT))
        elif path in self._places() and method == "GET":
            self.metadata_calls += 1
            status, said = 200, self._metadata()
        else:
            status, said = 400, {"error": "invalid_request"}
        await answer(send, status, msgspec.json.encode(said), {"cache-control": "no-store"})

    def _places(self) -> set[str]:
        places = {
            "oidc": f"{POOL}/.well-known/openid-configuration",
            "rfc8414": f"/.well-known/oauth-authorization-server{POOL}",
        }
        return {places[form] for form in self._forms}

    def _metadata(self) -> dict[str, Any]:
        return {
            "issuer": self._claimed or self.issuer,
            "token_endpoint": f"{self.issuer}/oauth2/token",
            "authorization_endpoint": f"{self.issuer}/oauth2/authorize",
            "jwks_uri": f"{self.issuer}/jwks.json",
            "response_types_supported": ["code"],
            "grant_types_supported": ["client_credentials"],
            "token_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post"],
        }

    def _token(self, headers: Headers, body: bytes) -> tuple[int, dict[str, Any]]:
        form = {key: texts[-1] for key, texts in parse_qs(body.decode("latin-1")).items()}
        if form.get("grant_type") != "client_credentials":
            return 400, {"error": "unsupported_grant_type"}
        if (_basic(headers) or (form.get("client_id", ""), form.get("client_secret", ""))) != self._client:
            return 401, {"error": "invalid_client"}
        scope = form.get("scope", " ".join(self._scopes))
        token = self.jwt.mint(self._now(), lifetime=self._lifetime, client_id=self._client[0], scope=scope)
        return 200, {"access_token": token, "token_type": "Bearer", "expires_in": int(self._lifetime), "scope": scope}


def _basic(headers: Headers) -> tuple[str, str] | None:
    kind, _, given = headers.get("authorization", "").partition(" ")
    if kind.lower() != "basic":
        return None
    try:
        name, _, secret = base64.b64decode(given, validate=True).decode().partition(":")
    except (binascii.Error, UnicodeError):
        return None
    return unquote(name), unquote(secret)
