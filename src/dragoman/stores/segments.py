"""The form in which records and tasks are kept: JSON lines of ``{"event": …, "message": …}``.

Reading gives records that hold their event as bytes; it is decoded by those who look into it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from dragoman.errors import A2AError, StoreError
from dragoman.model import Message, Task, TaskStatus, decode_json, encode_json
from dragoman.ports.store import Record
from dragoman.protocol.lifecycle import TaskFold


class _Line(msgspec.Struct):
    event: msgspec.Raw
    message: msgspec.Raw = msgspec.Raw()


_LINES = msgspec.json.Decoder(_Line)


def encode_segment(records: Sequence[Record]) -> bytes:
    """The records as one payload."""
    return b"\n".join([_encode_line(record) for record in records])


def _encode_line(record: Record) -> bytes:
    if record.message is None:
        return b'{"event":%b}' % record.event_json
    return b'{"event":%b,"message":%b}' % (record.event_json, encode_json(record.message))


def decode_segment(payload: bytes, first: int) -> Iterator[Record]:
    """The records of a payload, the first of which has the number ``first``. StoreError when it is damaged."""
    try:
        for number, line in enumerate(_LINES.decode_lines(payload), first):
            message = decode_json(Message, bytes(line.message)) if line.message else None
            yield Record(number, message=message, encoded=bytes(line.event))
    except (msgspec.DecodeError, A2AError) as error:
        raise StoreError("A stored record cannot be read") from error


def decode_task(payload: bytes) -> Task:
    """A task from its snapshot. StoreError when it is damaged."""
    try:
        return decode_json(Task, payload)
    except A2AError as error:
        raise StoreError("A stored task cannot be read") from error


def decode_head(task_id: str, context_id: str, status: bytes, metadata: bytes | None) -> Task:
    """A task without artifacts and history, from the columns of its row. StoreError when they are damaged."""
    try:
        return Task(
            id=task_id,
            context_id=context_id,
            status=decode_json(TaskStatus, status),
            metadata=None if metadata is None else msgspec.json.decode(metadata),
        )
    except (msgspec.DecodeError, A2AError) as error:
        raise StoreError("A stored status cannot be read") from error


def fold_task(snapshot: Task | None, records: Iterable[Record]) -> Task | None:
    """The fold of a log, from a snapshot or from record 1 on; None when there is neither."""
    fold = None if snapshot is None else TaskFold(snapshot)
    try:
        for record in records:
            if fold is None:
                fold = _start_fold(record)
            fold.apply(record)
    except A2AError as error:
        raise StoreError("A stored record cannot be read") from error
    return None if fold is None else fold.task


def _start_fold(first: Record) -> TaskFold:
    if first.event.task is None:
        raise StoreError("A stored log does not begin with its task")
    return TaskFold(first.event.task)
