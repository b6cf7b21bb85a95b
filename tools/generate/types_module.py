"""``types.py``: the Structs and enums."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tools.generate.facts import (
    SEVERAL_ALLOWED,
    EnumFact,
    FieldFact,
    Generation,
    MessageFact,
    Protocol,
    ValueFact,
    generated,
)

PYTHON = {
    "string": "str",
    "bool": "bool",
    "int32": "Int32",
    "bytes": "bytes",
    "timestamp": "Timestamp",
    "struct": "dict[str, Any]",
    "value": "Any",
}

# Fields that are on the wire also when they are empty, though the proto does not require it (Spec: AMB-64).
ALWAYS_WRITTEN = {("ListTaskPushNotificationConfigsResponse", "next_page_token")}

DEFAULTS = {"string": '""', "bool": "False", "int32": "0"}

EMPTY = '''class Empty(WireMessage):
    """A response that says nothing (``google.protobuf.Empty``)."""
'''


def render(protocol: Protocol, generation: Generation) -> str:
    """The text of the module."""
    empty = [] if "Empty" in generation.taken else [EMPTY]
    enums = (_enum(enum) for enum in protocol.enums if enum.name not in generation.taken)
    messages = (_message(message, protocol) for message in protocol.messages_by_need())
    text = "\n\n".join([*empty, *enums, *messages])
    return f"{_head(protocol, generation, text)}\n\n{text}"


def _head(protocol: Protocol, generation: Generation, text: str) -> str:
    """What stands above: the imports that ``text`` needs, and what is taken from the model under its own name."""
    own = ("Int32", "WireEnum", "WireMessage", "as_member", "several_members")
    msgspec = [name for name in ("UNSET", "UnsetType", "field") if re.search(rf"\b{name}\b(?!:)", text)]
    wire = [name for name in own if re.search(rf"\b{name}\b", text)]
    taken = [f"from dragoman.model.types import {name} as {name}" for name in sorted(generation.taken)]
    lines = [
        f"# {generated(protocol.source)}",
        "# ruff: noqa: E501, RUF012",
        f'"""Messages and enums of {generation.title}."""',
        "",
        "import builtins",
        "from typing import Any",
        "",
        *([f"from msgspec import {', '.join(msgspec)}", ""] if msgspec else []),
        "from dragoman.model.timestamp import Timestamp",
        *taken,
        f"from dragoman.model.wire import {', '.join(wire)}",
    ]
    return "\n".join(lines) + "\n"


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
    for field in message.fields:
        written = (message.name, field.name) in ALWAYS_WRITTEN
        default = f" = field(default_factory={PYTHON[field.kind]})" if written else _default(field, protocol)
        lines.append(f"    {field.name}: {annotation(field)}{default}")
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
    """What stands behind the annotation: the default, and the name on the wire when it is not the usual one."""
    default = "" if field.required else _default_value(field, protocol)
    if field.json_name == _camel(field.name):
        return f" = {default}" if default else ""
    return f' = field({f"default={default}, " if default else ""}name="{field.json_name}")'


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.title() for word in rest)


def _default_value(field: FieldFact, protocol: Protocol) -> str:
    if field.shape != "single":
        return "[]" if field.shape == "list" else "{}"
    if field.kind == "value":
        return "UNSET"
    if field.presence:
        return "None"
    return DEFAULTS.get(field.kind) or _zero(field, protocol)


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
