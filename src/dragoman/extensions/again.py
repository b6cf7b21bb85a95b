"""Messages that come again: the server's half of idempotent sends.

Spec: SEND-08, SEND-10, SEND-14, STREAM-04, AMB-05, AUTH-08, EXT-12.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
import uuid
from collections import OrderedDict

import msgspec
from msgspec.structs import replace

from dragoman.errors import FieldViolation, InvalidParamsError, TaskNotFoundError
from dragoman.extensions.first import FirstCalls
from dragoman.extensions.hooks import Hooks
from dragoman.extensions.seeing import MessageAgain, Seen, see
from dragoman.model import (
    Message,
    Operation,
    Role,
    SendMessageRequest,
    SendMessageResponse,
    Task,
)
from dragoman.ports.operations import CallContext, EventStream, Operations, SendPlan
from dragoman.protocol.extensions import IDEMPOTENT_SENDS
from dragoman.protocol.lifecycle import is_terminal

Key = tuple[str, str, str]
_ENCODER = msgspec.json.Encoder(order="sorted")


class _Sent:
    """A message that was taken, or is about to be: ``known`` is set once it is known what it began."""

    __slots__ = ("digest", "known", "reply", "task_id", "until")

    def __init__(self, digest: bytes, until: float) -> None:
        self.digest = digest
        self.until = until
        self.known = asyncio.Event()
        self.task_id = ""
        self.reply: Message | None = None

    def taken(self, task_id: str) -> None:
        """The message is part of a task."""
        self.task_id = task_id
        self.known.set()


class Again(Hooks):
    """Answers the messages of one agent that came before. ``window`` in seconds; ``remembered``: entries in memory."""

    uri = IDEMPOTENT_SENDS

    def __init__(self, agent: str, window: float, remembered: int) -> None:
        self._agent = agent
        self._window = window
        self._remembered = remembered
        self._sent: OrderedDict[Key, _Sent] = OrderedDict()
        self._first = FirstCalls()

    async def call(
        self, op: Operation, request: msgspec.Struct, context: CallContext, inner: Operations
    ) -> msgspec.Struct:
        if not isinstance(request, SendMessageRequest):
            return await inner.call(op, request, context)
        begun = await self._begin(request, context, inner)
        if isinstance(begun, Seen):
            return await begun.answer(request)
        if isinstance(begun, Message):
            return SendMessageResponse(message=begun)
        return await self._first.run(self._send(op, request, context, inner, begun), begun.known)

    async def stream(
        self, op: Operation, request: msgspec.Struct, context: CallContext, inner: Operations
    ) -> EventStream:
        if not isinstance(request, SendMessageRequest):
            return await inner.stream(op, request, context)
        begun = await self._begin(request, context, inner)
        if isinstance(begun, Seen):
            return begun.follow(request)
        if isinstance(begun, Message):
            return MessageAgain(begun)
        return await self._first.run(self._open(op, request, context, inner, begun), begun.known)

    # The first time.

    async def _send(
        self, op: Operation, request: SendMessageRequest, context: CallContext, inner: Operations, begun: _Sent
    ) -> msgspec.Struct:
        try:
            response = await inner.call(op, request, context)
            if isinstance(response, SendMessageResponse):
                begun.reply = response.message
            return response
        finally:
            self._settle(request, context, begun)

    async def _open(
        self, op: Operation, request: SendMessageRequest, context: CallContext, inner: Operations, begun: _Sent
    ) -> EventStream:
        try:
            stream = await inner.stream(op, request, context)
            if not begun.task_id:  # a direct reply is the only event of its stream
                stream = MessageAgain(await _only_message(stream))
                begun.reply = stream.message
            return stream
        finally:
            self._settle(request, context, begun)

    # What is known of a message.

    async def _begin(
        self, request: SendMessageRequest, context: CallContext, inner: Operations
    ) -> _Sent | Seen | Message:
        """A new entry, whose message is to be sent on, or what the message has begun before."""
        key, digest = _key(request, context), _digest(request.message)
        while (sent := self._find(key)) is not None:
            found = await self._recall(sent, digest, request, context, inner)
            if found is not None:
                return found
            if self._sent.get(key) is sent:  # nothing came of it, or it is too long ago
                del self._sent[key]
        sent = self._enter(key, digest)
        try:
            return await self._look(request, context, inner, sent)
        except BaseException:
            self._settle(request, context, sent)
            raise

    async def _recall(
        self, sent: _Sent, digest: bytes, request: SendMessageRequest, context: CallContext, inner: Operations
    ) -> Seen | Message | None:
        """What a message that is remembered has begun, once that is known."""
        if not sent.known.is_set() and sent.digest != digest:
            raise _conflict()
        await sent.known.wait()
        seen = await see(inner, context, sent.task_id, request) if sent.task_id else None
        if seen is not None and self._is_old(seen.task):
            seen = None
        found = sent.reply or seen
        if found is not None and sent.digest != digest:
            if seen is not None:
                await seen.aclose()
            raise _conflict()
        return found

    async def _look(
        self, request: SendMessageRequest, context: CallContext, inner: Operations, sent: _Sent
    ) -> _Sent | Seen:
        """Look in the tasks for the message."""
        if request.message.task_id:
            seen, task_id = await self._look_in_history(request, context, inner), ""
        else:
            seen, task_id = await self._look_for_task(request, context, inner)
        if seen is not None:
            sent.taken(seen.task.id)
            return seen
        context.plan = SendPlan(task_id, sent.taken)
        return sent

    async def _look_in_history(
        self, request: SendMessageRequest, context: CallContext, inner: Operations
    ) -> Seen | None:
        message = request.message
        try:
            seen = await see(inner, context, message.task_id, request)
        except TaskNotFoundError:
            return None
        kept = None if seen is None else _kept(seen.task, message.message_id)
        if seen is not None and kept is None:
            await seen.aclose()
            return None
        await self._check(seen, kept, message)
        return seen

    async def _look_for_task(
        self, request: SendMessageRequest, context: CallContext, inner: Operations
    ) -> tuple[Seen | None, str]:
        """The task that the message began; else None, and the id of the one that it is to begin."""
        key, generation = _key(request, context), 0
        while True:
            task_id = _task_id(self._agent, key, generation)
            seen = await see(inner, context, task_id, request)
            if seen is None or not self._is_old(seen.task):
                break
            await seen.aclose()
            generation += 1
        if seen is not None:
            await self._check(seen, _kept(seen.task, request.message.message_id), request.message)
        return seen, task_id

    async def _check(self, seen: Seen | None, kept: Message | None, message: Message) -> None:
        if seen is None or kept is None:
            return
        if _digest(kept) != _digest(message) or message.context_id not in ("", kept.context_id):
            await seen.aclose()
            raise _conflict()

    def _is_old(self, task: Task) -> bool:
        stamp = task.status.timestamp
        return is_terminal(task.status.state) and stamp is not None and time.time() - stamp.ms / 1000 > self._window

    # Entries.

    def _find(self, key: Key) -> _Sent | None:
        sent = self._sent.get(key)
        if sent is not None and sent.known.is_set() and sent.until < time.monotonic():
            del self._sent[key]
            return None
        return sent

    def _enter(self, key: Key, digest: bytes) -> _Sent:
        sent = self._sent[key] = _Sent(digest, time.monotonic() + self._window)
        if len(self._sent) > self._remembered:
            oldest, other = self._sent.popitem(last=False)
            if not other.known.is_set():  # it is still under way
                self._sent[oldest] = other
        return sent

    def _settle(self, request: SendMessageRequest, context: CallContext, sent: _Sent) -> None:
        """The call is over: what is not known now will not be."""
        sent.known.set()
        key = _key(request, context)
        if not sent.task_id and sent.reply is None and self._sent.get(key) is sent:
            del self._sent[key]


async def _only_message(stream: EventStream) -> Message | None:
    async with stream:
        batch = await stream.next_batch()
    return batch[0].response.message if batch else None


def _key(request: SendMessageRequest, context: CallContext) -> Key:
    return context.tenant or request.tenant, context.caller.id, request.message.message_id


def _task_id(agent: str, key: Key, generation: int) -> str:
    digest = hashlib.sha256(_ENCODER.encode([agent, *key, generation])).digest()
    return str(uuid.UUID(bytes=digest[:16], version=4))


def _digest(message: Message) -> bytes:
    """What a message says, whatever task it belongs to; the order of members does not matter."""
    return hashlib.sha256(_ENCODER.encode(replace(message, context_id="", task_id=""))).digest()


def _kept(task: Task, message_id: str) -> Message | None:
    return next((each for each in task.history if each.message_id == message_id and each.role is Role.USER), None)


def _conflict() -> InvalidParamsError:
    why = "was used before, for a message with another content"
    return InvalidParamsError(violations=[FieldViolation("message.messageId", why)])
