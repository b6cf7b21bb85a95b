"""The authorization-code flow with PKCE: a person logs in with a browser on this machine.

Spec: RFC 6749 §4.1, RFC 7636, RFC 8252, OpenID Connect Core §3.1.
"""

from __future__ import annotations

import base64
import hashlib
import inspect
import secrets
import time
from collections.abc import Awaitable, Callable
from urllib.parse import urlencode

from dragoman.auth.id_tokens import IdTokenChecks
from dragoman.auth.loopback import waiting_redirect
from dragoman.auth.metadata import AuthorizationServer, check_secure
from dragoman.auth.token_endpoint import OAuthClient, TokenSet, request_tokens
from dragoman.auth.tokens import TokenError
from dragoman.http.client import HttpClient

WAIT = 300.0
"""Seconds that the person has."""

Open = Callable[[str], Awaitable[None] | None]
"""Shows an address to the person, or has a browser open it."""


async def login_by_browser(
    http: HttpClient,
    server: AuthorizationServer,
    client: OAuthClient,
    form: dict[str, str],
    open_url: Open,
    *,
    port: int = 0,
    timeout: float = WAIT,
    checks: IdTokenChecks | None = None,
    now: Callable[[], float] = time.time,
) -> TokenSet:
    """The tokens that a person granted. ``form`` are further parameters: scope, audience, resource.

    ``port`` of the loopback address to come back to, 0 for any; ``checks``: those of the ID token, where OpenID
    Connect is spoken. Raises TokenError for a refusal and when the time ran out, and like
    :func:`~dragoman.auth.token_endpoint.request_tokens`.
    """
    if not server.authorization_endpoint:
        raise TokenError("The authorization server has no login by browser")
    check_secure(server.authorization_endpoint)
    state, verifier, nonce = (secrets.token_urlsafe(32) for _ in range(3))
    async with waiting_redirect(state, server.issuer, port) as redirect:
        asked = {
            "response_type": "code",
            "client_id": client.id,
            "redirect_uri": redirect.url,
            "state": state,
            "code_challenge": challenge_of(verifier),
            "code_challenge_method": "S256",
            **({"nonce": nonce} if checks is not None else {}),
            **form,
        }
        told = open_url(_with_query(server.authorization_endpoint, asked))
        if inspect.isawaitable(told):
            await told
        code = await redirect.code(timeout)
    grant = {"grant_type": "authorization_code", "code": code, "redirect_uri": redirect.url, "code_verifier": verifier}
    if "resource" in form:
        grant["resource"] = form["resource"]
    tokens = await request_tokens(http, server, client, grant, now())
    if checks is not None:
        await checks.check(http, tokens.id_token, nonce)
    return tokens


def challenge_of(verifier: str) -> str:
    """What a verifier is announced by. Spec: RFC 7636 §4.2."""
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()


def _with_query(url: str, query: dict[str, str]) -> str:
    return f"{url}{'&' if '?' in url else '?'}{urlencode(query)}"
