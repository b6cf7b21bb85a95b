"""An interceptor that sees when a stream is joined again, and what a subscription was refused with."""

from __future__ import annotations

import msgspec

from dragoman.cli.output import Notes
from dragoman.errors import UnsupportedOperationError
from dragoman.model import SUBSCRIBE_TO_TASK, Operation
from dragoman.ports.operations import CallContext, EventStream, Operations


class Watch:
    """Operations, watched. ``refusal`` is the last one of a subscription. Spec: A2ACLI_TASK_SUBSCRIBE_002."""

    def __init__(self, inner: Operations, notes: Notes) -> None:
        self._inner = inner
        self._notes = notes
        self._streams = 0
        self.refusal: UnsupportedOperationError | None = None

    async def call(self, op: Operation, request: msgspec.Struct, context: CallContext) -> msgspec.Struct:
        """See :class:`~dragoman.ports.operations.Operations`."""
        return await self._inner.call(op, request, context)

    async def stream(self, op: Operation, request: msgspec.Struct, context: CallContext) -> EventStream:
        """See :class:`~dragoman.ports.operations.Operations`."""
        try:
            stream = await self._inner.stream(op, request, context)
        except UnsupportedOperationError as error:
            if op is SUBSCRIBE_TO_TASK:
                self.refusal = error
            raise
        if self._streams:
            self._notes.note("the stream was cut, and joined again")
        self._streams += 1
        return stream
