"""Signatures of notifications: the JWT that a sender makes about each, and the keys that tell whether it is genuine.

Reading and checking are pure; only the fetching of keys waits for the network.

Spec: PUSH-14, PUSH-18, AMB-67; topic streaming-and-async.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from dragoman.errors import ClientError, ConfigurationError, OutboundUrlError
from dragoman.http.client import HttpClient
from dragoman.jose import ALGORITHMS, KeySets, PublicKey, decode_base64url, read_keys
from dragoman.webhook.refusals import not_genuine, not_now
from dragoman.webhook.settings import ReceiverSettings

BODY_HASH = "request_body_sha256"
_LONGEST = 8_192
_PLAIN_NUMBERS = 1e12


class SenderKeys:
    """The keys that sign the notifications of a sender.

    * ``source``: the https address of its key set (of a dragoman agent: ``/.well-known/jwks.json``), which is fetched
      and kept for a while; or keys: a JWK set or a JWK (a dict or its text), or PEM text;
    * ``issuer``: who has to have signed; empty: whoever has the key;
    * ``audience``: whom the signature has to be for. None: the receiver's own ``url``; empty: anybody, for senders that
      do not say;
    * ``algorithms``: those that may be used, default all with public keys.

    Raises ConfigurationError for what is no key, and MissingExtraError without the extra ``auth``.
    """

    def __init__(
        self,
        source: str | bytes | Mapping[str, Any] | Sequence[PublicKey],
        *,
        issuer: str = "",
        audience: str | None = None,
        algorithms: Sequence[str] = tuple(ALGORITHMS),
    ) -> None:
        unknown = [name for name in algorithms if name not in ALGORITHMS]
        if unknown:
            raise ConfigurationError(f"there is no algorithm {unknown[0]!r}; there are {', '.join(ALGORITHMS)}")
        self.issuer = issuer
        self.audience = audience
        self.algorithms = frozenset(algorithms)
        self._url = source if isinstance(source, str) and source.startswith(("https://", "http://")) else ""
        self._keys = [] if self._url else _read(source)
        self._sets = KeySets()

    async def find(self, kid: str, http: HttpClient) -> list[PublicKey]:
        """The keys with an identifier, all when it is empty. Raises Refusal when they cannot be had now."""
        if not self._url:
            return [key for key in self._keys if not kid or key.kid == kid]
        try:
            return await self._sets.find(self._url, kid, http, local=True)
        except (ClientError, OutboundUrlError) as error:
            raise not_now(f"the keys of the sender cannot be had: {error}", 10) from error


def _read(source: str | bytes | Mapping[str, Any] | Sequence[PublicKey]) -> list[PublicKey]:
    keys = read_keys(source) if isinstance(source, str | bytes | Mapping) else list(source)
    if not keys:
        raise ConfigurationError("there is no key to verify notifications with")
    return keys


class Signed(msgspec.Struct, frozen=True):
    """A JWT, taken apart; nothing of it is verified."""

    algorithm: str
    kid: str
    claims: dict[str, Any]
    data: bytes
    signature: bytes


def read_jwt(text: str) -> Signed:
    """Take a compact JWT apart. Raises Refusal."""
    if not text or len(text) > _LONGEST or text.count(".") != 2:
        raise not_genuine("there is no signature")
    data, _, signature = text.rpartition(".")
    head, _, claims = data.partition(".")
    try:
        header, said = _object(head), _object(claims)
        found = decode_base64url(signature)
    except ValueError:
        raise not_genuine("the signature is no JWT") from None
    algorithm, kid = header.get("alg"), header.get("kid", "")
    if not isinstance(algorithm, str) or not isinstance(kid, str) or "crit" in header:
        raise not_genuine("the header of the signature is not one that is understood")
    return Signed(algorithm, kid, said, data.encode(), found)


def _object(text: str) -> dict[str, Any]:
    value = msgspec.json.decode(decode_base64url(text))  # its DecodeError is a ValueError
    if not isinstance(value, dict):
        raise ValueError
    return value


def check_key(signed: Signed, keys: Sequence[PublicKey], algorithms: frozenset[str], now: float) -> None:
    """Raise Refusal unless one of the keys made the signature."""
    if signed.algorithm not in algorithms:
        raise not_genuine("the algorithm of the signature is not allowed")
    fit = [key for key in keys if not key.unfit(signed.algorithm, now)]
    if not any(key.verify(signed.algorithm, signed.data, signed.signature) for key in fit):
        raise not_genuine("no key of the sender made the signature")


def check_claims(signed: Signed, body: bytes, audience: str, issuer: str, now: float, limits: ReceiverSettings) -> str:
    """The id in a verified JWT. Raises Refusal when it is about something else, for somebody else, or too old."""
    claims = signed.claims
    given = claims.get(BODY_HASH)
    if not isinstance(given, str) or not hmac.compare_digest(
        given.encode("utf-8", "replace"), hashlib.sha256(body).hexdigest().encode()
    ):
        raise not_genuine("the signature is not about this body")
    issued, expires = _seconds(claims, "iat"), _seconds(claims, "exp")
    check_age(issued, now, limits)
    if issued is None or (expires is not None and now >= expires + limits.max_ahead):
        raise not_genuine("the signature is out of date, or does not say when it was made")
    if issuer and claims.get("iss") != issuer:
        raise not_genuine("somebody else signed")
    if audience and plain(audience) not in _audiences(claims):
        raise not_genuine("the signature is for another receiver")
    id = claims.get("jti")
    if not isinstance(id, str) or not id or len(id) > 256:
        raise not_genuine("the signature has no jti")
    return id


def check_age(sent: float | None, now: float, limits: ReceiverSettings) -> None:
    """Raise Refusal for what was sent too long ago, or in the future. Spec: PUSH-18."""
    if sent is not None and not now - limits.max_age <= sent <= now + limits.max_ahead:
        raise not_genuine("it is too old, or of the future; are the clocks right?")


def plain(url: str) -> str:
    """An address as signatures name it: without query and fragment, which may be secret."""
    return url.partition("#")[0].partition("?")[0]


def _audiences(claims: Mapping[str, Any]) -> list[str]:
    given = claims.get("aud")
    listed = given if isinstance(given, list) else [given]
    return [plain(item) for item in listed if isinstance(item, str)]


def _seconds(claims: Mapping[str, Any], name: str) -> float | None:
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _PLAIN_NUMBERS:
        raise not_genuine(f"{name} of the signature is no time")
    return float(value)
