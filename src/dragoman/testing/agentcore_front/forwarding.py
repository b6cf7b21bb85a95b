"""Passing a call on to a container, and its answer back.

Theory. A stream goes through event by event as it comes; any other answer is read to its end first, so that whatever
goes wrong on the way can still be told by a status. Once a stream has begun, a fault can only cut the connection.

Spec: AC-F-06, AC-F-10, AC-F-11.
"""

from __future__ import annotations

import asyncio
import time

import msgspec

from dragoman.errors import DragomanError
from dragoman.http.asgi import Receive, Send
from dragoman.http.client import HttpClient, OpenAnswer
from dragoman.testing.agentcore_front.asking import CARD_PATH
from dragoman.testing.agentcore_front.contract import Contract
from dragoman.testing.agentcore_front.events import EventCutter, EventTooLargeError
from dragoman.testing.agentcore_front.faults import Truncate
from dragoman.testing.agentcore_front.recording import Forwarded
from dragoman.testing.agentcore_front.refusals import Fault, Refusal
from dragoman.testing.agentcore_front.routes import Kind
from dragoman.testing.agentcore_front.serving import answer, begin_answer, cut
from dragoman.testing.agentcore_front.settings import FrontSettings
from dragoman.testing.agentcore_front.upstreams import Instance


class Passed(msgspec.Struct, kw_only=True):
    """One call on its way: what goes to the container, and how the caller is answered.

    ``back``: headers of the answer beside its content type; ``is_new``: whether the session began with it.
    """

    kind: Kind
    headers: dict[str, str]
    body: bytes
    back: dict[str, str]
    is_new: bool
    truncate: Truncate | None
    send: Send
    receive: Receive


class Forwarding:
    """Passes calls on. Raises Refusal as long as no answer has begun, and CutError after it cut the connection."""

    def __init__(self, http: HttpClient, settings: FrontSettings, contract: Contract) -> None:
        self._http = http
        self._path = settings.path
        self._limits = settings.limits
        self._scale = settings.time_scale
        self._contract = contract

    def request(self, instance: Instance, call: Passed) -> Forwarded:
        """What the container is sent."""
        path = self._path if call.kind is Kind.CALL else self._path.rstrip("/") + CARD_PATH
        return Forwarded(instance.url + path, call.headers)

    async def pass_on(self, request: Forwarded, call: Passed) -> None:
        """Make the request, and answer."""
        ends = time.monotonic() + self._limits.call_s * self._scale
        first = self._limits.init_s if call.is_new else self._limits.call_s
        opened = await self._open(request, call, first * self._scale)
        try:
            if call.kind is Kind.CALL:
                self._contract.check_status(opened.status)
            if opened.status >= 300:
                raise Refusal(Fault.AGENT_FAILED)
            if opened.headers.get("content-type", "").lower().startswith("text/event-stream"):
                await self._stream(opened, call)
            else:
                await self._whole(opened, call, ends)
        finally:
            await opened.aclose()

    async def _open(self, request: Forwarded, call: Passed, limit: float) -> OpenAnswer:
        verb = "POST" if call.kind is Kind.CALL else "GET"
        try:
            return await self._http.open(verb, request.url, headers=request.headers, body=call.body, timeout=limit)
        except DragomanError as error:
            raise Refusal(Fault.AGENT_FAILED) from error

    async def _whole(self, opened: OpenAnswer, call: Passed, ends: float) -> None:
        try:
            async with asyncio.timeout(max(0.0, ends - time.monotonic())):
                body = await opened.read(self._limits.body_bytes)
        except (DragomanError, TimeoutError) as error:
            raise Refusal(Fault.AGENT_FAILED) from error
        if call.kind is Kind.CALL:
            self._contract.check_body(body)
        headers = _headers(opened, call)
        if call.truncate is None:
            await answer(call.send, 200, body, headers)
            return
        await begin_answer(call.send, 200, {**headers, "content-length": str(len(body))})
        await call.send({"type": "http.response.body", "body": body[: len(body) // 2], "more_body": True})
        await cut(call.receive)

    async def _stream(self, opened: OpenAnswer, call: Passed) -> None:
        events = EventCutter(self._limits.event_bytes)
        ends = time.monotonic() + self._limits.stream_s * self._scale
        await begin_answer(call.send, 200, _headers(opened, call))
        await self._cut_when_due(events, call)
        try:
            while chunk := await _next(opened, None if not events.at_border else ends):
                for piece, event in events.feed(chunk):
                    await call.send({"type": "http.response.body", "body": piece, "more_body": True})
                    if event is not None:
                        self._contract.check_event(event)
                        await self._cut_when_due(events, call)
        except (DragomanError, EventTooLargeError):
            await cut(call.receive)
        await call.send({"type": "http.response.body", "body": b""})

    async def _cut_when_due(self, events: EventCutter, call: Passed) -> None:
        if call.truncate is not None and events.events >= call.truncate.after_events:
            await cut(call.receive)


async def _next(opened: OpenAnswer, ends: float | None) -> bytes:
    """The next bytes; none when the time of the stream is over, which may only be between two events."""
    if ends is None:
        return await opened.next_chunk()
    try:
        async with asyncio.timeout(max(0.0, ends - time.monotonic())):
            return await opened.next_chunk()
    except TimeoutError:
        return b""


def _headers(opened: OpenAnswer, call: Passed) -> dict[str, str]:
    kind = opened.headers.get("content-type")
    return {**call.back, **({"content-type": kind} if kind else {})}
