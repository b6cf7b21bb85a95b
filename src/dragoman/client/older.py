"""An agent of version 0.3, made to behave like one of the present version.

What 0.3 has no words for is refused here, without a request; what its servers do in several ways is made one way:

* tasks cannot be listed, and a tenant cannot be named;
* a ``history_length`` is not heeded by all servers, and 0 means "all" to many: what comes is cut;
* a subscription may be refused because the task has ended, may be broken off, may be answered with nothing at all, or
  with live events only: then the task itself is asked for, and comes first, as in the present version;
* some servers do not wait when they are asked to: with ``poll`` the task is asked for until it is settled.

Spec: 7.2, 7.3, 7.6 and 7.11 of the register of version 0.3; SUB-01, SUB-07, STREAM-11.
"""

from __future__ import annotations

import asyncio

import msgspec
from msgspec.structs import replace

from dragoman.client.catching_up import CatchUp
from dragoman.client.reconnect import backoff
from dragoman.client.running import Poll
from dragoman.errors import (
    A2AError,
    ConnectionLostError,
    InvalidAgentResponseError,
    InvalidParamsError,
    RequestTimeoutError,
    StreamInterruptedError,
    TaskNotFoundError,
    UnsupportedOperationError,
)
from dragoman.model import (
    GET_TASK,
    LIST_TASKS,
    SUBSCRIBE_TO_TASK,
    GetTaskRequest,
    OpenMessage,
    Operation,
    SendMessageRequest,
    SendMessageResponse,
    StreamResponse,
    SubscribeToTaskRequest,
    Task,
)
from dragoman.ports.operations import CallContext, Event, EventStream, Operations
from dragoman.protocol.lifecycle import is_settled, with_history

_REFUSED = (UnsupportedOperationError, InvalidParamsError, TaskNotFoundError)
"""What a subscription to a task that has ended, or that nothing works on, is answered with."""


class OlderAgent:
    """Operations of an agent of version 0.3. ``poll``: how to follow a task that it did not wait for; None: not."""

    def __init__(self, inner: Operations, *, poll: Poll | None = None) -> None:
        self._inner = inner
        self._poll = poll

    async def call(self, op: Operation, request: msgspec.Struct, context: CallContext) -> msgspec.Struct:
        """See :class:`~dragoman.ports.operations.Operations`. Raises UnsupportedOperationError for what 0.3 lacks."""
        _refuse(op, request)
        response = await self._inner.call(op, request, context)
        if self._poll is not None and _should_have_waited(request, response):
            response = await self._settled(response, context, self._poll)
        return _cut(response, _history_length(request))

    async def stream(self, op: Operation, request: msgspec.Struct, context: CallContext) -> EventStream:
        """See :class:`~dragoman.ports.operations.Operations`."""
        _refuse(op, request)
        if isinstance(request, SubscribeToTaskRequest):
            return await self._subscribe(request, context)
        stream = await self._inner.stream(op, request, context)
        length = _history_length(request)
        return stream if length is None else _Cut(stream, length)

    async def _subscribe(self, request: SubscribeToTaskRequest, context: CallContext) -> EventStream:
        later = replace(context, activated=(), last_event_id=None)
        try:
            stream = await self._inner.stream(SUBSCRIBE_TO_TASK, request, context)
        except _REFUSED as error:
            return _Subscription(self._inner, request.id, later, None, error)
        return _Subscription(self._inner, request.id, later, stream, None)

    async def _settled(self, answer: msgspec.Struct, context: CallContext, poll: Poll) -> msgspec.Struct:
        """Ask for the task until it is settled. The time that the call has is kept."""
        assert isinstance(answer, SendMessageResponse)
        assert answer.task is not None
        task, count, limit = answer.task, 0, asyncio.timeout(context.timeout)
        try:
            async with limit:
                while not is_settled(task.status.state):
                    await asyncio.sleep(backoff(count, poll.first, poll.longest, 1.5))
                    task, count = await _get_task(self._inner, task.id, context), count + 1
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise RequestTimeoutError(f"the task {task.id} was not settled in {context.timeout:g} s") from error
        return SendMessageResponse(task=task)


