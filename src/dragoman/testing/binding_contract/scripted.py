"""Operations that answer what a test has written down, and remember what they were asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from dragoman.model import (
    CREATE_TASK_PUSH_NOTIFICATION_CONFIG,
    LIST_TASKS,
    OPERATIONS,
    SEND_MESSAGE,
    SEND_STREAMING_MESSAGE,
    Message,
    Operation,
    Part,
    Role,
    StreamResponse,
    TaskState,
    TaskStatus,
    TaskStatusUpdateEvent,
    WireMessage,
)
from dragoman.ports.operations import CallContext, Event, EventStream, Operations

Answer = msgspec.Struct | Exception
Events = Sequence[Event | Exception]


class Scripted:
    """An interceptor for a server that lets nothing through: ``reach(agent, interceptors=[scripted])``.

    ``answers`` and ``events`` are by the operation's name; ``activate`` are extensions that every call finds active.
    ``seen`` is what was asked, with its context.
    """

    def __init__(
        self,
        answers: dict[str, Answer] | None = None,
        events: dict[str, Events] | None = None,
        *,
        activate: tuple[str, ...] = (),
    ) -> None:
        self.answers = answers or {}
        self.events = events or {}
        self.activate = activate
        self.seen: list[tuple[Operation, msgspec.Struct, CallContext]] = []

    def __call__(self, inner: Operations) -> Operations:
        """Take the place of the operations."""
        return self

    async def call(self, op: Operation, request: msgspec.Struct, context: CallContext) -> msgspec.Struct:
        """See :class:`~dragoman.ports.operations.Operations`."""
        self._note(op, request, context)
        answer = self.answers[op.name]
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def stream(self, op: Operation, request: msgspec.Struct, context: CallContext) -> EventStream:
        """See :class:`~dragoman.ports.operations.Operations`."""
        self._note(op, request, context)
        answer = self.answers.get(op.name)
        if isinstance(answer, Exception):
            raise answer
        return ScriptedStream(self.events[op.name])

    def _note(self, op: Operation, request: msgspec.Struct, context: CallContext) -> None:
        self.seen.append((op, request, context))
        context.activated = self.activate


class ScriptedStream(EventStream):
    """Events one by one; an exception among them ends the stream."""

    def __init__(self, events: Events) -> None:
        self._events = list(events)

    async def next_batch(self) -> list[Event]:
        """The next one."""
        if not self._events:
            return []
        event = self._events.pop(0)
        if isinstance(event, Exception):
            raise event
        return [event]

    async def aclose(self) -> None:
        """No more."""
        self._events = []


def sample_message(text: str = "hello", **members: Any) -> Message:
    """A message of a user."""
    return Message(message_id="m-1", role=Role.USER, parts=[Part(text=text)], **members)


def sample_request(op: Operation) -> WireMessage:
    """A request of an operation, with every field that it requires and some that it does not."""
    if op in (SEND_MESSAGE, SEND_STREAMING_MESSAGE):
        return op.request(message=sample_message("ünïcode", metadata={"n": 1}), metadata={"deep": [{"a": None}]})
    if op is LIST_TASKS:
        return op.request(context_id="c/1", page_size=7, status=TaskState.WORKING, include_artifacts=True)
    given: dict[str, Any] = {"task_id": "t/1 ?", "id": "i-1", "url": "https://example.com/hook"}
    names = {field.name for field in msgspec.structs.fields(op.request)}
    if op is not CREATE_TASK_PUSH_NOTIFICATION_CONFIG:
        names.discard("url")
    return op.request(**{name: value for name, value in given.items() if name in names})


def status_event(number: int, text: str = "", state: TaskState = TaskState.WORKING) -> Event:
    """A status update that tells its number in its text, if nothing else is to be said."""
    message = Message(message_id=f"m-{number}", role=Role.AGENT, parts=[Part(text=text or str(number))])
    update = TaskStatusUpdateEvent(task_id="t-1", context_id="c-1", status=TaskStatus(state=state, message=message))
    return Event(StreamResponse(status_update=update), number=number)


def text_of(event: Event) -> str:
    """The text in a status update."""
    update = event.response.status_update
    assert update is not None
    assert update.status.message is not None
    return str(update.status.message.parts[0].text)


STREAMS = tuple(op for op in OPERATIONS.values() if op.streaming)
