"""The calls and streams that are open, so that the end of a server can wait for them, and then end them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from dragoman.errors import UnavailableError

T = TypeVar("T")

LEAVING = "The server is shutting down"
_LAST_WORDS = 1.0
"""Seconds that what was ended has to tell so."""


def leaving() -> UnavailableError:
    """What a caller is told when the end was asked for."""
    return UnavailableError(LEAVING, retry_after=1.0)


class _Call:
    """A call that can be ended: by cancelling the task that waits for it."""

    __slots__ = ("_task", "ended")

    def __init__(self, task: asyncio.Task[Any]) -> None:
        self._task = task
        self.ended = False

    def end(self) -> None:
        self.ended = True
        self._task.cancel()


class OpenWork:
    """Keeps what is open. ``leaving`` is True from the moment at which the end was asked for."""

    def __init__(self) -> None:
        self.leaving = False
        self._open: dict[object, Callable[[], None]] = {}
        self._emptied = asyncio.Event()

    def begin(self, key: object, end: Callable[[], None]) -> None:
        """Something is open from now on; ``end`` ends it before its time."""
        self._open[key] = end

    def finish(self, key: object) -> None:
        """It is not open any more. No error when it was not."""
        self._open.pop(key, None)
        if not self._open:
            self._emptied.set()

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Await a call. Raises UnavailableError when it is ended."""
        task = asyncio.current_task()
        assert task is not None
        call = _Call(task)
        self.begin(call, call.end)
        try:
            return await work
        except asyncio.CancelledError:
            if call.ended and task.cancelling() <= 1:
                raise leaving() from None
            raise
        finally:
            self.finish(call)
            if call.ended:
                task.uncancel()

    async def drain(self, grace: float) -> None:
        """Wait ``grace`` seconds for what is open, then end it."""
        self.leaving = True
        if await self._is_empty(grace):
            return
        for end in list(self._open.values()):
            end()
        await self._is_empty(_LAST_WORDS)

    async def _is_empty(self, patience: float) -> bool:
        self._emptied.clear()
        if self._open:
            await asyncio.wait((waiting := asyncio.create_task(self._emptied.wait()),), timeout=patience)
            waiting.cancel()
        return not self._open
