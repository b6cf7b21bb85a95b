"""The table of operations."""

from __future__ import annotations

import re

import pytest

from dragoman import model
from dragoman.model import OPERATIONS, AgentCapabilities, Operation

NAMES = [
    "SendMessage", "SendStreamingMessage", "GetTask", "ListTasks", "CancelTask", "SubscribeToTask",
    "CreateTaskPushNotificationConfig", "GetTaskPushNotificationConfig", "ListTaskPushNotificationConfigs",
    "GetExtendedAgentCard", "DeleteTaskPushNotificationConfig",
]  # fmt: skip


@pytest.mark.req("DATA-01")
def test_there_are_eleven_operations_each_with_a_constant() -> None:
    constants = [value for value in vars(model).values() if isinstance(value, Operation)]

    assert list(OPERATIONS) == NAMES
    assert set(OPERATIONS.values()) == set(constants)
    assert all(operation.name == name for name, operation in OPERATIONS.items())


@pytest.mark.req("HTTP-12", "AMB-49")
def test_paths_name_fields_of_the_request() -> None:
    for operation in OPERATIONS.values():
        names = tuple(re.findall(r"{(\w+)}", operation.http_path))

        assert operation.path_fields == names
        assert set(names) <= set(operation.request.__struct_fields__)


@pytest.mark.req("ERR-23")
def test_capabilities_are_fields_of_the_card() -> None:
    needed = {operation.capability for operation in OPERATIONS.values()} - {""}

    assert needed == {"streaming", "push_notifications", "extended_agent_card"}
    assert needed <= set(AgentCapabilities.__struct_fields__)


@pytest.mark.req("HTTP-01", "HTTP-03")
def test_requests_travel_in_the_body_of_posts_only() -> None:
    for operation in OPERATIONS.values():
        assert operation.body == ("*" if operation.http_method == "POST" else "")


def test_streaming_operations_answer_with_stream_responses() -> None:
    streaming = [operation for operation in OPERATIONS.values() if operation.streaming]

    assert [operation.name for operation in streaming] == ["SendStreamingMessage", "SubscribeToTask"]
    assert {operation.response for operation in streaming} == {model.StreamResponse}
