"""Read single values the ProtoJSON way: every spelling that its readers take.

Each reader gets a parsed JSON value that is not null and returns the Python value, or raises Fault.
Spec: DATA-06 and the mapping table under it, AMB-42, AMB-47, AMB-48.
"""

from __future__ import annotations

import base64
import json
import math
import re
from collections import Counter
from collections.abc import Callable
from typing import Any, TypeVar

from dragoman.model.timestamp import Timestamp
from dragoman.model.wire import INT32_MAX, INT32_MIN, WireEnum

_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_STANDARD_ALPHABET = str.maketrans("-_", "+/")
_KEY_LENGTH = 80

MOST_FINDINGS = 20
"""How many findings are enough: elements of a list beyond are not read any more."""

T = TypeVar("T")

Findings = list[tuple[str, str]]
"""What is wrong: path below the value concerned (empty for itself), and description."""


class Fault(Exception):
    """A value cannot be read, for the reasons in ``findings``."""

    def __init__(self, description: str = "", *, findings: Findings | None = None) -> None:
        super().__init__(description)
        self.findings = findings or [("", description)]

    def below(self, step: str) -> Findings:
        """The findings as seen from the value that holds this one. ``step`` is ``name``, ``[0]`` or ``["key"]``."""
        return [(_join(step, path), description) for path, description in self.findings]


def _join(step: str, path: str) -> str:
    return f"{step}.{path}" if path and path[0] != "[" else step + path


def key_step(key: str) -> str:
    """The step of a path that goes to a key of a map, in ASCII and of bounded length."""
    return f"[{json.dumps(key[:_KEY_LENGTH])}]"


class RepeatedKeys(dict[str, Any]):
    """A parsed JSON object in which a key occurred more than once; ``key`` is the first such."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        uses = Counter(key for key, _ in pairs)
        self.key = next(key for key, count in uses.items() if count > 1)


def read_object(value: Any) -> dict[str, Any]:
    """An object in which no key occurred more than once; its members are not read."""
    if isinstance(value, RepeatedKeys):
        raise Fault(f"holds the member {json.dumps(value.key[:_KEY_LENGTH])} more than once")
    if isinstance(value, dict):
        return value
    raise Fault("must be an object")


def read_string(value: Any) -> str:
    """A string of Unicode characters."""
    if not isinstance(value, str):
        raise Fault("must be a string")
    if not value.isascii():
        _refuse_surrogates(value)
    return value


def _refuse_surrogates(value: str) -> None:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise Fault("must not hold a lone surrogate") from None


def read_bool(value: Any) -> bool:
    """``true`` or ``false``."""
    if not isinstance(value, bool):
        raise Fault("must be true or false")
    return value


def read_int32(value: Any) -> int:
    """A whole number of 32 bits; also as text, with zero fraction, or with an exponent."""
    number = _whole(value)
    if number is None:
        raise Fault("must be a whole number")
    if not INT32_MIN <= number <= INT32_MAX:
        raise Fault("must be a number of 32 bits")
    return number


def _whole(value: Any) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        return _whole(float(value))
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return None


def read_bytes(value: Any) -> bytes:
    """Base64 in either alphabet, with or without padding."""
    if not isinstance(value, str):
        raise Fault("must be a string in base64")
    digits = value.rstrip("=")
    padding = "=" * (-len(digits) % 4)
    try:
        if value[len(digits) :] not in ("", padding):
            raise ValueError("wrong padding")
        return base64.b64decode(digits.translate(_STANDARD_ALPHABET) + padding, validate=True)
    except ValueError:  # binascii.Error is one, and so is text that is not ASCII
        raise Fault("must be a string in base64") from None


_WITHOUT_ZONE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?")


def read_timestamp(value: Any) -> Timestamp:
    """RFC 3339 text."""
    try:
        return Timestamp.parse(value if isinstance(value, str) else "")
    except ValueError as error:  # its text is ours
        raise Fault(str(error)) from None


def read_answered_timestamp(value: Any) -> Timestamp:
    """The same in an answer, where a peer may have left the zone out: it is UTC then. A request has to name it."""
    if isinstance(value, str) and _WITHOUT_ZONE.fullmatch(value):
        value += "Z"
    return read_timestamp(value)


def read_enum(kind: type[WireEnum], value: Any) -> WireEnum | int:
    """The name of a value or its number, in quotes or not. An unknown number stays a number."""
    for member in kind:
        if member.value == value:
            return member
    try:
        return kind.from_number(read_int32(value))
    except Fault:
        raise Fault(f"must be one of {', '.join(member.value for member in kind)}") from None


def read_value(value: Any) -> Any:
    """Any JSON value, kept as it is: integers stay integers."""
    check = _VALUE_CHECKS.get(type(value))
    if check is not None:
        check(value)
    return value


def read_struct(value: Any) -> dict[str, Any]:
    """A JSON object of any values, kept as it is."""
    members = read_object(value)
    for key, item in members.items():
        try:
            read_string(key)
            read_value(item)
        except Fault as fault:
            raise Fault(findings=fault.below(key_step(key))) from None
    return members


def read_array(value: Any, read: Callable[[Any], T]) -> list[T]:
    """A JSON array, each element as ``read`` reads it, up to ``MOST_FINDINGS`` findings."""
    if not isinstance(value, list):
        raise Fault("must be an array")
    elements = []
    findings: Findings = []
    for index, item in enumerate(value):
        try:
            elements.append(read(item))
        except Fault as fault:
            findings += fault.below(f"[{index}]")
            if len(findings) >= MOST_FINDINGS:
                break
    if findings:
        raise Fault(findings=findings)
    return elements


def read_entries(value: Any, read: Callable[[Any], T]) -> dict[str, T]:
    """A JSON object of entries, each value as ``read`` reads it."""
    entries = {}
    findings: Findings = []
    for key, item in read_object(value).items():
        try:
            entries[read_string(key)] = read(item)
        except Fault as fault:
            findings += fault.below(key_step(key))
    if findings:
        raise Fault(findings=findings)
    return entries


def _check_array(value: list[Any]) -> None:
    for index, item in enumerate(value):
        try:
            read_value(item)
        except Fault as fault:
            raise Fault(findings=fault.below(f"[{index}]")) from None


def _check_float(value: float) -> None:
    if not math.isfinite(value):
        raise Fault("must be a number in the range of a double")


_VALUE_CHECKS: dict[type, Callable[[Any], object]] = {
    str: read_string,
    float: _check_float,
    list: _check_array,
    dict: read_struct,
    RepeatedKeys: read_struct,
}

READERS: dict[str, Callable[[Any], Any]] = {
    "string": read_string,
    "bool": read_bool,
    "int32": read_int32,
    "bytes": read_bytes,
    "timestamp": read_timestamp,
    "struct": read_struct,
    "value": read_value,
}
"""Reader of each kind that needs no type."""
