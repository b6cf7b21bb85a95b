"""Downward: messages of protocol 1.0 as messages of 0.3. Pure.

What 0.3 has no place for is left out: tenants, media types and file names of texts and data. A value of a data part
that is no object is wrapped, see :data:`~dragoman.compat.v03.upward.WRAPPED`. Messages of agents that forgot their id
get one, the same each time, since 0.3 readers refuse a message without (B153). Lists and metadata may be shared with
the message that was given.

Spec: v0.3 §7.2 to §7.7.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from msgspec import UNSET

from dragoman.compat.v03 import names
from dragoman.compat.v03 import types as v03
from dragoman.compat.v03.upward import WRAPPED
from dragoman.errors import TaskNotFoundError
from dragoman.model import (
    Artifact,
    AuthenticationInfo,
    CancelTaskRequest,
    DeleteTaskPushNotificationConfigRequest,
    GetTaskPushNotificationConfigRequest,
    GetTaskRequest,
    ListTaskPushNotificationConfigsRequest,
    ListTaskPushNotificationConfigsResponse,
    Message,
    Part,
    SendMessageConfiguration,
    SendMessageRequest,
    SendMessageResponse,
    StreamResponse,
    SubscribeToTaskRequest,
    Task,
    TaskArtifactUpdateEvent,
    TaskPushNotificationConfig,
    TaskState,
    TaskStatus,
    TaskStatusUpdateEvent,
    encode_json,
)
from dragoman.protocol.lifecycle import TERMINAL

A = TypeVar("A")
B = TypeVar("B")

FINAL = TERMINAL | {TaskState.INPUT_REQUIRED}
"""States with which a stream of 0.3 ends. AUTH_REQUIRED is none: work goes on behind it. Spec: v0.3 §7.6."""


# Content.


def down_message(message: Message) -> v03.Message:
    """A message, always with an id."""
    return v03.Message(
        message_id=message.message_id or _derived_id(message),
        context_id=message.context_id,
        task_id=message.task_id,
        role=message.role,
        content=[down_part(part) for part in message.parts],
        metadata=message.metadata,
        extensions=message.extensions,
        reference_task_ids=message.reference_task_ids,
    )


def _derived_id(message: Message) -> str:
    """An id that is the same for the same message, whenever and wherever it is read."""
    return f"m-{hashlib.sha256(encode_json(message)).hexdigest()[:24]}"


def down_part(part: Part) -> v03.Part:
    """A part. File name and media type of texts and data are lost: 0.3 has no place for them."""
    if part.text is not None:
        return v03.Part(text=part.text, metadata=part.metadata)
    if part.raw is not None or part.url is not None:
        return v03.Part(file=_down_file(part), metadata=part.metadata)
    if part.data is not UNSET:
        return _down_data(part.data, part.metadata)
    return v03.Part(metadata=part.metadata)


def _down_file(part: Part) -> v03.FilePart:
    return v03.FilePart(file_with_bytes=part.raw, file_with_uri=part.url, mime_type=part.media_type, name=part.filename)


def _down_data(data: Any, metadata: dict[str, Any] | None) -> v03.Part:
    if isinstance(data, dict):
        return v03.Part(data=v03.DataPart(data=data), metadata=metadata)
    return v03.Part(data=v03.DataPart(data={"value": data}), metadata={**(metadata or {}), WRAPPED: True})


def down_artifact(artifact: Artifact) -> v03.Artifact:
    """An artifact."""
    return v03.Artifact(
        artifact_id=artifact.artifact_id,
        name=artifact.name,
        description=artifact.description,
        parts=[down_part(part) for part in artifact.parts],
        metadata=artifact.metadata,
        extensions=artifact.extensions,
    )


def down_status(status: TaskStatus) -> v03.TaskStatus:
    """A status. An absent message stays absent. Spec: V03-P24."""
    return v03.TaskStatus(state=status.state, update=_maybe(down_message, status.message), timestamp=status.timestamp)


def down_task(task: Task) -> v03.Task:
    """A task."""
    return v03.Task(
        id=task.id,
        context_id=task.context_id,
        status=down_status(task.status),
        artifacts=[down_artifact(artifact) for artifact in task.artifacts],
        history=[down_message(message) for message in task.history],
        metadata=task.metadata,
    )


# Answers and events.


def down_send_response(response: SendMessageResponse) -> v03.SendMessageResponse:
    """The answer to a message: a task or a message."""
    return v03.SendMessageResponse(task=_maybe(down_task, response.task), msg=_maybe(down_message, response.message))


def down_status_update(event: TaskStatusUpdateEvent) -> v03.TaskStatusUpdateEvent:
    """A status update; ``final`` by its state, see :data:`FINAL`. Spec: v0.3 §7.6, V03-P07."""
    return v03.TaskStatusUpdateEvent(
        task_id=event.task_id,
        context_id=event.context_id,
        status=down_status(event.status),
        final=event.status.state in FINAL,
        metadata=event.metadata,
    )


def down_artifact_update(event: TaskArtifactUpdateEvent) -> v03.TaskArtifactUpdateEvent:
    """An artifact update."""
    return v03.TaskArtifactUpdateEvent(
        task_id=event.task_id,
        context_id=event.context_id,
        artifact=down_artifact(event.artifact),
        append=event.append,
        last_chunk=event.last_chunk,
        metadata=event.metadata,
    )


def down_event(event: StreamResponse) -> v03.StreamResponse:
    """One event by itself. For the rules of whole streams see :class:`~dragoman.compat.v03.streaming.Downstream`."""
    return v03.StreamResponse(
        task=_maybe(down_task, event.task),
        msg=_maybe(down_message, event.message),
        status_update=_maybe(down_status_update, event.status_update),
        artifact_update=_maybe(down_artifact_update, event.artifact_update),
    )


# Requests.


def down_send(request: SendMessageRequest) -> v03.SendMessageRequest:
    """The request of SendMessage and SendStreamingMessage.

    There is always a configuration, and ``blocking`` is always said. A history length of 0, which 0.3 cannot ask for,
    asks for 1: trim the answer with :func:`~dragoman.protocol.lifecycle.with_history`, in any case. The tenant is
    dropped.
    Spec: v0.3 §7.2, §7.3, V03-P05.
    """
    return v03.SendMessageRequest(
        request=down_message(request.message),
        configuration=_down_configuration(request.configuration or SendMessageConfiguration()),
        metadata=request.metadata,
    )


def _down_configuration(configuration: SendMessageConfiguration) -> v03.SendMessageConfiguration:
    return v03.SendMessageConfiguration(
        accepted_output_modes=configuration.accepted_output_modes,
        push_notification=_maybe(down_webhook, configuration.task_push_notification_config),
        history_length=_down_length(configuration.history_length),
        blocking=not configuration.return_immediately,
    )


def _down_length(length: int | None) -> int:
    if length is None:
        return 0
    return length or 1


def down_get(request: GetTaskRequest) -> v03.GetTaskRequest:
    """The request of GetTask; for the history length see :func:`down_send`."""
    return v03.GetTaskRequest(name=names.task_name(request.id), history_length=_down_length(request.history_length))


def down_cancel(request: CancelTaskRequest) -> v03.CancelTaskRequest:
    """The request of CancelTask. Only JSON-RPC carries its metadata."""
    return v03.CancelTaskRequest(name=names.task_name(request.id), metadata=request.metadata)


def down_subscribe(request: SubscribeToTaskRequest) -> v03.TaskSubscriptionRequest:
    """The request of SubscribeToTask."""
    return v03.TaskSubscriptionRequest(name=names.task_name(request.id))


# Push configurations.


def down_webhook(config: TaskPushNotificationConfig) -> v03.PushNotificationConfig:
    """A webhook without the task it belongs to; schemes are a list of one, or empty. Spec: v0.3 §7.7."""
    return v03.PushNotificationConfig(
        id=config.id,
        url=config.url,
        token=config.token,
        authentication=_maybe(_down_authentication, config.authentication),
    )


def _down_authentication(info: AuthenticationInfo) -> v03.AuthenticationInfo:
    return v03.AuthenticationInfo(schemes=[info.scheme] if info.scheme else [], credentials=info.credentials)


def down_push_config(config: TaskPushNotificationConfig) -> v03.TaskPushNotificationConfig:
    """The webhook of a task. Its resource name always ends with an id, since peers require one. Spec: v0.3 §4.3."""
    webhook = down_webhook(config)
    webhook.id = webhook.id or config.task_id
    return v03.TaskPushNotificationConfig(
        name=names.config_name(config.task_id, webhook.id), push_notification_config=webhook
    )


def down_create_push(config: TaskPushNotificationConfig) -> v03.CreateTaskPushNotificationConfigRequest:
    """The request that sets a webhook, with its id in all three places. Spec: v0.3 §3.3, §4.3."""
    named = down_push_config(config)
    return v03.CreateTaskPushNotificationConfigRequest(
        parent=names.task_name(config.task_id), config_id=config.id or config.task_id, config=named
    )


def down_get_push(request: GetTaskPushNotificationConfigRequest) -> v03.GetTaskPushNotificationConfigRequest:
    """The request for a webhook."""
    return v03.GetTaskPushNotificationConfigRequest(name=names.config_name(request.task_id, request.id))


def down_delete_push(request: DeleteTaskPushNotificationConfigRequest) -> v03.DeleteTaskPushNotificationConfigRequest:
    """The request that deletes a webhook."""
    return v03.DeleteTaskPushNotificationConfigRequest(name=names.config_name(request.task_id, request.id))


def down_list_push(request: ListTaskPushNotificationConfigsRequest) -> v03.ListTaskPushNotificationConfigRequest:
    """The request for the webhooks of a task; 0.3 gives all of them at once."""
    return v03.ListTaskPushNotificationConfigRequest(parent=names.task_name(request.task_id))


def down_list_push_response(
    response: ListTaskPushNotificationConfigsResponse,
) -> v03.ListTaskPushNotificationConfigResponse:
    """The webhooks of a task."""
    return v03.ListTaskPushNotificationConfigResponse(
        configs=[down_push_config(config) for config in response.configs], next_page_token=response.next_page_token
    )


def choose_config(
    configs: Sequence[TaskPushNotificationConfig], task_id: str, config_id: str = ""
) -> TaskPushNotificationConfig:
    """The webhook that a caller of 0.3 means, of those that a task has.

    Without an id: the one named like the task, else the first. Raises TaskNotFoundError when there is none.
    Spec: v0.3 §7.7, V03-P18.
    """
    for config in configs:
        if config.id == (config_id or task_id):
            return config
    if configs and not config_id:
        return configs[0]
    raise TaskNotFoundError("The task has no such push notification configuration", metadata={"taskId": task_id})


def _maybe(convert: Callable[[A], B], value: A | None) -> B | None:
    return None if value is None else convert(value)
