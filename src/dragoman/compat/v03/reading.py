"""Read messages of protocol 0.3 from parsed JSON, in whichever dialect they come.

There is no one JSON of 0.3: kind-JSON, the JSON of the proto, one in the wrappers of the other, and what people write
who read only half of either. A value is read by what is in it: `kind` or none, words or names or numbers, camelCase or
snake_case, ids or resource names. What cannot be told without guessing is an error that names the member.

Spec: v0.3 §2.3, §3.2, §3.3, §7; DATA-05, DATA-06.
"""

from __future__ import annotations

from typing import Any, TypeVar

from dragoman.compat.v03 import types as t
from dragoman.compat.v03.card_forms import CARD_FORMS
from dragoman.compat.v03.content_forms import CONTENT_FORMS
from dragoman.compat.v03.members import Reading, read_message
from dragoman.compat.v03.request_forms import REQUEST_FORMS
from dragoman.errors import FieldViolation, InvalidParamsError
from dragoman.model.scalars import MOST_FINDINGS, Fault, Findings
from dragoman.model.wire import WireMessage

M = TypeVar("M", bound=WireMessage)

_PATH_LENGTH = 200
_NOT_LONE = {"kind", "id", "status", "task", "message", "msg"}
_FORMS = {**CONTENT_FORMS, **REQUEST_FORMS, **CARD_FORMS}


def read(kind: type[M], value: Any, *, answer: bool = False, raw_bytes: bool = False) -> M:
    """Read a message of type ``kind`` from a parsed JSON value of any dialect.

    With ``answer``, for what a peer answers, missing ids and roles are no errors, and a role that must be the agent's
    is filled in. With ``raw_bytes``, ``fileWithBytes`` holds the content; without, its base64 text is recognised.

    Unknown members are ignored, but not those of 1.0 whose absence would change the meaning. A request that sets a
    webhook may name no task (``parent`` is empty then): on HTTP+JSON the path has it. The message may share ``data``
    and ``metadata`` with ``value``.

    Raises InvalidParamsError; its violations name the members as they are written in ``value``.
    Spec: v0.3 §2.3, §3.2, V03-P02, V03-P27.
    """
    try:
        message: M = read_message(kind, value, Reading(_FORMS, answer=answer, raw_bytes=raw_bytes))
        return message
    except Fault as fault:
        found = fault.findings
    except RecursionError:
        found = [("", "is nested too deeply")]
    raise invalid(found)


def read_send_result(value: Any, *, raw_bytes: bool = False) -> tuple[t.SendMessageResponse, bool]:
    """The answer to a message, and whether it held nothing but artifacts, as samples of one vendor do.

    Such an answer is read as a task that has these artifacts, no ids and no state. Raises InvalidParamsError when the
    answer is neither a task nor a message nor that. Spec: AC-C-46.
    """
    lone = isinstance(value, dict) and "artifacts" in value and not value.keys() & _NOT_LONE
    if not lone:
        return read(t.SendMessageResponse, value, answer=True, raw_bytes=raw_bytes), False
    return t.SendMessageResponse(task=read(t.Task, value, answer=True, raw_bytes=raw_bytes)), True


def invalid(findings: Findings) -> InvalidParamsError:
    """The error for findings, of which it takes a bounded number."""
    return InvalidParamsError(
        violations=[FieldViolation(_shortened(path), text) for path, text in findings[:MOST_FINDINGS]]
    )


def _shortened(path: str) -> str:
    return path if len(path) <= _PATH_LENGTH else f"{path[:_PATH_LENGTH]}…"
