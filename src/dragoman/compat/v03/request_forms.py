"""Forms of requests and webhooks. In kind-JSON they hold ids, in the JSON of the proto resource names.

Spec: v0.3 §2.3, §3.3, §4.3, §7.2, §7.7.
"""

from __future__ import annotations

from typing import Any, TypeVar

from dragoman.compat.v03 import names
from dragoman.compat.v03 import types as t
from dragoman.compat.v03.members import Form, Members, Reading, build, later, read_members, read_message
from dragoman.errors import InvalidParamsError
from dragoman.model.scalars import Fault, Findings, read_object, read_string
from dragoman.model.wire import WireMessage

M = TypeVar("M", bound=WireMessage)

_WEBHOOK = ("pushNotificationConfig", "push_notification_config")
_CONFIG_ID = ("pushNotificationConfigId", "push_notification_config_id")


# Sending.


def read_send_form(value: Any, reading: Reading) -> t.SendMessageRequest:
    """The request that sends a message; a messageId that stands beside the message is taken for the message's."""
    members = _with_inner_id(read_object(value))
    findings: Findings = []
    later(members, "tenant", "0.3 has no tenants", findings)
    found = read_members(t.SendMessageRequest, members, reading, findings)
    message = found.get("request")
    if message is not None and message.role is not t.Role.USER and not reading.answer:
        spelling = next(name for name in ("message", "request") if members.get(name) is not None)
        findings.append((f"{spelling}.role", 'must be "user" in a message to the agent'))
    return build(t.SendMessageRequest, found, reading, findings)


def _with_inner_id(members: dict[str, Any]) -> dict[str, Any]:
    message, beside = members.get("message"), members.get("messageId")
    if isinstance(message, dict) and beside is not None and not (message.keys() & {"messageId", "message_id"}):
        return {**members, "message": {**message, "messageId": beside}}
    return members


def read_configuration_form(value: Any, reading: Reading) -> t.SendMessageConfiguration:
    """The configuration of a send. Members of 1.0 that change what is asked for are errors, not unknown members."""
    members = read_object(value)
    findings: Findings = []
    found = read_members(
        t.SendMessageConfiguration,
        members,
        reading,
        findings,
        dict.fromkeys(_WEBHOOK, "push_notification"),
    )
    if "push_notification" not in found:
        for name in ("taskPushNotificationConfig", "task_push_notification_config"):
            later(members, name, "in 0.3 it is pushNotificationConfig", findings)
    for name in ("returnImmediately", "return_immediately"):
        if found.get("blocking") is None or bool(members.get(name)) is found["blocking"]:
            later(members, name, "in 0.3 it is blocking, the other way round", findings)
    return build(t.SendMessageConfiguration, found, reading, findings)


# Requests about a task.


def _task_form(kind: type[M], field: str) -> Form:
    """The form of a request about a task: ``id``, or the resource name in ``field``."""

    def read_form(value: Any, reading: Reading) -> WireMessage:
        members = read_object(value)
        findings: Findings = []
        found = read_members(kind, _without(members, field), reading, findings)
        task_id = _task_id(members, field, findings)
        later(members, "tenant", "0.3 has no tenants", findings)
        found[field] = names.task_name(task_id) if task_id else ""
        if not task_id and not findings:
            findings.append(("id", "is required"))
        return build(kind, found, reading, findings)

    return read_form


def _without(members: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: item for key, item in members.items() if key != name}


def _task_id(members: dict[str, Any], field: str, findings: Findings) -> str:
    """The id of the task; empty when there is none, or something is wrong."""
    ids = [(key, _read_id(members, key, findings)) for key in ("id", field) if members.get(key) is not None]
    if len(ids) == 2 and ids[0][1] != ids[1][1]:
        findings.append((field, "names another task than id"))
    return ids[0][1] if ids else ""


def _read_id(members: dict[str, Any], key: str, findings: Findings) -> str:
    """The task in an id or a resource name."""
    try:
        text = read_string(members[key])
        if not text:
            raise Fault("must not be empty")
        if key == "id":
            names.task_name(text)
            return text
        return names.read_task_name(text, key)
    except Fault as fault:
        findings += fault.below(key)
    except InvalidParamsError as error:
        findings += [(key, violation.description) for violation in error.violations]
    return ""


def _config_form(kind: type[M], *, id_required: bool) -> Form:
    """The form of a request about a webhook of a task."""

    def read_form(value: Any, reading: Reading) -> WireMessage:
        members = read_object(value)
        findings: Findings = []
        later(members, "taskId", "in 0.3 the task is id and the webhook pushNotificationConfigId", findings)
        if members.get("name") is not None and "id" not in members:
            _read_id(members, "name", findings)
            return build(kind, {"name": members["name"]}, reading, findings)
        task_id = _task_id(members, "name", findings)
        config_id = _text_of(members, _CONFIG_ID, findings)
        if not task_id and not findings:
            findings.append(("id", "is required"))
        if id_required and not config_id:
            findings.append((_CONFIG_ID[0], "is required"))
        found: Members = {} if findings else {"name": _config_name(task_id, config_id, findings)}
        return build(kind, found, reading, findings)

    return read_form


