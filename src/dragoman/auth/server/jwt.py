"""JSON Web Tokens as bearer tokens: what they say, and whether that is for us. Pure: keys and time are passed in.

Nothing of a token decides how it is verified but ``alg`` and ``kid``, and those only within what this server allows: a
key or an address in the header is not looked at.

Spec: RFC 7519 §4.1, §7.2, RFC 8725, RFC 9068 §4; AUTH-05.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from dragoman.auth.server.presented import RefusedError
from dragoman.errors import ConfigurationError
from dragoman.jose import ALGORITHMS, PublicKey, decode_base64url

Json = dict[str, Any]

DEFAULT_ALGORITHMS = ("ES256", "RS256", "PS256", "EdDSA")
DEFAULT_TYPES = ("at+jwt", "jwt", "")

MOST_LETTERS = 16 * 1024
_MOST_KEYS = 8
_LATEST = 1e12


class Token(msgspec.Struct, frozen=True):
    """A token that was read, and not verified."""

    algorithm: str
    kid: str
    type: str
    claims: Json
    signed: bytes
    signature: bytes


class TokenRules(msgspec.Struct, frozen=True, kw_only=True):
    """What a token has to be.

    ``audiences``: one of them must be in ``aud``; ``types``: values of ``typ``, in lower case, without
    ``application/``; ``leeway`` in seconds, for clocks that differ.
    """

    issuer: str
    audiences: frozenset[str]
    algorithms: frozenset[str]
    types: frozenset[str]
    leeway: float


def check_rules(rules: TokenRules) -> TokenRules:
    """The same rules. Raises ConfigurationError for ones that would let too much pass, or nothing."""
    if not rules.issuer or not rules.audiences or "" in rules.audiences:
        raise ConfigurationError("tokens need an issuer and an audience: one for another service must not be good here")
    unknown = sorted(rules.algorithms - ALGORITHMS.keys())
    if unknown or not rules.algorithms:
        known = ", ".join(ALGORITHMS)
        raise ConfigurationError(f"algorithms: {', '.join(unknown) or 'none'} cannot be allowed; known are {known}")
    if not 0 <= rules.leeway <= 600:
        raise ConfigurationError("leeway must be 0 to 600 seconds")
    return rules


def read_token(text: str) -> Token:
    """Take a token apart. Raises RefusedError."""
    parts = text.split(".")
    if len(text) > MOST_LETTERS or len(parts) != 3:
        raise _malformed()
    header, claims = _read_json(parts[0]), _read_json(parts[1])
    if "crit" in header or "b64" in header:
        raise RefusedError("critical header", "The token demands what is not known here")
    try:
        signature = decode_base64url(parts[2])
    except ValueError:
        raise _malformed() from None
    kind = _text(header, "typ").lower().removeprefix("application/")
    signed = f"{parts[0]}.{parts[1]}".encode()
    return Token(_text(header, "alg"), _text(header, "kid"), kind, claims, signed, signature)


def check_token(token: Token, rules: TokenRules, now: float) -> None:
    """Refuse a token that is not for us, whoever has signed it, at a time in seconds since the epoch.

    Raises RefusedError.
    """
    if token.algorithm not in rules.algorithms:
        raise RefusedError("algorithm", "The token is signed by an algorithm that is not allowed")
    if token.type not in rules.types:
        raise RefusedError("type", "The token is of a kind that is not for this")
    claims = token.claims
    if claims.get("iss") != rules.issuer:
        raise RefusedError("issuer", "The token is of an issuer that is not trusted here")
    audiences = claims.get("aud")
    named = [audiences] if isinstance(audiences, str) else audiences
    if not isinstance(named, list) or not any(isinstance(name, str) and name in rules.audiences for name in named):
        raise RefusedError("audience", "The token is for another audience")
    _check_times(claims, rules.leeway, now)


def _check_times(claims: Json, leeway: float, now: float) -> None:
    expires = seconds_of(claims, "exp")
    if expires is None:
        raise RefusedError("no expiry", "The token has no expiry")
    if now >= expires + leeway:
        raise RefusedError("expired", "The token has expired")
    for name in ("nbf", "iat"):
        since = seconds_of(claims, name)
        if since is not None and now < since - leeway:
            raise RefusedError("not yet valid", "The token is not valid yet")


def check_signature(token: Token, keys: Sequence[PublicKey], now: float) -> None:
    """Refuse a token that none of the keys has signed. Raises RefusedError."""
    fit = [key for key in keys if not key.unfit(token.algorithm, now)]
    if not any(key.verify(token.algorithm, token.signed, token.signature) for key in fit[:_MOST_KEYS]):
        raise RefusedError("signature" if fit else "unknown signing key", "The token's signature does not hold")


def scopes_of(claims: Mapping[str, Any]) -> frozenset[str]:
    """The scopes of a token: ``scope`` (RFC 9068), or what others call ``scp``."""
    found = claims.get("scope", claims.get("scp", ""))
    if isinstance(found, str):
        return frozenset(found.split())
    return frozenset(item for item in found if isinstance(item, str)) if isinstance(found, list) else frozenset()


def subject_of(claims: Mapping[str, Any]) -> str:
    """Who a token is for: ``sub``, or else the client that got it. Raises RefusedError when it does not say."""
    for name in ("sub", "client_id", "azp"):
        found = claims.get(name)
        if isinstance(found, str) and found:
            return found
    raise RefusedError("no subject", "The token does not say whose it is")


def _read_json(text: str) -> Json:
    try:
        value = json.loads(decode_base64url(text), object_pairs_hook=_once)
    except (ValueError, RecursionError):
        raise _malformed() from None
    if not isinstance(value, dict):
        raise _malformed()
    return value


def _once(pairs: list[tuple[str, Any]]) -> Json:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name is there twice")
    return found


def _text(header: Json, name: str) -> str:
    value = header.get(name, "")
    if not isinstance(value, str):
        raise _malformed()
    return value


def seconds_of(claims: Mapping[str, Any], name: str) -> float | None:
    """A time in seconds since the epoch, None when it is not there. Raises RefusedError for what is none."""
    value = claims.get(name)
    if value is None:
        return None
    # Compared first: an integer of JSON may be too large for a float. What is no number is in no order.
    if isinstance(value, bool) or not isinstance(value, int | float) or not -_LATEST <= value <= _LATEST:
        raise _malformed()
    return float(value)


def _malformed() -> RefusedError:
    return RefusedError("malformed", "The token cannot be read")
