"""Streams: cursors over a task's log.

A stream holds a position, not a queue. It takes what lies above its position, from the window of events that the
live task keeps in memory or, if it fell behind that, from the store; a reader that does not read costs a number. The
events are the shared ones, each encoded once.

Spec: STREAM-03 to STREAM-05, STRM-01 to STRM-04, SUB-01, SUB-02, AMB-05, AMB-07.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from dragoman.errors import A2AError, InternalError, StoreError, UnavailableError
from dragoman.model import Message, StreamResponse, Task, TaskState
from dragoman.ports.deadlines import Deadlines
from dragoman.ports.operations import Event, EventStream
from dragoman.ports.store import TaskStore
from dragoman.protocol.lifecycle import TERMINAL, with_history
from dragoman.runtime.limits import Limits
from dragoman.runtime.live import LiveTask

logger = logging.getLogger("dragoman.runtime")

PAGE = 512
PAGE_BYTES = 1024 * 1024
FIRST_PAGE = 2
"""What is read of the log at once for a stream: ``PAGE`` events, or fewer large ones. The first page shows the size."""


class MessageStream(EventStream):
    """The stream of exactly one message. Spec: STREAM-03."""

    def __init__(self, message: Message) -> None:
        self._events = [Event(StreamResponse(message=message))]

    async def next_batch(self) -> list[Event]:
        """The message, then the end."""
        events, self._events = self._events, []
        return events

    async def aclose(self) -> None:
        """Nothing is held."""
        self._events = []


class TaskStream(EventStream):
    """A cursor. Begins with ``first``, the task at ``position``, or without one after ``position``.

    ``first`` is shown once everything in it is stored. ``ends_at`` are states after which this stream closes although
    the task is not over. ``history`` is how many messages a Task on it may have (None: all; Spec: SEND-14).
    ``stopping`` says that the process is going down and nobody works on the task any more.
    """

    def __init__(
        self,
        live: LiveTask,
        store: TaskStore,
        limits: Limits,
        *,
        position: int = 0,
        first: Task | None = None,
        ends_at: frozenset[TaskState] = frozenset(),
        history: int | None = None,
        stopping: Callable[[LiveTask], bool],
        idle: Deadlines,
    ) -> None:
        self._live = live
        self.task_id = live.task_id
        self.scope = live.scope
        self._store = store
        self._limits = limits
        self._position = position
        self._first = first
        self._ends = ends_at | TERMINAL
        self._history = history
        self._stopping = stopping
        self._idle = idle
        self._ended = False
        self._page = FIRST_PAGE
        self._waiter: asyncio.Future[None] | None = None
        live.watch(self)

    def wake(self) -> None:
        """There may be something new (called by the live task)."""
        waiter = self._waiter
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    async def aclose(self) -> None:
        """Let go of the task; it goes on."""
        self._ended = True
        self._live.unwatch(self)
        self.wake()

    async def next_batch(self) -> list[Event]:
        """Wait for what comes after the cursor."""
        while not self._ended:
            number = self._live.number
            if number > self._position or (number == self._position and self._first is not None):
                return self._take_first() if self._first is not None else await self._take()
            self._check()
            await self._wait()
        return []

    def _check(self) -> None:
        """Raise what ends the stream otherwise than by the task's end. Spec: AMB-10."""
        failure = self._live.failure
        if failure is None and self._stopping(self._live):
            failure = UnavailableError("The server is shutting down; the task is kept, subscribe again later")
        if failure is not None:
            self._end()
            raise failure

    async def _wait(self) -> None:
        self._waiter = asyncio.get_running_loop().create_future()
        self._idle.begin(self, self._idle_for_too_long)
        try:
            await self._waiter
        finally:
            self._idle.end(self)
            self._waiter = None

    def _idle_for_too_long(self) -> None:
        waiter = self._waiter
        if waiter is not None and not waiter.done():
            seconds = f"{self._limits.stream_idle:g}"
            waiter.set_exception(UnavailableError(f"Nothing happened for {seconds} s; subscribe again to go on"))
            self._end()

    async def _take(self) -> list[Event]:
        if self._live.number - self._position > self._limits.stream_lag:
            self._end()
            raise UnavailableError("The reader fell too far behind; subscribe again to go on")
        events = self._live.events_after(self._position)
        if events is None:
            events = await self._read_store()
        events = self._cut_at_end(events)
        return events if self._history is None else [self._shortened(event) for event in events]

    def _take_first(self) -> list[Event]:
        task, self._first = self._first, None
        assert task is not None
        if task.status.state in self._ends:
            self._end()
        return [Event(StreamResponse(task=with_history(task, self._history)), number=self._position)]

    def _shortened(self, event: Event) -> Event:
        task = event.response.task
        if task is None or (short := with_history(task, self._history)) is task:
            return event
        return Event(StreamResponse(task=short), number=event.number)

    async def _read_store(self) -> list[Event]:
        try:
            records = await self._store.records(self._live.task_id, self._position, self._page)
        except StoreError as error:
            logger.error("The store failed under a stream of task %s", self._live.task_id, exc_info=error)
            self._end()
            raise InternalError("The store failed") from error
        if not records:
            self._end()
            raise A2AError("The log of the task is not there any more")
        events = [Event(None, number=record.number, json=record.event_json) for record in records]
        self._page = _next_page(self._page, sum(len(event.json) for event in events))
        return events

    def _cut_at_end(self, events: list[Event]) -> list[Event]:
        self._position = events[-1].number or self._position
        for index, event in enumerate(events):
            if self._is_last(event):
                self._end()
                return events[: index + 1]
        return events

    def _is_last(self, event: Event) -> bool:
        update = event.response.status_update
        if update is not None:
            return update.status.state in self._ends
        task = event.response.task
        return task is not None and task.status.state in self._ends

    def _end(self) -> None:
        self._ended = True
        self._live.unwatch(self)


def _next_page(page: int, size: int) -> int:
    """How many events to read next, after so many of them had so many bytes."""
    if size > PAGE_BYTES:
        return max(1, page * PAGE_BYTES // size)
    return min(PAGE, 2 * page) if 2 * size < PAGE_BYTES else page
