"""Messages of ``a2a.v1`` as bytes of protobuf, both directions.

Spec: v0.3 §4.2, §4.7.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from dragoman.bindings.grpc.messages import Messages
from dragoman.compat.v03.fields import FIELDS
from dragoman.compat.v03.file_bytes import read_content, write_content
from dragoman.compat.v03.grpc.converters import READERS, WRITERS
from dragoman.compat.v03.grpc.schema import PACKAGE

_FILE: Final = f"{PACKAGE}.FilePart"


def _undo_text(m: Any) -> None:
    for file in _files(m):
        file.file_with_bytes = read_content(file.file_with_bytes)


def _make_text(m: Any) -> None:
    for file in _files(m):
        file.file_with_bytes = write_content(file.file_with_bytes)


def _files(m: Any) -> Iterator[Any]:
    """All files with content in a message, however deep."""
    if m.DESCRIPTOR.full_name == _FILE:
        if m.HasField("file_with_bytes"):
            yield m
    elif m.DESCRIPTOR.file.package == PACKAGE:
        for field, value in m.ListFields():
            if field.message_type is not None and not field.message_type.GetOptions().map_entry:
                for item in (value,) if hasattr(value, "ListFields") else value:
                    yield from _files(item)


TEXT: Final = Messages(PACKAGE, FIELDS, WRITERS, READERS)
"""For peers that have the base64 text of a file's content in its field of bytes; content itself is read, too."""

RAW: Final = Messages(PACKAGE, FIELDS, WRITERS, READERS, written=_undo_text, parsed=_make_text)
"""For peers that have the content itself there. What the converters do is undone."""