class _Subscription(EventStream):
    """The events of a task: its snapshot first, whatever the agent begins with."""

    def __init__(
        self,
        operations: Operations,
        task_id: str,
        context: CallContext,
        stream: EventStream | None,
        refusal: A2AError | ConnectionLostError | None,
    ) -> None:
        self._operations = operations
        self._task_id = task_id
        self._context = context
        self._stream = stream
        self._refusal = refusal
        self._early: list[Event] | None = None
        self._begun = False
        self._catch_up: CatchUp | None = None

    async def next_batch(self) -> list[Event]:
        """See :class:`~dragoman.ports.operations.EventStream`."""
        if not self._begun:
            return await self._begin()
        while self._stream is not None and (batch := await self._stream.next_batch()):
            news = self._news(batch)
            if news:
                return news
        self.concluded = self.concluded or (self._stream is not None and self._stream.concluded)
        return []

    async def aclose(self) -> None:
        """Let go of the stream. Safe to call twice."""
        if self._stream is not None:
            await self._stream.aclose()

    async def _begin(self) -> list[Event]:
        """The first events. May be called again when it was cancelled: what it has read so far is kept."""
        if self._early is None and self._refusal is None:
            assert self._stream is not None
            try:
                self._early = await self._stream.next_batch()
            except (*_REFUSED, ConnectionLostError) as error:  # some break off instead of refusing
                self._refusal = error
        early = self._early or []
        if not early and self._refusal is None:
            self._refusal = UnsupportedOperationError("The agent answered the subscription with nothing")
        if early and early[0].response.task is not None:
            self._begun = True
            return early
        return await self._begin_with_snapshot(early)

    async def _begin_with_snapshot(self, early: list[Event]) -> list[Event]:
        task = await self._snapshot()
        self._begun = True
        first = Event(StreamResponse(task=task))
        if self._refusal is not None:
            self.concluded = True
            await self._end()
            return [first]
        self._catch_up = CatchUp(task, [event.response for event in early])
        return [first, *self._news(early)]

    async def _snapshot(self) -> Task:
        try:
            task = await _get_task(self._operations, self._task_id, self._context)
        except TaskNotFoundError as error:
            raise error if isinstance(self._refusal, ConnectionLostError) else self._refusal or error from None
        if self._refusal is not None and not is_settled(task.status.state):
            if isinstance(self._refusal, ConnectionLostError):
                raise self._refusal
            text = "The agent does not let the task be followed now; GetTask still works"
            raise StreamInterruptedError(text, task_id=self._task_id) from self._refusal
        return task

    def _news(self, batch: list[Event]) -> list[Event]:
        if self._catch_up is None:
            return batch
        return [event for event in batch if self._catch_up.news([event.response])]

    async def _end(self) -> None:
        stream, self._stream = self._stream, None
        if stream is not None:
            await stream.aclose()


class _Cut(EventStream):
    """A stream whose tasks have no more history than was asked for."""

    def __init__(self, stream: EventStream, length: int) -> None:
        self._stream = stream
        self._length = length

    async def next_batch(self) -> list[Event]:
        """See :class:`~dragoman.ports.operations.EventStream`."""
        batch = await self._stream.next_batch()
        self.concluded = self._stream.concluded
        return [self._cut(event) for event in batch]

    async def aclose(self) -> None:
        """Let go of the stream. Safe to call twice."""
        await self._stream.aclose()

    def _cut(self, event: Event) -> Event:
        task = event.response.task
        if task is None or len(task.history) <= self._length:
            return event
        return Event(StreamResponse(task=with_history(task, self._length)), number=event.number)


async def _get_task(operations: Operations, task_id: str, context: CallContext) -> Task:
    task = await operations.call(GET_TASK, GetTaskRequest(id=task_id), replace(context, activated=()))
    if not isinstance(task, Task):
        raise InvalidAgentResponseError(f"GetTask was answered with {type(task).__name__}")
    return task


def _refuse(op: Operation, request: msgspec.Struct) -> None:
    """Raise UnsupportedOperationError for what cannot be said in 0.3."""
    if op is LIST_TASKS:
        text = "The agent speaks A2A 0.3, in which tasks cannot be listed"
        raise UnsupportedOperationError(text, metadata={"operation": op.name})
    if op.request is OpenMessage:
        text = "The agent speaks A2A 0.3, in which extensions have no methods here"
        raise UnsupportedOperationError(text, metadata={"operation": op.name})
    if getattr(request, "tenant", ""):
        text = "The agent speaks A2A 0.3, in which no tenant can be named"
        raise UnsupportedOperationError(text, metadata={"operation": op.name})


def _history_length(request: msgspec.Struct) -> int | None:
    if isinstance(request, SendMessageRequest):
        return request.configuration.history_length if request.configuration is not None else None
    return request.history_length if isinstance(request, GetTaskRequest) else None


def _should_have_waited(request: msgspec.Struct, response: msgspec.Struct) -> bool:
    if not isinstance(request, SendMessageRequest) or not isinstance(response, SendMessageResponse):
        return False
    waits = request.configuration is None or not request.configuration.return_immediately
    task = response.task
    return waits and task is not None and bool(task.id) and not is_settled(task.status.state)


def _cut(response: msgspec.Struct, length: int | None) -> msgspec.Struct:
    if length is None:
        return response
    if isinstance(response, Task):
        return with_history(response, length)
    if isinstance(response, SendMessageResponse) and response.task is not None:
        return SendMessageResponse(task=with_history(response.task, length))
    return response
