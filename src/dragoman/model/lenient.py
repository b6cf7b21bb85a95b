"""Read a message from a parsed JSON value, taking all that ProtoJSON readers take.

Theory. A message is read member by member from the facts of its type. A finding travels upwards as a Fault and
gets one step of its path from each value that holds it, so that paths cost nothing as long as all is well.
Findings of one message are collected, so that a peer is told of several at once.

Spec: §5.5, §5.7, DATA-05, DATA-06, DATA-13, DATA-15 to DATA-18, AMB-42, AMB-43, AMB-46, AMB-48, AMB-54.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from dragoman.model.field import Field
from dragoman.model.fields import FIELDS
from dragoman.model.scalars import (
    READERS,
    Fault,
    Findings,
    read_answered_timestamp,
    read_array,
    read_entries,
    read_enum,
    read_object,
)
from dragoman.model.wire import WireMessage

M = TypeVar("M", bound=WireMessage)


_SPELLINGS: dict[type[WireMessage], dict[str, Field]] = {}
_ZEROS: dict[str, Any] = {"string": "", "bool": False, "int32": 0, "bytes": b"", "enum": 0}


def read_message(kind: type[M], value: Any, fill: bool) -> M:
    """The message that a parsed JSON value stands for.

    With ``fill``, for answers of peers, a REQUIRED member that is missing gets its default in the proto, and a
    timestamp without a zone is in UTC. Raises Fault.
    """
    findings: Findings = []
    members = _read_members(kind, read_object(value), fill, findings)
    for field in FIELDS[kind]:
        if field.required and field.name not in members:
            if fill:
                members[field.name] = _zero(field)
            else:
                findings.append((field.json_name, "is required"))
    findings += _contradictions(kind, members)
    if findings:
        raise Fault(findings=findings)
    return kind(**members)


def _read_members(kind: type[WireMessage], value: dict[str, Any], fill: bool, findings: Findings) -> dict[str, Any]:
    """Values of the members that are set, by field name. Members that are not known are ignored (AMB-46)."""
    spellings = _spellings(kind)
    members: dict[str, Any] = {}
    used: set[str] = set()
    for key, item in value.items():
        field = spellings.get(key)
        if field is None:
            continue
        if field.name in used:
            findings.append((field.json_name, f"is given twice, the other time as {field.name}"))
        used.add(field.name)
        if item is None and field.kind != "value":
            continue
        members[field.name] = None
        try:
            members[field.name] = _SHAPES[field.shape](field, item, fill)
        except Fault as fault:
            findings += fault.below(field.json_name)
    return members


def _spellings(kind: type[WireMessage]) -> dict[str, Field]:
    """Both names of each field, that in the proto and that in JSON."""
    found = _SPELLINGS.get(kind)
    if found is None:
        found = {name: field for field in FIELDS[kind] for name in (field.name, field.json_name)}
        _SPELLINGS[kind] = found
    return found


def _contradictions(kind: type[WireMessage], members: dict[str, Any]) -> Findings:
    """Members of one oneof that are set together. ``data`` is set when it is null (DATA-18)."""
    first: dict[str, Field] = {}
    findings = []
    for field in FIELDS[kind]:
        if field.oneof and field.name in members:
            other = first.setdefault(field.oneof, field)
            if other is not field:
                findings.append((field.json_name, f"cannot be given together with {other.json_name}"))
    return findings


def _zero(field: Field) -> Any:
    """The default that the proto gives a field, for one that is REQUIRED and missing (AMB-43)."""
    if field.shape != "single":
        return [] if field.shape == "list" else {}
    return _ZEROS[field.kind] if field.message is None else read_message(field.message, {}, fill=True)


def _read_one(field: Field, value: Any, fill: bool) -> Any:
    if field.message is not None:
        return read_message(field.message, value, fill)
    if field.enum is not None:
        return read_enum(field.enum, value)
    return read_answered_timestamp(value) if fill and field.kind == "timestamp" else READERS[field.kind](value)


def _read_element(field: Field, value: Any, fill: bool) -> Any:
    if value is None:
        raise Fault("must not be null")
    return _read_one(field, value, fill)


def _read_list(field: Field, value: Any, fill: bool) -> list[Any]:
    return read_array(value, lambda item: _read_element(field, item, fill))


def _read_map(field: Field, value: Any, fill: bool) -> dict[str, Any]:
    return read_entries(value, lambda item: _read_element(field, item, fill))


_SHAPES: dict[str, Callable[[Field, Any, bool], Any]] = {
    "single": _read_one,
    "list": _read_list,
    "map": _read_map,
}
