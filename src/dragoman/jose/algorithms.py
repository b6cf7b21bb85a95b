"""The algorithms of signatures that are known here, and the keys that each is for. Pure.

Spec: RFC 7518 §3.1, RFC 8037 §3.1, RFC 9864; AMB-85.
"""

from __future__ import annotations

from typing import Final

import msgspec


class Kind(msgspec.Struct, frozen=True):
    """A kind of key: ``kty`` and ``crv`` of a JWK; ``crv`` is empty for RSA."""

    kty: str
    crv: str = ""


RSA: Final = Kind("RSA")
P256, P384, P521 = (Kind("EC", name) for name in ("P-256", "P-384", "P-521"))
ED25519: Final = Kind("OKP", "Ed25519")

ALGORITHMS: Final[dict[str, Kind]] = {
    "ES256": P256,
    "ES384": P384,
    "ES512": P521,
    "EdDSA": ED25519,
    "Ed25519": ED25519,
    "RS256": RSA,
    "RS384": RSA,
    "RS512": RSA,
    "PS256": RSA,
    "PS384": RSA,
    "PS512": RSA,
}
"""Every algorithm with the kind of key that it takes. ``none`` and those with shared secrets are not among them."""

KINDS: Final = frozenset(ALGORITHMS.values())


def usual_algorithm(kind: Kind) -> str:
    """The algorithm for a kind of key when nobody names one."""
    return next(name for name, taken in ALGORITHMS.items() if taken == kind)
