"""``types.py``: the Structs and enums."""

from __future__ import annotations

from collections.abc import Iterator

from tools.generate.facts import GENERATED, SEVERAL_ALLOWED, EnumFact, FieldFact, MessageFact, Protocol, ValueFact

PYTHON = {
    "string": "str",
    "bool": "bool",
    "int32": "Int32",
    "bytes": "bytes",
    "timestamp": "Timestamp",
    "struct": "dict[str, Any]",
    "value": "Any",
}

DEFAULTS = {"string": '""', "bool": "False", "int32": "0"}

HEAD = f'''# {GENERATED}
# ruff: noqa: E501, RUF012
"""Messages and enums of the protocol."""

import builtins
from typing import Any

from msgspec import UNSET, UnsetType

from dragoman.model.timestamp import Timestamp
from dragoman.model.wire import Int32, WireEnum, WireMessage, as_member, several_members


class Empty(WireMessage):
    """A response that says nothing (``google.protobuf.Empty``)."""
'''


def render(protocol: Protocol) -> str:
    """The text of the module."""
    enums = (_enum(enum) for enum in protocol.enums)
    messages = (_message(message, protocol) for message in protocol.messages_by_need())
    return "\n\n".join([HEAD, *enums, *messages])


def _enum(enum: EnumFact) -> str:
    lines = [f"class {enum.name}(WireEnum):", *_docstring(enum.comment)]
    for value in enum.values:
        lines.append(f'    {value.member} = "{value.name}", {value.number}')
    return "\n".join(lines) + "\n"


def _docstring(text: str, *paragraphs: str) -> list[str]:
    if not paragraphs:
        return [f'    """{text}"""', ""]
    return [f'    """{text}', "", *(f"    {line}" for line in paragraphs), '    """', ""]


def _message(message: MessageFact, protocol: Protocol) -> str:
    lines = [f"class {message.name}(WireMessage, kw_only=True):", *_docstring(message.comment)]
    lines += [f"    {field.name}: {annotation(field)}{_default(field, protocol)}" for field in message.fields]
    checks = [*_oneof_checks(message), *_coercions(message)]
    if checks:
        lines += ["", "    def __post_init__(self) -> None:", *(f"        {line}" for line in checks)]
    return "\n".join(lines) + "\n"


def annotation(field: FieldFact) -> str:
    """The annotation of a field."""
    value = PYTHON.get(field.kind) or (f"{field.type} | int" if field.kind == "enum" else field.type)
    if field.shape == "list":
        return f"{'builtins.list' if field.name == 'list' else 'list'}[{value}]"
    if field.shape == "map":
        return f"dict[str, {value}]"
    if field.kind == "value":
        return f"{value} | UnsetType"
    return f"{value} | None" if field.presence and not field.required else value


def _default(field: FieldFact, protocol: Protocol) -> str:
    if field.required:
        return ""
    if field.shape != "single":
        return " = []" if field.shape == "list" else " = {}"
    if field.kind == "value":
        return " = UNSET"
    if field.presence:
        return " = None"
    return f" = {DEFAULTS.get(field.kind) or _zero(field, protocol)}"


def _zero(field: FieldFact, protocol: Protocol) -> str:
    enum = next(enum for enum in protocol.enums if enum.name == field.type)
    zero: ValueFact = next(value for value in enum.values if value.number == 0)
    return f"{enum.name}.{zero.member}"


def _oneof_checks(message: MessageFact) -> Iterator[str]:
    for name, members in message.oneofs().items():
        if (message.name, name) in SEVERAL_ALLOWED:
            continue
        names = ", ".join(field.json_name for field in members)
        for n, field in enumerate(members[:-2]):
            others = " or ".join(_is_set(other) for other in members[n + 1 :])
            yield f"{'elif' if n else 'if'} {_is_set(field)}:"
            yield f"    if {others}:"
            yield f'        raise several_members("{names}")'
        yield f"{'elif' if members[:-2] else 'if'} {_is_set(members[-2])} and {_is_set(members[-1])}:"
        yield f'    raise several_members("{names}")'


def _is_set(field: FieldFact) -> str:
    return f"self.{field.name} is not {'UNSET' if field.kind == 'value' else 'None'}"


def _coercions(message: MessageFact) -> Iterator[str]:
    for field in message.fields:
        if field.kind == "enum":
            yield f"if type(self.{field.name}) is not {field.type}:"
            yield f"    self.{field.name} = as_member({field.type}, self.{field.name})"
        elif field.kind == "timestamp":
            yield f"if self.{field.name} is not None and type(self.{field.name}) is not Timestamp:"
            yield f"    self.{field.name} = Timestamp.of(self.{field.name})"
