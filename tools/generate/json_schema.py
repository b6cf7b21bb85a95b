"""``schema/a2a.schema.json``: JSON Schema (2020-12) of all messages in the form that is written.

Members that are not known are allowed, as readers ignore them (Spec: AMB-46).
"""

from __future__ import annotations

import json
from typing import Any

from tools.generate.facts import (
    SEVERAL_ALLOWED,
    EnumFact,
    FieldFact,
    MessageFact,
    Protocol,
    generated,
)

Schema = dict[str, Any]

# REQUIRED arrays that hold one element or more (Spec: AMB-41); others may be empty.
NOT_EMPTY = {("Message", "parts"), ("Artifact", "parts"), ("AgentCard", "supported_interfaces")}

SCALARS: dict[str, Schema] = {
    "string": {"type": "string"},
    "bool": {"type": "boolean"},
    "int32": {"type": "integer", "minimum": -(2**31), "maximum": 2**31 - 1},
    "bytes": {"type": "string", "contentEncoding": "base64"},
    "timestamp": {
        "type": "string",
        "format": "date-time",
        "pattern": r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{1,9})?Z$",
    },
    "struct": {"type": "object"},
    "value": {},
}


def render(protocol: Protocol) -> str:
    """The text of the file."""
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$comment": generated(protocol.source),
        "title": f"Messages of {protocol.package}",
        "$defs": definitions(protocol, "#/$defs/"),
    }
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def definitions(protocol: Protocol, prefix: str) -> dict[str, Schema]:
    """The schema of each enum and message, by name. ``prefix`` is where they refer to each other."""
    found = {enum.name: _enum(enum) for enum in protocol.enums}
    found |= {message.name: message_schema(message, prefix) for message in protocol.messages}
    return dict(sorted(found.items()))


def _enum(enum: EnumFact) -> Schema:
    return {
        "description": enum.comment,
        "type": "string",
        "oneOf": [{"const": value.name, "description": value.comment} for value in enum.values],
    }


def message_schema(message: MessageFact, prefix: str, without: tuple[str, ...] = ()) -> Schema:
    """The schema of one message, or of what is left of it ``without`` some fields."""
    fields = [field for field in message.fields if field.name not in without]
    schema: Schema = {
        "description": message.comment,
        "type": "object",
        "properties": {field.json_name: _property(message, field, prefix) for field in fields},
    }
    if required := [field.json_name for field in fields if field.required]:
        schema["required"] = required
    for name, members in message.oneofs().items():
        how = "anyOf" if (message.name, name) in SEVERAL_ALLOWED else "oneOf"
        schema[how] = [{"required": [field.json_name]} for field in members]
    return schema


def _property(message: MessageFact, field: FieldFact, prefix: str) -> Schema:
    schema = field_schema(field, prefix)
    if (message.name, field.name) in NOT_EMPTY:
        schema["minItems"] = 1
    if field.comment:
        schema["description"] = field.comment
    if field.deprecated:
        schema["deprecated"] = True
    return schema


def field_schema(field: FieldFact, prefix: str) -> Schema:
    """The schema of a field's value."""
    value = {"$ref": prefix + field.type} if field.type else dict(SCALARS[field.kind])
    if field.shape == "list":
        return {"type": "array", "items": value}
    if field.shape == "map":
        return {"type": "object", "additionalProperties": value}
    return value
