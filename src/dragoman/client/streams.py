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

from dragoman.client.progress import Progress, StreamEvent, event_of
from dragoman.client.reconnect import PASSING, Reconnect, is_passing
from dragoman.errors import (
    DragomanError,
    StreamInterruptedError,
    UnsupportedOperationError,
)
from dragoman.model import StreamResponse, Task, TaskState
from dragoman.ports.operations import Event, EventStream
from dragoman.protocol.lifecycle import is_settled

logger = logging.getLogger("dragoman.client")

_ASKING = frozenset({TaskState.INPUT_REQUIRED})


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


class ClientStream(AsyncIterator[StreamEvent]):
    """The events of an interaction: ``async for event in stream``.

    Yields Task, Message, TaskStatusUpdateEvent and TaskArtifactUpdateEvent as they come, and comes back by itself
    after a cut. A Task replaces what was known of it (Spec: STREAM-11). Ends when the task has ended or the agent
    ends the stream; with ``until_input`` also when the task asks for input, since the next move is the caller's
    then (Spec: AMB-05).

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
        until_input: bool,
    ) -> None:
        self._line = line
        self._begin: Callable[[], Awaitable[EventStream]] | None = begin
        self._progress = progress
        self._until_input = until_input
        self._observe: Callable[[StreamResponse], object] | None = None
        self._stream: EventStream | None = None
        self._ready: deque[StreamResponse] = deque()
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
        """Number of the last event, None when the peer sends none."""
        return None if self._progress.number is None else str(self._progress.number)

    def watch(self, observe: Callable[[StreamResponse], object]) -> None:
        """Have ``observe`` called with each event just before it is yielded."""
        self._observe = observe

    def settled_in(self, states: frozenset[TaskState]) -> bool:
        """Whether the task has come to one of these states."""
        return self._progress.moved and self._progress.state in states

    def __aiter__(self) -> ClientStream:
        return self

    async def __anext__(self) -> StreamEvent:
        while True:
            response = await self.next_response()
            if response is None:
                raise StopAsyncIteration
            event = event_of(response)
            if event is not None:
                return event

    async def next_response(self) -> StreamResponse | None:
        """The next event as it is on the wire, None at the end."""
        while not self._ready:
            if self._closed:
                return None
            await self._read_on()
        response = self._ready.popleft()
        if self._observe is not None:
            self._observe(response)
        return response

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
        """Take the next batch of events, from whatever connection."""
        try:
            if self._stream is None:
                await self._connect()
                return
            batch = await self._stream.next_batch()
        except DragomanError as error:
            await self._after_failure(error)
            return
        if batch:
            await self._take(batch)
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

    async def _take(self, batch: list[Event]) -> None:
        replayed = self._replayed
        for event in batch:
            if event.number is not None and event.number <= replayed:
                continue
            self._failures = 0
            self._progress.note(event)
            self._ready.append(event.response)
        if self._progress.over or (self._until_input and self.settled_in(_ASKING)):
            await self._finish()

    async def _after_end(self) -> None:
        await self._hang_up()
        if self._progress.complete:
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
        await self._take([Event(StreamResponse(task=task))])
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
