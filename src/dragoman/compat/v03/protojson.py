"""Write the ProtoJSON of 0.3, dialect A of its HTTP+JSON: no ``kind``, enum names in capitals, ``content``.

Spec: v0.3 §3.2, §4.7, §7.4.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

from dragoman.compat.v03 import types as t
from dragoman.compat.v03.fields import FIELDS
from dragoman.compat.v03.file_bytes import write_content
from dragoman.model.field import Field
from dragoman.model.wire import WireEnum, WireMessage

_TWO_LS = "TASK_STATE_CANCELLED"


def write_proto(message: WireMessage, *, bytes_as_text: bool = True) -> dict[str, Any]:
    """A message of 0.3 as a JSON object; what holds its default is left out, and so is what the proto has not.

    With ``bytes_as_text``, ``fileWithBytes`` is base64 of base64 text, as most peers have it. The object may share
    ``data`` and ``metadata`` with ``message``.
    """
    value: dict[str, Any] = {}
    for field in FIELDS[type(message)]:
        held = getattr(message, field.name)
        if not field.number or held is None or not (held or field.presence):
            continue
        if field.shape == "list":
            value[field.json_name] = [_one(field, item, bytes_as_text) for item in held]
        elif field.shape == "map":
            value[field.json_name] = {name: _one(field, item, bytes_as_text) for name, item in held.items()}
        else:
            written = _one(field, held, bytes_as_text)
            if written is not None:
                value[field.json_name] = written
    return value


def _one(field: Field, value: Any, bytes_as_text: bool) -> Any:
    """One value; None for one that is the default after all."""
    if field.message is not None:
        return write_proto(value, bytes_as_text=bytes_as_text)
    if field.kind == "bytes":
        return base64.b64encode(write_content(value) if bytes_as_text else value).decode()
    writer = _WRITERS.get(field.kind)
    return value if writer is None else writer(value)


def _enum(value: WireEnum | int) -> str | int | None:
    if isinstance(value, int):
        return value
    if not value.number:
        return None
    return _TWO_LS if value is t.TaskState.CANCELED else value.value


_WRITERS: dict[str, Callable[[Any], Any]] = {"enum": _enum, "timestamp": lambda moment: moment.rfc3339()}
