"""What is written in kind-JSON and in the JSON of the proto, letter by letter; values as in the register's examples."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.compat.v03 import types as v03
from dragoman.compat.v03.downward import (
    down_cancel,
    down_create_push,
    down_event,
    down_get,
    down_get_push,
    down_list_push_response,
    down_message,
    down_send,
    down_task,
)
from dragoman.compat.v03.kinds import write_kind
from dragoman.compat.v03.protojson import write_proto
from dragoman.compat.v03.reading import read
from dragoman.model import (
    Artifact,
    AuthenticationInfo,
    CancelTaskRequest,
    GetTaskPushNotificationConfigRequest,
    GetTaskRequest,
    ListTaskPushNotificationConfigsResponse,
    Message,
    Part,
    Role,
    SendMessageConfiguration,
    SendMessageRequest,
    StreamResponse,
    Task,
    TaskArtifactUpdateEvent,
    TaskPushNotificationConfig,
    TaskState,
    TaskStatus,
    TaskStatusUpdateEvent,
    Timestamp,
)

AT = Timestamp.parse("2026-04-05T06:07:08.090Z")
ASKED = Message(
    message_id="q-1",
    role=Role.USER,
    parts=[
        Part(text="Is the lock open on Sunday?"),
        Part(raw=b"hello", filename="plan.txt", media_type="text/plain"),
        Part(url="https://canal.example/map.png"),
        Part(data={"locks": [3, 4]}, metadata={"from": "form"}),
    ],
)
REQUEST = SendMessageRequest(
    message=ASKED,
    configuration=SendMessageConfiguration(
        accepted_output_modes=["text/plain"],
        history_length=2,
        task_push_notification_config=TaskPushNotificationConfig(id="h", url="https://canal.example/hook"),
    ),
    metadata={"trace": "t-7"},
)
TASK = Task(
    id="task-5",
    context_id="ctx-2",
    status=TaskStatus(
        state=TaskState.CANCELED,
        message=Message(message_id="r-1", role=Role.AGENT, parts=[Part(text="Stopped.")]),
        timestamp=AT,
    ),
    artifacts=[Artifact(artifact_id="hours", name="hours", parts=[Part(text="9 to 5")])],
    history=[Message(message_id="q-1", role=Role.USER, task_id="task-5", parts=[Part(text="Well?")])],
)
STATUS = StreamResponse(
    status_update=TaskStatusUpdateEvent(
        task_id="task-5", context_id="ctx-2", status=TaskStatus(state=TaskState.INPUT_REQUIRED)
    )
)
CHUNK = StreamResponse(
    artifact_update=TaskArtifactUpdateEvent(
        task_id="task-5",
        context_id="ctx-2",
        artifact=Artifact(artifact_id="hours", parts=[Part(text="!")]),
        append=True,
    )
)
HOOK = TaskPushNotificationConfig(
    task_id="task-5",
    id="hook-1",
    url="https://canal.example/hook",
    token="s3cr3t",
    authentication=AuthenticationInfo(scheme="Bearer", credentials="abc"),
)
OLD_HOOK = {
    "id": "hook-1",
    "url": "https://canal.example/hook",
    "token": "s3cr3t",
    "authentication": {"schemes": ["Bearer"], "credentials": "abc"},
}

KIND_VECTORS: list[tuple[Any, Any]] = [
    (
        down_send(REQUEST),
        {
            "message": {
                "kind": "message",
                "messageId": "q-1",
                "role": "user",
                "parts": [
                    {"kind": "text", "text": "Is the lock open on Sunday?"},
                    {"kind": "file", "file": {"bytes": "aGVsbG8=", "mimeType": "text/plain", "name": "plan.txt"}},
                    {"kind": "file", "file": {"uri": "https://canal.example/map.png"}},
                    {"kind": "data", "data": {"locks": [3, 4]}, "metadata": {"from": "form"}},
                ],
            },
            "configuration": {
                "acceptedOutputModes": ["text/plain"],
                "blocking": True,
                "historyLength": 2,
                "pushNotificationConfig": {"id": "h", "url": "https://canal.example/hook"},
            },
            "metadata": {"trace": "t-7"},
        },
    ),
    (
        down_task(TASK),
        {
            "kind": "task",
            "id": "task-5",
            "contextId": "ctx-2",
            "status": {
                "state": "canceled",
                "message": {
                    "kind": "message",
                    "messageId": "r-1",
                    "role": "agent",
                    "parts": [{"kind": "text", "text": "Stopped."}],
                },
                "timestamp": "2026-04-05T06:07:08.090Z",
            },
            "artifacts": [{"artifactId": "hours", "name": "hours", "parts": [{"kind": "text", "text": "9 to 5"}]}],
            "history": [
                {
                    "kind": "message",
                    "messageId": "q-1",
                    "role": "user",
                    "taskId": "task-5",
                    "parts": [{"kind": "text", "text": "Well?"}],
                }
            ],
        },
    ),
    (
        down_event(STATUS),
        {
            "kind": "status-update",
            "taskId": "task-5",
            "contextId": "ctx-2",
            "status": {"state": "input-required"},
            "final": True,
        },
    ),
    (
        down_event(CHUNK),
        {
            "kind": "artifact-update",
            "taskId": "task-5",
            "contextId": "ctx-2",
            "artifact": {"artifactId": "hours", "parts": [{"kind": "text", "text": "!"}]},
            "append": True,
        },
    ),
    (down_get(GetTaskRequest(id="task-5", history_length=5)), {"id": "task-5", "historyLength": 5}),
    (
        down_cancel(CancelTaskRequest(id="task-5", metadata={"why": "rain"})),
        {"id": "task-5", "metadata": {"why": "rain"}},
    ),
    (down_create_push(HOOK), {"taskId": "task-5", "pushNotificationConfig": OLD_HOOK}),
    (
        down_get_push(GetTaskPushNotificationConfigRequest(task_id="task-5", id="hook-1")),
        {"id": "task-5", "pushNotificationConfigId": "hook-1"},
    ),
    (
        down_list_push_response(ListTaskPushNotificationConfigsResponse(configs=[HOOK])),
        [{"taskId": "task-5", "pushNotificationConfig": OLD_HOOK}],
    ),
    (v03.Empty(), None),
]


@pytest.mark.req("V03-01", "B153", "V03-P19")
@pytest.mark.parametrize(("message", "expected"), KIND_VECTORS)
def test_kind_json_is_written_in_full(message: Any, expected: Any) -> None:
    assert write_kind(message) == expected


PROTO_VECTORS: list[tuple[Any, Any]] = [
    (
        down_send(REQUEST),
        {
            "message": {
                "messageId": "q-1",
                "role": "ROLE_USER",
                "content": [
                    {"text": "Is the lock open on Sunday?"},
                    {"file": {"fileWithBytes": "YUdWc2JHOD0=", "mimeType": "text/plain", "name": "plan.txt"}},
                    {"file": {"fileWithUri": "https://canal.example/map.png"}},
                    {"data": {"data": {"locks": [3, 4]}}, "metadata": {"from": "form"}},
                ],
            },
            "configuration": {
                "acceptedOutputModes": ["text/plain"],
                "blocking": True,
                "historyLength": 2,
                "pushNotification": {"id": "h", "url": "https://canal.example/hook"},
            },
            "metadata": {"trace": "t-7"},
        },
    ),
    (
        v03.SendMessageResponse(task=down_task(TASK)),
        {
            "task": {
                "id": "task-5",
                "contextId": "ctx-2",
                "status": {
                    "state": "TASK_STATE_CANCELLED",
                    "message": {"messageId": "r-1", "role": "ROLE_AGENT", "content": [{"text": "Stopped."}]},
                    "timestamp": "2026-04-05T06:07:08.090Z",
                },
                "artifacts": [{"artifactId": "hours", "name": "hours", "parts": [{"text": "9 to 5"}]}],
                "history": [
                    {"messageId": "q-1", "role": "ROLE_USER", "taskId": "task-5", "content": [{"text": "Well?"}]}
                ],
            }
        },
    ),
    (
        down_event(STATUS),
        {
            "statusUpdate": {
                "taskId": "task-5",
                "contextId": "ctx-2",
                "status": {"state": "TASK_STATE_INPUT_REQUIRED"},
                "final": True,
            }
        },
    ),
    (
        down_create_push(HOOK),
        {
            "parent": "tasks/task-5",
            "configId": "hook-1",
            "config": {"name": "tasks/task-5/pushNotificationConfigs/hook-1", "pushNotificationConfig": OLD_HOOK},
        },
    ),
    (down_cancel(CancelTaskRequest(id="task-5", metadata={"why": "rain"})), {"name": "tasks/task-5"}),
]


@pytest.mark.req("V03-01", "V03-P02", "V03-P09")
@pytest.mark.parametrize(("message", "expected"), PROTO_VECTORS)
def test_the_json_of_the_proto_is_written_as_the_proto_has_it(message: Any, expected: Any) -> None:
    assert write_proto(message) == expected


@pytest.mark.req("V03-P09")
def test_bytes_are_written_once_encoded_for_peers_that_want_them_so() -> None:
    message = down_message(Message(message_id="m", role=Role.AGENT, parts=[Part(raw=b"hello")]))

    [part] = write_proto(message, bytes_as_text=False)["content"]

    assert part == {"file": {"fileWithBytes": "aGVsbG8="}}


@pytest.mark.parametrize(("message", "expected"), [vector for vector in KIND_VECTORS if vector[1]])
def test_what_is_written_as_kind_json_is_read_as_what_it_was(message: Any, expected: Any) -> None:
    again = read(type(message), expected, answer=True)

    assert write_kind(again) == expected


def test_who_speaks_without_a_role_is_written_as_the_agent() -> None:
    assert write_kind(v03.Message(message_id="m"))["role"] == "agent"


@pytest.mark.parametrize("state", [TaskState.UNSPECIFIED, 77])
def test_a_state_that_0_3_has_no_word_for_is_unknown(state: Any) -> None:
    assert write_kind(v03.TaskStatus(state=state)) == {"state": "unknown"}


def test_a_message_that_json_rpc_does_not_know_is_a_mistake_of_the_caller() -> None:
    with pytest.raises(TypeError):
        write_kind(v03.ListTasksRequest())
