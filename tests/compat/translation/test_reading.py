"""All forms in which 0.3 comes are read; what cannot be told without guessing is an error that names the member."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.compat.v03 import types as v03
from dragoman.compat.v03.reading import read, read_send_result
from dragoman.compat.v03.upward import up_send_response
from dragoman.errors import InvalidParamsError
from dragoman.model import Role, Task, TaskState, TaskStatus, Timestamp

USER = {"kind": "message", "messageId": "m-1", "role": "user"}
TEXT = {"kind": "text", "text": "hi"}


def send(**members: Any) -> dict[str, Any]:
    return {"message": {**USER, "parts": [TEXT], **members}}


def findings(kind: type[Any], value: Any) -> dict[str, str]:
    with pytest.raises(InvalidParamsError) as caught:
        read(kind, value)
    return {violation.field: violation.description for violation in caught.value.violations}


def part(value: dict[str, Any], **how: bool) -> v03.Part:
    return read(v03.Part, value, **how)


# The dialects.

EXPECTED = v03.SendMessageRequest(
    request=v03.Message(
        message_id="m-7",
        context_id="c-1",
        role=Role.USER,
        content=[
            v03.Part(text="When does the ferry leave?"),
            v03.Part(file=v03.FilePart(file_with_bytes=b"hello", mime_type="text/plain", name="b.txt")),
            v03.Part(data=v03.DataPart(data={"unit": "m"}), metadata={"from": "form"}),
        ],
    ),
    configuration=v03.SendMessageConfiguration(
        accepted_output_modes=["text/plain"],
        blocking=True,
        history_length=2,
        push_notification=v03.PushNotificationConfig(id="h", url="https://quay.example/h"),
    ),
    metadata={"trace": "t"},
)

KIND_JSON = {
    "message": {
        "kind": "message",
        "messageId": "m-7",
        "contextId": "c-1",
        "role": "user",
        "parts": [
            {"kind": "text", "text": "When does the ferry leave?"},
            {"kind": "file", "file": {"bytes": "aGVsbG8=", "mimeType": "text/plain", "name": "b.txt"}},
            {"kind": "data", "data": {"unit": "m"}, "metadata": {"from": "form"}},
        ],
    },
    "configuration": {
        "acceptedOutputModes": ["text/plain"],
        "blocking": True,
        "historyLength": 2,
        "pushNotificationConfig": {"id": "h", "url": "https://quay.example/h"},
    },
    "metadata": {"trace": "t"},
}

WITHOUT_KINDS = {
    **KIND_JSON,
    "message": {
        "messageId": "m-7",
        "contextId": "c-1",
        "role": "user",
        "parts": [
            {"text": "When does the ferry leave?"},
            {"file": {"bytes": "aGVsbG8", "mimeType": "text/plain", "name": "b.txt"}},
            {"data": {"unit": "m"}, "metadata": {"from": "form"}},
        ],
    },
}

PROTO_JSON = {
    "message": {
        "messageId": "m-7",
        "contextId": "c-1",
        "role": "ROLE_USER",
        "content": [
            {"text": "When does the ferry leave?"},
            {"file": {"fileWithBytes": "YUdWc2JHOD0=", "mimeType": "text/plain", "name": "b.txt"}},
            {"data": {"data": {"unit": "m"}}, "metadata": {"from": "form"}},
        ],
    },
    "configuration": {
        "acceptedOutputModes": ["text/plain"],
        "blocking": True,
        "historyLength": 2,
        "pushNotification": {"id": "h", "url": "https://quay.example/h"},
    },
    "metadata": {"trace": "t"},
}

SNAKE_CASE = {
    "request": {
        "message_id": "m-7",
        "context_id": "c-1",
        "role": 1,
        "content": [
            {"text": "When does the ferry leave?", "file": None},
            {"file": {"file_with_bytes": "aGVsbG8=", "mime_type": "text/plain", "name": "b.txt"}},
            {"data": {"data": {"unit": "m"}}, "metadata": {"from": "form"}},
        ],
        "xUnknown": {"kind": "whatever"},
    },
    "configuration": {
        "accepted_output_modes": ["text/plain"],
        "blocking": True,
        "history_length": "2",
        "push_notification": {"id": "h", "url": "https://quay.example/h"},
    },
    "metadata": {"trace": "t"},
    "unknown": 1,
}


@pytest.mark.req("V03-01", "V03-P02")
@pytest.mark.parametrize("value", [KIND_JSON, WITHOUT_KINDS, PROTO_JSON, SNAKE_CASE])
def test_a_request_is_the_same_in_every_dialect(value: dict[str, Any]) -> None:
    assert read(v03.SendMessageRequest, value) == EXPECTED


def test_a_message_id_beside_the_message_is_that_of_the_message() -> None:
    found = read(v03.SendMessageRequest, {"message": {"role": "user", "parts": [TEXT]}, "messageId": "m-9"})

    assert found.request.message_id == "m-9"


@pytest.mark.parametrize(
    ("word", "state"),
    [
        ("canceled", TaskState.CANCELED),
        ("cancelled", TaskState.CANCELED),
        ("TASK_STATE_CANCELLED", TaskState.CANCELED),
        ("TASK_STATE_CANCELED", TaskState.CANCELED),
        ("input-required", TaskState.INPUT_REQUIRED),
        ("TASK_STATE_AUTH_REQUIRED", TaskState.AUTH_REQUIRED),
        (7, TaskState.REJECTED),
        ("7", TaskState.REJECTED),
        ("unknown", TaskState.UNSPECIFIED),
        ("dreaming", TaskState.UNSPECIFIED),
        (77, 77),
    ],
)
@pytest.mark.req("B151")
def test_a_state_is_read_as_word_name_and_number(word: Any, state: Any) -> None:
    assert read(v03.TaskStatus, {"state": word}, answer=True).state == state


@pytest.mark.parametrize(
    "text", ["2026-02-03T08:15:30.250", "2026-02-03T09:15:30.250999+01:00", "2026-02-03 08:15:30.25Z"]
)
def test_a_timestamp_without_a_zone_is_utc(text: str) -> None:
    found = read(v03.TaskStatus, {"state": "working", "timestamp": text}, answer=True)

    assert found.timestamp == Timestamp.parse("2026-02-03T08:15:30.250Z")


# Kinds.


@pytest.mark.req("V03-01")
@pytest.mark.parametrize(
    ("value", "member"),
    [
        ({"id": "t", "contextId": "c", "status": {"state": "working"}}, "task"),
        ({"messageId": "m", "role": "agent", "parts": []}, "msg"),
        ({"role": "agent", "parts": []}, "msg"),
        ({"taskId": "t", "contextId": "c", "status": {"state": "working"}, "final": False}, "status_update"),
        ({"taskId": "t", "contextId": "c", "artifact": {"artifactId": "a", "parts": []}}, "artifact_update"),
        ({"task": {"id": "t"}}, "task"),
        ({"message": {"messageId": "m"}}, "msg"),
        ({"msg": {"messageId": "m"}}, "msg"),
        ({"statusUpdate": {"taskId": "t"}}, "status_update"),
        ({"artifact_update": {"taskId": "t"}}, "artifact_update"),
        ({"kind": "status-update", "taskId": "t"}, "status_update"),
    ],
)
def test_what_an_event_is_is_told_by_its_kind_its_wrapper_or_its_members(value: dict[str, Any], member: str) -> None:
    assert getattr(read(v03.StreamResponse, value, answer=True), member) is not None


@pytest.mark.parametrize(
    ("value", "field"),
    [
        ({"kind": "tsak", "id": "t"}, "kind"),
        ({"kind": ["task"]}, "kind"),
        ({"kind": "task", "statusUpdate": {"taskId": "t"}}, "statusUpdate"),
        ({"task": {"id": "t"}, "message": {"messageId": "m"}}, "message"),
        ({"task": {"kind": "message", "id": "t"}}, "task.kind"),
        ({"answer": 42}, ""),
        ([], ""),
        ("task", ""),
    ],
)
def test_an_event_that_contradicts_itself_is_an_error(value: Any, field: str) -> None:
    with pytest.raises(InvalidParamsError) as caught:
        read(v03.StreamResponse, value, answer=True)

    assert [violation.field for violation in caught.value.violations] == [field]


@pytest.mark.parametrize(
    ("value", "field"),
    [
        ({"kind": "video", "text": "hi"}, "message.parts[0].kind"),
        ({"kind": "text"}, "message.parts[0].text"),
        ({"kind": "text", "file": {"uri": "x:y"}}, "message.parts[0].file"),
        ({"kind": "text", "text": "hi", "data": {}}, "message.parts[0].data"),
        ({"text": "hi", "data": {}}, "message.parts[0].data"),
        ({}, "message.parts[0]"),
        ({"kind": "file", "file": {"name": "a"}}, "message.parts[0].file"),
        ({"kind": "file", "file": {"bytes": "aGk=", "uri": "x:y"}}, "message.parts[0].file.uri"),
        ({"kind": "file", "file": {"bytes": "a"}}, "message.parts[0].file.bytes"),
        ({"kind": "file", "file": "a"}, "message.parts[0].file"),
        ({"kind": "data", "data": [1]}, "message.parts[0].data"),
        ({"kind": "data", "data": None}, "message.parts[0].data"),
        ({"kind": "text", "text": 1}, "message.parts[0].text"),
        ({"text": "hi", "metadata": "m"}, "message.parts[0].metadata"),
        (None, "message.parts[0]"),
        ("hi", "message.parts[0]"),
    ],
)
@pytest.mark.req("V03-01")
def test_a_part_that_cannot_be_read_without_guessing_is_an_error_that_names_the_member(value: Any, field: str) -> None:
    assert field in findings(v03.SendMessageRequest, send(parts=[value]))


# Both generations in one body.


@pytest.mark.req("V03-01")
@pytest.mark.parametrize(
    "value",
    [
        {"raw": "aGk=", "mediaType": "a/b"},
        {"url": "https://quay.example"},
        {"kind": "text", "text": "hi", "raw": "aGk="},
    ],
)
def test_a_part_of_1_0_is_an_error_that_says_so(value: dict[str, Any]) -> None:
    [member] = value.keys() & {"raw", "url"}

    [(field, text)] = findings(v03.SendMessageRequest, send(parts=[value])).items()

    assert field == f"message.parts[0].{member}"
    assert "version 1.0" in text


@pytest.mark.parametrize("role", ["ROLE_USER", 1, "user", "USER"])
def test_a_role_is_read_as_word_name_and_number(role: Any) -> None:
    assert read(v03.SendMessageRequest, send(role=role)).request.role is Role.USER


@pytest.mark.parametrize(
    ("configuration", "field"),
    [
        ({"returnImmediately": True}, "returnImmediately"),
        ({"blocking": True, "returnImmediately": True}, "returnImmediately"),
        ({"taskPushNotificationConfig": {"url": "https://quay.example"}}, "taskPushNotificationConfig"),
        ({"pushNotificationConfig": {"url": "u", "authentication": {"scheme": "Bearer"}}}, "authentication.scheme"),
    ],
)
def test_a_member_of_1_0_that_changes_the_meaning_is_an_error(configuration: dict[str, Any], field: str) -> None:
    [(found, text)] = findings(v03.SendMessageRequest, {**send(), "configuration": configuration}).items()

    assert found.startswith("configuration.")
    assert found.endswith(field)
    assert "version 1.0" in text


def test_members_of_1_0_that_say_the_same_are_ignored() -> None:
    found = read(v03.SendMessageRequest, {**send(), "configuration": {"blocking": True, "returnImmediately": False}})

    assert found.configuration == v03.SendMessageConfiguration(blocking=True)


def test_a_tenant_is_an_error() -> None:
    assert list(findings(v03.SendMessageRequest, {**send(), "tenant": "acme"})) == ["tenant"]


# What must be there.


@pytest.mark.req("B153")
@pytest.mark.parametrize(
    ("members", "field"),
    [
        ({"messageId": None}, "message.messageId"),
        ({"messageId": ""}, "message.messageId"),
        ({"role": None}, "message.role"),
        ({"role": "owner"}, "message.role"),
        ({"role": "agent"}, "message.role"),
        ({"role": "ROLE_UNSPECIFIED"}, "message.role"),
        ({"parts": []}, "message.parts"),
        ({"parts": None}, "message.parts"),
        ({"parts": {}}, "message.parts"),
        ({"parts": [TEXT], "content": [TEXT]}, "message.content"),
        ({"kind": "task"}, "message.kind"),
        ({"metadata": []}, "message.metadata"),
        ({"contextId": 1}, "message.contextId"),
    ],
)
def test_a_message_of_a_client_must_be_complete(members: dict[str, Any], field: str) -> None:
    assert list(findings(v03.SendMessageRequest, send(**members))) == [field]


def test_a_request_without_a_message_says_so() -> None:
    assert findings(v03.SendMessageRequest, {}) == {"message": "is required"}


def test_findings_are_spelled_as_the_caller_wrote_the_members() -> None:
    value = {"request": {"message_id": "m", "role": "ROLE_USER", "content": [{"file": {"file_with_uri": 1}}]}}

    assert list(findings(v03.SendMessageRequest, value)) == ["request.content[0].file.file_with_uri"]


def test_a_value_nested_beyond_measure_is_an_error() -> None:
    deep: Any = {}
    for _ in range(100_000):
        deep = {"a": deep}

    assert findings(v03.SendMessageRequest, {**send(), "metadata": deep}) == {"": "is nested too deeply"}


# Answers.


@pytest.mark.req("B153")
def test_an_answer_may_lack_ids_and_roles_and_the_agent_is_who_speaks() -> None:
    value = {"kind": "task", "id": "t", "status": {"state": "completed", "message": {"parts": [{"text": "done"}]}}}

    found = read(v03.SendMessageResponse, value, answer=True).task

    assert found is not None
    assert found.status is not None
    assert found.status.update == v03.Message(role=Role.AGENT, content=[v03.Part(text="done")])


def test_data_of_an_answer_that_is_no_object_is_kept() -> None:
    found = part({"kind": "data", "data": [1, 2], "metadata": {"k": 1}}, answer=True)

    assert found.data == v03.DataPart(data={"value": [1, 2]})
    assert found.metadata == {"k": 1, "data_part_compat": True}


@pytest.mark.req("AC-C-46")
def test_an_answer_with_nothing_but_artifacts_is_a_task_without_ids_and_state() -> None:
    value = {"artifacts": [{"artifactId": "a", "name": "reply", "parts": [{"kind": "text", "text": "42"}]}]}

    found, lone = read_send_result(value)
    task = up_send_response(found).task

    assert lone
    assert task is not None
    assert (task.id, task.context_id, task.status) == ("", "", TaskStatus(state=TaskState.UNSPECIFIED))
    assert [artifact.name for artifact in task.artifacts] == ["reply"]


@pytest.mark.req("AC-C-46")
@pytest.mark.parametrize("value", [{}, None, {"artifact": {}}, {"result": 1}, {"artifacts": 7}])
def test_an_answer_that_is_neither_task_nor_message_is_an_error(value: Any) -> None:
    with pytest.raises(InvalidParamsError):
        read_send_result(value)


def test_a_usual_answer_is_not_taken_for_one_of_artifacts_alone() -> None:
    found, lone = read_send_result({"kind": "task", "id": "t", "status": {"state": "completed"}, "artifacts": []})

    assert not lone
    assert up_send_response(found).task == Task(id="t", status=TaskStatus(state=TaskState.COMPLETED))


# Bytes.


@pytest.mark.req("V03-P09")
@pytest.mark.parametrize(
    ("file", "content"),
    [
        ({"bytes": "aGVsbG8="}, b"hello"),
        ({"bytes": "-_8"}, b"\xfb\xff"),
        ({"bytes": ""}, b""),
        ({"fileWithBytes": "YUdWc2JHOD0="}, b"hello"),
        ({"fileWithBytes": "aGVsbG8="}, b"hello"),
        ({"data": "aGVsbG8="}, b"hello"),
    ],
)
def test_content_of_a_file_is_read_whichever_habit_the_peer_has(file: dict[str, Any], content: bytes) -> None:
    assert part({"file": file}).file == v03.FilePart(file_with_bytes=content)


@pytest.mark.req("V03-P09")
def test_a_peer_known_for_raw_bytes_is_not_guessed_about() -> None:
    looks_like_base64 = {"file": {"fileWithBytes": "YWJjZA=="}}  # the content abcd

    assert part(looks_like_base64, raw_bytes=True).file == v03.FilePart(file_with_bytes=b"abcd")
    assert part({"kind": "file", **looks_like_base64}).file == v03.FilePart(file_with_bytes=b"abcd")


# Requests about tasks and webhooks.


@pytest.mark.parametrize("value", [{"id": "t-1"}, {"name": "tasks/t-1"}, {"id": "t-1", "name": "tasks/t-1"}])
@pytest.mark.parametrize("kind", [v03.GetTaskRequest, v03.CancelTaskRequest, v03.TaskSubscriptionRequest])
def test_a_task_is_named_by_id_or_resource_name(kind: type[Any], value: dict[str, Any]) -> None:
    assert read(kind, value).name == "tasks/t-1"


@pytest.mark.parametrize(
    ("value", "field"),
    [
        ({}, "id"),
        ({"id": ""}, "id"),
        ({"id": 7}, "id"),
        ({"name": "t-1"}, "name"),
        ({"id": "t-1", "name": "tasks/t-2"}, "name"),
        ({"id": "t-1", "tenant": "acme"}, "tenant"),
        ({"id": "t-1", "historyLength": "many"}, "historyLength"),
    ],
)
def test_a_task_that_is_not_named_is_an_error(value: dict[str, Any], field: str) -> None:
    assert list(findings(v03.GetTaskRequest, value)) == [field]


HOOK = {"id": "h-1", "url": "https://quay.example/h"}
WEBHOOK = v03.PushNotificationConfig(id="h-1", url="https://quay.example/h")


@pytest.mark.req("V03-01")
@pytest.mark.parametrize(
    "value",
    [
        {
            "parent": "tasks/t-1",
            "configId": "h-1",
            "config": {"name": "tasks/t-1/pushNotificationConfigs/h-1", "pushNotificationConfig": HOOK},
        },
        {"parent": "tasks/t-1/pushNotificationConfigs", "config": {"pushNotificationConfig": HOOK}},
        {"config": {"taskId": "t-1", "pushNotificationConfig": HOOK}},
        {"name": "tasks/t-1/pushNotificationConfigs/h-1", "pushNotificationConfig": HOOK},
        {"taskId": "t-1", "pushNotificationConfig": HOOK},
        {"parent": "/tasks/t-1", **HOOK},
        {"parent": "tasks/t-1", "config_id": "h-1", "config": {"push_notification_config": HOOK}},
    ],
)
def test_a_webhook_is_set_in_any_of_the_shapes_in_use(value: dict[str, Any]) -> None:
    found = read(v03.CreateTaskPushNotificationConfigRequest, value)

    assert found.parent.strip("/").split("/")[:2] == ["tasks", "t-1"]
    assert found.config.push_notification_config == WEBHOOK


@pytest.mark.parametrize(
    ("value", "field"),
    [
        ({}, "pushNotificationConfig"),
        ({"taskId": "t", "pushNotificationConfig": {"id": "h"}}, "pushNotificationConfig.url"),
        ({"config": {"taskId": "t", "pushNotificationConfig": {"url": 1}}}, "config.pushNotificationConfig.url"),
        ({"parent": "t-1", **HOOK}, "parent"),
    ],
)
def test_a_webhook_that_is_not_complete_is_an_error(value: dict[str, Any], field: str) -> None:
    assert list(findings(v03.CreateTaskPushNotificationConfigRequest, value)) == [field]


@pytest.mark.req("V03-P18")
def test_a_webhook_may_be_asked_for_without_its_id_but_not_deleted() -> None:
    found = read(v03.GetTaskPushNotificationConfigRequest, {"id": "t-1"})

    assert found.name.startswith("tasks/t-1/pushNotificationConfigs")
    assert list(findings(v03.DeleteTaskPushNotificationConfigRequest, {"id": "t-1"})) == ["pushNotificationConfigId"]


def test_a_request_of_1_0_for_a_webhook_is_an_error_since_its_id_means_something_else() -> None:
    assert "taskId" in findings(v03.GetTaskPushNotificationConfigRequest, {"taskId": "t-1", "id": "h-1"})


@pytest.mark.parametrize(
    "value",
    [
        [{"taskId": "t-1", "pushNotificationConfig": HOOK}],
        {"configs": [{"name": "tasks/t-1/pushNotificationConfigs/h-1", "pushNotificationConfig": HOOK}]},
    ],
)
def test_webhooks_come_as_an_array_or_in_an_object(value: Any) -> None:
    [found] = read(v03.ListTaskPushNotificationConfigResponse, value, answer=True).configs

    assert found.name == "tasks/t-1/pushNotificationConfigs/h-1"
    assert found.push_notification_config == WEBHOOK
