"""Streams that outlive their connections.

Theory. The events of an interaction come over as many connections as it takes. A connection that breaks, and one
that ends while the task is still active (AMB-03), was *cut*: the stream subscribes to the task again. With the
extension for resumable streams it says which event it has, gets the next ones, and nothing is missing or double;
without it the snapshot that opens the new subscription stands for what was missed (SUB-07). When the task has ended
meanwhile, there is nothing to subscribe to: GetTask brings the last event (AMB-08). A message is never sent twice:
before a task is known, a cut is an error.

Spec: §3.1.6, §3.5.2, STREAM-10, STREAM-11, SUB-07, AMB-03 to AMB-05, AMB-08.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable

from dragoman.client.line import Line
from dragoman.client.progress import Progress, StreamEvent, event_of
from dragoman.client.reconnect import PASSING, is_passing
from dragoman.errors import (
    DragomanError,
    StreamInterruptedError,
    UnsupportedOperationError,
)
from dragoman.model import StreamResponse, TaskState
from dragoman.ports.operations import Event, EventStream
from dragoman.protocol.lifecycle import is_settled

logger = logging.getLogger("dragoman.client")

# How long the end of a stream may take after the event that ends the task, so that its connection can be used again.
_DRAIN_SECONDS = 0.1


class ClientStream(AsyncIterator[StreamEvent]):
    """The events of an interaction: ``async for event in stream``.

    Yields Task, Message, TaskStatusUpdateEvent and TaskArtifactUpdateEvent as they come, and comes back by itself after
    a cut. A Task replaces what was known of it (Spec: STREAM-11). Ends when the task has ended or the agent ends the
    stream, and when the task comes to one of the states ``until``, since the next move is the caller's then (Spec:
    AMB-05).

    Raises the A2AError that the agent answers or sends, StreamInterruptedError when a cut could not be mended, and
    ConnectionLostError, RequestTimeoutError or ConnectError when nothing had come yet.

    Closing early is fine (``break``, ``aclose()``, ``async with``); the task goes on. One reader only. A cancelled
    wait loses nothing of a task that can be subscribed to: the next one reconnects.
    """

    def __init__(
        self,
        line: Line,
        begin: Callable[[], Awaitable[EventStream]],
        progress: Progress,
        *,
        until: frozenset[TaskState] = frozenset(),
    ) -> None:
        self._line = line
        self._begin: Callable[[], Awaitable[EventStream]] | None = begin
        self._progress = progress
        self._until = until
        self._observe: Callable[[StreamResponse], object] | None = None
        self._stream: EventStream | None = None
        self._ready: deque[Event] = deque()
        self._failures = 0
        self._replayed = -1
        self._closed = False

    @property
    def task_id(self) -> str:
        """Id of the task, empty as long as none is known."""
        return self._progress.task_id

    @property
    def state(self) -> TaskState | int | None:
        """The task's state by the last event that told it, None before."""
        return self._progress.state

    @property
    def last_event_id(self) -> str | None:
        """Number of the last event that was yielded, None when the peer sends none."""
        return None if self._progress.number is None else str(self._progress.number)

    async def open(self) -> None:
        """Make the first connection now, instead of at the first read. Raises what the agent refuses it with."""
        await self._connect()

    async def next_batch(self) -> list[Event]:
        """The next events with their numbers, all that are at hand; an empty list is the end. Raises like iteration.

        For whoever passes events on; events that hold nothing are left out, as they are in iteration.
        """
        ready = self._ready
        while True:
            while not ready:
                await self._read_on()
                if self._closed and not ready:
                    return []
            batch = [event for event in ready if event_of(event.response) is not None]
            for event in ready:
                self._progress.note(event)
                if self._observe is not None:
                    self._observe(event.response)
            ready.clear()
            if batch:
                return batch

    def watch(self, observe: Callable[[StreamResponse], object]) -> None:
        """Have ``observe`` called with each event just before it is given out."""
        self._observe = observe

    def __aiter__(self) -> ClientStream:
        return self

    async def __anext__(self) -> StreamEvent:
        ready = self._ready
        while True:
            while not ready:
                await self._read_on()
                if self._closed and not ready:
                    raise StopAsyncIteration
            received = ready.popleft()
            self._progress.note(received)
            response = received.response
            if self._observe is not None:
                self._observe(response)
            event = event_of(response)
            if event is not None:
                return event

    async def aclose(self) -> None:
        """End the stream; the task goes on. Safe to call twice."""
        self._closed = True
        self._ready.clear()
        await self._hang_up()

    async def __aenter__(self) -> ClientStream:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()

    def __del__(self) -> None:
        stream = getattr(self, "_stream", None)
        if stream is not None:
            self._line.later.adopt(stream)

    async def _read_on(self) -> None:
        """All events at hand were yielded: end, connect, or take the next batch."""
        progress = self._progress
        if self._closed:
            return
        if progress.over:
            await self._drain()
        elif progress.moved and progress.state in self._until:
            await self._finish()
        else:
            await self._receive()

    async def _receive(self) -> None:
        try:
            if self._stream is None:
                await self._connect()
                return
            batch = await self._stream.next_batch()
        except DragomanError as error:
            await self._after_failure(error)
            return
        if batch:
            self._take(batch)
        else:
            await self._after_end()

    async def _connect(self) -> None:
        """Open the first connection, or the next."""
        begin, self._begin = self._begin, None
        progress = self._progress
        number = progress.number if self._line.resumable else None
        self._replayed = -1 if number is None else number
        if begin is not None:
            self._stream = await begin()
        elif progress.task_id:
            self._stream = await self._line.subscribe(progress.task_id, number)
        else:
            raise self._interrupted(None)

    def _take(self, batch: list[Event]) -> None:
        replayed = self._replayed
        new = [event for event in batch if event.number is None or event.number > replayed]
        if new:
            self._failures = 0
            self._ready.extend(new)

    async def _after_end(self) -> None:
        concluded = self._stream is not None and self._stream.concluded
        await self._hang_up()
        if concluded or self._progress.complete:
            await self._finish()
        else:
            await self._come_back(None)

    async def _after_failure(self, error: DragomanError) -> None:
        """Decide what a failure means: an answer, the end, or a cut."""
        was_open = self._stream is not None
        await self._hang_up()
        if isinstance(error, UnsupportedOperationError) and self._progress.task_id and not was_open:
            await self._take_last(error)
        elif self._may_come_back(error, was_open):
            await self._come_back(error)
        else:
            self._closed = True
            raise error

    def _may_come_back(self, error: DragomanError, was_open: bool) -> bool:
        if not self._progress.task_id or not is_passing(error):
            return False
        # Before the first connection stood, the caller decides whether to try again.
        return was_open or self._progress.state is not None or self._failures > 0

    async def _come_back(self, cause: DragomanError | None) -> None:
        """Wait before the next connection, or give up."""
        wait = self._line.reconnect.wait(self._failures, cause) if self._progress.task_id else None
        if wait is None:
            self._closed = True
            raise self._interrupted(cause) from cause
        self._failures += 1
        await asyncio.sleep(wait)

    async def _take_last(self, refusal: DragomanError) -> None:
        """The task cannot be subscribed to: if it is over or waits, it is itself the last event. Spec: AMB-08."""
        try:
            task = await self._line.get_task(self._progress.task_id)
        except PASSING as error:
            await self._come_back(error)
            return
        if not is_settled(task.status.state):
            self._closed = True
            if self._progress.state is None:
                raise refusal
            raise self._interrupted(refusal) from refusal
        self._take([Event(StreamResponse(task=task))])
        await self._finish()

    async def _drain(self) -> None:
        """The task is over: let the stream end in order if it does so soon, then let go of it."""
        stream = self._stream
        try:
            async with asyncio.timeout(_DRAIN_SECONDS):
                while stream is not None and await stream.next_batch():
                    pass
        except (DragomanError, TimeoutError) as error:
            logger.debug("a stream did not end after its task: %s", type(error).__name__)
        await self._finish()

    async def _finish(self) -> None:
        self._closed = True
        await self._hang_up()

    async def _hang_up(self) -> None:
        stream, self._stream = self._stream, None
        if stream is not None:
            await stream.aclose()

    def _interrupted(self, cause: DragomanError | None) -> StreamInterruptedError:
        task_id = self._progress.task_id
        if not task_id:
            text = "The stream ended before anything of use came"
        elif isinstance(cause, UnsupportedOperationError):
            text = "The stream was cut, and the agent does not let the task be subscribed to; GetTask still works"
        else:
            text = f"The stream was cut before the task ended, and {self._failures} attempts to come back failed"
        return StreamInterruptedError(
            text, url=getattr(cause, "url", ""), task_id=task_id, last_event_id=self.last_event_id
        )
