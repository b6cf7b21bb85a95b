"""Streams that end when their reader may not see the task any more.

Theory. What ``authorize`` said when the stream was opened holds for a while; after that nothing leaves before it was
asked again. A quiet stream is not asked about, since it shows nothing.

Spec: AUTH-08, AUTH-10, SUB-01.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from dragoman.model import Operation
from dragoman.ports.clock import Clock
from dragoman.ports.operations import CallContext, Event, EventStream
from dragoman.ports.scoping import Scope
from dragoman.runtime.registry import not_found
from dragoman.runtime.scoping import Scoping
from dragoman.runtime.streams import TaskStream
from dragoman.runtime.work import Step


class Guard:
    """Puts a guard around the streams of tasks. ``every``: seconds for which an answer of ``authorize`` holds."""

    def __init__(self, scoping: Scoping, clock: Clock, every: float) -> None:
        self._scoping = scoping
        self._clock = clock
        self._every = every

    def around(self, op: Operation, step: Step) -> Step:
        """The same step, with streams that are guarded."""
        return partial(self._open, op, step)

    async def _open(self, op: Operation, step: Step, request: Any, context: CallContext) -> EventStream:
        stream: EventStream = await step(request, context)
        if not isinstance(stream, TaskStream):
            return stream
        check = partial(self._check, op, context.scope.own, context, stream.task_id, stream.scope)
        return GuardedStream(stream, check, self._clock, self._every)

    async def _check(self, op: Operation, own: Scope, context: CallContext, task_id: str, owned: Scope) -> None:
        if not (await self._scoping.widen(op, own, context)).covers(owned):
            raise not_found(task_id)


class GuardedStream(EventStream):
    """A stream whose reader is looked at again by ``check`` every ``every`` seconds; what it raises ends the stream."""

    def __init__(self, stream: EventStream, check: Callable[[], Awaitable[None]], clock: Clock, every: float) -> None:
        self._stream = stream
        self._check = check
        self._clock = clock
        self._every_ms = int(every * 1000)
        self._due_ms = clock.now_ms() + self._every_ms
        self._waiting: list[Event] | None = None

    async def next_batch(self) -> list[Event]:
        """See :class:`~dragoman.ports.operations.EventStream`."""
        if self._waiting is None:
            self._waiting = await self._stream.next_batch()
        if self._waiting and self._clock.now_ms() >= self._due_ms:
            await self._look_again()
        batch, self._waiting = self._waiting, None
        return batch

    async def _look_again(self) -> None:
        try:
            await self._check()
        except Exception:
            await self._stream.aclose()
            raise
        self._due_ms = self._clock.now_ms() + self._every_ms

    async def aclose(self) -> None:
        """See :class:`~dragoman.ports.operations.EventStream`."""
        await self._stream.aclose()
