"""The work behind admitted calls: each operation's own method, with those that extensions add.

Spec: EXT-13.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, cast

import msgspec

from dragoman.errors import ExtensionSupportRequiredError, MethodNotFoundError
from dragoman.model import OpenMessage, Operation
from dragoman.ports.extending import ExtensionMethod
from dragoman.ports.operations import CallContext, EventStream

Step = Callable[[Any, CallContext], Awaitable[Any]]
"""Does the work of one operation."""


class Work:
    """Operations by a table of steps."""

    def __init__(self, calls: Mapping[Operation, Step], streams: Mapping[Operation, Step]) -> None:
        self._calls = calls
        self._streams = streams

    async def call(self, op: Operation, request: msgspec.Struct, context: CallContext) -> msgspec.Struct:
        """See :class:`~dragoman.ports.operations.Operations`."""
        step = self._calls.get(op) or self._added(op)
        return cast(msgspec.Struct, await step(request, context))

    def _added(self, op: Operation) -> Step:
        """The method of an extension that a caller of this process means by an operation of its own making."""
        for known, step in self._calls.items():
            if known.name == op.name and known.request is op.request is OpenMessage:
                return step
        raise MethodNotFoundError

    async def stream(self, op: Operation, request: msgspec.Struct, context: CallContext) -> EventStream:
        """See :class:`~dragoman.ports.operations.Operations`."""
        return cast(EventStream, await self._streams[op](request, context))


def methods_of(added: Iterable[ExtensionMethod]) -> dict[Operation, Step]:
    """The steps of methods that extensions add: refused to those who did not activate the extension."""
    return {method.op: _guarded(method) for method in added}


def _guarded(method: ExtensionMethod) -> Step:
    async def run(request: Any, context: CallContext) -> Any:
        if method.uri not in context.activated:
            raise ExtensionSupportRequiredError(
                f"{method.op.name} is a method of the extension {method.uri}; name it in A2A-Extensions",
                metadata={"extensions": method.uri},
            )
        return await method.call(request, context)

    return run
