"""The task of a message that came again, as its sender is to see it.

Spec: SEND-08, SEND-10, SEND-14, STREAM-03, STREAM-04, AMB-05, AMB-08.
"""

from __future__ import annotations

from msgspec.structs import replace

from dragoman.errors import TaskNotFoundError, UnsupportedOperationError
from dragoman.model import (
    GET_TASK,
    SUBSCRIBE_TO_TASK,
    GetTaskRequest,
    Message,
    SendMessageRequest,
    SendMessageResponse,
    StreamResponse,
    SubscribeToTaskRequest,
    Task,
    TaskState,
)
from dragoman.ports.operations import CallContext, Event, EventStream, Operations
from dragoman.protocol.lifecycle import is_settled, is_terminal, with_history


class MessageAgain(EventStream):
    """The stream of one direct message, or of nothing."""

    def __init__(self, message: Message | None) -> None:
        self.message = message
        self._events = [] if message is None else [Event(StreamResponse(message=message))]

    async def next_batch(self) -> list[Event]:
        events, self._events = self._events, []
        return events

    async def aclose(self) -> None:
        self._events = []


class Seen:
    """A task, and the stream of what comes after; None when it is over."""

    def __init__(
        self, operations: Operations, context: CallContext, tenant: str, first: Event, stream: EventStream | None
    ) -> None:
        task = first.response.task
        assert task is not None
        self.task = task
        self._operations = operations
        self._context = context
        self._tenant = tenant
        self._first = first
        self._stream = stream

    async def answer(self, request: SendMessageRequest) -> SendMessageResponse:
        """The answer to SendMessage: at once or when the task is settled, as it is asked for."""
        configuration = request.configuration
        try:
            if configuration is None or not configuration.return_immediately:
                await self._wait(request.message.message_id)
        finally:
            await self.aclose()
        length = None if configuration is None else configuration.history_length
        return SendMessageResponse(task=with_history(self.task, length))

    async def _wait(self, message_id: str) -> None:
        # A message that is being taken is not in the history yet: the state may be that of before.
        settled = is_settled(self.task.status.state) and any(m.message_id == message_id for m in self.task.history)
        if self._stream is None or settled:
            return
        while batch := await self._stream.next_batch():
            if any(_state(event) in _SETTLED for event in batch):
                break
        found = GetTaskRequest(id=self.task.id, tenant=self._tenant)
        task = await self._operations.call(GET_TASK, found, self._context)
        assert isinstance(task, Task)
        self.task = task

    def follow(self, request: SendMessageRequest) -> EventStream:
        """The stream of SendStreamingMessage: the task as it is, and what comes after."""
        configuration = request.configuration
        length = None if configuration is None else configuration.history_length
        task = with_history(self.task, length)
        first = self._first if task is self.task else Event(StreamResponse(task=task), number=self._first.number)
        return _Following(first, self._stream)

    async def aclose(self) -> None:
        """Let go of the stream."""
        if self._stream is not None:
            await self._stream.aclose()


_SETTLED = frozenset(state for state in TaskState if is_settled(state))


def _state(event: Event) -> TaskState | int | None:
    response = event.response
    if response.status_update is not None:
        return response.status_update.status.state
    return response.task.status.state if response.task is not None else None


class _Following(EventStream):
    """A task and its events up to where the stream of a message ends (AMB-05)."""

    def __init__(self, first: Event, stream: EventStream | None) -> None:
        self._first: Event | None = first
        self._stream = stream

    async def next_batch(self) -> list[Event]:
        if self._first is not None:
            first, self._first = self._first, None
            if _state(first) is TaskState.INPUT_REQUIRED:
                await self.aclose()
            return [first]
        batch = await self._stream.next_batch() if self._stream is not None else []
        for index, event in enumerate(batch):
            if _state(event) is TaskState.INPUT_REQUIRED:
                await self.aclose()
                return batch[: index + 1]
        return batch

    async def aclose(self) -> None:
        self._first = None
        stream, self._stream = self._stream, None
        if stream is not None:
            await stream.aclose()


async def see(operations: Operations, context: CallContext, task_id: str, request: SendMessageRequest) -> Seen | None:
    """The task, once it is stored; None when the caller has no such task."""
    own = replace(context, last_event_id=None, plan=None, activated=())
    tenant = request.tenant
    try:
        subscribed = SubscribeToTaskRequest(id=task_id, tenant=tenant)
        stream = await operations.stream(SUBSCRIBE_TO_TASK, subscribed, own)
    except TaskNotFoundError:
        return None
    except UnsupportedOperationError:
        return await _as_it_is(operations, own, task_id, tenant)
    try:
        batch = await stream.next_batch()
    except BaseException:
        await stream.aclose()
        raise
    if not batch or batch[0].response.task is None:
        await stream.aclose()
        return await _as_it_is(operations, own, task_id, tenant)
    if is_terminal(batch[0].response.task.status.state):
        await stream.aclose()
        return Seen(operations, own, tenant, batch[0], None)
    return Seen(operations, own, tenant, batch[0], stream)


async def _as_it_is(operations: Operations, context: CallContext, task_id: str, tenant: str) -> Seen:
    task = await operations.call(GET_TASK, GetTaskRequest(id=task_id, tenant=tenant), context)
    assert isinstance(task, Task)
    return Seen(operations, context, tenant, Event(StreamResponse(task=task)), None)
