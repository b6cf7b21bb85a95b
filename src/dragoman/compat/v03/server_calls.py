"""What the operations of 0.3 are in terms of ours, whichever way a call came: calls, read, to be run or opened.

A form says how answers and events are written. Spec: 0.3 register, sections 2.6, 7.1, 7.6, 7.7, 7.11.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Protocol, TypeVar

import msgspec
from msgspec.structs import replace

from dragoman.bindings.dialect import Answer, GuestCall
from dragoman.compat.v03 import types as v03
from dragoman.compat.v03.downward import (
    choose_config,
    down_list_push_response,
    down_push_config,
    down_send_response,
    down_task,
)
from dragoman.compat.v03.failures import for_extended_card
from dragoman.compat.v03.server_streams import TaskEvents, settled
from dragoman.errors import A2AError, InternalError, UnsupportedOperationError
from dragoman.http.sse import SseFraming
from dragoman.model import (
    CREATE_TASK_PUSH_NOTIFICATION_CONFIG,
    DELETE_TASK_PUSH_NOTIFICATION_CONFIG,
    GET_EXTENDED_AGENT_CARD,
    GET_TASK,
    GET_TASK_PUSH_NOTIFICATION_CONFIG,
    LIST_TASK_PUSH_NOTIFICATION_CONFIGS,
    SEND_MESSAGE,
    SEND_STREAMING_MESSAGE,
    SUBSCRIBE_TO_TASK,
    AgentCard,
    DeleteTaskPushNotificationConfigRequest,
    GetExtendedAgentCardRequest,
    GetTaskPushNotificationConfigRequest,
    GetTaskRequest,
    ListTaskPushNotificationConfigsRequest,
    ListTaskPushNotificationConfigsResponse,
    Operation,
    SendMessageRequest,
    SendMessageResponse,
    SubscribeToTaskRequest,
    Task,
    TaskPushNotificationConfig,
    WireMessage,
)
from dragoman.ports.operations import CallContext, EventStream, Operations
from dragoman.protocol.lifecycle import TERMINAL

T = TypeVar("T", bound=msgspec.Struct)


class Form(Protocol):
    """How a caller of 0.3 is answered.

    ``key`` names the JSON of its events, which readers of the same key share; ``framing`` is around each.
    """

    key: str
    framing: SseFraming

    @abstractmethod
    def write(self, message: WireMessage) -> Answer:
        """The answer that holds a message of 0.3."""

    @abstractmethod
    def write_nothing(self) -> Answer:
        """The answer of a deletion."""

    @abstractmethod
    def write_card(self, card: AgentCard) -> Answer:
        """The answer that holds an agent card."""

    @abstractmethod
    def write_event(self, event: v03.StreamResponse) -> bytes:
        """The JSON of an event, without what is around it."""

    @abstractmethod
    def write_stream_error(self, error: A2AError) -> bytes:
        """The last event of a stream that broke, framed."""


class V03Call(GuestCall):
    """A call that is answered in a form."""

    streaming = False

    def __init__(self, form: Form) -> None:
        self._form = form
        self.framing = form.framing

    async def run(self, operations: Operations, context: CallContext) -> Answer:
        """See :class:`~dragoman.bindings.dialect.GuestCall`."""
        raise NotImplementedError

    async def open(self, operations: Operations, context: CallContext) -> EventStream:
        """See :class:`~dragoman.bindings.dialect.GuestCall`."""
        raise NotImplementedError

    def encode_stream_error(self, error: A2AError) -> bytes:
        """See :class:`~dragoman.bindings.dialect.GuestCall`."""
        return self._form.write_stream_error(error)


class Send(V03Call):
    """A message whose answer is waited for."""

    def __init__(self, form: Form, request: SendMessageRequest) -> None:
        super().__init__(form)
        self._request = request

    async def run(self, operations: Operations, context: CallContext) -> Answer:
        response = await _call(operations, SEND_MESSAGE, self._request, context, SendMessageResponse)
        return self._form.write(down_send_response(response))


class AboutTask(V03Call):
    """A question for a task, or its cancellation."""

    def __init__(self, form: Form, op: Operation, request: msgspec.Struct) -> None:
        super().__init__(form)
        self._op = op
        self._request = request

    async def run(self, operations: Operations, context: CallContext) -> Answer:
        task = await _call(operations, self._op, self._request, context, Task)
        return self._form.write(down_task(task))


class Stream(V03Call):
    """A message whose task is watched."""

    streaming = True

    def __init__(self, form: Form, request: SendMessageRequest) -> None:
        super().__init__(form)
        self._request = request

    async def open(self, operations: Operations, context: CallContext) -> EventStream:
        stream = await operations.stream(SEND_STREAMING_MESSAGE, self._request, context)
        return TaskEvents(stream, self._form.key, self._form.write_event)


class Resubscribe(V03Call):
    """A task that is watched: as it is now, then what becomes of it. One that is over is shown once. Spec: V03-P17."""

    streaming = True

    def __init__(self, form: Form, task_id: str) -> None:
        super().__init__(form)
        self._task_id = task_id

    async def open(self, operations: Operations, context: CallContext) -> EventStream:
        return TaskEvents(await self._watch(operations, context), self._form.key, self._form.write_event)

    async def _watch(self, operations: Operations, context: CallContext) -> EventStream:
        request = SubscribeToTaskRequest(id=self._task_id)
        try:
            return await operations.stream(SUBSCRIBE_TO_TASK, request, context)
        except UnsupportedOperationError as error:
            if "operation" in error.metadata:  # streams are not offered at all
                raise
            task = await _call(operations, GET_TASK, GetTaskRequest(id=self._task_id), context, Task)
            if task.status.state not in TERMINAL:
                raise
            return settled(task)


class SetPush(V03Call):
    """A webhook that is set."""

    def __init__(self, form: Form, config: TaskPushNotificationConfig) -> None:
        super().__init__(form)
        self._config = config

    async def run(self, operations: Operations, context: CallContext) -> Answer:
        op = CREATE_TASK_PUSH_NOTIFICATION_CONFIG
        config = await _call(operations, op, self._config, context, TaskPushNotificationConfig)
        return self._form.write(down_push_config(config))


class GetPush(V03Call):
    """A webhook; without an id the one that the caller may mean. Spec: 7.7, V03-P18."""

    def __init__(self, form: Form, task_id: str, config_id: str) -> None:
        super().__init__(form)
        self._request = GetTaskPushNotificationConfigRequest(task_id=task_id, id=config_id)

    async def run(self, operations: Operations, context: CallContext) -> Answer:
        task_id, config_id = self._request.task_id, self._request.id
        if config_id:
            op = GET_TASK_PUSH_NOTIFICATION_CONFIG
            config = await _call(operations, op, self._request, context, TaskPushNotificationConfig)
        else:
            config = choose_config(await _list_push(operations, task_id, context), task_id)
        return self._form.write(down_push_config(config))


class ListPush(V03Call):
    """All webhooks of a task, as one page."""

    def __init__(self, form: Form, task_id: str) -> None:
        super().__init__(form)
        self._task_id = task_id

    async def run(self, operations: Operations, context: CallContext) -> Answer:
        configs = await _list_push(operations, self._task_id, context)
        return self._form.write(down_list_push_response(ListTaskPushNotificationConfigsResponse(configs=configs)))


class DeletePush(V03Call):
    """A webhook that is taken away."""

    def __init__(self, form: Form, task_id: str, config_id: str) -> None:
        super().__init__(form)
        self._request = DeleteTaskPushNotificationConfigRequest(task_id=task_id, id=config_id)

    async def run(self, operations: Operations, context: CallContext) -> Answer:
        await operations.call(DELETE_TASK_PUSH_NOTIFICATION_CONFIG, self._request, context)
        return self._form.write_nothing()


class ExtendedCard(V03Call):
    """The extended card. That there is none has its own error. Spec: 7.9, 7.11."""

    async def run(self, operations: Operations, context: CallContext) -> Answer:
        try:
            card = await _call(operations, GET_EXTENDED_AGENT_CARD, GetExtendedAgentCardRequest(), context, AgentCard)
        except A2AError as error:
            raise for_extended_card(error) from error
        return self._form.write_card(card)


async def _list_push(operations: Operations, task_id: str, context: CallContext) -> list[TaskPushNotificationConfig]:
    request = ListTaskPushNotificationConfigsRequest(task_id=task_id)
    kind = ListTaskPushNotificationConfigsResponse
    found: list[TaskPushNotificationConfig] = []
    while True:
        page = await _call(operations, LIST_TASK_PUSH_NOTIFICATION_CONFIGS, request, context, kind)
        found += page.configs
        if not page.next_page_token:
            return found
        request = replace(request, page_token=page.next_page_token)


async def _call(
    operations: Operations, op: Operation, request: msgspec.Struct, context: CallContext, kind: type[T]
) -> T:
    response = await operations.call(op, request, context)
    if not isinstance(response, kind):
        raise InternalError
    return response
