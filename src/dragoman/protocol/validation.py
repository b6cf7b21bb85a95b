"""Validation of requests, beyond types and presence, which the reader of the wire has checked already.

All violations of a request are reported together, each with the path of its field in wire spelling.
Spec: ERR-07, ERR-08, DATA-13, DATA-14, DATA-17, DATA-20, LIST-10, LIST-11, AMB-32, AMB-41, AMB-42, AMB-51.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import msgspec

from dragoman.errors import (
    ContentTypeNotSupportedError,
    FieldViolation,
    InvalidParamsError,
    PushNotificationNotSupportedError,
)
from dragoman.model import (
    CancelTaskRequest,
    DeleteTaskPushNotificationConfigRequest,
    GetTaskPushNotificationConfigRequest,
    GetTaskRequest,
    ListTaskPushNotificationConfigsRequest,
    ListTasksRequest,
    Message,
    Part,
    Role,
    SendMessageConfiguration,
    SendMessageRequest,
    SubscribeToTaskRequest,
    TaskPushNotificationConfig,
    TaskState,
)
from dragoman.protocol.lifecycle import content_count
from dragoman.protocol.webhooks import check_webhook

MAX_PAGE_SIZE = 100
DEFAULT_PAGE_SIZE = 50

R = TypeVar("R", bound=msgspec.Struct)


class RequestRules(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent takes.

    ``input_modes``: media types of parts, ``*/*`` and ``text/*`` included; empty takes all (Spec: SEND-05, SEC-04).
    ``output_modes``: what it can produce; empty means anything (Spec: AMB-16).
    ``max_parts``: parts of one message. ``push``: whether push configurations are taken (Spec: AMB-15).
    ``reserved_tenants``: names that a tenant cannot have, since paths of an older version begin with them.
    """

    input_modes: frozenset[str] = frozenset()
    output_modes: frozenset[str] = frozenset()
    max_parts: int = 1000
    push: bool = False
    reserved_tenants: frozenset[str] = frozenset()


def validate_request(request: msgspec.Struct, rules: RequestRules) -> None:
    """Raise InvalidParamsError, or ContentTypeNotSupportedError, if the request breaks a rule."""
    if rules.reserved_tenants and getattr(request, "tenant", "") in rules.reserved_tenants:
        raise InvalidParamsError(violations=[FieldViolation("tenant", "is reserved for the paths of version 0.3")])
    check = _CHECKS.get(type(request))
    if check is None:
        return
    violations = list(check(request, rules))
    if violations:
        raise InvalidParamsError("Invalid parameters", violations=violations)


def _check_send(request: SendMessageRequest, rules: RequestRules) -> Iterable[FieldViolation]:
    violations: list[FieldViolation] = []
    _check_message(request.message, rules, violations)
    if request.configuration is not None:
        _check_configuration(request.configuration, rules, violations)
    if not violations:
        _check_input_modes(request.message.parts, rules.input_modes)
    return violations


def _check_message(message: Message, rules: RequestRules, violations: list[FieldViolation]) -> None:
    if not message.message_id:
        violations.append(FieldViolation("message.messageId", "must not be empty"))
    if message.role is not Role.USER:
        violations.append(FieldViolation("message.role", "must be ROLE_USER in a message to the agent"))
    if not message.parts:
        violations.append(FieldViolation("message.parts", "must have at least one part"))
    elif len(message.parts) > rules.max_parts:
        violations.append(FieldViolation("message.parts", f"must have at most {rules.max_parts} parts"))
    for number, part in enumerate(message.parts):
        if content_count(part) != 1:
            violations.append(
                FieldViolation(f"message.parts[{number}]", "must have exactly one of text, raw, url, data")
            )


