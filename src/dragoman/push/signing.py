"""Signatures of deliveries: a JWT about each notification, and the keys that receivers verify it with.

Theory. The JWT says who sends (``iss``), to which address (``aud``, without query), when this attempt was made (``iat``
and ``exp``), which notification it is (``jti``, the same in every attempt) and what it holds (``request_body_sha256``,
in hex). Whoever has the public keys can tell a notification of ours from any other, and one that was changed or
repeated. It goes in a header of its own, so that it does not get into the way of what the webhook asked for.

Spec: PUSH-14, PUSH-18, AMB-67; topic streaming-and-async.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from dragoman.errors import ConfigurationError
from dragoman.jose import PublicKey, SigningKey, encode_base64url, read_keys

JWKS_PATH = "/.well-known/jwks.json"
"""Where an app publishes the keys."""

BODY_HASH = "request_body_sha256"
"""The claim with the SHA-256 of the body, in hex."""


class PushSigner:
    """Signs notifications with one key.

    * ``key``: the private key: a PEM text, a JWK (a dict or its text), the path of a file with either, or a SigningKey;
    * ``issuer``: who signs, by default the ``kid`` of the key; best the address of the agent;
    * ``kid``, ``algorithm``, ``password``: as for :class:`~dragoman.card.CardSigner`;
    * ``lifetime`` (300): seconds after which a signature is of no use any more;
    * ``former``: public keys that are still published, since what they signed may be under way.

    Raises ConfigurationError for a key that cannot be used, and MissingExtraError without the extra ``auth``.
    """

    def __init__(
        self,
        key: str | bytes | Path | Mapping[str, Any] | SigningKey,
        *,
        issuer: str = "",
        kid: str = "",
        algorithm: str = "",
        password: str | None = None,
        lifetime: int = 300,
        former: Sequence[PublicKey | Mapping[str, Any] | str | bytes] = (),
    ) -> None:
        if lifetime <= 0:
            raise ConfigurationError("the lifetime of a signature must be more than 0 seconds")
        self._key = key if isinstance(key, SigningKey) else _read(key, kid, algorithm, password)
        self._issuer = issuer or self._key.kid
        self._lifetime = lifetime
        self._former = [known for given in former for known in _public(given)]
        header = {"alg": self._key.algorithm, "kid": self._key.kid, "typ": "JWT"}
        self._header = encode_base64url(msgspec.json.encode(header))

    def __repr__(self) -> str:
        return f"PushSigner({self._key!r})"

    @property
    def public_keys(self) -> list[dict[str, Any]]:
        """The public keys as JWKs, the one in use first."""
        return [self._key.public.members, *(key.members for key in self._former)]

    def sign(self, *, notification_id: str, address: str, body: bytes, now: int) -> str:
        """The JWT for an attempt to deliver ``body`` to ``address``; ``now`` is in seconds since the epoch."""
        claims = {
            "iss": self._issuer,
            "aud": address.partition("#")[0].partition("?")[0],
            "iat": now,
            "exp": now + self._lifetime,
            "jti": notification_id,
            BODY_HASH: hashlib.sha256(body).hexdigest(),
        }
        data = f"{self._header}.{encode_base64url(msgspec.json.encode(claims))}"
        return f"{data}.{encode_base64url(self._key.sign(data.encode()))}"


def _read(key: str | bytes | Path | Mapping[str, Any], kid: str, algorithm: str, password: str | None) -> SigningKey:
    if isinstance(key, Path):
        try:
            key = key.read_bytes()
        except OSError as error:
            raise ConfigurationError(f"the key in {error.filename} cannot be read: {error.strerror}") from error
    return SigningKey.read(key, kid=kid, algorithm=algorithm, password=password)


def _public(given: PublicKey | Mapping[str, Any] | str | bytes) -> list[PublicKey]:
    return [given] if isinstance(given, PublicKey) else read_keys(given)
