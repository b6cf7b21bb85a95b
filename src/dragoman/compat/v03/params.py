"""The members of params, bodies and queries of 0.3 that are no messages of its proto: ids, a length, metadata.

Names are taken in camelCase and snake_case, what is unknown is ignored. Each function raises InvalidParamsError that
names the member as the caller wrote it.

Spec: 0.3 register, sections 2.3, 3.3.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from dragoman.compat.v03 import types as v03
from dragoman.compat.v03.reading import read
from dragoman.errors import FieldViolation, InvalidParamsError, JSONParseError

_MOST_MESSAGES = 2**31 - 1


def read_object(text: bytes, place: str) -> dict[str, Any]:
    """A JSON object from its text; an empty text and null are an empty one. Raises JSONParseError, too."""
    if not text.strip():
        return {}
    try:
        value = msgspec.json.decode(text)
    except msgspec.ValidationError as error:
        raise _invalid(place, str(error)) from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise JSONParseError() from None
    except RecursionError:
        raise InvalidParamsError("The request is nested too deeply") from None
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise _invalid(place, "must be an object")
    return value


def read_text(value: dict[str, Any], name: str) -> str:
    """A text, empty when there is none."""
    spelled, found = _member(value, name)
    if found is None:
        return ""
    if not isinstance(found, str):
        raise _invalid(spelled, "must be a string")
    return found


def required_text(value: dict[str, Any], name: str) -> str:
    """A text that must be there."""
    text = read_text(value, name)
    if not text:
        raise _invalid(name, "is required")
    return text


def read_length(value: dict[str, Any], name: str = "historyLength") -> int | None:
    """How many messages of the history are wanted; None for all of them, which 0 means, too. Spec: 7.2, V03-P23."""
    spelled, found = _member(value, name)
    if found is None:
        return None
    if isinstance(found, str) and found.isascii() and found.isdigit() and len(found) < 12:
        found = int(found)
    if isinstance(found, float) and found.is_integer():
        found = int(found)
    if isinstance(found, bool) or not isinstance(found, int) or not 0 <= found <= _MOST_MESSAGES:
        raise _invalid(spelled, "must be a whole number from 0 on")
    return found or None


def read_metadata(value: dict[str, Any]) -> dict[str, Any] | None:
    """The metadata of a request."""
    found = value.get("metadata")
    if found is not None and not isinstance(found, dict):
        raise _invalid("metadata", "must be an object")
    return found


def read_webhook(value: dict[str, Any], name: str) -> v03.PushNotificationConfig:
    """A webhook that must be there, under this name or, when that is empty, in this very object."""
    spelled, found = _member(value, name) if name else ("", value)
    if not isinstance(found, dict):
        raise _invalid(spelled, "must be an object" if found is not None else "is required")
    try:
        webhook = read(v03.PushNotificationConfig, found)
    except InvalidParamsError as error:
        raise _below(spelled, error) from None
    if not webhook.url:
        raise _invalid(f"{spelled}.url" if spelled else "url", "is required")
    return webhook


def _below(place: str, error: InvalidParamsError) -> InvalidParamsError:
    if not place:
        return error
    violations = [FieldViolation(f"{place}.{v.field}" if v.field else place, v.description) for v in error.violations]
    return InvalidParamsError(error.message, violations=violations)


def _member(value: dict[str, Any], name: str) -> tuple[str, Any]:
    """A member under either spelling of its name, with the one that was found."""
    snake = re.sub("[A-Z]", lambda found: f"_{found[0].lower()}", name)
    return (snake, value[snake]) if value.get(name) is None and snake in value else (name, value.get(name))


def _invalid(field: str, why: str) -> InvalidParamsError:
    return InvalidParamsError(violations=[FieldViolation(field, why)])
