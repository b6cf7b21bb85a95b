"""Opaque bearer tokens: the authorization server is asked what they are.

Spec: RFC 7662, RFC 6750, AUTH-05, SEC-05.
"""

from __future__ import annotations

import base64
import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import quote_plus, urlencode

import msgspec

from dragoman.auth.metadata import MetadataError, check_secure
from dragoman.auth.server.bearer import BearerScheme, ToCaller
from dragoman.auth.server.jwt import MOST_LETTERS, scopes_of, seconds_of, subject_of
from dragoman.auth.server.presented import RefusedError
from dragoman.auth.server.scheme import fingerprint
from dragoman.errors import A2AError, ClientError, ConfigurationError, UnavailableError
from dragoman.http.client import HttpxClient
from dragoman.http.fetching import OccasionalFetcher
from dragoman.http.guard import parse_target, shown
from dragoman.model import HTTPAuthSecurityScheme, SecurityScheme
from dragoman.ports.operations import Caller

_log = logging.getLogger("dragoman.auth")

TIMEOUT = 5.0
MAX_BYTES = 64 * 1024
_MOST_KEPT = 4096
_AGAIN = 5.0
_FORM = {"content-type": "application/x-www-form-urlencoded", "accept": "application/json"}


class _Kept(msgspec.Struct, frozen=True):
    """An answer: None for a token that is not good."""

    caller: Caller | None
    until: float


class Introspection(BearerScheme):
    """Bearer tokens of any form, which the authorization server at ``url`` is asked about.

    * ``client_id``, ``client_secret``: how this server authenticates there (HTTP Basic);
    * ``issuer``: must be what the answer says, where it does; ``audience``: one of these must be in its ``aud``. Empty:
      every token that the server calls active is taken, so it must tell apart itself what is for whom;
    * ``cache``: seconds that an answer is believed, default 30, and never beyond the token's expiry; 0: each time;
    * ``to_caller``: from the answer to the Caller; by default as for :class:`JwtBearer`;
    * ``http``: an httpx2 client to ask with, and not to close; ``now``: seconds since the epoch.

    Raises ConfigurationError.
    """

    kind = "bearer"

    def __init__(
        self,
        url: str,
        client_id: str,
        client_secret: str,
        *,
        issuer: str = "",
        audience: str | Sequence[str] = (),
        cache: float = 30.0,
        to_caller: ToCaller | None = None,
        description: str = "",
        http: HttpxClient | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        try:
            check_secure(url)
        except MetadataError as error:
            raise ConfigurationError(f"Introspection: {error}") from None
        if not client_id or not client_secret or cache < 0:
            raise ConfigurationError("Introspection needs a client_id and a client_secret, and a cache of 0 s or more")
        pair = f"{quote_plus(client_id)}:{quote_plus(client_secret)}"
        self._headers = {**_FORM, "authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}
        self._url = url
        self._issuer = issuer
        self._audiences = frozenset([audience] if isinstance(audience, str) else audience) - {""}
        self._cache = cache
        self._to_caller = to_caller or self._caller
        self._description = description
        self._http = OccasionalFetcher(http)
        self._now = now
        self._kept: OrderedDict[bytes, _Kept] = OrderedDict()

    def __repr__(self) -> str:
        return f"Introspection({shown(self._url)!r}, <hidden>)"

    def declare(self) -> SecurityScheme:
        """See :class:`Scheme`."""
        found = HTTPAuthSecurityScheme(description=self._description, scheme="Bearer")
        return SecurityScheme(http_auth_security_scheme=found)

    @property
    def issuers(self) -> tuple[str, ...]:
        """See :class:`Scheme`."""
        return (self._issuer,) if self._issuer else ()

    async def verify(self, credential: str) -> Caller:
        """See :class:`Scheme`."""
        if len(credential) > MOST_LETTERS:
            raise RefusedError("malformed", "The token cannot be read")
        digest, now = fingerprint(credential), self._now()
        kept = self._kept.get(digest)
        if kept is None or now >= kept.until:
            kept = self._keep(digest, self._judge(await self._ask(credential)), now)
        if kept.caller is None:
            raise RefusedError("not active", "The token is not good, or not any more")
        return kept.caller

    def _keep(self, digest: bytes, caller: Caller | None, now: float) -> _Kept:
        until = now + self._cache
        if caller is not None and caller.expires_at is not None:
            until = min(until, caller.expires_at)
        kept = _Kept(caller, until)
        self._kept.pop(digest, None)
        while len(self._kept) >= _MOST_KEPT:
            self._kept.popitem(last=False)
        self._kept[digest] = kept
        return kept

    async def _ask(self, token: str) -> Mapping[str, Any]:
        body = urlencode({"token": token, "token_type_hint": "access_token"}).encode()
        try:
            answer = await self._http.fetch(
                "POST", self._url, headers=self._headers, body=body, timeout=TIMEOUT, max_bytes=MAX_BYTES
            )
            found = msgspec.json.decode(answer.body, type=dict[str, Any]) if answer.status == 200 else None
        except (ClientError, A2AError, msgspec.DecodeError, RecursionError) as error:
            _log.warning("%s cannot be asked about tokens: %s", shown(self._url), type(error).__name__)
            raise UnavailableError("The credentials cannot be verified now", retry_after=_AGAIN) from error
        if found is None:
            _log.warning("%s did not answer about a token: HTTP %d", shown(self._url), answer.status)
            raise UnavailableError("The credentials cannot be verified now", retry_after=_AGAIN)
        return found

    def _judge(self, answer: Mapping[str, Any]) -> Caller | None:
        """Whose token it is, None when it is not good here."""
        if answer.get("active") is not True:
            return None
        if self._issuer and answer.get("iss", self._issuer) != self._issuer:
            return None
        named = answer.get("aud", [])
        named = [named] if isinstance(named, str) else named
        if self._audiences and not (isinstance(named, list) and self._audiences.intersection(map(str, named))):
            return None
        try:
            expires = seconds_of(answer, "exp")
            return None if expires is not None and self._now() >= expires else self._to_caller(answer)
        except RefusedError:
            return None

    def _caller(self, answer: Mapping[str, Any]) -> Caller:
        issuer = answer.get("iss") or self._issuer or "://".join((parse_target(self._url).scheme, self._place))
        return Caller(
            id=f"{issuer}#{subject_of(answer)}",
            scopes=scopes_of(answer),
            claims=dict(answer),
            expires_at=seconds_of(answer, "exp"),
        )

    @property
    def _place(self) -> str:
        return parse_target(self._url).authority
