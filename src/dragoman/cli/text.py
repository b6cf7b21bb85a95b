"""Records as text: one ``Label: value`` on a line, then blocks. Pure.

    Task: 6f0f5a0e
    State: COMPLETED
    Text:
      forty chairs

A block is indented, and the first empty line ends it. Labels do not change. Spec: A2ACLI_OUT_001, A2ACLI_OUT_005,
P-16; section 9.2 of the register of the command line.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec import UNSET

from dragoman.cli.clean import block, one_line
from dragoman.cli.parts_shown import data_text, describe_file, describe_part, inline, is_file
from dragoman.client.progress import StreamEvent
from dragoman.model import (
    Artifact,
    Message,
    Part,
    Role,
    Task,
    TaskArtifactUpdateEvent,
    TaskState,
    TaskStatus,
    TaskStatusUpdateEvent,
)

Hints = Iterable[tuple[str, str]]
"""Further fields: label and value."""


class Record:
    """Fields in order, then blocks in order."""

    def __init__(self) -> None:
        self._fields: list[str] = []
        self._blocks: list[str] = []

    def field(self, label: str, value: str | None) -> None:
        """Add a field, unless it is empty."""
        if value:
            self._fields.append(f"{label}: {one_line(value)}\n")

    def block(self, label: str, text: str) -> None:
        """Add a block."""
        self._blocks.append(f"{label}:\n{block(text)}\n")

    @property
    def has_blocks(self) -> bool:
        """Whether the record ends with an empty line by itself."""
        return bool(self._blocks)

    def __str__(self) -> str:
        return "".join(self._fields) + "".join(self._blocks)


def state_name(state: TaskState | int) -> str:
    """A state without its prefix; one that this version does not know, as it was received."""
    return state.name if isinstance(state, TaskState) else str(state)


def task_record(
    task: Task, *, more: Hints = (), history: bool = False, verbose: bool = False, event: str = ""
) -> Record:
    """A task: ``more`` are the lines that say what can be done next. ``history`` shows it."""
    record = Record()
    record.field("Event", event)
    _name_task(record, task.id, task.context_id)
    _show_status(record, task.status)
    for artifact in task.artifacts:
        _name_artifact(record, artifact, verbose)
    _show_metadata(record, task.metadata, verbose)
    for label, value in more:
        record.field(label, value)
    _say_status(record, task.status)
    for artifact in task.artifacts:
        _show_content(record, artifact.parts)
    if history:
        record.block("History", "\n".join(map(_turn, task.history)))
    return record


def message_record(message: Message, *, more: Hints = (), verbose: bool = False) -> Record:
    """A direct answer."""
    record = Record()
    _fill_message(record, message, verbose, more)
    return record


def event_record(event: StreamEvent, *, more: Hints = (), verbose: bool = False) -> Record:
    """One event of a stream."""
    record = Record()
    if isinstance(event, Task):
        return task_record(event, more=more, verbose=verbose, event="task")
    if isinstance(event, Message):
        record.field("Event", "message")
        _fill_message(record, event, verbose, more)
    elif isinstance(event, TaskStatusUpdateEvent):
        record.field("Event", "status")
        _name_task(record, event.task_id, event.context_id)
        _show_status(record, event.status)
        _show_metadata(record, event.metadata, verbose)
        for label, value in more:
            record.field(label, value)
        _say_status(record, event.status)
    else:
        _fill_artifact_event(record, event, verbose)
    return record


def _fill_artifact_event(record: Record, event: TaskArtifactUpdateEvent, verbose: bool) -> None:
    record.field("Event", "artifact")
    _name_task(record, event.task_id, event.context_id)
    _name_artifact(record, event.artifact, verbose)
    record.field("Append", "yes" if event.append else "")
    record.field("Last chunk", "yes" if event.last_chunk else "")
    _show_metadata(record, event.metadata, verbose)
    _show_content(record, event.artifact.parts)


def _fill_message(record: Record, message: Message, verbose: bool, more: Hints) -> None:
    record.field("Message", message.message_id)
    record.field("Context", message.context_id)
    record.field("Task", message.task_id)
    record.field("Role", _role(message.role))
    if verbose:
        record.field("Reference tasks", ", ".join(message.reference_task_ids))
        record.field("Extensions", ", ".join(message.extensions))
        _show_parts(record, message.parts)
    _name_files(record, message.parts)
    _show_metadata(record, message.metadata, verbose)
    for label, value in more:
        record.field(label, value)
    _show_content(record, message.parts)


def _name_task(record: Record, task_id: str, context_id: str) -> None:
    record.field("Task", task_id)
    record.field("Context", context_id)


def _show_status(record: Record, status: TaskStatus) -> None:
    record.field("State", state_name(status.state))
    record.field("Updated", status.timestamp.rfc3339() if status.timestamp is not None else "")


def _say_status(record: Record, status: TaskStatus) -> None:
    if status.message is not None:
        record.block("Status message", inline(status.message.parts))


def _name_artifact(record: Record, artifact: Artifact, verbose: bool) -> None:
    record.field("Artifact", f"{artifact.artifact_id} ({artifact.name})" if artifact.name else artifact.artifact_id)
    if verbose:
        record.field("Description", artifact.description)
        _show_metadata(record, artifact.metadata, verbose)
        _show_parts(record, artifact.parts)
    _name_files(record, artifact.parts)


def _name_files(record: Record, parts: Iterable[Part]) -> None:
    for part in filter(is_file, parts):
        record.field("File", describe_file(part))


def _show_parts(record: Record, parts: Iterable[Part]) -> None:
    for index, part in enumerate(parts):
        record.field("Part", describe_part(index, part))


def _show_content(record: Record, parts: Iterable[Part]) -> None:
    parts = list(parts)
    texts = [part.text for part in parts if part.text is not None]
    if texts:
        record.block("Text", "".join(texts))
    for part in parts:
        if part.data is not UNSET:
            record.block("Data", data_text(part))


def _show_metadata(record: Record, metadata: object, verbose: bool) -> None:
    if verbose and metadata:
        record.field("Metadata", msgspec.json.encode(metadata).decode())


def _turn(message: Message) -> str:
    head = f"{_role(message.role)} {one_line(message.message_id)}:"
    return head + "\n" + block(inline(message.parts)).removesuffix("\n")


def _role(role: Role | int) -> str:
    return role.name if isinstance(role, Role) else str(role)
