"""Deadlines: one timer for many waits of the same length.

Theory. Waits that all may take the same time end in the order in which they began, so the oldest one is the next to
expire and a dict, which keeps that order, is the queue. A wait that ends in time costs two operations on the dict; the
one timer is set anew only when it fires.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class OverrunError(TimeoutError):
    """The work took longer than it may; a TimeoutError of the work's own is none of these."""


class _Bound:
    """One wait of a coroutine, which is canceled when it expires."""

    __slots__ = ("_task", "expired")

    def __init__(self, task: asyncio.Task[Any]) -> None:
        self._task = task
        self.expired = False

    def expire(self) -> None:
        self.expired = True
        self._task.cancel()


class Deadlines:
    """Calls back for every wait that was not ended within ``seconds`` (None: never)."""

    __slots__ = ("_seconds", "_timer", "_waits")

    def __init__(self, seconds: float | None) -> None:
        self._seconds = seconds
        self._waits: dict[object, tuple[float, Callable[[], None]]] = {}
        self._timer: asyncio.TimerHandle | None = None

    def begin(self, wait: object, expired: Callable[[], None]) -> None:
        """A wait begins; ``wait`` is its key. ``expired`` is called once, unless the wait ends before."""
        if self._seconds is None:
            return
        loop = asyncio.get_running_loop()
        self._waits[wait] = (loop.time() + self._seconds, expired)
        if self._timer is None:
            self._timer = loop.call_later(self._seconds, self._expire)

    def end(self, wait: object) -> None:
        """The wait is over. No error when it has expired."""
        self._waits.pop(wait, None)

    async def bound(self, work: Coroutine[Any, Any, T]) -> T:
        """Await ``work``; when it takes too long, cancel it and raise OverrunError."""
        task = asyncio.current_task()
        assert task is not None
        wait = _Bound(task)
        self.begin(wait, wait.expire)
        try:
            return await work
        except asyncio.CancelledError:
            if wait.expired and task.cancelling() <= 1:
                raise OverrunError from None
            raise
        finally:
            self.end(wait)
            if wait.expired:
                task.uncancel()

    def _expire(self) -> None:
        loop = asyncio.get_running_loop()
        self._timer = None
        while self._waits:
            wait, (deadline, expired) = next(iter(self._waits.items()))
            left = deadline - loop.time()
            if left > 0.001:
                self._timer = loop.call_later(left, self._expire)
                return
            del self._waits[wait]
            expired()
