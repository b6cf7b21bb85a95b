"""The machine under `reading`: members of an object become fields of a message, by the facts of its type.

Theory. It is the machine of :mod:`dragoman.model.lenient` for a protocol whose JSON was never settled. A type whose
JSON differs between dialects has a reader of its own in the tables of `content_forms`, `request_forms` and
`card_forms`; all others are read from their facts. Paths in findings are spelled as the caller wrote the members.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import msgspec

from dragoman.compat.v03.fields import FIELDS
from dragoman.compat.v03.types import Role, TaskState
from dragoman.model.field import Field
from dragoman.model.scalars import (
    READERS,
    Fault,
    Findings,
    read_array,
    read_entries,
    read_int32,
    read_object,
)
from dragoman.model.timestamp import Timestamp
from dragoman.model.wire import WireEnum, WireMessage

M = TypeVar("M", bound=WireMessage)

Members = dict[str, Any]
Form = Callable[[Any, "Reading"], WireMessage]

STATES = {
    "submitted": TaskState.SUBMITTED,
    "working": TaskState.WORKING,
    "completed": TaskState.COMPLETED,
    "failed": TaskState.FAILED,
    "canceled": TaskState.CANCELED,
    "cancelled": TaskState.CANCELED,
    "input-required": TaskState.INPUT_REQUIRED,
    "rejected": TaskState.REJECTED,
    "auth-required": TaskState.AUTH_REQUIRED,
}
ROLES = {"user": Role.USER, "agent": Role.AGENT}


class Reading(msgspec.Struct, frozen=True):
    """How a value is read.

    * ``forms``: the types that have a reader of their own;
    * ``answer``: it comes from a peer that was asked, so that what is missing is no error;
    * ``raw_bytes``: ``fileWithBytes`` is the content, not its base64 text;
    * ``labelled``: what is around shows itself as kind-JSON.
    """

    forms: Mapping[type[WireMessage], Form]
    answer: bool = False
    raw_bytes: bool = False
    labelled: bool = False


def read_message(kind: type[WireMessage], value: Any, reading: Reading) -> Any:
    """The message that a value stands for. Raises Fault."""
    form = reading.forms.get(kind)
    return read_plain(kind, value, reading) if form is None else form(value, reading)


def read_plain(kind: type[WireMessage], value: Any, reading: Reading) -> Any:
    """A message of a type without a form of its own. Raises Fault."""
    findings: Findings = []
    return build(kind, read_members(kind, read_object(value), reading, findings), reading, findings)


def build(kind: type[M], members: Members, reading: Reading, findings: Findings) -> M:
    """The message with these fields, once nothing is wrong. Raises Fault."""
    for field in FIELDS[kind]:
        if field.required and field.name not in members:
            if reading.answer:
                members[field.name] = _zero(field, reading)
            else:
                findings.append((field.json_name, "is required"))
    if findings:
        raise Fault(findings=findings)
    return kind(**members)


def _zero(field: Field, reading: Reading) -> Any:
    """What stands for a required field that a peer left out. No other kinds of fields are required in 0.3."""
    if field.message is not None:
        return read_plain(field.message, {}, reading)
    return {} if field.kind == "struct" else ""


def read_members(
    kind: type[WireMessage],
    value: dict[str, Any],
    reading: Reading,
    findings: Findings,
    aliases: Mapping[str, str] = {},
) -> Members:
    """Values of the fields that are set, by name. ``aliases`` are further names on the wire, with the fields they mean.

    Names that are not known are ignored, null is absence. What is wrong is added to ``findings``.
    """
    spellings = _spellings(kind)
    members: Members = {}
    used: dict[str, str] = {}
    for key, item in value.items():
        field = spellings.get(key) or spellings.get(aliases.get(key, ""))
        if field is None or item is None:
            continue
        if field.name in used:
            findings.append((key, f"is given twice, the other time as {used[field.name]}"))
            continue
        used[field.name] = key
        members[field.name] = None
        try:
            members[field.name] = _SHAPES[field.shape](field, item, reading)
        except Fault as fault:
            findings += fault.below(key)
    return members


_SPELLINGS: dict[type[WireMessage], dict[str, Field]] = {}


def _spellings(kind: type[WireMessage]) -> dict[str, Field]:
    found = _SPELLINGS.get(kind)
    if found is None:
        found = {name: field for field in FIELDS[kind] for name in (field.name, field.json_name)}
        _SPELLINGS[kind] = found
    return found


def _read_one(field: Field, value: Any, reading: Reading) -> Any:
    if field.message is not None:
        return read_message(field.message, value, reading)
    if field.enum is not None:
        return _ENUMS[field.enum](value, reading)
    if field.kind == "timestamp":
        return read_moment(value)
    return READERS[field.kind](value)


def read_element(field: Field, value: Any, reading: Reading) -> Any:
    """One element of a list or a map."""
    if value is None:
        raise Fault("must not be null")
    return _read_one(field, value, reading)


def _read_list(field: Field, value: Any, reading: Reading) -> list[Any]:
    return read_array(value, lambda item: read_element(field, item, reading))


def _read_map(field: Field, value: Any, reading: Reading) -> dict[str, Any]:
    return read_entries(value, lambda item: read_element(field, item, reading))


_SHAPES: dict[str, Callable[[Field, Any, Reading], Any]] = {
    "single": _read_one,
    "list": _read_list,
    "map": _read_map,
}


# Words and moments.


def read_state(value: Any, reading: Reading) -> TaskState | int:
    """A state by its word, its name in the proto with one L or two, or its number. Unknown words are UNSPECIFIED."""
    if isinstance(value, str) and not value.isdigit():
        return STATES.get(_word(value, "TASK_STATE_"), TaskState.UNSPECIFIED)
    return TaskState.from_number(read_int32(value))


def read_role(value: Any, reading: Reading) -> Role | int:
    """A role likewise. Of one who asks, a word that is not known is an error."""
    if isinstance(value, str) and not value.isdigit():
        role = ROLES.get(_word(value, "ROLE_"))
        if role is None and not reading.answer:
            raise Fault('must be "user" or "agent"')
        return role or Role.UNSPECIFIED
    return Role.from_number(read_int32(value))


def _word(text: str, prefix: str) -> str:
    return text.removeprefix(prefix).lower().replace("_", "-")


_ENUMS: dict[type[WireEnum], Callable[[Any, Reading], WireEnum | int]] = {TaskState: read_state, Role: read_role}


def read_moment(value: Any) -> Timestamp:
    """ISO 8601 text; without a zone it is UTC. Spec: v0.3 §2.3."""
    if not isinstance(value, str):
        raise Fault("must be a string such as 2026-03-12T09:30:00.125Z")
    text = value.replace(" ", "T", 1)
    zone = text[10:]
    try:
        return Timestamp.parse(text if "Z" in zone or "z" in zone or "+" in zone or "-" in zone else f"{text}Z")
    except ValueError as error:  # its text is ours
        raise Fault(str(error)) from None


# Kinds.


def check_kind(value: dict[str, Any], expected: str, findings: Findings) -> None:
    """Note a ``kind`` that says something else than what the value was found to be."""
    kind = value.get("kind")
    if kind is not None and kind != expected:
        findings.append(("kind", f'must be "{expected}" here'))


def later(value: dict[str, Any], member: str, remedy: str, findings: Findings) -> None:
    """Note a member of version 1.0 that would be lost, or change the meaning, if it was ignored."""
    if value.get(member) not in (None, "", False):
        findings.append((member, f"belongs to version 1.0 of the protocol; {remedy}"))
