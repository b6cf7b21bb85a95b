"""One socket on the server: its calls and streams, side by side.

Theory. A reader takes messages and never waits for the work behind them; each call is a task of its own, known by the
client's number for it. Everything that is sent goes through one lock, which is first come, first served: of many
streams each gets its turn, with about ``PIECE`` bytes at a time. A stream sends while the client has given it credit,
and otherwise waits on its own, so that a reader who is slow with one stream holds back no other. A watchman looks at
the clock: he sends a ping when nothing was sent for a heartbeat's time, and ends the socket when nothing came from
the client for three of them, or when a message stays unread for ``stall_timeout``. What ends a socket ends its calls
and streams, and never the tasks of the protocol behind them (Spec: STRM-04).

Spec: §3.5.2, BIND-05 to BIND-07, AMB-09, AMB-10, SEC-03, SEC-10; ``docs/websocket.md`` is the text to this.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

from dragoman.bindings.failure import as_protocol_error
from dragoman.bindings.websocket.frames import (
    BadFrameError,
    CallFrame,
    CancelFrame,
    CreditFrame,
    DrainFrame,
    Ping,
    Pong,
    decode_client_frame,
    encode_end,
    encode_error,
    encode_event,
    encode_events,
    encode_frame,
    encode_open,
    encode_result,
)
from dragoman.bindings.websocket.open_call import OpenCall
from dragoman.bindings.websocket.parameters import Parameters, read_context
from dragoman.errors import (
    A2AError,
    MethodNotFoundError,
    PayloadTooLargeError,
    RateLimitedError,
    UnavailableError,
)
from dragoman.http.asgi import Receive, Send
from dragoman.model import OPERATIONS, Operation, WireMessage, decode_json, encode_json
from dragoman.ports.binding import ServerEdge
from dragoman.ports.deadlines import Deadlines, OverrunError
from dragoman.ports.operations import CallContext, Caller, Event

NORMAL, GOING, PROTOCOL, UNSUPPORTED, INTERNAL = 1000, 1001, 1002, 1003, 1011
UNATTENDED = 4408
"""The close code for a client that does not read or does not answer."""

#: Events of one batch are joined up to about this size.
PIECE = 64 * 1024

#: Heartbeats without a word of the client after which it counts as lost.
_SILENCE = 3

#: Seconds that the last words to a client may take.
_LAST_WORDS = 1.0

#: Seconds for which calls that were on their way when a socket grew too old are taken all the same.
_ON_THE_WAY = 0.5

_log = logging.getLogger("dragoman.bindings")


class _Ended(Exception):
    """The socket ends, with this close code."""

    def __init__(self, code: int, reason: str = "") -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason


class Session:
    """An accepted socket; run it once.

    ``caller`` and ``parameters`` are those of the handshake, ``reserved`` names belong to it alone; ``max_calls`` may
    be open at a time, ``heartbeat`` is in seconds (0: never), ``max_age`` the seconds after which the client has to
    come with its credentials anew (None: never). ``deadlines`` bound the waits for credit.
    """

    def __init__(
        self,
        edge: ServerEdge,
        receive: Receive,
        send: Send,
        *,
        caller: Caller,
        parameters: Parameters,
        reserved: frozenset[str],
        max_calls: int,
        heartbeat: float,
        max_age: float | None,
        deadlines: Deadlines,
    ) -> None:
        self._edge = edge
        self._receive = receive
        self._asgi_send = send
        self._caller = caller
        self._parameters = parameters
        self._reserved = reserved
        self._max_calls = max_calls
        self._heartbeat = heartbeat
        self._max_age = max_age
        self._deadlines = deadlines
        self._calls: dict[int, OpenCall] = {}
        self._serving: set[asyncio.Task[None]] = set()
        self._side_tasks: set[asyncio.Task[None]] = set()
        self._turn = asyncio.Lock()
        self._loop = asyncio.get_running_loop()
        self._began = self._last_sent = self._last_came = self._loop.time()
        self._sending_since: float | None = None
        self._draining = self._over = False
        self._takes_until = 0.0
        self._idle = asyncio.Event()
        self._idle.set()
        self._ending: _Ended | None = None
        self._task: asyncio.Task[None] | None = None

    # Its life.

    async def run(self) -> None:
        """Serve the socket until it is closed, by either side. All of its tasks are awaited."""
        self._task = asyncio.current_task()
        watchman = asyncio.create_task(self._watch())
        ended = _Ended(NORMAL)
        try:
            await self._read()
        except _Ended as reason:
            ended = reason
        except asyncio.CancelledError:
            if self._ending is None or (self._task is not None and self._task.uncancel()):
                raise
            ended = self._ending
        except OSError:  # which is how servers tell of a lost connection
            pass
        except Exception:
            _log.exception("a WebSocket broke")
            ended = _Ended(INTERNAL)
        finally:
            self._over = True
            await self._end_tasks(watchman)
        await self._say_goodbye(ended)

    def drain(self) -> None:
        """No new calls from here on; those that are open go on."""
        if not self._draining:
            self._draining = True
            self._aside(self._send_last(encode_frame(DrainFrame())))

    async def _retire(self) -> None:
        """End the socket for its age: the client learns of it first, and what it has sent by then is not lost."""
        self._takes_until = self._loop.time() + _ON_THE_WAY
        self.drain()
        await asyncio.sleep(_ON_THE_WAY)
        await self.close(self._edge.stall_timeout)

    async def close(self, grace: float) -> None:
        """Wait for the open calls, ``grace`` seconds at most, then end the socket."""
        self.drain()
        try:
            async with asyncio.timeout(grace):
                await self._idle.wait()
        except TimeoutError:
            _log.info("%d calls of a WebSocket did not end in time", len(self._serving))
        self._end(_Ended(GOING, "the server is going down"))

    def _end(self, reason: _Ended) -> None:
        if self._ending is None and self._task is not None:
            self._ending = reason
            self._task.cancel()

    async def _end_tasks(self, watchman: asyncio.Task[None]) -> None:
        tasks = [*self._serving, *self._side_tasks, watchman]
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)

    async def _say_goodbye(self, ended: _Ended) -> None:
        try:
            async with asyncio.timeout(_LAST_WORDS):
                await self._asgi_send({"type": "websocket.close", "code": ended.code, "reason": ended.reason})
        except (OSError, TimeoutError, RuntimeError):
            # The connection is gone or blocked, or the client closed it: servers refuse a second close.
            _log.debug("a WebSocket was gone before it was closed")

    # What comes in.

    async def _read(self) -> None:
        while True:
            message = await self._receive()
            if message["type"] == "websocket.disconnect":
                return
            self._last_came = self._loop.time()
            text = message.get("text")
            if text is None:
                raise _Ended(UNSUPPORTED, "messages are text")
            try:
                await self._take(text)
            except BadFrameError as bad:
                if bad.call_id is not None and bad.call_id in self._calls:
                    raise _Ended(PROTOCOL, f"a bad message for the open call {bad.call_id}") from None
                await self._send(encode_error(bad.call_id, bad.error))

    async def _take(self, text: str) -> None:
        frame = decode_client_frame(text)
        if isinstance(frame, CallFrame):
            await self._begin(frame, len(text) if text.isascii() else len(text.encode()))
        elif isinstance(frame, CreditFrame):
            if (call := self._calls.get(frame.id)) is not None:
                call.add(frame.credit)
        elif isinstance(frame, CancelFrame):
            if (call := self._calls.get(frame.id)) is not None:
                call.cancel()
        elif isinstance(frame, Ping):
            await self._send(encode_frame(Pong(frame.data)))

    async def _begin(self, frame: CallFrame, size: int) -> None:
        if frame.id in self._calls:
            raise _Ended(PROTOCOL, f"the call {frame.id} is open already")
        refusal = self._refusal(size)
        if refusal is not None:
            await self._send(encode_error(frame.id, refusal))
            return
        call = OpenCall(frame.id, frame.credit)
        self._calls[frame.id] = call
        self._idle.clear()
        call.task = self._loop.create_task(self._serve(call, frame))
        self._serving.add(call.task)
        call.task.add_done_callback(self._served)

    def _served(self, task: asyncio.Task[None]) -> None:
        self._serving.discard(task)
        if not self._serving:
            self._idle.set()
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("a call on a WebSocket broke", exc_info=error)

    def _refusal(self, size: int) -> A2AError | None:
        if size > self._edge.max_message_bytes:
            return PayloadTooLargeError(f"The request is larger than {self._edge.max_message_bytes} bytes")
        if self._draining and self._loop.time() >= self._takes_until:
            return UnavailableError("This socket is being closed; call over a new one", retry_after=0)
        if len(self._calls) >= self._max_calls:
            return RateLimitedError(f"More than {self._max_calls} calls are open on this socket", retry_after=1)
        return None

    # A call.

    async def _serve(self, call: OpenCall, frame: CallFrame) -> None:
        try:
            last = await self._answer(call, frame)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if not call.canceled or self._over or self._ending is not None or (task is not None and task.uncancel()):
                raise
            last = encode_end(call.id)
        except OSError:
            return
        except Exception as error:
            last = encode_error(call.id, as_protocol_error(error, frame.operation[:64]))
        finally:
            # Before the last message: whoever reads it may use the number again.
            del self._calls[call.id]
            call.answered = True
        await self._send_last(last)

    async def _answer(self, call: OpenCall, frame: CallFrame) -> bytes:
        """Do what is asked; the last message of the call."""
        context = read_context(self._parameters, frame.parameters, self._caller, self._reserved)
        if self._edge.check_version is not None:
            self._edge.check_version(context.version)
        op = OPERATIONS.get(frame.operation) or self._edge.methods.get(frame.operation)
        if op is None:
            raise MethodNotFoundError()
        assert issubclass(op.request, WireMessage)
        request = decode_json(op.request, bytes(frame.request))
        if op.streaming:
            await self._stream(call, op, request, context)
            return encode_end(call.id)
        response = await self._edge.operations.call(op, request, context)
        return encode_result(call.id, encode_json(response), _told(context))

    async def _stream(self, call: OpenCall, op: Operation, request: WireMessage, context: CallContext) -> None:
        stream = await self._edge.operations.stream(op, request, context)
        try:
            await self._send(encode_open(call.id, _told(context)))
            while batch := await stream.next_batch():
                await self._send_batch(call, batch)
        except OverrunError:
            _log.info("a client left its stream unread for %g s; it is closed", self._edge.stall_timeout)
            raise UnavailableError("The stream was left unread for too long; subscribe again") from None
        finally:
            await stream.aclose()

    async def _send_batch(self, call: OpenCall, batch: list[Event]) -> None:
        """Send events, in messages of ``PIECE`` bytes or one event, each when there is credit for its beginning."""
        piece: list[bytes] = []
        size = 0
        for event in batch:
            data = encode_event(event)
            if piece and size + len(data) > min(PIECE, max(call.credit, 1)):
                await self._send_piece(call, piece)
                piece, size = [], 0
            piece.append(data)
            size += len(data)
        await self._send_piece(call, piece)

    async def _send_piece(self, call: OpenCall, piece: list[bytes]) -> None:
        if call.credit <= 0:
            await self._deadlines.bound(call.wait_for_credit())
        data = encode_events(call.id, piece)
        call.credit -= len(data)
        await self._send(data)
        if len(self._serving) > 1:
            await asyncio.sleep(0)  # what never has to wait would never let another have its turn

    async def _send_last(self, data: bytes) -> None:
        try:
            await self._send(data)
        except OSError:
            _log.debug("a client was gone before it was answered")

    # What goes out.

    async def _send(self, data: bytes) -> None:
        """Send a message in its turn. Raises OSError when the connection is gone."""
        async with self._turn:
            self._sending_since = self._loop.time()
            try:
                await self._asgi_send({"type": "websocket.send", "text": data.decode()})
            finally:
                self._sending_since = None
            self._last_sent = self._loop.time()

    def _aside(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._side_tasks.add(task)
        task.add_done_callback(self._side_tasks.discard)

    # The watchman.

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(self._pause())
            now = self._loop.time()
            if (reason := self._neglect(now)) is not None:
                self._end(reason)
                return
            if self._max_age is not None and now - self._began >= self._max_age:
                self._aside(self._retire())
                self._max_age = None
            if self._heartbeat and now - self._last_sent >= self._heartbeat and self._sending_since is None:
                self._aside(self._send_last(encode_frame(Ping())))

    def _neglect(self, now: float) -> _Ended | None:
        """Why the client counts as lost, if it does."""
        if self._sending_since is not None and now - self._sending_since >= self._edge.stall_timeout:
            return _Ended(UNATTENDED, "messages were left unread for too long")
        if self._heartbeat and now - self._last_came >= _SILENCE * self._heartbeat:
            return _Ended(UNATTENDED, "nothing came from the client for too long")
        return None

    def _pause(self) -> float:
        """Seconds until the next look: the next thing that may be due, and at least a twentieth of a second."""
        now = self._loop.time()
        due = [now + self._edge.stall_timeout / 4]
        if self._heartbeat:
            due += [self._last_sent + self._heartbeat, self._last_came + _SILENCE * self._heartbeat]
        if self._max_age is not None:
            due.append(self._began + self._max_age)
        return max(min(due) - now, 0.05)


def _told(context: CallContext) -> dict[str, str]:
    """What the client is told beside an answer. Spec: EXT-09, AMB-25."""
    return {"a2a-extensions": ", ".join(context.activated)} if context.activated else {}
