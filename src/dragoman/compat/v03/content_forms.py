"""Forms of content: messages, parts, tasks, events, in kind-JSON and in the JSON of the proto.

Which dialect a data part or the bytes of a file are in is told by what is around them: a ``kind``, or a role in lower
case, is kind-JSON; the JSON of the proto has neither.

Spec: v0.3 §2.3, §3.2, §4.7, §7.4, §7.5.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from dragoman.compat.v03 import types as t
from dragoman.compat.v03.file_bytes import read_content
from dragoman.compat.v03.members import (
    Form,
    Members,
    Reading,
    build,
    check_kind,
    later,
    read_members,
    read_message,
)
from dragoman.compat.v03.upward import WRAPPED
from dragoman.model.scalars import Fault, Findings, read_bytes, read_object, read_string, read_struct
from dragoman.model.wire import WireMessage

CONTENTS = ("text", "file", "data")
BYTES = ("bytes", "fileWithBytes", "file_with_bytes", "data")
ADDRESSES = ("uri", "fileWithUri", "file_with_uri")


def read_message_form(value: Any, reading: Reading) -> t.Message:
    """A message; ``parts`` are its ``content``."""
    members = read_object(value)
    findings: Findings = []
    check_kind(members, "message", findings)
    inner = msgspec.structs.replace(reading, labelled=_is_labelled(members))
    found = read_members(t.Message, members, inner, findings, {"parts": "content"})
    if not reading.answer:
        _require(members, findings, "messageId", "message_id")
        _require(members, findings, "role")
        _require(members, findings, "parts", "content")
    return build(t.Message, found, reading, findings)


def _is_labelled(message: dict[str, Any]) -> bool:
    role = message.get("role")
    return "kind" in message or (isinstance(role, str) and role.islower())


def _require(members: dict[str, Any], findings: Findings, *spellings: str) -> None:
    """Note that none of the spellings is there, or that it is there and empty."""
    for spelling in spellings:
        item = members.get(spelling)
        if item is not None:
            if item in ("", []):
                findings.append((spelling, "must not be empty"))
            return
    findings.append((spellings[0], "is required"))


def read_part_form(value: Any, reading: Reading) -> t.Part:
    """A part: text, a file or data. Its ``kind`` must say which, if there is one."""
    part = read_object(value)
    findings: Findings = []
    content = _content_of(part, findings)
    found: Members = {}
    if content:
        _add(found, findings, content, content, lambda: _CONTENT_READERS[content](part, reading))
        if not reading.answer:
            _refuse_later_content(part, findings)
    if part.get("metadata") is not None:
        _add(found, findings, "metadata", "metadata", lambda: read_struct(part["metadata"]))
    if content == "data" and "data" in found and not isinstance(part["data"], dict):
        found["metadata"] = {**found.get("metadata", {}), WRAPPED: True}
    return build(t.Part, found, reading, findings)


def _content_of(part: dict[str, Any], findings: Findings) -> str:
    """Which content a part holds; empty when that cannot be said without guessing."""
    kind = part.get("kind")
    held = [name for name in CONTENTS if part.get(name) is not None]
    if kind is not None and kind not in CONTENTS:
        findings.append(("kind", 'must be "text", "file" or "data"'))
        return ""
    wanted = kind or (held[0] if held else "")
    for name in held:
        if name != wanted:
            findings.append((name, f"cannot be in a part that holds {wanted}"))
    if wanted in held:
        return str(wanted)
    if wanted:
        findings.append((wanted, f'is required in a part of the kind "{wanted}"'))
    else:
        _note_no_content(part, findings)
    return ""


def _note_no_content(part: dict[str, Any], findings: Findings) -> None:
    _refuse_later_content(part, findings)
    if not findings:
        findings.append(("", "must hold one of text, file, data"))


def _refuse_later_content(part: dict[str, Any], findings: Findings) -> None:
    """Content in the members of 1.0 would be lost if they were passed over like any unknown member."""
    for member in ("raw", "url"):
        later(part, member, "a part of 0.3 holds text, file or data", findings)


def _add(found: Members, findings: Findings, field: str, step: str, read: Callable[[], Any]) -> None:
    """Read one field; ``step`` is the member it stands in."""
    try:
        found[field] = read()
    except Fault as fault:
        findings += fault.below(step)


def _read_text(part: dict[str, Any], reading: Reading) -> str:
    return read_string(part["text"])


def _read_file(part: dict[str, Any], reading: Reading) -> t.FilePart:
    file = read_object(part["file"])
    findings: Findings = []
    found = read_members(t.FilePart, _without(file, *BYTES, *ADDRESSES), reading, findings)
    held = [name for name in (*BYTES, *ADDRESSES) if file.get(name) is not None]
    if not held:
        findings.append(("", "must hold bytes or uri"))
    elif len(held) > 1:
        findings.append((held[1], f"cannot be given together with {held[0]}"))
    elif held[0] in ADDRESSES:
        _add(found, findings, "file_with_uri", held[0], lambda: read_string(file[held[0]]))
    else:
        encoded = held[0].startswith("file") and "kind" not in part and not reading.raw_bytes
        _add(found, findings, "file_with_bytes", held[0], lambda: _read_bytes(file[held[0]], encoded))
    return build(t.FilePart, found, reading, findings)


def _without(members: dict[str, Any], *names: str) -> dict[str, Any]:
    return {key: item for key, item in members.items() if key not in names}


def _read_bytes(value: Any, encoded: bool) -> bytes:
    content = read_bytes(value)
    return read_content(content) if encoded else content


def _read_data(part: dict[str, Any], reading: Reading) -> t.DataPart:
    data = part["data"]
    if not isinstance(data, dict) and reading.answer:
        return t.DataPart(data={"value": data})
    members = read_object(data)
    if "kind" not in part and not reading.labelled and len(members) == 1 and isinstance(members.get("data"), dict):
        try:
            return t.DataPart(data=read_struct(members["data"]))
        except Fault as fault:
            raise Fault(findings=fault.below("data")) from None
    return t.DataPart(data=read_struct(members))


_CONTENT_READERS: dict[str, Callable[[dict[str, Any], Reading], Any]] = {
    "text": _read_text,
    "file": _read_file,
    "data": _read_data,
}


def read_status_form(value: Any, reading: Reading) -> t.TaskStatus:
    """A status. Who speaks in its message is the agent, also when it does not say so."""
    findings: Findings = []
    found = read_members(t.TaskStatus, read_object(value), reading, findings)
    if reading.answer:
        _agent_speaks(found.get("update"))
    return build(t.TaskStatus, found, reading, findings)


def _agent_speaks(message: t.Message | None) -> None:
    if message is not None and message.role is t.Role.UNSPECIFIED:
        message.role = t.Role.AGENT


def _labelled_form(kind: type[WireMessage], label: str) -> Form:
    """The form of an object whose ``kind``, if it has one, must be ``label``."""

    def read_form(value: Any, reading: Reading) -> WireMessage:
        members = read_object(value)
        findings: Findings = []
        check_kind(members, label, findings)
        inner = msgspec.structs.replace(reading, labelled=reading.labelled or "kind" in members)
        return build(kind, read_members(kind, members, inner, findings), reading, findings)

    return read_form


# Answers and events: wrapped in the member that says what they are, or bare with a kind, or bare without.

_WRAPPERS = {
    "task": "task",
    "message": "msg",
    "msg": "msg",
    "statusUpdate": "status_update",
    "status_update": "status_update",
    "artifactUpdate": "artifact_update",
    "artifact_update": "artifact_update",
}
_LABELS = {
    "task": "task",
    "message": "msg",
    "status-update": "status_update",
    "artifact-update": "artifact_update",
}
_TYPES: dict[str, type[WireMessage]] = {
    "task": t.Task,
    "msg": t.Message,
    "status_update": t.TaskStatusUpdateEvent,
    "artifact_update": t.TaskArtifactUpdateEvent,
}


def _choice_form(kind: type[WireMessage], names: tuple[str, ...]) -> Form:
    """The form of an answer that is one of ``names``."""

    def read_form(value: Any, reading: Reading) -> WireMessage:
        members = read_object(value)
        wrapped = [key for key in members if isinstance(members[key], dict) and _WRAPPERS.get(key) in names]
        name = _choose(members, wrapped, names)
        step = wrapped[0] if wrapped else ""
        try:
            found = read_message(_TYPES[name], members[step] if step else members, reading)
        except Fault as fault:
            raise (Fault(findings=fault.below(step)) if step else fault) from None
        if name == "msg" and reading.answer:
            _agent_speaks(found)
        return kind(**{name: found})

    return read_form


def _choose(members: dict[str, Any], wrapped: list[str], names: tuple[str, ...]) -> str:
    """Which field of the answer this is."""
    kind = members.get("kind")
    if kind is not None:
        name = _LABELS.get(kind, "") if isinstance(kind, str) else ""
        if name not in names:
            labels = [f'"{label}"' for label, of in _LABELS.items() if of in names]
            raise Fault(findings=[("kind", f"must be one of {', '.join(labels)}")])
        if wrapped:
            raise Fault(findings=[(wrapped[0], f'cannot be in an object of the kind "{kind}"')])
        return name
    if len(wrapped) > 1:
        raise Fault(findings=[(wrapped[1], f"cannot be given together with {wrapped[0]}")])
    name = _WRAPPERS[wrapped[0]] if wrapped else infer(members)
    if name not in names:
        raise Fault("is neither a task nor a message nor an event of a task")
    return name


def infer(members: dict[str, Any]) -> str:
    """What a bare object without a kind is, by its members. Spec: v0.3 §2.3."""
    has = members.keys()
    if "status" in has and "id" in has:
        return "task"
    if "messageId" in has or "message_id" in has:
        return "msg"
    of_task = "taskId" in has or "task_id" in has
    if of_task and "artifact" in has:
        return "artifact_update"
    if of_task and "status" in has:
        return "status_update"
    return "msg" if "role" in has or "parts" in has or "content" in has else ""


CONTENT_FORMS: dict[type[WireMessage], Form] = {
    t.Message: read_message_form,
    t.Part: read_part_form,
    t.TaskStatus: read_status_form,
    t.Task: _labelled_form(t.Task, "task"),
    t.TaskStatusUpdateEvent: _labelled_form(t.TaskStatusUpdateEvent, "status-update"),
    t.TaskArtifactUpdateEvent: _labelled_form(t.TaskArtifactUpdateEvent, "artifact-update"),
    t.SendMessageResponse: _choice_form(t.SendMessageResponse, ("task", "msg")),
    t.StreamResponse: _choice_form(t.StreamResponse, ("task", "msg", "status_update", "artifact_update")),
}
