"""The door to rfc8785, the JSON Canonicalization Scheme. Spec: SIGN-08, AMB-84."""

from __future__ import annotations

from typing import Any

from dragoman.errors import MissingExtraError

try:
    import rfc8785
except ImportError as error:
    raise MissingExtraError("The canonical form of JSON (RFC 8785)", "auth") from error


class NoCanonicalFormError(ValueError):
    """A value has no canonical form: a lone surrogate, a number that is none, too deep a nesting."""


def encode_canonical(value: Any) -> bytes:
    """A JSON value in its canonical form: UTF-8, members sorted by UTF-16 code units, numbers as ECMAScript prints
    them. Integers are those that a double holds exactly; give others as floats. Raises NoCanonicalFormError."""
    try:
        return rfc8785.dumps(value)
    except (ValueError, RecursionError) as error:
        raise NoCanonicalFormError("the JSON has no canonical form") from error
