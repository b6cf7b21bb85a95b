"""Hypothesis strategies for every message type, and for the spellings that a reader has to take."""

from __future__ import annotations

import base64
from datetime import timedelta, timezone
from functools import cache
from typing import Any, TypeVar

from hypothesis import strategies as st

from dragoman.compat.v03.fields import FIELDS as OLD_FIELDS
from dragoman.model import FIELDS, Field, Timestamp, WireMessage

M = TypeVar("M", bound=WireMessage)

MESSAGE_TYPES = tuple(FIELDS)
FACTS = {**OLD_FIELDS, **FIELDS}
"""Those of both generations."""
INT32 = st.integers(-(2**31), 2**31 - 1)
EXACT_IN_A_DOUBLE = 2**53

# Years 1 to 9999, with a day to spare on both sides for offsets.
TIMESTAMPS = st.integers(-62135510400000, 253402214399999).map(Timestamp.from_ms)

JSON_SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-EXACT_IN_A_DOUBLE, EXACT_IN_A_DOUBLE)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=6)
)
JSON_VALUES = st.recursive(
    JSON_SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
JSON_OBJECTS = st.dictionaries(st.text(max_size=4), JSON_VALUES, max_size=3)

_KINDS: dict[str, st.SearchStrategy[Any]] = {
    "string": st.text(max_size=8),
    "bool": st.booleans(),
    "int32": INT32,
    "bytes": st.binary(max_size=8),
    "timestamp": TIMESTAMPS,
    "struct": JSON_OBJECTS,
    "value": JSON_VALUES,
}


@cache
def messages(kind: type[M]) -> st.SearchStrategy[M]:
    """Messages of one type, of either generation, with any content that the type allows; at most one member of each
    oneof is held."""
    return st.sampled_from(_oneof_choices(kind)).flatmap(lambda left_out: _built(kind, left_out))


def any_message() -> st.SearchStrategy[WireMessage]:
    """Messages of all types."""
    return st.sampled_from(MESSAGE_TYPES).flatmap(messages)


def _oneof_choices(kind: type[WireMessage]) -> list[frozenset[str]]:
    """Which members of the oneof to leave out: all, or all but one. One flow is what may be written (AMB-54)."""
    members = [field.name for field in FACTS[kind] if field.oneof or kind.__name__ == "OAuthFlows"]
    return [frozenset(members), *(frozenset(members) - {member} for member in members)]


@cache
def _built(kind: type[M], left_out: frozenset[str]) -> st.SearchStrategy[M]:
    required: dict[str, st.SearchStrategy[Any]] = {}
    optional: dict[str, st.SearchStrategy[Any]] = {}
    for field in FACTS[kind]:
        if field.name not in left_out:
            held = field.required or bool(field.oneof)
            (required if held else optional)[field.name] = values(field)
    return st.fixed_dictionaries(required, optional=optional).map(lambda members: kind(**members))


def values(field: Field) -> st.SearchStrategy[Any]:
    """Values of one field."""
    if field.message is not None:
        one: st.SearchStrategy[Any] = messages(field.message)
    elif field.enum is not None:
        one = st.sampled_from(list(field.enum)) | st.integers(100, 2**31 - 1)
    else:
        one = _KINDS[field.kind]
    if field.shape == "list":
        return st.lists(one, max_size=2)
    if field.shape == "map":
        return st.dictionaries(st.text(max_size=4), one, max_size=2)
    return one


def respelled(kind: type[WireMessage], value: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    """The same message (as a JSON value) in other spellings that every ProtoJSON reader takes.

    Names of the proto, numbers of enums, integers as text or with zero fraction, base64 without padding or in the
    other alphabet, timestamps with an offset or nanoseconds, null for what is unset, members that nobody knows.
    """
    return st.composite(_respell)(kind, value)


def _respell(draw: st.DrawFn, kind: type[WireMessage], value: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for field in FIELDS[kind]:
        name = draw(st.sampled_from([field.json_name, field.name]))
        if field.json_name in value:
            found[name] = _respell_field(draw, field, value[field.json_name])
        elif field.kind != "value" and not field.required and draw(st.booleans()):
            found[name] = None
    if draw(st.integers(0, 3)) == 0:
        found[draw(st.sampled_from(["kind", "xUnknown", "x_unknown"]))] = draw(JSON_VALUES)
    return found


def _respell_field(draw: st.DrawFn, field: Field, value: Any) -> Any:
    if field.shape == "list":
        return [_respell_one(draw, field, item) for item in value]
    if field.shape == "map":
        return {key: _respell_one(draw, field, item) for key, item in value.items()}
    return _respell_one(draw, field, value)


def _respell_one(draw: st.DrawFn, field: Field, value: Any) -> Any:
    if field.message is not None:
        return _respell(draw, field.message, value)
    spellings = _SPELLINGS.get(field.kind)
    return value if spellings is None else draw(st.sampled_from(spellings(field, value)))


def _enum_spellings(field: Field, value: Any) -> list[Any]:
    assert field.enum is not None
    number = value if isinstance(value, int) else field.enum(value).number
    return [value, number, str(number), float(number)]


def _int32_spellings(field: Field, value: int) -> list[Any]:
    return [value, str(value), float(value), f"{value}.0", f"{value}e0"]


def _bytes_spellings(field: Field, value: str) -> list[str]:
    other = base64.urlsafe_b64encode(base64.b64decode(value)).decode()
    return [value, value.rstrip("="), other, other.rstrip("=")]


def _timestamp_spellings(field: Field, value: str) -> list[str]:
    moment = Timestamp.parse(value)
    there = moment.astimezone(timezone(timedelta(hours=5, minutes=30))).isoformat("T", "microseconds")
    return [value, value.replace("Z", "+00:00"), value.replace("Z", "000000Z"), f"{there[:-6]}999{there[-6:]}"]


_SPELLINGS = {
    "enum": _enum_spellings,
    "int32": _int32_spellings,
    "bytes": _bytes_spellings,
    "timestamp": _timestamp_spellings,
}
