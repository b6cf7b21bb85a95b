"""``converters.py``: from Structs to protobuf messages and back, one function for each type and direction.

The code is written out field by field, since that is several times faster than reading facts of fields at run time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from tools.generate.facts import FieldFact, Generation, MessageFact, Protocol, generated

HEAD = '''"""Structs to protobuf messages and back.

``write_…`` fills an empty message and raises what :mod:`~dragoman.bindings.grpc.values` and the protobuf library raise
for what it cannot hold. ``read_…`` reads a message; a REQUIRED message that is not there is read as an empty one, and a
value that the Struct cannot hold is a ValueError or an OverflowError.
"""

from collections.abc import Callable
from typing import Any, Final

'''

EMPTY = '''

def write_empty(s: t.Empty, m: Any) -> None:
    """Nothing to write."""


def read_empty(m: Any) -> t.Empty:
    """Nothing to read."""
    return t.Empty()
'''

WELL_KNOWN = ("timestamp", "struct", "value")


def render(protocol: Protocol, generation: Generation) -> str:
    """The text of the module."""
    code = _code(protocol)
    through = {field.through for message in protocol.messages for field in message.fields if field.through}
    return f"# {generated(protocol.source)}\n{HEAD}{_imports(generation, code, through)}\n{code}"


def _imports(generation: Generation, code: str, through: set[str]) -> str:
    """The imports that ``code`` needs, beside those of the standard library."""
    values = ["read_enum_of", *_both_ways(WELL_KNOWN)]
    used = [name for name in sorted(values) if re.search(rf"\b{name}\(", code)]
    package, _, module = generation.types.rpartition(".")
    lines = [
        *(["from msgspec import UNSET", ""] if "UNSET" in code else []),
        f"from dragoman.bindings.grpc.values import {', '.join(used)}",
        f"from {package} import {module} as t",
        *([f"from {generation.converting} import {', '.join(_both_ways(sorted(through)))}"] if through else []),
        "from dragoman.model.wire import WireMessage",
    ]
    return "\n".join(lines) + "\n"


def _both_ways(kinds: Iterable[str]) -> list[str]:
    return [f"{verb}_{kind}" for verb in ("read", "write") for kind in kinds]


def _code(protocol: Protocol) -> str:
    messages = protocol.messages_by_need()
    enums = "\n".join(f"{_reader_of_enum(enum.name)} = read_enum_of(t.{enum.name})" for enum in protocol.enums)
    functions = "".join(f"\n\n{_writer(message)}\n\n{_reader(message)}" for message in messages)
    names = ["Empty", *(message.name for message in messages)]
    writers = "".join(f"    t.{name}: write_{_snake(name)},\n" for name in names)
    readers = "".join(f"    t.{name}: read_{_snake(name)},\n" for name in names)
    return (
        f"{enums}\n{EMPTY}{functions}\n\n"
        f"WRITERS: Final[dict[type[WireMessage], Callable[[Any, Any], None]]] = {{\n{writers}}}\n"
        f"READERS: Final[dict[type[WireMessage], Callable[[Any], Any]]] = {{\n{readers}}}\n"
    )


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def _reader_of_enum(name: str) -> str:
    return f"_read_{_snake(name)}"


# Writing.


def _writer(message: MessageFact) -> str:
    lines = [f"def write_{_snake(message.name)}(s: t.{message.name}, m: Any) -> None:"]
    body = list(_write_lines(message)) or ["pass"]
    return "\n".join([*lines, *(f"    {line}" for line in body)]) + "\n"


def _write_lines(message: MessageFact) -> Iterator[str]:
    done: set[str] = set()
    for field in message.fields_in_protobuf():
        if not field.oneof:
            yield from _write_field(field)
        elif field.oneof not in done:
            done.add(field.oneof)
            for n, member in enumerate(message.oneofs()[field.oneof]):
                yield f"{'elif' if n else 'if'} {_is_set(member)}:"
                yield from (f"    {line}" for line in _write_single(member))


def _is_set(field: FieldFact) -> str:
    return f"s.{field.name} is not {'UNSET' if field.kind == 'value' else 'None'}"


def _write_field(field: FieldFact) -> Iterator[str]:
    if field.shape != "single":
        yield f"if s.{field.name}:"
        yield from (f"    {line}" for line in _write_several(field))
    elif field.required:
        yield from _write_single(field)
    else:
        yield f"if {_is_set(field) if field.presence else _differs_from_zero(field)}:"
        yield from (f"    {line}" for line in _write_single(field))


def _differs_from_zero(field: FieldFact) -> str:
    return f"s.{field.name} is not t.{field.type}.UNSPECIFIED" if field.kind == "enum" else f"s.{field.name}"


def _write_single(field: FieldFact) -> Iterator[str]:
    name = field.name
    if field.kind == "message":
        yield f"m.{name}.SetInParent()"
        yield f"write_{_snake(field.type)}(s.{name}, m.{name})"
    elif field.kind in WELL_KNOWN:
        yield f"write_{field.kind}(s.{name}, m.{name})"
    elif field.kind == "enum":
        yield f"m.{name} = s.{name} if isinstance(s.{name}, int) else s.{name}.number"
    elif field.through:
        yield f"m.{name} = write_{field.through}(s.{name})"
    else:
        yield f"m.{name} = s.{name}"


def _write_several(field: FieldFact) -> Iterator[str]:
    name = field.name
    if field.shape == "map":
        if field.kind == "message":
            yield f"for key, in_{name} in s.{name}.items():"
            yield f"    write_{_snake(field.type)}(in_{name}, m.{name}[key])"
        else:
            yield f"m.{name}.update(s.{name})"
    elif field.kind == "message":
        yield f"add_{name} = m.{name}.add"
        yield f"for in_{name} in s.{name}:"
        yield f"    write_{_snake(field.type)}(in_{name}, add_{name}())"
    else:
        yield f"m.{name}.extend(s.{name})"


# Reading.


def _reader(message: MessageFact) -> str:
    lines = [f"def read_{_snake(message.name)}(m: Any) -> t.{message.name}:"]
    lines += [f'    {oneof} = m.WhichOneof("{oneof}")' for oneof in message.oneofs()]
    fields = "".join(f"        {field.name}={_read(field)},\n" for field in message.fields_in_protobuf())
    return "\n".join([*lines, f"    return t.{message.name}(\n{fields}    )"]) + "\n"


def _read(field: FieldFact) -> str:
    name = field.name
    if field.shape == "map" and field.kind != "message":
        return f"dict(m.{name})"
    if field.shape == "map":
        return f"{{key: {_read_one(field, 'value')} for key, value in m.{name}.items()}}"
    if field.shape == "list":
        if field.kind in ("string", "bool", "int32", "bytes"):
            return f"list(m.{name})"
        return f"[{_read_one(field, 'item')} for item in m.{name}]"
    value = _read_one(field, f"m.{name}")
    if field.oneof:
        absent = "UNSET" if field.kind == "value" else "None"
        return f'{value} if {field.oneof} == "{name}" else {absent}'
    if field.presence and not field.presence_here and not field.required:
        return f'{value} if m.HasField("{name}") else None'
    return value


def _read_one(field: FieldFact, value: str) -> str:
    if field.kind == "message":
        return f"read_{_snake(field.type)}({value})"
    if field.kind == "enum":
        return f"{_reader_of_enum(field.type)}({value})"
    reader = field.through or (field.kind if field.kind in WELL_KNOWN else "")
    return f"read_{reader}({value})" if reader else value