def _text_of(members: dict[str, Any], spellings: tuple[str, ...], findings: Findings) -> str:
    for name in spellings:
        if members.get(name) is not None:
            try:
                return read_string(members[name])
            except Fault as fault:
                findings += fault.below(name)
    return ""


def _config_name(task_id: str, config_id: str, findings: Findings) -> str:
    try:
        return names.config_name(task_id, config_id)
    except InvalidParamsError as error:
        findings += [(_CONFIG_ID[0], violation.description) for violation in error.violations]
        return ""


# Webhooks.


def read_authentication_form(value: Any, reading: Reading) -> t.AuthenticationInfo:
    """How a webhook is called; ``scheme`` is what 1.0 has instead of ``schemes``."""
    members = read_object(value)
    findings: Findings = []
    found = read_members(t.AuthenticationInfo, members, reading, findings)
    if "schemes" not in found:
        later(members, "scheme", "in 0.3 it is schemes, a list", findings)
    return build(t.AuthenticationInfo, found, reading, findings)


def read_task_webhook_form(value: Any, reading: Reading) -> t.TaskPushNotificationConfig:
    """The webhook of a task: with ``taskId`` or ``name`` beside it, or bare."""
    members = read_object(value)
    findings: Findings = []
    step, webhook = _webhook_in(members, reading, findings)
    task_id = _text_of(members, ("taskId", "task_id"), findings)
    name = _text_of(members, ("name",), findings)
    if task_id and webhook is not None:
        name = _config_name(task_id, webhook.id, findings)
    elif name:
        _read_id(members, "name", findings)
    if webhook is not None and not webhook.url and not reading.answer:
        findings.append((f"{step}.url" if step else "url", "is required"))
    found = {"name": name, "push_notification_config": webhook}
    return build(t.TaskPushNotificationConfig, found, reading, findings)


def _webhook_in(
    members: dict[str, Any], reading: Reading, findings: Findings
) -> tuple[str, t.PushNotificationConfig | None]:
    """The webhook itself, and the member it stands in, which is empty when it is bare."""
    step = next((name for name in _WEBHOOK if members.get(name) is not None), "")
    if not step and members.get("url") is None:
        findings.append((_WEBHOOK[0], "is required"))
        return "", None
    try:
        webhook: t.PushNotificationConfig = read_message(
            t.PushNotificationConfig, members[step] if step else members, reading
        )
        return step, webhook
    except Fault as fault:
        findings += fault.below(step) if step else fault.findings
    return step, None


def read_creation_form(value: Any, reading: Reading) -> t.CreateTaskPushNotificationConfigRequest:
    """The request that sets a webhook, in any of its five shapes. ``parent`` is empty when no task is named.

    Spec: v0.3 §3.3.
    """
    members = read_object(value)
    findings: Findings = []
    later(members, "tenant", "0.3 has no tenants", findings)
    step = "config" if members.get("config") is not None else ""
    config = t.TaskPushNotificationConfig()
    try:
        config = read_message(t.TaskPushNotificationConfig, members[step] if step else members, reading)
    except Fault as fault:
        findings += fault.below(step) if step else fault.findings
    parent = _text_of(members, ("parent",), findings)
    if parent:
        _read_id(members, "parent", findings)
    elif config.name:
        parent = names.task_name(names.read_task_name(config.name))
    found = {"parent": parent, "config_id": _text_of(members, ("configId", "config_id"), findings), "config": config}
    return build(t.CreateTaskPushNotificationConfigRequest, found, reading, findings)


def read_webhooks_form(value: Any, reading: Reading) -> t.ListTaskPushNotificationConfigResponse:
    """The webhooks of a task: an array, or an object with one. Spec: v0.3 §3.1, §7.7."""
    bare = isinstance(value, list)
    members = {"configs": value} if bare else read_object(value)
    findings: Findings = []
    found = read_members(t.ListTaskPushNotificationConfigResponse, members, reading, findings)
    if bare:
        findings = [(path.removeprefix("configs"), text) for path, text in findings]
    return build(t.ListTaskPushNotificationConfigResponse, found, reading, findings)


REQUEST_FORMS: dict[type[WireMessage], Form] = {
    t.SendMessageRequest: read_send_form,
    t.SendMessageConfiguration: read_configuration_form,
    t.GetTaskRequest: _task_form(t.GetTaskRequest, "name"),
    t.CancelTaskRequest: _task_form(t.CancelTaskRequest, "name"),
    t.TaskSubscriptionRequest: _task_form(t.TaskSubscriptionRequest, "name"),
    t.ListTaskPushNotificationConfigRequest: _task_form(t.ListTaskPushNotificationConfigRequest, "parent"),
    t.GetTaskPushNotificationConfigRequest: _config_form(t.GetTaskPushNotificationConfigRequest, id_required=False),
    t.DeleteTaskPushNotificationConfigRequest: _config_form(
        t.DeleteTaskPushNotificationConfigRequest, id_required=True
    ),
    t.AuthenticationInfo: read_authentication_form,
    t.TaskPushNotificationConfig: read_task_webhook_form,
    t.CreateTaskPushNotificationConfigRequest: read_creation_form,
    t.ListTaskPushNotificationConfigResponse: read_webhooks_form,
}
