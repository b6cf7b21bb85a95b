"""Several interfaces of one agent as one: the next one is used when the present one cannot be reached.

Spec: CARD-09, CARD-12.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import msgspec

from dragoman.errors import ConnectError
from dragoman.model import AgentInterface, Operation
from dragoman.ports.operations import CallContext, EventStream, Operations

T = TypeVar("T")


class InterfaceChain:
    """Operations over the first interface that can be reached, which is remembered.

    Only a ConnectError moves on, since then nothing was sent. When none can be reached, the error of the one that
    was tried first is raised.
    """

    def __init__(self, entries: Sequence[tuple[AgentInterface, Operations]]) -> None:
        self._entries = list(entries)
        self._current = 0

    @property
    def interface(self) -> AgentInterface:
        """The one in use."""
        return self._entries[self._current][0]

    async def call(self, op: Operation, request: msgspec.Struct, context: CallContext) -> msgspec.Struct:
        """See :class:`~dragoman.ports.operations.Operations`."""
        return await self._reach(lambda operations: operations.call(op, request, context))

    async def stream(self, op: Operation, request: msgspec.Struct, context: CallContext) -> EventStream:
        """See :class:`~dragoman.ports.operations.Operations`."""
        return await self._reach(lambda operations: operations.stream(op, request, context))

    async def _reach(self, use: Callable[[Operations], Awaitable[T]]) -> T:
        start, count = self._current, len(self._entries)
        first: ConnectError | None = None
        for step in range(count):
            index = (start + step) % count
            try:
                result = await use(self._entries[index][1])
            except ConnectError as error:
                first = first or error
            else:
                self._current = index
                return result
        assert first is not None
        raise first
