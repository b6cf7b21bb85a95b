"""Requests beyond types: every violation is named by the path of its field."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from dragoman.errors import ContentTypeNotSupportedError, InvalidParamsError, PushNotificationNotSupportedError
from dragoman.model import (
    CancelTaskRequest,
    GetTaskRequest,
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
from dragoman.protocol.validation import RequestRules, mode_matches, validate_request

RULES = RequestRules(max_parts=3)


def send(configuration: SendMessageConfiguration | None = None, **message: Any) -> SendMessageRequest:
    facts = {"message_id": "m", "role": Role.USER, "parts": [Part(text="hello")], **message}
    return SendMessageRequest(message=Message(**facts), configuration=configuration)


def violations(request: msgspec.Struct, rules: RequestRules = RULES) -> list[str]:
    try:
        validate_request(request, rules)
    except InvalidParamsError as error:
        return [violation.field for violation in error.violations]
    return []


BOTH = Part(text="x")
BOTH.raw = b"y"

CASES = {
    "a good message": (send(), []),
    "an empty text": (send(parts=[Part(text="")]), []),
    "null as data": (send(parts=[Part(data=None)]), []),
    "no message id": (send(message_id=""), ["message.messageId"]),
    "the agent's role": (send(role=Role.AGENT), ["message.role"]),
    "no role": (send(role=Role.UNSPECIFIED), ["message.role"]),
    "an unknown role": (send(role=7), ["message.role"]),
    "no parts": (send(parts=[]), ["message.parts"]),
    "too many parts": (send(parts=[Part(text="x")] * 4), ["message.parts"]),
    "an empty part": (send(parts=[Part(text="x"), Part()]), ["message.parts[1]"]),
    "two contents": (send(parts=[BOTH]), ["message.parts[0]"]),
    "all together": (
        send(SendMessageConfiguration(history_length=-1), message_id="", role=Role.AGENT, parts=[]),
        ["message.messageId", "message.role", "message.parts", "configuration.historyLength"],
    ),
    "get without id": (GetTaskRequest(id="", history_length=-2), ["id", "historyLength"]),
    "get": (GetTaskRequest(id="t", history_length=0), []),
    "cancel without id": (CancelTaskRequest(id=""), ["id"]),
    "subscribe without id": (SubscribeToTaskRequest(id=""), ["id"]),
    "page of nothing": (ListTasksRequest(page_size=0), ["pageSize"]),
    "page too large": (ListTasksRequest(page_size=101), ["pageSize"]),
    "largest page": (ListTasksRequest(page_size=100), []),
    "negative history": (ListTasksRequest(history_length=-1), ["historyLength"]),
    "unknown state": (ListTasksRequest(status=42), ["status"]),
    "a state": (ListTasksRequest(status=TaskState.FAILED), []),
    "push without url": (TaskPushNotificationConfig(task_id="", url=""), ["taskId", "url"]),
}


@pytest.mark.req("ERR-07", "ERR-08", "DATA-14", "DATA-17", "LIST-10", "AMB-41", "AMB-42", "AMB-51")
@pytest.mark.parametrize("name", CASES)
def test_violations_name_their_fields(name: str) -> None:
    request, fields = CASES[name]

    assert violations(request) == fields


@pytest.mark.req("SEND-05")
def test_a_part_of_a_type_that_the_agent_does_not_take_is_refused() -> None:
    rules = RequestRules(input_modes=frozenset({"text/*", "application/json"}))

    validate_request(send(parts=[Part(text="x", media_type="text/markdown; charset=utf-8")]), rules)
    validate_request(send(parts=[Part(text="x")]), rules)
    with pytest.raises(ContentTypeNotSupportedError) as caught:
        validate_request(send(parts=[Part(text="x"), Part(raw=b"x", media_type="image/png")]), rules)

    assert caught.value.metadata == {"field": "message.parts[1].mediaType"}


@pytest.mark.req("AMB-16")
def test_output_that_the_agent_cannot_make_is_refused() -> None:
    rules = RequestRules(output_modes=frozenset({"text/plain"}))

    for accepted in ([], ["text/*"], ["*/*"], ["image/png", "TEXT/plain"]):
        validate_request(send(SendMessageConfiguration(accepted_output_modes=accepted)), rules)
    with pytest.raises(ContentTypeNotSupportedError):
        validate_request(send(SendMessageConfiguration(accepted_output_modes=["image/png"])), rules)


@pytest.mark.req("AMB-15")
def test_a_push_configuration_in_a_message_is_refused_where_there_is_no_push() -> None:
    config = TaskPushNotificationConfig(url="https://x.example")

    with pytest.raises(PushNotificationNotSupportedError):
        validate_request(send(SendMessageConfiguration(task_push_notification_config=config)), RULES)


@pytest.mark.parametrize(
    ("media_type", "modes", "matches"),
    [
        ("text/plain", ["text/plain"], True),
        ("Text/Plain;charset=utf-8", ["text/plain"], True),
        ("text/plain", ["TEXT/*"], True),
        ("image/png", ["*/*"], True),
        ("image/png", ["text/*", "application/json"], False),
        ("textual/plain", ["text/*"], False),
    ],
)
def test_media_types_match_by_kind_without_parameters(media_type: str, modes: list[str], matches: bool) -> None:
    assert mode_matches(media_type, modes) is matches
