"""Several interfaces of one agent as one: the next one is used when the present one cannot be reached.

An agent whose card offers version 1.0, and which then refuses it, is not called by an older version in silence: only
when that was allowed, and the card offers one.

Spec: §3.6.3, CARD-09, CARD-12, VER-11, B145.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import msgspec

from dragoman.client.cards import OLD, generation_of
from dragoman.errors import A2AError, ConnectError, MethodNotFoundError, VersionNotSupportedError
from dragoman.model import SEND_MESSAGE, SEND_STREAMING_MESSAGE, AgentInterface, Operation
from dragoman.ports.operations import CallContext, EventStream, Operations

logger = logging.getLogger("dragoman.client")

T = TypeVar("T")
Entry = tuple[AgentInterface, Operations]


class InterfaceChain:
    """Operations over the first interface that can be reached, which is remembered.

    Only a ConnectError moves on, since then nothing was sent. When none can be reached, the error of the one that
    was tried first is raised.

    ``older`` are the interfaces of an older version to go on with when the agent refuses the present one
    (VersionNotSupportedError, or MethodNotFoundError for a message); ``offered`` says in words what the card offers.
    """

    def __init__(self, entries: Sequence[Entry], *, older: Sequence[Entry] = (), offered: str = "") -> None:
        self._entries = list(entries)
        self._current = 0
        self._older = list(older)
        self._offered = offered

    @property
    def interface(self) -> AgentInterface:
        """The one in use."""
        return self._entries[self._current][0]

    async def call(self, op: Operation, request: msgspec.Struct, context: CallContext) -> msgspec.Struct:
        """See :class:`~dragoman.ports.operations.Operations`."""
        return await self._go_on(op, lambda operations: operations.call(op, request, context))

    async def stream(self, op: Operation, request: msgspec.Struct, context: CallContext) -> EventStream:
        """See :class:`~dragoman.ports.operations.Operations`."""
        return await self._go_on(op, lambda operations: operations.stream(op, request, context))

    async def _go_on(self, op: Operation, use: Callable[[Operations], Awaitable[T]]) -> T:
        used = self._entries
        try:
            return await self._reach(use)
        except (VersionNotSupportedError, MethodNotFoundError) as error:
            if not _is_of_the_version(error, op):
                raise
            if used is self._entries:
                if generation_of(self.interface.protocol_version) == OLD:
                    raise
                if not self._older:
                    # A note, since the agent's own words are passed on as they are.
                    error.add_note(f"The agent's card offers {self._offered or 'nothing else'}.")
                    raise
                logger.warning("the agent refuses version 1.0; it is called by version 0.3 from now on")
                self._entries, self._current = self._older, 0
        return await self._reach(use)

    async def _reach(self, use: Callable[[Operations], Awaitable[T]]) -> T:
        entries, start, count = self._entries, self._current, len(self._entries)
        first: ConnectError | None = None
        for step in range(count):
            index = (start + step) % count
            try:
                result = await use(entries[index][1])
            except ConnectError as error:
                first = first or error
            else:
                if entries is self._entries:
                    self._current = index
                return result
        assert first is not None
        raise first


def _is_of_the_version(error: A2AError, op: Operation) -> bool:
    """Whether a refusal may mean that the agent does not speak this version. Nothing was done then."""
    return isinstance(error, VersionNotSupportedError) or op in (SEND_MESSAGE, SEND_STREAMING_MESSAGE)
