"""Appends on their way to the writer, encoded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from dragoman.errors import StoreError
from dragoman.model import EncodingError, encode_json
from dragoman.ports.store import Append, Record
from dragoman.stores.refusing import find_fault
from dragoman.stores.segments import encode_segment


class Write(msgspec.Struct, gc=False):
    """An append, encoded: nothing in it changes when its author goes on.

    ``metadata`` is what the records say about the metadata of the task, a JSON object, or None when they say nothing.
    """

    append: Append
    fault: StoreError | None
    payload: bytes
    status: bytes
    metadata: bytes | None
    state: int
    last: int


def encode_write(append: Append) -> Write:
    """Encode on the side of the author. What is faulty, or cannot be encoded, will be refused."""
    fault = find_fault(append)
    if fault is None:
        try:
            return _encode(append)
        except EncodingError as error:
            fault = StoreError(f"The records for task {append.task_id} cannot be written as JSON: {error}")
            fault.__cause__ = error
    return Write(append, fault, b"", b"", None, 0, 0)


def _encode(append: Append) -> Write:
    records = append.records
    return Write(
        append,
        None,
        encode_segment(records),
        encode_json(append.status),
        _encode_metadata(records),
        append.state.number,
        records[-1].number if records else 0,
    )


def _encode_metadata(records: Sequence[Record]) -> bytes | None:
    metadata: dict[str, Any] | None = None
    for record in records:
        event = record.event
        if event.status_update is not None and event.status_update.metadata:
            metadata = {**(metadata or {}), **event.status_update.metadata}
        elif event.task is not None:
            metadata = event.task.metadata
    return None if metadata is None else msgspec.json.encode(metadata)
