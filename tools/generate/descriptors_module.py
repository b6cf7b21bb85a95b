"""``descriptors.py``: the proto files, compiled, for a descriptor pool of our own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import google.api.annotations_pb2 as http_annotations  # type: ignore[import-untyped]
import google.api.client_pb2 as client_annotations  # type: ignore[import-untyped]
import google.api.field_behavior_pb2 as field_behavior  # type: ignore[import-untyped]
from google.protobuf.descriptor_pb2 import FileDescriptorProto

from tools.generate.facts import generated

HEAD = '''"""The proto files, compiled: serialized file descriptors, without comments and without annotations for HTTP.

What they import comes with the protobuf library.
"""

from typing import Final

'''

BYTES_IN_A_LINE = 24


def render(source: str, files: Iterable[FileDescriptorProto]) -> str:
    """The text of the module, made from the file called ``source``. ``files`` are what is compiled into it, each after
    those that it imports."""
    found = [_bare(file) for file in files]
    lines = [f"    {_literal(file)},  # {file.name}\n" for file in found]
    return f"# {generated(source)}\n{HEAD}FILES: Final[tuple[bytes, ...]] = (\n{''.join(lines)})\n"


def _bare(file: FileDescriptorProto) -> FileDescriptorProto:
    """The file without what only readers of the proto and HTTP gateways need."""
    bare = FileDescriptorProto()
    bare.CopyFrom(file)
    bare.ClearField("source_code_info")
    kept = [name for name in file.dependency if not name.startswith("google/api/")]
    del bare.dependency[:]
    bare.dependency.extend(kept)
    for field in (field for message in bare.message_type for field in message.field):
        field.options.ClearExtension(field_behavior.field_behavior)
        if not field.options.ListFields():
            field.ClearField("options")
    for method in (method for service in bare.service for method in service.method):
        method.options.ClearExtension(http_annotations.http)
        method.options.ClearExtension(client_annotations.method_signature)
        if not method.options.ListFields():
            method.ClearField("options")
    return bare


def _literal(file: FileDescriptorProto) -> str:
    return "\n    ".join(_pieces(file.SerializeToString(deterministic=True)))


def _pieces(data: bytes) -> Iterator[str]:
    for start in range(0, len(data), BYTES_IN_A_LINE):
        yield repr(data[start : start + BYTES_IN_A_LINE])
