"""Keys: the public ones that signatures are verified with, and the pairs that sign.

Spec: RFC 7517, SIGN-15, SIGN-19, AMB-85.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from dragoman.errors import ConfigurationError
from dragoman.jose.algorithms import ALGORITHMS, KINDS, RSA, Kind, usual_algorithm

if TYPE_CHECKING:
    from dragoman.jose.library import Key

MAX_KEYS = 100
"""Keys of one set that are looked at."""

_LEAST_RSA_BITS = 2048
_LATEST = 1e15
_SYNONYMS = {"EdDSA", "Ed25519"}
_PUBLIC = ("kty", "crv", "x", "y", "n", "e")
_PRIVATE = ("d", "p", "q", "dp", "dq", "qi", "oth", "k")


class BadKeyError(ConfigurationError):
    """What was given is no key, or none that may be used; the message never quotes it."""


class PublicKey:
    """A key to verify with, as its JWK describes it.

    ``kid`` may be empty. ``not_before`` and ``expires``, in seconds since the epoch, come of the members ``nbf`` and
    ``exp``; ``revoked`` of a member ``revoked`` that is there and not false.
    """

    __slots__ = ("_key", "_members", "expires", "kid", "kind", "not_before", "revoked")

    def __init__(self, members: Mapping[str, Any]) -> None:
        """Raises BadKeyError for what is no public key of a known kind, and for an RSA key below 2048 bits."""
        from dragoman.jose import library

        if any(name in members for name in _PRIVATE):
            raise BadKeyError("the key is not a public one")
        self.kind = _kind(members)
        self._members = dict(members)
        try:
            self._key = library.import_jwk({name: members[name] for name in _PUBLIC if name in members})
        except library.LibraryError as error:
            raise BadKeyError(f"the key cannot be read: {error}") from error
        _check_strength(self._key)
        self.kid = _text(members, "kid")
        self.not_before, self.expires = _seconds(members, "nbf"), _seconds(members, "exp")
        self.revoked = members.get("revoked") not in (None, False)

    def __repr__(self) -> str:
        return f"PublicKey(kid={self.kid!r}, kind={self.kind.crv or self.kind.kty})"

    def unfit(self, algorithm: str, now: float) -> str:
        """Why this key may not be used now for a signature by an algorithm; empty when it may. Spec: SIGN-19."""
        members = self._members
        operations = members.get("key_ops")
        if self.revoked:
            return "the key is revoked"
        if self.expires is not None and now >= self.expires:
            return "the key has expired"
        if self.not_before is not None and now < self.not_before:
            return "the key is not valid yet"
        if members.get("use", "sig") != "sig" or (operations is not None and "verify" not in operations):
            return "the key is not for signatures"
        meant = members.get("alg", algorithm)
        if ALGORITHMS.get(algorithm) != self.kind or (meant != algorithm and {meant, algorithm} != _SYNONYMS):
            return f"the key is not for {algorithm}"
        return ""

    def verify(self, algorithm: str, data: bytes, signature: bytes) -> bool:
        """Whether a signature over ``data`` holds. Ask :meth:`unfit` before."""
        from dragoman.jose import library

        return ALGORITHMS.get(algorithm) == self.kind and library.verify(self._key, algorithm, data, signature)

    @property
    def members(self) -> dict[str, Any]:
        """The JWK, as it was given."""
        return dict(self._members)


class SigningKey:
    """A key pair that signs by one algorithm. Its private half is never shown.

    ``kid`` identifies it; by default that of the JWK, or else its thumbprint (RFC 7638).
    """

    __slots__ = ("_key", "algorithm", "kid")

    def __init__(self, key: Key, *, kid: str = "", algorithm: str = "") -> None:
        """Raises BadKeyError when the private half is missing, or the key is not for the algorithm."""
        from dragoman.jose import library

        if not library.is_private(key):
            raise BadKeyError("a private key is needed to sign; this is the public half")
        members = library.jwk_of(key)
        kind = _kind(members)
        _check_strength(key)
        self.algorithm = algorithm or _text(members, "alg") or usual_algorithm(kind)
        if ALGORITHMS.get(self.algorithm) != kind:
            fitting = ", ".join(name for name, taken in ALGORITHMS.items() if taken == kind)
            raise BadKeyError(f"this key cannot sign by {self.algorithm!r}; it can by {fitting}")
        self.kid = kid or _text(members, "kid") or library.thumbprint(key)
        self._key = key

    def __repr__(self) -> str:
        return f"SigningKey(kid={self.kid!r}, algorithm={self.algorithm!r}, <hidden>)"

    @classmethod
    def read(
        cls, source: bytes | str | Mapping[str, Any], *, kid: str = "", algorithm: str = "", password: str | None = None
    ) -> SigningKey:
        """A key pair out of a PEM text or a JWK (as JSON text or parsed). Raises BadKeyError."""
        return cls(_import_pair(source, password), kid=kid, algorithm=algorithm)

    def sign(self, data: bytes) -> bytes:
        """A signature over ``data``."""
        from dragoman.jose import library

        return library.sign(self._key, self.algorithm, data)

    @property
    def public(self) -> PublicKey:
        """The public half."""
        from dragoman.jose import library

        bare = {name: value for name, value in library.jwk_of(self._key).items() if name not in ("key_ops", "use")}
        return PublicKey({**bare, "kid": self.kid, "alg": self.algorithm, "use": "sig"})

    def pem(self) -> bytes:
        """The private half as PEM text, not encrypted. Keep it safe."""
        from dragoman.jose import library

        return library.pem_of(self._key)


def new_key(algorithm: str = "ES256", *, kid: str = "") -> SigningKey:
    """A new key pair; RSA ones have 3072 bits. Raises BadKeyError for an algorithm that is not known."""
    from dragoman.jose import library

    kind = ALGORITHMS.get(algorithm)
    if kind is None:
        raise BadKeyError(f"there is no algorithm {algorithm!r} for signatures; there are {', '.join(ALGORITHMS)}")
    return SigningKey(library.generate(kind.kty, kind.crv or 3072), kid=kid, algorithm=algorithm)


def read_keys(source: bytes | str | Mapping[str, Any]) -> list[PublicKey]:
    """The public keys in a JWK set, a JWK, or the PEM text of a public key or a certificate.

    Of a set, keys of kinds that are not known, private ones and broken ones are passed over (RFC 7517 §5), and what is
    beyond the first hundred. Raises BadKeyError for what is none of these, and for a single key that cannot be used.
    """
    if isinstance(source, Mapping):
        return _keys_of(source)
    data = source.encode() if isinstance(source, str) else source
    if data.lstrip().startswith(b"-----BEGIN"):
        return [_public_pem(data)]
    try:
        value = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError):
        raise BadKeyError("neither JSON nor PEM text") from None
    if not isinstance(value, dict):
        raise BadKeyError("no key and no set of keys: it is no object")
    return _keys_of(value)


def _keys_of(value: Mapping[str, Any]) -> list[PublicKey]:
    if "keys" not in value:
        return [PublicKey(value)]
    listed = value["keys"]
    if not isinstance(listed, Sequence) or isinstance(listed, str):
        raise BadKeyError("no set of keys: keys is no list")
    found = []
    for members in listed[:MAX_KEYS]:
        try:
            found.append(PublicKey(members))
        except (BadKeyError, TypeError):
            continue
    return found


def _public_pem(data: bytes) -> PublicKey:
    from dragoman.jose import library

    if b"PRIVATE" in data:
        raise BadKeyError("the key is not a public one")
    try:
        key = library.import_pem(data)
    except library.LibraryError as error:
        raise BadKeyError(f"the key cannot be read: {error}") from error
    return PublicKey({**library.jwk_of(key), "kid": library.thumbprint(key)})


def _import_pair(source: bytes | str | Mapping[str, Any], password: str | None) -> Key:
    from dragoman.jose import library

    try:
        if isinstance(source, Mapping):
            return library.import_jwk(source)
        data = source.encode() if isinstance(source, str) else source
        if data.lstrip().startswith(b"{"):
            return library.import_jwk(msgspec.json.decode(data))
        return library.import_pem(data, password)
    except msgspec.DecodeError:
        raise BadKeyError("the private key cannot be read: it is no JSON") from None
    except library.LibraryError as error:
        raise BadKeyError(f"the private key cannot be read: {error}") from error


def _kind(members: Mapping[str, Any]) -> Kind:
    kind = Kind(_text(members, "kty"), _text(members, "crv"))
    kind = RSA if kind.kty == "RSA" else kind
    if kind not in KINDS:
        known = ", ".join(sorted(each.crv or each.kty for each in KINDS))
        raise BadKeyError(f"the kind of the key is not known; {known} are")
    return kind


def _check_strength(key: Key) -> None:
    size = getattr(key.public_key, "key_size", None)
    if key.key_type == "RSA" and size is not None and size < _LEAST_RSA_BITS:
        raise BadKeyError(f"the RSA key has {size} bits; at least {_LEAST_RSA_BITS} are needed")


def _text(members: Mapping[str, Any], name: str) -> str:
    value = members.get(name, "")
    if not isinstance(value, str):
        raise BadKeyError(f"{name} of the key is no text")
    return value


def _seconds(members: Mapping[str, Any], name: str) -> float | None:
    value = members.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > _LATEST:
        raise BadKeyError(f"{name} of the key is no number of seconds")
    return float(value)
