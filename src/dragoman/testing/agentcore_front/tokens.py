"""JSON Web Tokens that are signed with a shared secret (HS256), as much of them as a stand-in needs.

Spec: AC-F-08.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Mapping
from typing import Any

import msgspec

_HEADER = {"alg": "HS256", "typ": "JWT"}


class MalformedTokenError(ValueError):
    """A text that is no token."""


class WrongSignatureError(ValueError):
    """A token that somebody else has made."""


def mint(claims: Mapping[str, Any], secret: str) -> str:
    """A token of these claims."""
    signed = f"{_encode(msgspec.json.encode(_HEADER))}.{_encode(msgspec.json.encode(dict(claims)))}"
    return f"{signed}.{_encode(_sign(signed, secret))}"


def read_token(token: str, secret: str) -> dict[str, Any]:
    """The claims of a token. Raises MalformedTokenError and WrongSignatureError."""
    signed, _, signature = token.rpartition(".")
    header, _, claims = signed.partition(".")
    try:
        method = msgspec.json.decode(_decode(header), type=dict[str, Any]).get("alg")
        read = msgspec.json.decode(_decode(claims), type=dict[str, Any])
        given = _decode(signature)
    except (msgspec.MsgspecError, ValueError) as error:
        raise MalformedTokenError("the token cannot be read") from error
    if method != "HS256":
        raise WrongSignatureError("the token is signed by a method that is not taken here")
    if not hmac.compare_digest(given, _sign(signed, secret)):
        raise WrongSignatureError("the signature of the token is wrong")
    return read


def _sign(signed: str, secret: str) -> bytes:
    return hmac.digest(secret.encode(), signed.encode(), hashlib.sha256)


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _decode(text: str) -> bytes:
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
