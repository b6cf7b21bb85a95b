"""The device flow: a person allows it on another device, by a code.

Spec: RFC 8628, A2ACLI_AUTH_005.
"""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable

import msgspec

from dragoman.auth.metadata import AuthorizationServer
from dragoman.auth.token_endpoint import GrantRefusedError, OAuthClient, TokenSet, post_form, request_tokens
from dragoman.auth.tokens import TokenError
from dragoman.errors import ConnectError, ConnectionLostError, RequestTimeoutError
from dragoman.http.client import HttpClient
from dragoman.http.guard import shown

SLOWER = 5.0
"""Seconds that are added when the server finds us too quick."""
_LONGEST_INTERVAL, _LONGEST_LIFE = 300.0, 3600.0
_DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"


class DevicePrompt(msgspec.Struct, frozen=True):
    """What a person has to be told: go to this address, and give this code.

    ``complete_url`` has the code in it, and may be empty; ``expires_at`` is in seconds since the epoch.
    """

    url: str
    code: str
    complete_url: str
    expires_at: float


Show = Callable[[DevicePrompt], Awaitable[None] | None]


class _Answer(msgspec.Struct, frozen=True):
    device_code: str
    user_code: str
    verification_uri: str
    expires_in: float = 600.0
    verification_uri_complete: str = ""
    interval: float = 5.0


async def login_by_device(
    http: HttpClient,
    server: AuthorizationServer,
    client: OAuthClient,
    form: dict[str, str],
    show: Show,
    *,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    now: Callable[[], float] = time.time,
) -> TokenSet:
    """The tokens that a person granted. ``form`` are further parameters: scope, audience.

    Raises GrantRefusedError for access_denied, expired_token and whatever else the server says, TokenError when the
    time ran out, and like :func:`~dragoman.auth.token_endpoint.request_tokens`.
    """
    started = now()
    answer = await _begin(http, server, client, form)
    expires_at = started + min(max(answer.expires_in, 1.0), _LONGEST_LIFE)
    prompt = DevicePrompt(answer.verification_uri, answer.user_code, answer.verification_uri_complete, expires_at)
    told = show(prompt)
    if inspect.isawaitable(told):
        await told
    return await _poll(http, server, client, answer, expires_at, sleep, now)


async def _begin(http: HttpClient, server: AuthorizationServer, client: OAuthClient, form: dict[str, str]) -> _Answer:
    url = server.device_authorization_endpoint
    if not url:
        raise TokenError("The authorization server has no device flow")
    body = await post_form(http, url, server, client, {"client_id": client.id, **form})
    try:
        found = msgspec.json.decode(body, type=_Answer, strict=False)
    except (msgspec.DecodeError, RecursionError):
        raise TokenError(f"The answer of {shown(url)} holds no code", url=shown(url)) from None
    for place in (found.verification_uri, found.verification_uri_complete):
        # A person is going to open it, so it is nothing but an address of the web.
        if place and not place.startswith(("https://", "http://")):
            raise TokenError(f"{shown(url)} wants an address opened that is none of the web", url=shown(url))
    return found


async def _poll(
    http: HttpClient,
    server: AuthorizationServer,
    client: OAuthClient,
    answer: _Answer,
    expires_at: float,
    sleep: Callable[[float], Awaitable[None]],
    now: Callable[[], float],
) -> TokenSet:
    interval = min(max(answer.interval, 1.0), _LONGEST_INTERVAL)
    form = {"grant_type": _DEVICE_GRANT, "device_code": answer.device_code}
    while now() + interval < expires_at:
        await sleep(interval)
        try:
            return await request_tokens(http, server, client, form, now())
        except GrantRefusedError as error:
            if error.code == "slow_down":
                interval = min(interval + SLOWER, _LONGEST_INTERVAL)
            elif error.code != "authorization_pending":
                raise
        except (ConnectError, ConnectionLostError, RequestTimeoutError):
            interval = min(interval * 2, _LONGEST_INTERVAL)  # RFC 8628 §3.5
    raise TokenError("Nobody has allowed the login in time")
