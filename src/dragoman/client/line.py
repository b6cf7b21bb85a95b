"""What streams share with their client: the way back to the agent, and the closing of what was dropped."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from dragoman.client.reconnect import Reconnect
from dragoman.model import Task
from dragoman.ports.operations import EventStream

logger = logging.getLogger("dragoman.client")


class LateCloser:
    """Closes what was dropped without being closed, and waits for that at the end."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[None]] = set()

    def adopt(self, stream: EventStream) -> None:
        """Have a stream closed soon.

        May be called from any thread, and when the loop is gone (then nothing is left).
        """
        try:
            self._loop.call_soon_threadsafe(self._start, stream)
        except RuntimeError:
            logger.debug("a stream was dropped after its event loop had closed")

    def _start(self, stream: EventStream) -> None:
        task = self._loop.create_task(stream.aclose())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def aclose(self) -> None:
        """Wait until everything adopted is closed."""
        await asyncio.sleep(0)
        await asyncio.gather(*self._tasks, return_exceptions=True)


class Line:
    """What a stream needs to come back: how to subscribe, how to read the task, and how patient to be.

    ``subscribe`` takes a task id and the number of the last event (None without ``resumable``).
    """

    def __init__(
        self,
        *,
        subscribe: Callable[[str, int | None], Awaitable[EventStream]],
        get_task: Callable[[str], Awaitable[Task]],
        reconnect: Reconnect,
        resumable: bool,
        later: LateCloser,
    ) -> None:
        self.subscribe = subscribe
        self.get_task = get_task
        self.reconnect = reconnect
        self.resumable = resumable
        self.later = later
