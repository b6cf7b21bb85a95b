"""From what a handler gives to parts, artifacts and messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from dragoman.model import Artifact, Message, Part

Content = Any
"""What a handler may give: str, bytes, Part, a list of Parts, or anything that is JSON data (dict, list, number,
dataclass, msgspec Struct, pydantic model)."""

JSON = "application/json"
BYTES = "application/octet-stream"


def to_parts(content: Content, *, media_type: str = "", filename: str = "") -> list[Part]:
    """The parts that hold ``content``: str → text, bytes → raw, Part as it is, anything else → data.

    ``media_type`` and ``filename`` apply to what is not a Part yet. Raises TypeError when the content is no JSON data.
    Spec: DATA-17, DATA-18.
    """
    if isinstance(content, str):
        return [Part(text=content, media_type=media_type, filename=filename)]
    if isinstance(content, Part):
        return [content]
    if isinstance(content, bytes | bytearray | memoryview):
        return [Part(raw=bytes(content), media_type=media_type or BYTES, filename=filename)]
    if isinstance(content, list | tuple) and content and all(isinstance(item, Part) for item in content):
        return list(content)
    return [Part(data=to_data(content), media_type=media_type or JSON, filename=filename)]


def to_data(value: Any) -> Any:
    """``value`` as plain JSON data. Raises TypeError when it is none."""
    if hasattr(value, "model_dump"):
        value = value.model_dump(mode="json")
    try:
        return msgspec.to_builtins(value, str_keys=True)
    except (TypeError, ValueError, RecursionError) as error:
        raise TypeError(f"{type(value).__name__} is not JSON data, nor text, bytes or a Part") from error


def to_artifacts(content: Content) -> list[Artifact | list[Part]]:
    """What a result consists of: artifacts as they are, and the parts of artifacts to be."""
    if isinstance(content, Artifact):
        return [content]
    if isinstance(content, list | tuple) and any(isinstance(item, Artifact) for item in content):
        return [item if isinstance(item, Artifact) else to_parts(item) for item in content]
    return [to_parts(content)]


def text_of(message: Message) -> str:
    """The text parts of a message, one after the other with a line break between them."""
    parts = message.parts
    if len(parts) == 1:
        return parts[0].text or ""
    return "\n".join(part.text for part in parts if part.text is not None)


def data_of(message: Message) -> Any:
    """The first data part of a message, or None."""
    for part in message.parts:
        if part.data is not msgspec.UNSET:
            return part.data
    return None


def files_of(message: Message) -> Sequence[Part]:
    """The parts of a message that are files: bytes or links."""
    return [part for part in message.parts if part.raw is not None or part.url is not None]
