"""Who did what to which task, and how it ended: a line for each call in the log ``dragoman.audit``.

Never what was said: no contents, no credentials, no claims. What a line says is in its ``audit`` attribute, too, for
logs with a structure.

Spec: SEC-08, SEC-09, SEC-17.
"""

from __future__ import annotations

import logging
import time
from typing import Any

import msgspec

from dragoman.errors import A2AError
from dragoman.model import Operation
from dragoman.ports.operations import CallContext, Event, EventStream, Operations

_log = logging.getLogger("dragoman.audit")


class AuditedOperations:
    """Operations that are logged; implements :class:`~dragoman.ports.operations.Operations`.

    What is refused is logged as a warning when it is a matter of security, and everything else as information.
    """

    def __init__(self, operations: Operations) -> None:
        self._operations = operations

    async def call(self, op: Operation, request: msgspec.Struct, context: CallContext) -> msgspec.Struct:
        """See :class:`~dragoman.ports.operations.Operations`."""
        began = time.monotonic()
        try:
            response = await self._operations.call(op, request, context)
        except BaseException as error:
            _tell(op, context, _task_of(request), error, began)
            raise
        if _log.isEnabledFor(logging.INFO):
            _tell(op, context, _task_of(request) or _task_of(response), None, began)
        return response

    async def stream(self, op: Operation, request: msgspec.Struct, context: CallContext) -> EventStream:
        """See :class:`~dragoman.ports.operations.Operations`."""
        began = time.monotonic()
        try:
            stream = await self._operations.stream(op, request, context)
        except BaseException as error:
            _tell(op, context, _task_of(request), error, began)
            raise
        if not _log.isEnabledFor(logging.INFO):
            return stream
        if known := _task_of(request):
            _tell(op, context, known, None, began)
            return stream
        return _Audited(stream, op, context, began)


class _Audited(EventStream):
    """A stream whose first event tells which task it is of."""

    def __init__(self, stream: EventStream, op: Operation, context: CallContext, began: float) -> None:
        self._stream = stream
        self._untold: tuple[Operation, CallContext, float] | None = (op, context, began)
        self.concluded = stream.concluded

    async def next_batch(self) -> list[Event]:
        try:
            batch = await self._stream.next_batch()
        except BaseException as error:
            self._tell("", error)
            raise
        if self._untold is not None:
            self._tell(_task_of(batch[0].response) if batch else "", None)
        self.concluded = self._stream.concluded
        return batch

    async def aclose(self) -> None:
        self._tell("", None)
        await self._stream.aclose()

    def _tell(self, task: str, error: BaseException | None) -> None:
        """Once: how the stream began, or that it did not."""
        if self._untold is not None:
            op, context, began = self._untold
            self._untold = None
            _tell(op, context, task, error, began)


def _task_of(value: Any) -> str:
    """The id of the task that a request, a response or an event is about; empty where there is none."""
    for name in ("task_id", "id"):
        if isinstance(found := getattr(value, name, None), str) and found:
            return found
    for name in ("task", "message", "status_update", "artifact_update"):
        inner = getattr(value, name, None)
        if inner is not None:
            found = inner.id if name == "task" else getattr(inner, "task_id", "")
            return found if isinstance(found, str) else ""
    return ""


def _tell(op: Operation, context: CallContext, task: str, error: BaseException | None, began: float) -> None:
    level = logging.WARNING if getattr(error, "http_status", 0) in (401, 403, 429) else logging.INFO
    if not _log.isEnabledFor(level):
        return
    caller = context.caller
    facts = {
        "event": "call",
        "caller": caller.id,
        "address": caller.address,
        "operation": op.name,
        "task": task,
        "tenant": context.tenant,
        "result": _result(error),
        "ms": round((time.monotonic() - began) * 1000, 1),
    }
    line = " ".join(f"{key}={_plain(value)}" for key, value in facts.items() if key != "event" and value != "")
    _log.log(level, "%s", line, extra={"audit": facts})


def _result(error: BaseException | None) -> str:
    if error is None:
        return "ok"
    if isinstance(error, A2AError):
        return error.reason or error.grpc_status
    return "INTERNAL" if isinstance(error, Exception) else "gone"


def _plain(value: object) -> str:
    """A value on one line, with nothing in it that could pass for another value."""
    text = str(value)[:200]
    return text if text.isprintable() and text.isascii() and " " not in text and '"' not in text else ascii(text)
