"""A stream of events onto an SSE response.

Theory. The request's own task takes batches from the event stream and sends each in one piece. Two things may
interrupt it: a watcher task that sees the client disconnect, and one timer, re-armed only when it fires, that sees
that nothing was sent for the heartbeat's time, or that a send is blocked because the client does not read. Both
cancel the request's task after writing down why; where the cancellation surfaces, the reason decides: a heartbeat
is sent and the stream goes on (a cancelled ``next_batch`` loses no event), the other two end it. A cancellation
without a reason comes from outside and is passed on. The task of the protocol is never touched.

Spec: §3.5.2, JRPC-05, HTTP-09, STREAM-07, STRM-04, AMB-10, AMB-97.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from enum import Enum, auto

from dragoman.bindings.exchange import Exchange
from dragoman.bindings.failure import as_protocol_error
from dragoman.errors import A2AError
from dragoman.http.asgi import ClientGoneError, Header, until_disconnected
from dragoman.http.sse import CONTENT_TYPE, HEARTBEAT, SseFraming
from dragoman.ports.operations import Event, EventStream

#: Frames of one batch are joined up to about this size.
PIECE = 64 * 1024

STREAM_HEADERS: tuple[Header, ...] = (
    (b"content-type", CONTENT_TYPE),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
)

_log = logging.getLogger("dragoman.bindings")


class _Reason(Enum):
    BEAT = auto()
    GONE = auto()
    STALLED = auto()


class StreamPump:
    """Carries one event stream to one client; run it once.

    ``heartbeat`` (seconds, 0 for never) and ``stall_timeout`` (seconds) are those of the endpoint's settings;
    ``encode_error`` makes the last event of a stream that broke.
    """

    def __init__(
        self,
        exchange: Exchange,
        stream: EventStream,
        framing: SseFraming,
        encode_error: Callable[[A2AError], bytes],
        *,
        heartbeat: float,
        stall_timeout: float,
    ) -> None:
        self._exchange = exchange
        self._stream = stream
        self._framing = framing
        self._encode_error = encode_error
        self._heartbeat = heartbeat
        self._stall_timeout = stall_timeout
        self._reason: _Reason | None = None
        self._waiting = False
        self._finishing = False
        self._sending_since: float | None = None

    async def run(self) -> None:
        """Send the stream to its end, or until the client is gone; the event stream is closed in any case."""
        self._loop = asyncio.get_running_loop()
        task = asyncio.current_task()
        assert task is not None
        self._task = task
        self._last_sent = self._loop.time()
        self._timer = self._loop.call_later(self._longest_wait(), self._tick)
        watcher = asyncio.create_task(until_disconnected(self._exchange.receive))
        watcher.add_done_callback(self._client_left)
        try:
            await self._copy()
        except asyncio.CancelledError:
            # Ours when there is a reason; one from outside may have come on top of it.
            if self._reason is None or self._task.uncancel():
                raise
        except ClientGoneError:
            pass
        finally:
            self._finishing = True
            self._timer.cancel()
            watcher.cancel()
            try:
                await self._stream.aclose()
            finally:
                await asyncio.wait((watcher,))

    async def _copy(self) -> None:
        await self._exchange.start(200, STREAM_HEADERS)
        last = b""
        try:
            while (batch := await self._next()) != []:
                await (self._send(HEARTBEAT) if batch is None else self._send_batch(batch))
        except ClientGoneError:
            raise
        except Exception as error:
            last = self._encode_error(as_protocol_error(error, "stream"))
        self._finishing = True
        await self._send(last, more=False)

    async def _next(self) -> list[Event] | None:
        """The next batch; None when it is time for a heartbeat."""
        batch: list[Event] | None
        self._waiting = True
        try:
            batch = await self._stream.next_batch()
        except asyncio.CancelledError:
            if self._reason is not _Reason.BEAT:
                raise
            batch = None
        finally:
            self._waiting = False
        if self._reason is _Reason.BEAT:
            self._reason = None
            if self._task.uncancel():  # somebody else cancelled, too
                raise asyncio.CancelledError
        return batch

    async def _send_batch(self, batch: list[Event]) -> None:
        frames: list[bytes] = []
        size = 0
        for event in batch:
            frame = self._framing.encode(event.json, event.number)
            frames.append(frame)
            size += len(frame)
            if size >= PIECE:
                await self._send(b"".join(frames))
                frames, size = [], 0
        if frames:
            await self._send(b"".join(frames) if len(frames) > 1 else frames[0])

    async def _send(self, data: bytes, *, more: bool = True) -> None:
        self._sending_since = self._loop.time()
        await self._exchange.send_piece(data, more=more)
        self._sending_since = None
        self._last_sent = self._loop.time()

    def _client_left(self, watcher: asyncio.Task[None]) -> None:
        if watcher.cancelled():
            return
        if (error := watcher.exception()) is not None:
            _log.error("the server's receive failed; its stream is closed", exc_info=error)
        if not self._finishing:
            self._interrupt(_Reason.GONE)

    def _tick(self) -> None:
        now = self._loop.time()
        if self._sending_since is not None:
            left = self._sending_since + self._stall_timeout - now
            if left <= 0:
                _log.info("a client left its stream unread for %g s; it is closed", self._stall_timeout)
                self._interrupt(_Reason.STALLED)
                return
        else:
            left = self._last_sent + self._heartbeat - now if self._heartbeat else 0
            if self._heartbeat and left <= 0 and self._waiting:
                self._interrupt(_Reason.BEAT)
        pause = left if left > 0 else self._longest_wait()
        self._timer = self._loop.call_later(min(pause, self._longest_wait()), self._tick)

    def _longest_wait(self) -> float:
        """The time after which the timer has to look again at the latest."""
        return min(self._heartbeat or self._stall_timeout, self._stall_timeout)

    def _interrupt(self, reason: _Reason) -> None:
        if self._reason is None:
            self._task.cancel()
        self._reason = reason
