"""Sending again: the client's half of idempotent sends.

Spec: SEND-01, AMB-38.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

import msgspec

from dragoman.errors import A2AError, ClientError, ConnectError, ConnectionLostError, UnavailableError
from dragoman.extensions.hooks import Hooks
from dragoman.model import SEND_MESSAGE, SEND_STREAMING_MESSAGE, Operation
from dragoman.ports.operations import CallContext, Event, EventStream, Operations
from dragoman.protocol.extensions import IDEMPOTENT_SENDS

T = TypeVar("T")
_LOST = (ConnectionLostError, ConnectError, UnavailableError)
_LONGEST = 10.0

logger = logging.getLogger("dragoman.extensions")


class Retrying(Hooks):
    """Makes a send again when the connection broke, or the agent was not there, ``attempts`` times at most.

    All attempts together take no longer than the call may take.
    """

    uri = IDEMPOTENT_SENDS

    def __init__(self, attempts: int, pause: float) -> None:
        self._attempts = attempts
        self._pause = pause

    async def call(
        self, op: Operation, request: msgspec.Struct, context: CallContext, inner: Operations
    ) -> msgspec.Struct:
        if op is not SEND_MESSAGE:
            return await inner.call(op, request, context)
        return await self._repeat(lambda: inner.call(op, request, context), context.timeout)

    async def stream(
        self, op: Operation, request: msgspec.Struct, context: CallContext, inner: Operations
    ) -> EventStream:
        if op is not SEND_STREAMING_MESSAGE:
            return await inner.stream(op, request, context)

        async def begin() -> EventStream:
            return await inner.stream(op, request, context)

        return _Begun(begin, await self._repeat(begin, context.timeout), self._repeat)

    async def _repeat(self, attempt: Callable[[], Awaitable[T]], timeout: float | None = None) -> T:
        loop = asyncio.get_running_loop()
        until = None if timeout is None else loop.time() + timeout
        for number in range(self._attempts):
            try:
                return await attempt()
            except _LOST as error:
                wait = self._wait(number, error)
                if until is not None and loop.time() + wait >= until:
                    raise
                logger.info("a message may be lost (%s); it is sent again", type(error).__name__)
            await asyncio.sleep(wait)
        return await attempt()

    def _wait(self, number: int, error: A2AError | ClientError) -> float:
        wait = min(self._pause * 2.0**number, _LONGEST) * (1 - random.random() / 2)
        asked = error.retry_after if isinstance(error, A2AError) else None
        return max(wait, min(asked or 0.0, _LONGEST))


class _Begun(EventStream):
    """The stream of a message: until its first event it may begin anew."""

    def __init__(
        self,
        begin: Callable[[], Awaitable[EventStream]],
        stream: EventStream,
        repeat: Callable[[Callable[[], Awaitable[EventStream]]], Awaitable[EventStream]],
    ) -> None:
        self._begin = begin
        self._stream = stream
        self._repeat = repeat
        self._lost = 0
        self._came = False

    async def next_batch(self) -> list[Event]:
        while True:
            try:
                batch = await self._stream.next_batch()
            except _LOST:
                if self._came or self._lost >= 3:
                    raise
                self._lost += 1
                await self._stream.aclose()
                self._stream = await self._repeat(self._begin)
                continue
            self._came = True
            self.concluded = self._stream.concluded
            return batch

    async def aclose(self) -> None:
        await self._stream.aclose()
