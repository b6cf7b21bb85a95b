"""Values of the protobuf types that stand for JSON, time and enums, to plain Python values and back.

Spec: DATA-18, DATA-29, AMB-42, AMB-48, B003.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from dragoman.model import Timestamp, WireEnum

WHOLE = 2.0**63
"""Whole numbers below this are read as integers. A double, which is all that protobuf has for them, carries the
integers up to 2^53 exactly, and rounds those beyond (Spec: AMB-48)."""

_NANOS = 1_000_000_000

_DEPTH = 90
"""Levels of messages that a JSON value may take: readers refuse more than a hundred in all. A list takes two of them,
an object three."""


def write_value(value: Any, m: Any, depth: int = _DEPTH) -> None:
    """Fill an empty ``google.protobuf.Value`` with a JSON value, or with what has a form in JSON.

    A number that is not finite becomes null, as in JSON. Raises TypeError for what has no such form, OverflowError
    for an integer beyond the doubles, UnicodeEncodeError for a lone surrogate.
    """
    kind = type(value)
    if kind is str:
        m.string_value = value
    elif value is None:
        m.null_value = 0
    elif kind is bool:
        m.bool_value = value
    elif kind is int:
        m.number_value = float(value)
    elif kind is float:
        if math.isfinite(value):
            m.number_value = value
        else:
            m.null_value = 0
    elif kind is dict:
        write_struct(value, m.struct_value, depth)
    elif kind is list:
        _write_list(value, m.list_value, depth - 2)
    else:
        _write_foreign(value, m, depth)


def _write_list(values: Sequence[Any], m: Any, depth: int) -> None:
    if depth < 0:
        raise RecursionError
    m.SetInParent()
    add = m.values.add
    for value in values:
        write_value(value, add(), depth)


def _write_foreign(value: Any, m: Any, depth: int) -> None:
    """What is not JSON already, in the form that it has in JSON: tuples, bytes, times, dataclasses, Structs, …"""
    plain = msgspec.to_builtins(value, str_keys=True, enc_hook=_plain_timestamp)
    if isinstance(plain, tuple):
        plain = list(plain)
    if type(plain) is type(value):
        raise TypeError(f"{type(value).__name__} has no form in JSON")
    write_value(plain, m, depth)


def _plain_timestamp(value: Any) -> Any:
    if isinstance(value, Timestamp):
        return value.rfc3339()
    raise TypeError(f"{type(value).__name__} has no form in JSON")


def write_struct(value: Mapping[str, Any], m: Any, depth: int = _DEPTH) -> None:
    """Fill an empty ``google.protobuf.Struct``. Raises like :func:`write_value`."""
    depth -= 3
    if depth < 0:
        raise RecursionError
    m.SetInParent()
    fields = m.fields
    for key, item in value.items():
        write_value(item, fields[key if type(key) is str else _text_of_key(key)], depth)


def _text_of_key(key: Any) -> str:
    return str(next(iter(msgspec.to_builtins({key: None}, str_keys=True))))


def read_value(m: Any) -> Any:
    """The JSON value in a ``google.protobuf.Value``; one without any kind is null. ValueError for a number that is
    none."""
    kind = m.WhichOneof("kind")
    if kind == "string_value":
        return m.string_value
    if kind == "number_value":
        return _read_number(m.number_value)
    if kind == "struct_value":
        return read_struct(m.struct_value)
    if kind == "list_value":
        return [read_value(item) for item in m.list_value.values]
    return m.bool_value if kind == "bool_value" else None


def _read_number(number: float) -> int | float:
    if number.is_integer():
        return int(number) if -WHOLE < number < WHOLE and not _is_minus_zero(number) else number
    if not math.isfinite(number):
        raise ValueError("a number is not finite")
    return number


def _is_minus_zero(number: float) -> bool:
    """A zero that no whole number can stand for."""
    return number == 0 and math.copysign(1, number) < 0


def read_struct(m: Any) -> dict[str, Any]:
    """The JSON object in a ``google.protobuf.Struct``. Raises like :func:`read_value`."""
    return {key: read_value(item) for key, item in m.fields.items()}


def write_timestamp(value: Timestamp, m: Any) -> None:
    """Fill an empty ``google.protobuf.Timestamp``."""
    m.SetInParent()
    m.seconds, ms = divmod(value.ms, 1000)
    m.nanos = ms * 1_000_000


def read_timestamp(m: Any) -> Timestamp:
    """The moment, cut to milliseconds. ValueError or OverflowError when it is none of the years 1 to 9999."""
    if not 0 <= m.nanos < _NANOS:
        raise ValueError("the nanoseconds of a timestamp are out of range")
    return Timestamp.from_ms(m.seconds * 1000 + m.nanos // 1_000_000)


def read_enum_of(kind: type[WireEnum]) -> Callable[[int], Any]:
    """A reader of an enum's numbers: the member, or the number where there is none (Spec: AMB-42)."""
    members = {member.number: member for member in kind}

    def read(number: int) -> Any:
        return members.get(number, number)

    return read
