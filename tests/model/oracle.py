"""The protobuf library as an oracle: the same proto, in a descriptor pool of its own."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from google.protobuf import descriptor_pool, json_format, message_factory

from dragoman.model import FIELDS, WireMessage, encode_json
from tools.generate.__main__ import PROTO
from tools.generate.proto import compile_descriptors
from tools.generate.types_module import ALWAYS_WRITTEN

Json = dict[str, Any]


@cache
def _pool() -> descriptor_pool.DescriptorPool:
    pool = descriptor_pool.DescriptorPool()
    for file in compile_descriptors(PROTO).file:
        pool.Add(file)
    return pool


def new(kind: type[WireMessage]) -> Any:
    """An empty protobuf message of the type with this name."""
    package = "google.protobuf" if kind.__name__ == "Empty" else "lf.a2a.v1"
    return message_factory.GetMessageClass(_pool().FindMessageTypeByName(f"{package}.{kind.__name__}"))()


def parse(kind: type[WireMessage], text: str | bytes) -> Any:
    """What the protobuf library reads of JSON text, members that nobody knows ignored. ParseError."""
    return json_format.Parse(text, new(kind), ignore_unknown_fields=True)


def print_json(message: Any) -> str:
    """What the protobuf library prints."""
    return json_format.MessageToJson(message, indent=None, ensure_ascii=False)


def encoded(message: WireMessage) -> Json:
    """What we print, parsed."""
    found: Json = json.loads(encode_json(message))
    return found


def without_empty_required(kind: type[WireMessage], value: Json) -> Json:
    """The same JSON value without REQUIRED members that hold a default, as the protobuf library prints it."""
    found = {}
    for field in FIELDS[kind]:
        if field.json_name not in value:
            continue
        item = value[field.json_name]
        if (kind.__name__, field.name) in ALWAYS_WRITTEN and not item:
            continue
        if field.required and not field.presence and item in ("", 0, [], {}, *_zero_names(field.enum)):
            continue
        if field.message is not None:
            item = _each(field.shape, field.message, item)
        found[field.json_name] = item
    return found


def _zero_names(enum: Any) -> list[str]:
    return [member.value for member in enum or () if member.number == 0]


def _each(shape: str, kind: type[WireMessage], item: Any) -> Any:
    if shape == "list":
        return [without_empty_required(kind, one) for one in item]
    if shape == "map":
        return {key: without_empty_required(kind, one) for key, one in item.items()}
    return without_empty_required(kind, item)
