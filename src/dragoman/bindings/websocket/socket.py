"""One socket on the client: its calls and streams, side by side.

Theory. A reader takes every message as it comes and hands it to its call by the number; it never waits for who reads
a stream, since no stream is sent more than its window. What a reader has taken is given back as credit, in halves of
the window. Small messages (credit, cancellations, pongs) are posted to a writer of their own, so that they can be
sent from where nothing may be awaited. A socket that is lost fails all of its calls, and is not used again.

Spec: BIND-07, AMB-09, AMB-10; ``docs/websocket.md`` is the text to this.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections import deque
from collections.abc import Mapping

import msgspec

from dragoman.bindings.remote_error import Answer, bad_answer, status_error
from dragoman.bindings.websocket.frames import (
    BadFrameError,
    CancelFrame,
    CreditFrame,
    DrainFrame,
    EndFrame,
    ErrorFrame,
    EventsFrame,
    OpenFrame,
    Ping,
    Pong,
    ResultFrame,
    ServerFrame,
    decode_server_frame,
    encode_call,
    encode_frame,
)
from dragoman.bindings.websocket.library import ClientConnection, ConnectionClosed, why_lost
from dragoman.errors import A2AError, ConnectionLostError, DragomanError, InvalidAgentResponseError
from dragoman.http.guard import shown
from dragoman.model import Operation, StreamResponse, decode_json
from dragoman.ports.operations import Event, EventStream

_log = logging.getLogger("dragoman.client")

_NOTHING = StreamResponse()

Head = ResultFrame | OpenFrame


class PendingCall:
    """A call that was sent, and what came of it.

    ``head`` is the first message of its answer; of a stream, ``ready`` are the events that nobody has taken yet, and
    ``untaken`` their bytes as the server counts them; ``failure`` comes after them.
    """

    __slots__ = ("_waiter", "ended", "failure", "head", "id", "op", "ready", "returned", "untaken")

    def __init__(self, call_id: int, op: Operation) -> None:
        self.id = call_id
        self.op = op
        self.head: asyncio.Future[Head] = asyncio.get_running_loop().create_future()
        self.ready: list[Event] = []
        self.untaken = 0
        self.returned = 0
        self.failure: DragomanError | None = None
        self.ended = False
        self._waiter: asyncio.Future[None] | None = None

    def wake(self) -> None:
        """There is something new."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def wait(self) -> None:
        """Until there is something new."""
        self._waiter = asyncio.get_running_loop().create_future()
        await self._waiter

    def begin(self, head: Head) -> None:
        """The answer begins."""
        if not self.head.done():
            self.head.set_result(head)

    def fail(self, error: DragomanError) -> None:
        """It ends with an error."""
        self.ended = True
        if not self.head.done():
            self.head.set_exception(error)
        elif self.failure is None:
            self.failure = error
        self.wake()

    def end(self) -> None:
        """It ends."""
        if self.head.done():
            self.ended = True
            self.wake()
        else:
            self.fail(InvalidAgentResponseError("The agent ended the call without an answer"))


