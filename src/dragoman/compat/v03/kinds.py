"""Write kind-JSON, the JSON of 0.3's JSON-RPC: objects carry ``kind``, enums are words in lower case.

Written in full, since strict readers exist: every object has its ``kind``, ``contextId`` and ``final`` are always
there, a configuration always has ``acceptedOutputModes``. Else what is empty is left out.

Spec: v0.3 §2.3, §5.2, §7.4, §7.5, §7.7, B153.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

from dragoman.compat.v03 import names
from dragoman.compat.v03 import types as t
from dragoman.compat.v03.card_kinds import Object, with_members, write_card
from dragoman.compat.v03.members import ROLES, STATES
from dragoman.model.wire import WireMessage

_STATE_WORDS: dict[Any, str] = {state: word for word, state in reversed(STATES.items())} | {
    t.TaskState.UNSPECIFIED: "unknown"
}
_ROLE_WORDS: dict[Any, str] = {role: word for word, role in ROLES.items()}


def write_kind(message: WireMessage) -> Any:
    """A message of 0.3 as a JSON value: an object, but an array for ListTaskPushNotificationConfigResponse.

    Requests become ``params``, answers ``result``; StreamResponse and SendMessageResponse are written unwrapped. The
    value may share ``data`` and ``metadata`` with ``message``. TypeError for a type that JSON-RPC does not know.
    """
    writer = _WRITERS.get(type(message))
    if writer is None:
        raise TypeError(f"{type(message).__name__} has no form in the JSON of 0.3's JSON-RPC")
    return writer(message)


# Content.


def _message(message: t.Message) -> Object:
    return with_members(
        {
            "kind": "message",
            "messageId": message.message_id,
            "role": _ROLE_WORDS.get(message.role, "agent"),  # who speaks without a role is no client
            "parts": [_part(part) for part in message.content],
        },
        contextId=message.context_id,
        taskId=message.task_id,
        referenceTaskIds=message.reference_task_ids,
        extensions=message.extensions,
        metadata=message.metadata,
    )


def _part(part: t.Part) -> Object:
    if part.file is not None:
        value: Object = {"kind": "file", "file": _file(part.file)}
    elif part.data is not None:
        value = {"kind": "data", "data": part.data.data}
    else:
        value = {"kind": "text", "text": part.text or ""}
    if part.metadata:
        value["metadata"] = part.metadata
    return value


def _file(file: t.FilePart) -> Object:
    if file.file_with_bytes is not None:
        value: Object = {"bytes": base64.b64encode(file.file_with_bytes).decode()}
    else:
        value = {"uri": file.file_with_uri or ""}
    return with_members(value, mimeType=file.mime_type, name=file.name)


def _artifact(artifact: t.Artifact) -> Object:
    return with_members(
        {"artifactId": artifact.artifact_id, "parts": [_part(part) for part in artifact.parts]},
        name=artifact.name,
        description=artifact.description,
        extensions=artifact.extensions,
        metadata=artifact.metadata,
    )


def _status(status: t.TaskStatus | None) -> Object:
    status = status or t.TaskStatus()
    value: Object = {"state": _STATE_WORDS.get(status.state, "unknown")}
    if status.update is not None:
        value["message"] = _message(status.update)
    if status.timestamp is not None:
        value["timestamp"] = status.timestamp.rfc3339()
    return value


def _task(task: t.Task) -> Object:
    return with_members(
        {"kind": "task", "id": task.id, "contextId": task.context_id, "status": _status(task.status)},
        artifacts=[_artifact(artifact) for artifact in task.artifacts],
        history=[_message(message) for message in task.history],
        metadata=task.metadata,
    )


# Answers and events.


def _status_update(event: t.TaskStatusUpdateEvent) -> Object:
    value = {
        "kind": "status-update",
        "taskId": event.task_id,
        "contextId": event.context_id,
        "status": _status(event.status),
        "final": event.final,
    }
    return with_members(value, metadata=event.metadata)


def _artifact_update(event: t.TaskArtifactUpdateEvent) -> Object:
    value = {
        "kind": "artifact-update",
        "taskId": event.task_id,
        "contextId": event.context_id,
        "artifact": _artifact(event.artifact or t.Artifact()),
    }
    return with_members(value, append=event.append, lastChunk=event.last_chunk, metadata=event.metadata)


def _choice(message: t.SendMessageResponse | t.StreamResponse) -> Any:
    for name in ("task", "msg", "status_update", "artifact_update"):
        held = getattr(message, name, None)
        if held is not None:
            return write_kind(held)
    raise TypeError(f"{type(message).__name__} holds nothing")


# Requests.


def _send(request: t.SendMessageRequest) -> Object:
    value: Object = {"message": _message(request.request)}
    if request.configuration is not None:
        value["configuration"] = _configuration(request.configuration)
    return with_members(value, metadata=request.metadata)


def _configuration(configuration: t.SendMessageConfiguration) -> Object:
    value: Object = {"acceptedOutputModes": configuration.accepted_output_modes}
    if configuration.blocking is not None:
        value["blocking"] = configuration.blocking
    if configuration.push_notification is not None:
        value["pushNotificationConfig"] = _webhook(configuration.push_notification)
    return with_members(value, historyLength=configuration.history_length)


def _get(request: t.GetTaskRequest) -> Object:
    return with_members({"id": names.read_task_name(request.name)}, historyLength=request.history_length)


def _cancel(request: t.CancelTaskRequest) -> Object:
    return with_members({"id": names.read_task_name(request.name)}, metadata=request.metadata)


def _subscribe(request: t.TaskSubscriptionRequest) -> Object:
    return {"id": names.read_task_name(request.name)}


def _list_webhooks(request: t.ListTaskPushNotificationConfigRequest) -> Object:
    return {"id": names.read_task_name(request.parent)}


def _of_webhook(
    request: t.GetTaskPushNotificationConfigRequest | t.DeleteTaskPushNotificationConfigRequest,
) -> Object:
    task_id, config_id = names.read_config_name(request.name)
    return with_members({"id": task_id}, pushNotificationConfigId=config_id)


# Webhooks.


def _webhook(config: t.PushNotificationConfig) -> Object:
    value = with_members({"url": config.url}, id=config.id, token=config.token)
    if config.authentication is not None:
        value["authentication"] = _authentication(config.authentication)
    return value


def _authentication(info: t.AuthenticationInfo) -> Object:
    return with_members({"schemes": info.schemes}, credentials=info.credentials)


def _task_webhook(config: t.TaskPushNotificationConfig) -> Object:
    task_id, config_id = names.read_config_name(config.name) if config.name else ("", "")
    webhook = _webhook(config.push_notification_config or t.PushNotificationConfig())
    if config_id:
        webhook.setdefault("id", config_id)
    return {"taskId": task_id, "pushNotificationConfig": webhook}


def _creation(request: t.CreateTaskPushNotificationConfigRequest) -> Object:
    value = _task_webhook(request.config)
    if request.parent:
        value["taskId"] = names.read_task_name(request.parent, "parent")
    if request.config_id:
        value["pushNotificationConfig"].setdefault("id", request.config_id)
    return value


def _webhooks(response: t.ListTaskPushNotificationConfigResponse) -> list[Object]:
    return [_task_webhook(config) for config in response.configs]


_WRITERS: dict[type[WireMessage], Callable[[Any], Any]] = {
    t.Message: _message,
    t.Part: _part,
    t.Artifact: _artifact,
    t.TaskStatus: _status,
    t.Task: _task,
    t.TaskStatusUpdateEvent: _status_update,
    t.TaskArtifactUpdateEvent: _artifact_update,
    t.SendMessageResponse: _choice,
    t.StreamResponse: _choice,
    t.SendMessageRequest: _send,
    t.SendMessageConfiguration: _configuration,
    t.GetTaskRequest: _get,
    t.CancelTaskRequest: _cancel,
    t.TaskSubscriptionRequest: _subscribe,
    t.CreateTaskPushNotificationConfigRequest: _creation,
    t.GetTaskPushNotificationConfigRequest: _of_webhook,
    t.DeleteTaskPushNotificationConfigRequest: _of_webhook,
    t.ListTaskPushNotificationConfigRequest: _list_webhooks,
    t.PushNotificationConfig: _webhook,
    t.TaskPushNotificationConfig: _task_webhook,
    t.ListTaskPushNotificationConfigResponse: _webhooks,
    t.AgentCard: write_card,
    t.Empty: lambda _: None,
}
