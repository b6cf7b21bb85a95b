"""The two kinds of credentials that the service takes, one for each client. Neither shows its secrets.

Spec: AC-C-20 to AC-C-22, AC-C-24, AC-C-89, AC-C-94, AC-C-96.
"""

from __future__ import annotations

import base64
import hashlib
import re
import time
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime
from typing import Any, Protocol

import msgspec

from dragoman.agentcore.failures import body_text
from dragoman.agentcore.keys import KeySource
from dragoman.agentcore.signing import Signer
from dragoman.auth import Bearer, BearerToken, Discovery, TokenCache, as_source
from dragoman.http.authentication import Outgoing, Reply

_SKEWED = re.compile(r"signature expired|signature not yet|not yet (?:current|valid)|time ?too ?skewed|expired", re.I)


class Credential(Protocol):
    """How the requests of one client are authenticated."""

    @property
    def identity(self) -> str:
        """A fingerprint of whose it is, empty when that cannot be told."""
        ...

    async def authorize(self, request: Outgoing) -> Mapping[str, str]:
        """The headers to add to a request."""
        ...

    def is_superseded(self, request: Outgoing) -> bool:
        """Whether a refused request would be authenticated in another way by now."""
        ...

    async def after_unauthorized(self, request: Outgoing, discovery: Discovery) -> bool:
        """Get something better after a 401; whether there is something."""
        ...

    def after_forbidden(self, reply: Reply) -> bool:
        """Correct what a 403 complains of; whether it could be corrected."""
        ...

    async def aclose(self) -> None:
        """End what is under way."""
        ...


class SigV4Credential:
    """Requests are signed. The clock is corrected once when the service finds it wrong. Spec: AC-C-89."""

    def __init__(self, signer: Signer, keys: KeySource) -> None:
        self._signer = signer
        key = getattr(keys, "access_key", None)
        # Keys of roles change by the hour, so that they do not tell whose they are.
        self.identity = fingerprint("sigv4", key) if isinstance(key, str) and not key.startswith("ASIA") else ""

    async def authorize(self, request: Outgoing) -> Mapping[str, str]:
        """See :class:`Credential`."""
        return await self._signer.sign(request)

    def is_superseded(self, request: Outgoing) -> bool:
        """See :class:`Credential`."""
        return False

    async def after_unauthorized(self, request: Outgoing, discovery: Discovery) -> bool:
        """See :class:`Credential`. The runtime wants a bearer token."""
        return False

    def after_forbidden(self, reply: Reply) -> bool:
        """See :class:`Credential`."""
        if not _SKEWED.search(body_text(reply.body)):
            return False
        try:
            theirs = parsedate_to_datetime(reply.headers.get("date", "")).timestamp()
        except (ValueError, TypeError):
            return False
        offset = theirs - self._signer.now()
        if abs(offset - self._signer.offset) < 1.0:
            return False
        self._signer.offset = offset
        return True

    async def aclose(self) -> None:
        """See :class:`Credential`."""


class NoCredential:
    """Requests go as they are, to a stand-in that asks for nothing."""

    identity = ""

    async def authorize(self, request: Outgoing) -> Mapping[str, str]:
        """See :class:`Credential`."""
        return {}

    def is_superseded(self, request: Outgoing) -> bool:
        """See :class:`Credential`."""
        return False

    async def after_unauthorized(self, request: Outgoing, discovery: Discovery) -> bool:
        """See :class:`Credential`."""
        return False

    def after_forbidden(self, reply: Reply) -> bool:
        """See :class:`Credential`."""
        return False

    async def aclose(self) -> None:
        """See :class:`Credential`."""


class BearerCredential:
    """Requests bear a token. After a 401 the source is asked for another one."""

    def __init__(self, bearer: Bearer, now: Callable[[], float] = time.time) -> None:
        self._tokens = TokenCache(as_source(bearer), now)
        self.identity = _identity_of(bearer)

    async def authorize(self, request: Outgoing) -> Mapping[str, str]:
        """See :class:`Credential`."""
        token = await self._tokens.get()
        return {} if token is None else {"authorization": f"Bearer {token.value}"}

    def is_superseded(self, request: Outgoing) -> bool:
        """See :class:`Credential`."""
        token = self._tokens.kept
        return token is not None and request.headers.get("authorization") != f"Bearer {token.value}"

    async def after_unauthorized(self, request: Outgoing, discovery: Discovery) -> bool:
        """See :class:`Credential`. Raises what the source raises."""
        return await self._tokens.renew(discovery) is not None

    def after_forbidden(self, reply: Reply) -> bool:
        """See :class:`Credential`."""
        return False

    async def aclose(self) -> None:
        """See :class:`Credential`."""
        await self._tokens.aclose()


def fingerprint(kind: str, text: str) -> str:
    """What tells identities apart without telling them."""
    return hashlib.sha256(f"dragoman {kind} {text}".encode()).hexdigest()[:32]


def _identity_of(bearer: Bearer) -> str:
    """Whose a fixed token is: the issuer and subject of a JWT, which are not verified here; else the token's own."""
    value = bearer.value if isinstance(bearer, BearerToken) else bearer
    if not isinstance(value, str):
        return ""
    claims = _claims(value)
    if isinstance(claims.get("sub"), str):
        return fingerprint("subject", f"{claims.get('iss')} {claims['sub']}")
    return fingerprint("token", value)


def _claims(token: str) -> dict[str, Any]:
    _, _, rest = token.partition(".")
    middle = rest.partition(".")[0]
    try:
        claims = msgspec.json.decode(base64.urlsafe_b64decode(middle + "=" * (-len(middle) % 4)))
    except (ValueError, msgspec.DecodeError, RecursionError):
        return {}
    return claims if isinstance(claims, dict) else {}
