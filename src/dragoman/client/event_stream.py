"""The events of one HTTP answer.

An answer to a streaming call may be an event stream, a plain error, a lone event, or one of these under the wrong
name; here is where they are told apart, and where a clean end is told from a cut.

Spec: STREAM-10, AMB-03, AMB-09, AMB-10, AMB-97, B053, B057.
"""

from __future__ import annotations

import asyncio
import logging

from dragoman.bindings.client_dialect import ClientDialect, StreamDecoder
from dragoman.bindings.codec import EVENT_STREAM, ClientCodec
from dragoman.errors import A2AError, ConnectionLostError, DragomanError, InvalidAgentResponseError
from dragoman.http.client import MAX_ANSWER_BYTES, OpenAnswer
from dragoman.http.guard import shown
from dragoman.http.sse_reader import SseEvent, SseReader
from dragoman.model import Operation, StreamResponse
from dragoman.ports.operations import Event, EventStream

logger = logging.getLogger("dragoman.client")

# How long an answer may take to end after the peer said that it has.
_DRAIN_SECONDS = 0.1


def may_be_events(opened: OpenAnswer) -> bool:
    """Whether an answer can be an event stream, by its head."""
    kind = opened.headers.get("content-type", "").partition(";")[0].strip().lower()
    return 200 <= opened.status < 300 and kind in (EVENT_STREAM, "")


class HttpEventStream(EventStream):
    """The events of one answer. Cancelling a read breaks the connection; the next read then says that it is lost."""

    def __init__(
        self, codec: ClientCodec | ClientDialect, op: Operation, opened: OpenAnswer, request_id: int | str | None
    ) -> None:
        self._codec: ClientCodec | ClientDialect = codec
        self._op = op
        self._opened = opened
        self._request_id = request_id
        self._reader = SseReader(MAX_ANSWER_BYTES)
        self._decoder: StreamDecoder | None = None
        if isinstance(codec, ClientDialect):
            self._decoder = codec.begin_stream(op, url=shown(opened.url), request_id=request_id)
        self._ready: list[Event] = []
        self._failure: Exception | None = None
        self._begun = False
        self._ended = False

    async def next_batch(self) -> list[Event]:
        """See :class:`~dragoman.ports.operations.EventStream`.

        Raises ConnectionLostError also for a clean end inside an event, and RequestTimeoutError after the idle limit.
        """
        while not self._ready:
            if self._failure is not None:
                raise self._failure
            if self._ended:
                return []
            if self.concluded:
                await self._let_go()
                return []
            await self._read_on()
        batch, self._ready = self._ready, []
        return batch

    async def aclose(self) -> None:
        """Let go of the connection. Safe to call twice."""
        self._ended = True
        await self._opened.aclose()

    async def read_plain_answer(self, start: bytes = b"") -> None:
        """Take an answer that is no event stream: raise the error it carries, or keep the one event it is (AMB-09)."""
        body = start + await self._opened.read(MAX_ANSWER_BYTES)
        self._ended = True
        result = self._codec.decode_result(
            self._op,
            self._opened.status,
            self._opened.headers,
            body,
            url=shown(self._opened.url),
            request_id=self._request_id,
        )
        if isinstance(result, StreamResponse):
            self._ready.append(Event(result))

    async def _read_on(self) -> None:
        try:
            chunk = await self._opened.next_chunk()
        except asyncio.CancelledError:
            self._failure = self._lost("the wait for it was cancelled")
            raise
        except DragomanError as error:
            self._failure = error
            raise
        if not self._begun and chunk:
            self._begun = True
            # Some peers announce events and send a bare JSON object; an event stream never starts with a brace.
            if chunk.lstrip()[:1] == b"{":
                await self.read_plain_answer(chunk)
                return
        if chunk:
            self._take(self._reader.feed(chunk))
        else:
            await self._finish()

    async def _finish(self) -> None:
        last = self._reader.close()
        if last is not None:
            self._take([last])
            if isinstance(self._failure, InvalidAgentResponseError):
                self._failure = self._lost("it ended inside an event")
        await self.aclose()

    async def _let_go(self) -> None:
        """The peer has said that it is done: let the answer end in order if it does so soon, then let go of it."""
        try:
            async with asyncio.timeout(_DRAIN_SECONDS):
                while await self._opened.next_chunk():
                    pass
        except (DragomanError, TimeoutError) as error:
            logger.debug("an answer did not end after its last event: %s", type(error).__name__)
        await self.aclose()

    def _take(self, events: list[SseEvent]) -> None:
        """Decode events; a failure waits until those before it were taken."""
        try:
            if self._decoder is not None:
                self._decode_in_order(self._decoder, events)
            else:
                self._decode(events)
        except A2AError as error:
            self._failure = error

    def _decode(self, events: list[SseEvent]) -> None:
        codec = self._codec
        assert not isinstance(codec, ClientDialect)
        decode, op, request_id, ready = codec.decode_event, self._op, self._request_id, self._ready
        for event in events:
            response = decode(op, event.data, request_id=request_id)
            if response is not None:
                number = _number(event.id) if event.id is not None else None
                ready.append(Event(response, number=number))

    def _decode_in_order(self, decoder: StreamDecoder, events: list[SseEvent]) -> None:
        """For a wire whose events have no numbers, and of which one says that it is the last."""
        for event in events:
            if decoder.over:
                break
            self._ready.extend(map(Event, decoder.decode(event.data, event.event)))
        self.concluded = decoder.over

    def _lost(self, why: str) -> ConnectionLostError:
        place = shown(self._opened.url)
        return ConnectionLostError(f"The stream from {place} broke: {why}", url=place)


def _number(event_id: bytes) -> int | None:
    """The number that an SSE id is, None when it is none."""
    return int(event_id) if event_id.isdigit() and len(event_id) < 19 else None