class ClientSocket:
    """An open socket. ``window`` and ``max_bytes`` are in bytes, ``idle`` is the time in seconds that nothing may
    come."""

    def __init__(
        self, connection: ClientConnection, url: str, *, window: int, max_bytes: int, idle: float | None
    ) -> None:
        self._connection = connection
        self._url = url
        self._window = window
        self._max_bytes = max_bytes
        self._idle = idle
        self._calls: dict[int, PendingCall] = {}
        self._ids = itertools.count(1)
        self._posted: deque[bytes] = deque()
        self._mail = asyncio.Event()
        self._emptied = asyncio.Event()
        self._draining = False
        self._failure: DragomanError | None = None
        self._reader = asyncio.create_task(self._read())
        self._writer = asyncio.create_task(self._write())

    @property
    def usable(self) -> bool:
        """Whether calls may begin on it."""
        return not self._draining and self._failure is None

    @property
    def busy(self) -> bool:
        """Whether calls are open on it."""
        return bool(self._calls)

    async def begin(self, op: Operation, request: bytes, parameters: Mapping[str, str]) -> PendingCall:
        """Send a call. Raises ConnectionLostError when the socket is closed. Whoever gives it up calls
        :meth:`forget`."""
        if self._failure is not None:
            raise self._failure
        call = PendingCall(next(self._ids), op)
        self._calls[call.id] = call
        data = encode_call(call.id, op.name, request, parameters, self._window if op.streaming else None)
        try:
            await self._connection.send(data.decode())
        except ConnectionClosed as error:
            self._drop(call)
            call.head.cancel()
            raise why_lost(error, self._url) from error
        except BaseException:
            self.forget(call)
            raise
        return call

    def forget(self, call: PendingCall) -> None:
        """Nobody waits for this call any more."""
        if self._drop(call):
            call.ended = True
            call.head.cancel()
            self._post(CancelFrame(call.id))

    def give_back(self, call: PendingCall, size: int) -> None:
        """So many bytes of a stream were taken: the server may send more."""
        call.returned += size
        if call.returned * 2 >= self._window and not call.ended:
            self._post(CreditFrame(call.id, call.returned))
            call.returned = 0

    async def finish(self) -> None:
        """Begin no more calls; close it when those that are open are over."""
        self._draining = True
        while self._calls:
            self._emptied.clear()
            await self._emptied.wait()
        await self.aclose()

    async def aclose(self) -> None:
        """Close it; open calls fail. Safe to call twice."""
        self._lose(ConnectionLostError("This client is closed", url=shown(self._url)))
        self._writer.cancel()
        await self._connection.close()
        await asyncio.wait((self._reader, self._writer))

    # What comes in.

    async def _read(self) -> None:
        receive = self._connection.recv
        try:
            while True:
                async with asyncio.timeout(self._idle):
                    data = await receive(decode=False)
                self._take(data)
        except ConnectionClosed as error:
            self._lose(why_lost(error, self._url))
        except TimeoutError:
            place = shown(self._url)
            self._lose(ConnectionLostError(f"Nothing came from {place} for {self._idle:g} s", url=place))
        except BadFrameError as error:
            self._lose(InvalidAgentResponseError(f"The agent's message cannot be understood: {error}"))
        finally:
            # For what none of these is, too: nobody may wait for ever.
            self._lose(ConnectionLostError(f"The connection to {shown(self._url)} broke", url=shown(self._url)))
            self._writer.cancel()
        await self._connection.close()

    def _take(self, data: bytes) -> None:
        frame = decode_server_frame(data)
        if isinstance(frame, Ping):
            self._post(Pong(frame.data))
        elif isinstance(frame, DrainFrame):
            self._draining = True
        elif isinstance(frame, ErrorFrame) and frame.id is None:
            _log.warning("%s did not understand a message", shown(self._url))
        elif frame is not None and not isinstance(frame, Pong):
            call = self._calls.get(frame.id) if frame.id is not None else None
            if call is not None:  # else it was given up
                self._answer(call, frame, data)

    def _answer(self, call: PendingCall, frame: ServerFrame, data: bytes) -> None:
        if isinstance(frame, EventsFrame):
            self._take_events(call, frame, data)
        elif isinstance(frame, OpenFrame):
            call.begin(frame)
        elif isinstance(frame, ResultFrame):
            self._drop(call)
            call.begin(frame)
        elif isinstance(frame, EndFrame):
            self._drop(call)
            call.end()
        elif isinstance(frame, ErrorFrame):
            self._drop(call)
            call.fail(status_error(self._origin(call, data), {"error": frame.error}))

    def _take_events(self, call: PendingCall, frame: EventsFrame, data: bytes) -> None:
        call.untaken += len(data)
        if call.untaken > self._window + self._max_bytes:
            self._break(call, "it sends more than it was allowed to")
            return
        for item in frame.events:
            try:
                response = decode_json(StreamResponse, bytes(item.event), lenient_required=True)
            except A2AError as error:
                self._break(call, str(error))
                return
            if response != _NOTHING:
                call.ready.append(Event(response, number=item.number))
        call.wake()

    def _break(self, call: PendingCall, why: str) -> None:
        """The agent does not keep to the rules: the stream ends here."""
        error = bad_answer(self._origin(call, b""), why)
        self._drop(call)
        self._post(CancelFrame(call.id))
        call.fail(error)

    def _origin(self, call: PendingCall, data: bytes) -> Answer:
        return Answer(op=call.op, status=0, body=data, url=shown(self._url))

    def _lose(self, error: DragomanError) -> None:
        if self._failure is None:
            self._failure = error
        calls, self._calls = list(self._calls.values()), {}
        self._emptied.set()
        for call in calls:
            call.fail(error)

    def _drop(self, call: PendingCall) -> bool:
        """The call is over; False when it was before."""
        found = self._calls.pop(call.id, None) is not None
        if not self._calls:
            self._emptied.set()
        return found

    # What goes out by itself.

    def _post(self, frame: CancelFrame | CreditFrame | Pong) -> None:
        if self._failure is None:
            self._posted.append(encode_frame(frame))
            self._mail.set()

    async def _write(self) -> None:
        while True:
            await self._mail.wait()
            self._mail.clear()
            while self._posted:
                try:
                    await self._connection.send(self._posted.popleft().decode())
                except ConnectionClosed:
                    return  # the reader sees it, too, and tells


class SocketStream(EventStream):
    """The events of one call. A cancelled read loses nothing."""

    def __init__(self, socket: ClientSocket, call: PendingCall) -> None:
        self._socket = socket
        self._call = call

    async def next_batch(self) -> list[Event]:
        """See :class:`~dragoman.ports.operations.EventStream`. Raises ConnectionLostError when the socket is lost."""
        call = self._call
        while not call.ready:
            if call.failure is not None:
                raise call.failure
            if call.ended:
                return []
            await call.wait()
        batch, call.ready = call.ready, []
        size, call.untaken = call.untaken, 0
        self._socket.give_back(call, size)
        return batch

    async def aclose(self) -> None:
        """Give the stream up. Safe to call twice."""
        self._call.ready = []
        self._socket.forget(self._call)


def read_result(call: PendingCall, result: msgspec.Raw, url: str) -> msgspec.Struct:
    """The response Struct in a result. Raises InvalidAgentResponseError."""
    try:
        return decode_json(call.op.response, bytes(result), lenient_required=True)
    except A2AError as error:
        raise bad_answer(Answer(op=call.op, body=bytes(result), url=shown(url)), str(error)) from None
