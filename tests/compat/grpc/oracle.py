"""The protobuf library as an oracle: the proto of 0.3, in a descriptor pool of its own."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from google.protobuf import descriptor_pool, json_format, message_factory

from tools.generate.__main__ import V03_PROTO
from tools.generate.proto import compile_descriptors


@cache
def _pool() -> descriptor_pool.DescriptorPool:
    pool = descriptor_pool.DescriptorPool()
    for file in compile_descriptors(V03_PROTO).file:
        pool.Add(file)
    return pool


def new(name: str) -> Any:
    """An empty message of this name."""
    package = "google.protobuf" if name == "Empty" else "a2a.v1"
    return message_factory.GetMessageClass(_pool().FindMessageTypeByName(f"{package}.{name}"))()


def write(name: str, value: Any) -> bytes:
    """A message of this name, given as the JSON of the proto."""
    data: bytes = json_format.ParseDict(value or {}, new(name)).SerializeToString()
    return data


def read(name: str, data: bytes) -> Any:
    """A message of this name as the JSON of the proto."""
    message = new(name)
    message.ParseFromString(data)
    return json.loads(json_format.MessageToJson(message, indent=None))
