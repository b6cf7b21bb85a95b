"""What the client halves of the two HTTP bindings of 0.3 have in common: the way down, the way up, the streams. Pure.

Spec: v0.3 §7.1, §7.6, §7.11.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import msgspec

from dragoman.bindings.client_dialect import StreamDecoder
from dragoman.bindings.remote_error import Answer, bad_answer
from dragoman.compat.v03 import cards, downward, upward
from dragoman.compat.v03 import types as v03
from dragoman.compat.v03.reading import read, read_send_result
from dragoman.compat.v03.streaming import Upstream
from dragoman.errors import InvalidParamsError, UnsupportedOperationError
from dragoman.model import (
    CANCEL_TASK,
    CREATE_TASK_PUSH_NOTIFICATION_CONFIG,
    DELETE_TASK_PUSH_NOTIFICATION_CONFIG,
    GET_EXTENDED_AGENT_CARD,
    GET_TASK,
    GET_TASK_PUSH_NOTIFICATION_CONFIG,
    LIST_TASK_PUSH_NOTIFICATION_CONFIGS,
    SEND_MESSAGE,
    SEND_STREAMING_MESSAGE,
    SUBSCRIBE_TO_TASK,
    Empty,
    Operation,
    StreamResponse,
    Task,
    TaskState,
    TaskStatus,
)
from dragoman.model.wire import WireMessage

logger = logging.getLogger("dragoman.client")

VERSION = "0.3"
EXTENSIONS_HEADER = "X-A2A-Extensions"

_DOWN: dict[Operation, Callable[[Any], WireMessage]] = {
    SEND_MESSAGE: downward.down_send,
    SEND_STREAMING_MESSAGE: downward.down_send,
    GET_TASK: downward.down_get,
    CANCEL_TASK: downward.down_cancel,
    SUBSCRIBE_TO_TASK: downward.down_subscribe,
    CREATE_TASK_PUSH_NOTIFICATION_CONFIG: downward.down_create_push,
    GET_TASK_PUSH_NOTIFICATION_CONFIG: downward.down_get_push,
    LIST_TASK_PUSH_NOTIFICATION_CONFIGS: downward.down_list_push,
    DELETE_TASK_PUSH_NOTIFICATION_CONFIG: downward.down_delete_push,
    GET_EXTENDED_AGENT_CARD: lambda request: v03.GetAgentCardRequest(),
}

_UP: dict[type[msgspec.Struct], tuple[type[WireMessage], Callable[[Any], msgspec.Struct]]] = {
    GET_TASK.response: (v03.Task, upward.up_task),
    StreamResponse: (v03.StreamResponse, upward.up_event),
    CREATE_TASK_PUSH_NOTIFICATION_CONFIG.response: (v03.TaskPushNotificationConfig, upward.up_push_config),
    LIST_TASK_PUSH_NOTIFICATION_CONFIGS.response: (
        v03.ListTaskPushNotificationConfigResponse,
        upward.up_list_push_response,
    ),
}


def down_request(op: Operation, request: msgspec.Struct) -> WireMessage:
    """The request as one of 0.3.

    Raises UnsupportedOperationError for what 0.3 does not have, InvalidParamsError for ids that it cannot carry.
    """
    down = _DOWN.get(op)
    if down is None:
        raise lacks(op)
    return down(request)


def lacks(op: Operation) -> UnsupportedOperationError:
    """The error for an operation that 0.3 does not have."""
    return UnsupportedOperationError(f"Protocol 0.3 has no {op.name}", metadata={"operation": op.name})


class ResultReader:
    """Reads the results of one peer. ``raw_bytes``: ``fileWithBytes`` holds content, and not the text of it."""

    def __init__(self, *, raw_bytes: bool = False) -> None:
        self._raw_bytes = raw_bytes
        self._warned = False

    def read(self, answer: Answer, value: Any) -> msgspec.Struct:
        """The response for a JSON value. Raises InvalidAgentResponseError when it is none."""
        try:
            return self._read(answer.op, value)
        except InvalidParamsError as error:
            raise bad_answer(answer, str(error)) from None

    def event(self, answer: Answer, value: Any) -> v03.StreamResponse:
        """An event of a stream, still one of 0.3. Raises InvalidAgentResponseError when it is none."""
        try:
            return read(v03.StreamResponse, value, answer=True, raw_bytes=self._raw_bytes)
        except InvalidParamsError as error:
            raise bad_answer(answer, str(error)) from None

    def _read(self, op: Operation, value: Any) -> msgspec.Struct:
        if op is SEND_MESSAGE:
            return self._sent(value)
        if op is GET_EXTENDED_AGENT_CARD:
            return cards.read_card(value) if isinstance(value, dict) else _no_object()
        if op.response is Empty:
            return Empty()
        kind, up = _UP[op.response]
        return up(read(kind, value, answer=True, raw_bytes=self._raw_bytes))

    def _sent(self, value: Any) -> msgspec.Struct:
        found, only_artifacts = read_send_result(value, raw_bytes=self._raw_bytes)
        if only_artifacts and not self._warned:
            self._warned = True
            logger.warning("the agent answers with artifacts alone: no task and no state; they are taken as a task's")
        return upward.up_send_response(found)


def _no_object() -> msgspec.Struct:
    raise InvalidParamsError("the card is no object")


class Events:
    """The events of one stream on their way up.

    A subscription that does not begin with the task gets none made up here: the caller asks the agent for it, since one
    without its artifacts would stand for what is known of it.
    """

    def __init__(self, op: Operation) -> None:
        self._bare = op is SUBSCRIBE_TO_TASK
        self._upstream = Upstream()

    @property
    def over(self) -> bool:
        """Whether nothing may follow."""
        return self._upstream.ended

    def up(self, event: v03.StreamResponse) -> list[StreamResponse]:
        """What the caller gets for an event."""
        if self._bare and self._upstream.lacks_task(event):
            self._upstream.open(_known_by_id(event))
        return self._upstream.feed(event)


class Decoder(StreamDecoder):
    """The events of one stream. ``read_event`` makes an event of 0.3 of what came, or None of nothing."""

    def __init__(self, op: Operation, read_event: Callable[[bytes, bytes], v03.StreamResponse | None]) -> None:
        self._read_event = read_event
        self._events = Events(op)

    def decode(self, data: bytes, event: bytes = b"") -> list[StreamResponse]:
        """See :class:`~dragoman.bindings.client_dialect.StreamDecoder`."""
        found = self._read_event(data, event)
        if found is None:
            return []
        events = self._events.up(found)
        self.over = self._events.over
        return events


def _known_by_id(event: v03.StreamResponse) -> Task:
    update = event.status_update or event.artifact_update
    status = TaskStatus(state=TaskState.UNSPECIFIED)
    return (
        Task(id=update.task_id, context_id=update.context_id, status=status) if update else Task(id="", status=status)
    )
