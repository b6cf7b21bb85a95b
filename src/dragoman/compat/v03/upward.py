"""Upward: messages of protocol 0.3 as messages of 1.0. Pure.

What 0.3 cannot say stays at its default: no tenant, no media type of texts and data, nothing is invented. Lists and
metadata may be shared with the message that was given.

Spec: v0.3 §7.2 to §7.7.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from dragoman.compat.v03 import names
from dragoman.compat.v03 import types as v03
from dragoman.errors import FieldViolation, InvalidParamsError
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
)

A = TypeVar("A")
B = TypeVar("B")

WRAPPED = "data_part_compat"
"""Metadata of a data part that says: the object is a wrapping around a value that is none."""

_SERVED_SCHEMES = ("bearer", "basic")


# Content.


def up_message(message: v03.Message) -> Message:
    """A message; missing ids become empty strings."""
    return Message(
        message_id=message.message_id,
        context_id=message.context_id,
        task_id=message.task_id,
        role=message.role,
        parts=[up_part(part) for part in message.content],
        metadata=message.metadata,
        extensions=message.extensions,
        reference_task_ids=message.reference_task_ids,
    )


def up_part(part: v03.Part) -> Part:
    """A part. No media type is invented, a wrapped value (see ``WRAPPED``) is unwrapped, and nothing stays nothing."""
    if part.text is not None:
        return Part(text=part.text, metadata=part.metadata)
    if part.file is not None:
        return _up_file(part.file, part.metadata)
    if part.data is not None:
        return _up_data(part.data.data, part.metadata)
    return Part(metadata=part.metadata)


def _up_file(file: v03.FilePart, metadata: dict[str, Any] | None) -> Part:
    return Part(
        raw=file.file_with_bytes,
        url=file.file_with_uri,
        metadata=metadata,
        filename=file.name,
        media_type=file.mime_type,
    )


def _up_data(data: dict[str, Any], metadata: dict[str, Any] | None) -> Part:
    if metadata and metadata.get(WRAPPED) is True and len(data) == 1 and "value" in data:
        others = {key: value for key, value in metadata.items() if key != WRAPPED}
        return Part(data=data["value"], metadata=others or None)
    return Part(data=data, metadata=metadata)


def up_artifact(artifact: v03.Artifact) -> Artifact:
    """An artifact."""
    return Artifact(
        artifact_id=artifact.artifact_id,
        name=artifact.name,
        description=artifact.description,
        parts=[up_part(part) for part in artifact.parts],
        metadata=artifact.metadata,
        extensions=artifact.extensions,
    )


def up_status(status: v03.TaskStatus | None) -> TaskStatus:
    """A status; an absent one is that of a task of which no state is known. An absent message stays absent."""
    if status is None:
        return TaskStatus(state=TaskState.UNSPECIFIED)
    return TaskStatus(state=status.state, message=_maybe(up_message, status.update), timestamp=status.timestamp)


def up_task(task: v03.Task) -> Task:
    """A task."""
    return Task(
        id=task.id,
        context_id=task.context_id,
        status=up_status(task.status),
        artifacts=[up_artifact(artifact) for artifact in task.artifacts],
        history=[up_message(message) for message in task.history],
        metadata=task.metadata,
    )


# Answers and events.


def up_send_response(response: v03.SendMessageResponse) -> SendMessageResponse:
    """The answer to a message: a task or a message."""
    return SendMessageResponse(task=_maybe(up_task, response.task), message=_maybe(up_message, response.msg))


def up_status_update(event: v03.TaskStatusUpdateEvent) -> TaskStatusUpdateEvent:
    """A status update. ``final`` has no counterpart: :class:`~dragoman.compat.v03.streaming.Upstream` heeds it."""
    return TaskStatusUpdateEvent(
        task_id=event.task_id, context_id=event.context_id, status=up_status(event.status), metadata=event.metadata
    )


def up_artifact_update(event: v03.TaskArtifactUpdateEvent) -> TaskArtifactUpdateEvent:
    """An artifact update; one without an artifact brings an empty one."""
    return TaskArtifactUpdateEvent(
        task_id=event.task_id,
        context_id=event.context_id,
        artifact=up_artifact(event.artifact or v03.Artifact()),
        append=event.append,
        last_chunk=event.last_chunk,
        metadata=event.metadata,
    )


def up_event(event: v03.StreamResponse) -> StreamResponse:
    """One event by itself. For the rules of whole streams see :class:`~dragoman.compat.v03.streaming.Upstream`."""
    return StreamResponse(
        task=_maybe(up_task, event.task),
        message=_maybe(up_message, event.msg),
        status_update=_maybe(up_status_update, event.status_update),
        artifact_update=_maybe(up_artifact_update, event.artifact_update),
    )


# Requests.


def up_send(request: v03.SendMessageRequest, *, rpc: bool) -> SendMessageRequest:
    """The request of SendMessage and SendStreamingMessage.

    ``rpc`` says that it came by JSON-RPC, where an absent ``blocking`` waits. On HTTP+JSON and gRPC an absent one in a
    configuration is false, so that the call returns at once; without a configuration it waits, too.
    Spec: v0.3 §7.3, V03-P05.
    """
    return SendMessageRequest(
        message=up_message(request.request),
        configuration=_up_configuration(request.configuration, rpc) if request.configuration is not None else None,
        metadata=request.metadata,
    )


def _up_configuration(configuration: v03.SendMessageConfiguration, rpc: bool) -> SendMessageConfiguration:
    blocking = configuration.blocking
    return SendMessageConfiguration(
        accepted_output_modes=configuration.accepted_output_modes,
        task_push_notification_config=_maybe(up_webhook, configuration.push_notification),
        history_length=configuration.history_length or None,  # 0 is "no limit" there (V03-P23)
        return_immediately=not (rpc if blocking is None else blocking),
    )


def up_get(request: v03.GetTaskRequest) -> GetTaskRequest:
    """The request of GetTask. A history length of 0 asks for all of it. Spec: v0.3 §7.2, V03-P23."""
    return GetTaskRequest(id=_task(request.name), history_length=request.history_length or None)


def up_cancel(request: v03.CancelTaskRequest) -> CancelTaskRequest:
    """The request of CancelTask, with the metadata that JSON-RPC can carry."""
    return CancelTaskRequest(id=_task(request.name), metadata=request.metadata)


def up_subscribe(request: v03.TaskSubscriptionRequest) -> SubscribeToTaskRequest:
    """The request of SubscribeToTask."""
    return SubscribeToTaskRequest(id=_task(request.name))


# Push configurations.


def up_webhook(
    config: v03.PushNotificationConfig, *, task_id: str = "", config_id: str = ""
) -> TaskPushNotificationConfig:
    """A webhook. ``config_id`` is used when it has no id of its own.

    Of several authentication schemes Bearer is taken, else Basic, else the first. Spec: v0.3 §7.7.
    """
    return TaskPushNotificationConfig(
        id=config.id or config_id,
        task_id=task_id,
        url=config.url,
        token=config.token,
        authentication=_up_authentication(config.authentication),
    )


def _up_authentication(info: v03.AuthenticationInfo | None) -> AuthenticationInfo | None:
    if info is None or not (info.schemes or info.credentials):
        return None
    return AuthenticationInfo(scheme=_choose_scheme(info.schemes), credentials=info.credentials)


def _choose_scheme(schemes: list[str]) -> str:
    for served in _SERVED_SCHEMES:
        for scheme in schemes:
            if scheme.lower() == served:
                return scheme
    return schemes[0] if schemes else ""


def up_push_config(config: v03.TaskPushNotificationConfig) -> TaskPushNotificationConfig:
    """The webhook of a task: its ids come from the webhook itself and from the resource name."""
    task_id, config_id = _ids(config.name)
    webhook = config.push_notification_config or v03.PushNotificationConfig()
    return up_webhook(webhook, task_id=task_id, config_id=config_id)


def up_create_push(request: v03.CreateTaskPushNotificationConfigRequest) -> TaskPushNotificationConfig:
    """The request that sets a webhook.

    The task is that of ``parent``, else that of the configuration's name. The id is the webhook's own, else
    ``config_id``, else that in the name, else the task's, so that old clients find it without an id.

    Raises InvalidParamsError when no task is named. Spec: v0.3 §3.3, §7.7.
    """
    named_task, named_config = _ids(request.config.name)
    task_id = _task(request.parent, "parent") or named_task
    if not task_id:
        raise InvalidParamsError(violations=[FieldViolation("taskId", "is required")])
    webhook = request.config.push_notification_config or v03.PushNotificationConfig()
    return up_webhook(webhook, task_id=task_id, config_id=request.config_id or named_config or task_id)


def up_get_push(request: v03.GetTaskPushNotificationConfigRequest) -> GetTaskPushNotificationConfigRequest:
    """The request for a webhook. Its ``id`` is empty when the caller gave none: see :func:`choose_config`."""
    task_id, config_id = _ids(request.name)
    return GetTaskPushNotificationConfigRequest(task_id=task_id, id=config_id)


def up_delete_push(request: v03.DeleteTaskPushNotificationConfigRequest) -> DeleteTaskPushNotificationConfigRequest:
    """The request that deletes a webhook; without an id the one named like the task is meant."""
    task_id, config_id = _ids(request.name)
    return DeleteTaskPushNotificationConfigRequest(task_id=task_id, id=config_id or task_id)


def up_list_push(request: v03.ListTaskPushNotificationConfigRequest) -> ListTaskPushNotificationConfigsRequest:
    """The request for the webhooks of a task."""
    return ListTaskPushNotificationConfigsRequest(
        task_id=_task(request.parent, "parent"), page_size=request.page_size, page_token=request.page_token
    )


def up_list_push_response(
    response: v03.ListTaskPushNotificationConfigResponse,
) -> ListTaskPushNotificationConfigsResponse:
    """The webhooks of a task."""
    return ListTaskPushNotificationConfigsResponse(
        configs=[up_push_config(config) for config in response.configs], next_page_token=response.next_page_token
    )


def _task(name: str, field: str = "name") -> str:
    """The task in a resource name; none in an empty one."""
    return names.read_task_name(name, field) if name else ""


def _ids(name: str) -> tuple[str, str]:
    """The task and the webhook in a resource name; none in an empty one."""
    return names.read_config_name(name) if name else ("", "")


def _maybe(convert: Callable[[A], B], value: A | None) -> B | None:
    return None if value is None else convert(value)