def _check_configuration(
    configuration: SendMessageConfiguration, rules: RequestRules, violations: list[FieldViolation]
) -> None:
    webhook = configuration.task_push_notification_config
    if webhook is not None and not rules.push:
        raise PushNotificationNotSupportedError("This agent does not send push notifications")
    if webhook is not None:
        violations.extend(check_webhook(webhook, "configuration.taskPushNotificationConfig."))
    if configuration.history_length is not None and configuration.history_length < 0:
        violations.append(FieldViolation("configuration.historyLength", "must not be negative"))
    accepted = configuration.accepted_output_modes
    if accepted and rules.output_modes and not _any_mode_matches(accepted, rules.output_modes):
        raise ContentTypeNotSupportedError(
            f"This agent produces {', '.join(sorted(rules.output_modes))} only",
            metadata={"field": "configuration.acceptedOutputModes"},
        )


def _check_input_modes(parts: Iterable[Part], modes: frozenset[str]) -> None:
    if not modes:
        return
    for number, part in enumerate(parts):
        if part.media_type and part.media_type not in modes and not mode_matches(part.media_type, modes):
            raise ContentTypeNotSupportedError(
                f"This agent takes {', '.join(sorted(modes))} only",
                metadata={"field": f"message.parts[{number}].mediaType"},
            )


def essence(media_type: str) -> str:
    """A media type without parameters, in lower case."""
    return media_type.partition(";")[0].strip().lower()


def mode_matches(media_type: str, modes: Iterable[str]) -> bool:
    """Whether a media type is one of ``modes``, which may hold ``*/*`` and ``text/*``; parameters do not count."""
    wanted = essence(media_type)
    kind = wanted.partition("/")[0]
    return any(mode in (wanted, "*/*", f"{kind}/*") for mode in map(essence, modes))


def _any_mode_matches(accepted: Iterable[str], produced: Iterable[str]) -> bool:
    return any(mode_matches(mode, accepted) for mode in produced) or any(
        mode_matches(mode, produced) for mode in accepted
    )


def _check_get(request: GetTaskRequest, rules: RequestRules) -> Iterable[FieldViolation]:
    yield from _check_id(request.id, "id")
    yield from _check_length(request.history_length)


def _check_task(request: CancelTaskRequest | SubscribeToTaskRequest, rules: RequestRules) -> Iterable[FieldViolation]:
    return _check_id(request.id, "id")


def _check_list(request: ListTasksRequest, rules: RequestRules) -> Iterable[FieldViolation]:
    size = request.page_size
    if size is not None and not 1 <= size <= MAX_PAGE_SIZE:
        yield FieldViolation("pageSize", f"must be 1 to {MAX_PAGE_SIZE}")
    yield from _check_length(request.history_length)
    if not isinstance(request.status, TaskState):
        yield FieldViolation("status", "must be a known TaskState")


def _check_push_config(request: TaskPushNotificationConfig, rules: RequestRules) -> Iterable[FieldViolation]:
    yield from _check_id(request.task_id, "taskId")
    yield from check_webhook(request)


def _check_push_key(
    request: GetTaskPushNotificationConfigRequest | DeleteTaskPushNotificationConfigRequest,
    rules: RequestRules,
) -> Iterable[FieldViolation]:
    yield from _check_id(request.task_id, "taskId")
    yield from _check_id(request.id, "id")


def _check_push_list(request: ListTaskPushNotificationConfigsRequest, rules: RequestRules) -> Iterable[FieldViolation]:
    yield from _check_id(request.task_id, "taskId")
    if request.page_size < 0:
        yield FieldViolation("pageSize", "must not be negative")


def _check_id(value: str, field: str) -> Iterable[FieldViolation]:
    if not value:
        yield FieldViolation(field, "must not be empty")


def _check_length(length: int | None) -> Iterable[FieldViolation]:
    if length is not None and length < 0:
        yield FieldViolation("historyLength", "must not be negative")


_CHECKS: dict[type, Callable[[Any, RequestRules], Iterable[FieldViolation]]] = {
    SendMessageRequest: _check_send,
    GetTaskRequest: _check_get,
    ListTasksRequest: _check_list,
    CancelTaskRequest: _check_task,
    SubscribeToTaskRequest: _check_task,
    TaskPushNotificationConfig: _check_push_config,
    GetTaskPushNotificationConfigRequest: _check_push_key,
    DeleteTaskPushNotificationConfigRequest: _check_push_key,
    ListTaskPushNotificationConfigsRequest: _check_push_list,
}
