"""The door to joserfc: keys in and out, and the bare operations of signing and verifying.

Headers are none of its business here: whoever verifies has read them before, and has named the algorithm.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, Literal, cast

from dragoman.errors import MissingExtraError

try:
    from joserfc import jwk, jws
    from joserfc.errors import JoseError
except ImportError as error:
    raise MissingExtraError("JSON Web Signatures", "auth") from error

Key = jwk.RSAKey | jwk.ECKey | jwk.OKPKey
"""A key pair, or the public half of one."""

_TYPES: dict[str, type[Key]] = {"RSA": jwk.RSAKey, "EC": jwk.ECKey, "OKP": jwk.OKPKey}


class LibraryError(Exception):
    """joserfc refused; the text is for people and holds nothing of a key."""


def import_jwk(members: Mapping[str, Any]) -> Key:
    """A key by its JWK. Raises LibraryError."""
    kind = _TYPES.get(str(members.get("kty")))
    if kind is None:
        raise LibraryError("its kind is not known")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # short keys are refused by whoever asked
            return kind.import_key(dict(members))
    except (JoseError, ValueError, TypeError, KeyError, OverflowError) as error:
        raise LibraryError("its members are no key") from error


def import_pem(data: bytes, password: str | None = None) -> Key:
    """A key by its PEM text: private, public, or that of a certificate. Raises LibraryError."""
    why = "it is no PEM text of a key"
    for kind in _TYPES.values():
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return kind.import_key(data, password=password)
        except (JoseError, NotImplementedError):
            continue
        except TypeError:
            why = "it is encrypted, and needs its password" if password is None else "it is not encrypted"
        except ValueError:
            why = "it is no PEM text of a key, or the password is wrong" if password else why
    raise LibraryError(why)


def generate(kty: str, crv_or_size: str | int) -> Key:
    """A new key pair."""
    return cast(Key, jwk.generate_key(cast(Literal["EC"], kty), cast(Literal["P-256"], crv_or_size)))


def jwk_of(key: Key, *, private: bool = False) -> dict[str, Any]:
    """The members of a key's JWK."""
    return dict(key.as_dict(private=private))


def pem_of(key: Key) -> bytes:
    """The private half as PEM text."""
    return key.as_pem(private=True)


def thumbprint(key: Key) -> str:
    """The identifier that a key has by itself. Spec: RFC 7638."""
    return key.thumbprint()


def is_private(key: Key) -> bool:
    """Whether the private half is there."""
    return key.is_private


def sign(key: Key, algorithm: str, data: bytes) -> bytes:
    """A signature as JWS has it. Raises LibraryError."""
    try:
        model = jws.JWSRegistry.algorithms[algorithm]
        model.check_key(key)
        return model.sign(data, key)
    except (JoseError, ValueError) as error:
        raise LibraryError("the key cannot sign by this algorithm") from error


def verify(key: Key, algorithm: str, data: bytes, signature: bytes) -> bool:
    """Whether a signature holds; False for one that is none at all."""
    try:
        model = jws.JWSRegistry.algorithms[algorithm]
        model.check_key(key)
        return model.verify(data, signature, key)
    except (JoseError, ValueError):
        return False
