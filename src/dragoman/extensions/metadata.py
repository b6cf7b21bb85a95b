"""Data of extensions in metadata: read, checked and written. Pure.

Spec: §4.6.2, EXT-10, EXT-12, AMB-26.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from dragoman.errors import FieldViolation, InvalidParamsError
from dragoman.model import Message, SendMessageRequest, SendMessageResponse, StreamResponse
from dragoman.protocol.extensions import owns_key

T = TypeVar("T", bound=msgspec.Struct)
Metadata = Mapping[str, Any]


def data_of(uri: str, metadata: Metadata | None) -> dict[str, Any]:
    """What belongs to an extension: the entries whose key is its URI, or begins with it."""
    return {key: value for key, value in (metadata or {}).items() if owns_key(uri, key)}


def with_metadata(thing: T, entries: Metadata, uri: str = "") -> T:
    """A copy that has these entries in its metadata besides its own; the thing itself is not changed.

    For Task, Message, Artifact, Part, requests and events with metadata, and for a StreamResponse or a
    SendMessageResponse, whose content is meant. With ``uri``, a Message or an Artifact also names it among the
    extensions that contributed. Raises TypeError for what has no metadata. Spec: EXT-10.
    """
    if isinstance(thing, StreamResponse | SendMessageResponse):
        return _within(thing, entries, uri)
    if "metadata" not in thing.__struct_fields__:
        raise TypeError(f"{type(thing).__name__} has no metadata")
    changes: dict[str, Any] = {"metadata": {**(getattr(thing, "metadata", None) or {}), **entries}}
    if uri and "extensions" in thing.__struct_fields__:
        changes["extensions"] = list(dict.fromkeys([*getattr(thing, "extensions", ()), uri]))
    return replace(thing, **changes)


def _within(thing: T, entries: Metadata, uri: str) -> T:
    for name in thing.__struct_fields__:
        held = getattr(thing, name)
        if held is not None:
            return replace(thing, **{name: with_metadata(held, entries, uri)})
    return thing


def check_metadata(uri: str, keys: Metadata, request: msgspec.Struct) -> None:
    """Raise InvalidParamsError when a request has data of an extension that it does not define, or of a wrong type.

    ``keys`` has the type of each key. The violations name the place and the key, never a value.
    """
    violations = [
        violation
        for place, metadata in _places(request)
        for key, value in data_of(uri, metadata).items()
        if (violation := _violation(f"{place}[{key[:200]}]", keys.get(key), value)) is not None
    ]
    if violations:
        raise InvalidParamsError("Data of an extension is not as it defines it", violations=violations)


def _places(request: msgspec.Struct) -> Iterator[tuple[str, Metadata | None]]:
    yield "metadata", getattr(request, "metadata", None)
    if isinstance(request, SendMessageRequest):
        yield from _places_of(request.message)


def _places_of(message: Message) -> Iterator[tuple[str, Metadata | None]]:
    yield "message.metadata", message.metadata
    for number, part in enumerate(message.parts):
        if part.metadata:
            yield f"message.parts[{number}].metadata", part.metadata


def _violation(place: str, kind: Any, value: Any) -> FieldViolation | None:
    if kind is None:
        return FieldViolation(place, "is no key of this extension")
    try:
        msgspec.convert(value, kind, strict=True)
    except (msgspec.ValidationError, RecursionError) as error:
        return FieldViolation(place, str(error)[:300] or "is nested too deeply")
    return None
