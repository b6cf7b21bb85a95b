"""Stream events as bytes, and their numbers.

The bytes of an event are made once and shared by all its readers. Its number is for those who activated the extension
for resumable streams, and travels as the data of an extension does: in the event's metadata, below the extension's
URI. It is put behind the shared bytes as a second, partial occurrence of the same message, which protobuf merges with
the first.

Spec: GRPC-02, EXT-10, STREAM-04, STRM-03, AMB-48.
"""

from __future__ import annotations

import struct
from typing import Any

from dragoman.bindings.grpc.messages import decode_message, encode_message
from dragoman.bindings.grpc.schema import PACKAGE, message_class
from dragoman.model import StreamResponse
from dragoman.ports.operations import Event
from dragoman.protocol.extensions import RESUMABLE_STREAMS

NUMBER_KEY = f"{RESUMABLE_STREAMS}/event"
"""Where the number of an event stands in its metadata."""

_NUMBERED = ("task", "status_update", "artifact_update")
_DOUBLE = struct.Struct("<d")


def _start_of_number(member: str) -> bytes:
    """A StreamResponse that holds nothing but a number in the metadata of one member, less the number's eight bytes."""
    response = message_class(f"{PACKAGE}.StreamResponse")()
    getattr(response, member).metadata.fields[NUMBER_KEY].number_value = 1.0
    data: bytes = response.SerializeToString()
    assert data.endswith(_DOUBLE.pack(1.0))
    return data[: -_DOUBLE.size]


_STARTS = {member: _start_of_number(member) for member in _NUMBERED}


def encode_event(event: Event, *, numbered: bool = False) -> bytes:
    """The StreamResponse of an event; ``numbered`` puts its number in, if it has one. Raises EncodingError."""
    data = event.binary
    if data is None:
        data = event.binary = encode_message(event.response)
    return data + _number_of(event) if numbered and event.number is not None else data


def _number_of(event: Event) -> bytes:
    response = event.response
    for member, start in _STARTS.items():
        if getattr(response, member) is not None:
            return start + _DOUBLE.pack(event.number)
    return b""


def decode_event(data: bytes) -> Event | None:
    """One event of a stream; None for an empty one, to be skipped. A number in it is taken out of its metadata.

    Raises InvalidParamsError for what is no StreamResponse.
    """
    response = decode_message(StreamResponse, data)
    held: Any = response.status_update or response.artifact_update or response.task
    if held is None:
        return Event(response) if response.message is not None else None
    metadata = held.metadata
    if not metadata or NUMBER_KEY not in metadata:
        return Event(response)
    number = metadata.pop(NUMBER_KEY)
    if not metadata:
        held.metadata = None
    return Event(response, number=number if type(number) is int else None)
