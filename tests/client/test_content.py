"""From what a caller says to the request."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from dragoman.client.content import SendOptions, compose, to_parts, without_waiting
from dragoman.model import (
    Message,
    Part,
    Role,
    SendMessageRequest,
    Task,
    TaskPushNotificationConfig,
    TaskState,
    TaskStatus,
    encode_json,
)


def composed(content: Any = "hi", **options: Any) -> SendMessageRequest:
    given: SendOptions = {**options}  # type: ignore[typeddict-item]
    return compose(content, given, new_id=lambda: "m1")


def a_task(state: TaskState) -> Task:
    return Task(id="t1", context_id="c1", status=TaskStatus(state=state))


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        ("hi", [Part(text="hi")]),
        ("", [Part(text="")]),
        (b"\x00", [Part(raw=b"\x00", media_type="application/octet-stream")]),
        ({"a": 1}, [Part(data={"a": 1}, media_type="application/json")]),
        (Part(url="https://x/"), [Part(url="https://x/")]),
        (
            ["a", Part(data=None), {"b": 2}],
            [Part(text="a"), Part(data=None), Part(data={"b": 2}, media_type="application/json")],
        ),
        (("a",), [Part(text="a")]),
    ],
)
def test_content_becomes_parts(content: Any, parts: list[Part]) -> None:
    assert to_parts(content) == parts


@pytest.mark.parametrize("content", [None, 3, [1], [["a"]], object()])
def test_what_is_no_content_is_a_type_error(content: Any) -> None:
    with pytest.raises(TypeError):
        composed(content)


def test_no_content_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="at least one part"):
        composed([])


@pytest.mark.req("DATA-19", "DATA-20", "CTX-05", "B161", "B013")
def test_a_first_message_has_an_id_and_the_users_role_and_no_other_ids() -> None:
    assert composed() == SendMessageRequest(message=Message(message_id="m1", role=Role.USER, parts=[Part(text="hi")]))


@pytest.mark.req("B159")
def test_a_message_given_as_content_is_not_changed_and_can_be_sent_twice() -> None:
    given = Message(message_id="", role=Role.USER, parts=[Part(text="x")], reference_task_ids=["r"], metadata={"a": 1})
    before = encode_json(given)

    first = composed(given, task_id="t1", reference_task_ids=["s", "r"], message_metadata={"b": 2}).message
    second = composed(given).message

    assert (first.message_id, first.task_id, first.reference_task_ids, first.metadata) == (
        "m1",
        "t1",
        ["r", "s"],
        {"b": 2},
    )
    assert second.metadata == {"a": 1}
    first.parts.append(Part(text="y"))
    first.reference_task_ids.append("z")
    assert encode_json(given) == before


@pytest.mark.req("AMB-14")
def test_the_id_of_a_message_can_be_given() -> None:
    given = Message(message_id="own", role=Role.USER, parts=[Part(text="x")])

    assert composed(given).message.message_id == "own"
    assert composed(given, message_id="again").message.message_id == "again"


@pytest.mark.req("CTX-16", "CTX-13")
@pytest.mark.parametrize("state", [TaskState.INPUT_REQUIRED, TaskState.WORKING, TaskState.AUTH_REQUIRED])
def test_an_open_task_is_gone_on_with(state: TaskState) -> None:
    message = composed(task=a_task(state)).message

    assert (message.task_id, message.context_id, message.reference_task_ids) == ("t1", "c1", [])


@pytest.mark.req("CTX-20", "CTX-17", "AMB-11")
def test_a_task_that_is_over_is_referred_to_in_its_context() -> None:
    message = composed(task=a_task(TaskState.COMPLETED), reference_task_ids=["t0"]).message

    assert (message.task_id, message.context_id, message.reference_task_ids) == ("", "c1", ["t1", "t0"])


@pytest.mark.req("SEND-17", "B023")
def test_the_configuration_holds_what_was_asked_for() -> None:
    push = TaskPushNotificationConfig(url="https://hook/", task_id="t9", token="s")

    request = composed(history_length=0, accepted_output_modes=("text/plain",), push=push, metadata={"k": 1})

    assert request.configuration is not None
    assert request.configuration.history_length == 0
    assert request.configuration.accepted_output_modes == ["text/plain"]
    assert request.configuration.task_push_notification_config == replace(push, task_id="")
    assert push.task_id == "t9"
    assert request.metadata == {"k": 1}


@pytest.mark.req("SEND-10")
def test_not_waiting_is_told_without_changing_the_request() -> None:
    request = composed(history_length=2)

    quick = without_waiting(request)

    assert quick.configuration is not None
    assert (quick.configuration.return_immediately, quick.configuration.history_length) == (True, 2)
    assert request.configuration is not None
    assert request.configuration.return_immediately is False
