"""SigV4: what is signed, when, and with which keys.

Signed is exactly what is sent: the escaped address, the bytes of the body, and every header that nobody on the way
touches. Each request is signed anew, retries included.

Spec: AC-C-22, AC-C-24, AC-C-80 to AC-C-89; section 7 of the register.
"""

from __future__ import annotations

import asyncio
import importlib
import time
from collections.abc import Callable, Mapping

from dragoman.agentcore.errors import CredentialsNotFoundError
from dragoman.agentcore.keys import Keys, KeySource
from dragoman.errors import ConfigurationError
from dragoman.http.authentication import Outgoing

UNSIGNED = frozenset(
    {
        "accept-encoding",
        "authorization",
        "baggage",
        "connection",
        "content-length",
        "cookie",
        "expect",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "te",
        "traceparent",
        "tracestate",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "user-agent",
        "via",
        "x-amz-date",
        "x-amz-security-token",
        "x-amzn-trace-id",
    }
)
"""Headers that are not signed: the HTTP stack or a proxy may change them, or the signature itself writes them."""

_DATE = "%Y%m%dT%H%M%SZ"


async def default_credentials(profile: str | None = None) -> KeySource:
    """Credentials by the usual chain: environment, files, roles.

    Raises MissingExtraError without botocore, CredentialsNotFoundError when there are none. Spec: AC-C-80.
    """
    require_botocore()
    found = await asyncio.to_thread(_find_credentials, profile)
    if found is None:
        raise CredentialsNotFoundError(
            "no AWS credentials were found: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, name a profile, or give "
            "credentials=; for an agent with a JWT authorizer give bearer="
        )
    return found


def require_botocore() -> None:
    """Raise MissingExtraError when SigV4 cannot be had. Loads botocore, which takes a moment, for the first time."""
    importlib.import_module("dragoman.agentcore.sigv4")


def _find_credentials(profile: str | None) -> KeySource | None:
    from dragoman.agentcore.sigv4 import find_credentials

    return find_credentials(profile)


class Signer:
    """Signs requests for one region. ``offset`` are the seconds by which the service's clock is ahead of this one."""

    def __init__(self, credentials: KeySource, region: str, now: Callable[[], float] = time.time) -> None:
        require_botocore()
        if not region:
            raise ConfigurationError("SigV4 needs a region, which this address does not tell: give region=")
        self._credentials = credentials
        self._region = region
        self._now = now
        self.offset = 0.0

    def __repr__(self) -> str:
        return f"Signer({self._region!r})"

    def now(self) -> float:
        """This machine's time, seconds since the epoch."""
        return self._now()

    async def sign(self, request: Outgoing) -> dict[str, str]:
        """The headers to add: date, authorization, and the token of temporary credentials.

        Refreshes the credentials when they are due, in a thread. Raises CredentialsNotFoundError when that fails.
        """
        return sign(request, await self._keys(), self._region, self._now() + self.offset)

    async def _keys(self) -> Keys:
        due = getattr(self._credentials, "refresh_needed", None)
        try:
            if due is None or not due():
                return self._credentials.get_frozen_credentials()
            return await asyncio.to_thread(self._credentials.get_frozen_credentials)
        except Exception as error:
            # What a role, a file or a process raises is of any class, and its text may hold anything.
            raise CredentialsNotFoundError(f"the AWS credentials cannot be used: {type(error).__name__}") from error


def sign(request: Outgoing, keys: Keys, region: str, now: float) -> dict[str, str]:
    """The headers that sign a request at a moment, seconds since the epoch. Spec: AC-C-81 to AC-C-87."""
    from dragoman.agentcore.sigv4 import authorization

    date = time.strftime(_DATE, time.gmtime(now))
    added = {"x-amz-date": date}
    if keys.token:
        added["x-amz-security-token"] = keys.token
    headers = {name: value for name, value in request.headers.items() if name.lower() not in UNSIGNED}
    signed = Outgoing(request.method, request.url, {**headers, **added}, request.body)
    return {**added, "authorization": authorization(signed, keys, region, date)}


def signed_headers(headers: Mapping[str, str]) -> list[str]:
    """The names of the headers that a request's ``authorization`` says are signed."""
    _, _, rest = headers.get("authorization", "").partition("SignedHeaders=")
    return [name for name in rest.partition(",")[0].split(";") if name]
