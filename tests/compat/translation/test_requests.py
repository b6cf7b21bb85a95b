"""Requests and webhooks between the generations, by the tables of the register."""

from __future__ import annotations

import pytest

from dragoman.compat.v03 import types as v03
from dragoman.compat.v03.downward import (
    choose_config,
    down_create_push,
    down_get,
    down_message,
    down_part,
    down_push_config,
    down_send,
    down_status,
)
from dragoman.compat.v03.kinds import write_kind
from dragoman.compat.v03.upward import up_create_push, up_get, up_get_push, up_part, up_push_config, up_send
from dragoman.errors import InvalidParamsError, TaskNotFoundError
from dragoman.model import (
    AuthenticationInfo,
    GetTaskRequest,
    Message,
    Part,
    Role,
    SendMessageConfiguration,
    SendMessageRequest,
    TaskPushNotificationConfig,
    TaskState,
    TaskStatus,
)

SAID = v03.Message(message_id="m", role=Role.USER, content=[v03.Part(text="hi")])
ASKED = Message(message_id="m", role=Role.USER, parts=[Part(text="hi")])


@pytest.mark.req("V03-P05")
@pytest.mark.parametrize(
    ("configuration", "rpc", "at_once"),
    [
        (None, True, False),
        (None, False, False),
        (v03.SendMessageConfiguration(), True, False),
        (v03.SendMessageConfiguration(), False, True),
        (v03.SendMessageConfiguration(blocking=False), True, True),
        (v03.SendMessageConfiguration(blocking=False), False, True),
        (v03.SendMessageConfiguration(blocking=True), True, False),
        (v03.SendMessageConfiguration(blocking=True), False, False),
    ],
)
def test_blocking_is_the_opposite_of_returning_at_once(
    configuration: v03.SendMessageConfiguration | None, rpc: bool, at_once: bool
) -> None:
    found = up_send(v03.SendMessageRequest(request=SAID, configuration=configuration), rpc=rpc).configuration

    assert (found is not None and found.return_immediately) is at_once


@pytest.mark.req("V03-P05")
@pytest.mark.parametrize("at_once", [None, False, True])
def test_a_client_always_says_whether_it_waits_and_what_it_takes(at_once: bool | None) -> None:
    asked = None if at_once is None else SendMessageConfiguration(return_immediately=at_once)

    written = write_kind(down_send(SendMessageRequest(message=ASKED, configuration=asked)))

    assert written["configuration"] == {"acceptedOutputModes": [], "blocking": not at_once}


@pytest.mark.req("V03-P23")
@pytest.mark.parametrize(("length", "asked"), [(0, None), (3, 3)])
def test_a_history_length_of_nothing_is_no_limit_in_0_3(length: int, asked: int | None) -> None:
    configuration = v03.SendMessageConfiguration(history_length=length)
    sent = up_send(v03.SendMessageRequest(request=SAID, configuration=configuration), rpc=True).configuration

    assert sent is not None
    assert sent.history_length == asked
    assert up_get(v03.GetTaskRequest(name="tasks/t", history_length=length)).history_length == asked


@pytest.mark.req("V03-P23")
@pytest.mark.parametrize(("asked", "length"), [(None, 0), (0, 1), (3, 3)])
def test_who_asks_0_3_for_no_history_asks_for_one_message(asked: int | None, length: int) -> None:
    assert down_get(GetTaskRequest(id="t", history_length=asked)).history_length == length


@pytest.mark.req("B153")
def test_a_message_without_an_id_gets_one_that_is_the_same_each_time() -> None:
    nameless = Message(message_id="", role=Role.AGENT, parts=[Part(text="hi")])

    first, second = down_message(nameless), down_message(nameless)

    assert first.message_id
    assert first == second
    assert down_message(Message(message_id="", role=Role.AGENT, parts=[Part(text="ho")])) != first


@pytest.mark.req("V03-P24")
def test_no_message_is_made_up_for_a_status_without_one() -> None:
    assert down_status(TaskStatus(state=TaskState.WORKING)).update is None


@pytest.mark.req("V03-07")
@pytest.mark.parametrize("value", [None, 3, "x", [1], True])
def test_data_that_is_no_object_is_wrapped_and_unwrapped(value: object) -> None:
    part = Part(data=value, metadata={"k": 1})

    old = down_part(part)

    assert old.data == v03.DataPart(data={"value": value})
    assert old.metadata == {"k": 1, "data_part_compat": True}
    assert up_part(old) == part


def test_media_types_are_not_invented() -> None:
    assert up_part(v03.Part(text="hi")).media_type == ""
    assert up_part(v03.Part(data=v03.DataPart(data={}))).media_type == ""


# Webhooks.


@pytest.mark.parametrize(
    ("schemes", "credentials", "scheme"),
    [
        (["Digest", "Basic", "bearer"], "x", "bearer"),
        (["Digest", "BASIC"], "x", "BASIC"),
        (["Digest"], "", "Digest"),
        ([], "x", ""),
    ],
)
def test_of_several_schemes_one_that_can_be_served_is_taken(schemes: list[str], credentials: str, scheme: str) -> None:
    info = v03.AuthenticationInfo(schemes=schemes, credentials=credentials)
    webhook = v03.PushNotificationConfig(url="u", authentication=info)

    found = up_push_config(v03.TaskPushNotificationConfig(name="tasks/t", push_notification_config=webhook))

    assert found.authentication == AuthenticationInfo(scheme=scheme, credentials=credentials)


def test_no_scheme_and_no_credentials_are_no_authentication() -> None:
    webhook = v03.PushNotificationConfig(url="u", authentication=v03.AuthenticationInfo())

    found = up_push_config(v03.TaskPushNotificationConfig(name="tasks/t", push_notification_config=webhook))

    assert found.authentication is None


@pytest.mark.req("V03-P18")
@pytest.mark.parametrize(
    ("own", "beside", "name", "expected"),
    [
        ("h-1", "h-2", "tasks/t/pushNotificationConfigs/h-3", "h-1"),
        ("", "h-2", "tasks/t/pushNotificationConfigs/h-3", "h-2"),
        ("", "", "tasks/t/pushNotificationConfigs/h-3", "h-3"),
        ("", "", "tasks/t/pushNotificationConfigs/None", "t"),
        ("", "", "", "t"),
    ],
)
def test_the_id_of_a_webhook_is_its_own_then_the_one_beside_then_the_named_then_the_tasks(
    own: str, beside: str, name: str, expected: str
) -> None:
    webhook = v03.PushNotificationConfig(id=own, url="u")
    config = v03.TaskPushNotificationConfig(name=name, push_notification_config=webhook)
    request = v03.CreateTaskPushNotificationConfigRequest(parent="tasks/t", config_id=beside, config=config)

    found = up_create_push(request)

    assert (found.task_id, found.id) == ("t", expected)


def test_the_path_decides_for_which_task_a_webhook_is() -> None:
    config = v03.TaskPushNotificationConfig(
        name="tasks/other", push_notification_config=v03.PushNotificationConfig(url="u")
    )

    request = v03.CreateTaskPushNotificationConfigRequest(parent="tasks/t", config_id="", config=config)

    assert up_create_push(request).task_id == "t"


def test_a_webhook_for_no_task_is_an_error() -> None:
    request = v03.CreateTaskPushNotificationConfigRequest(
        parent="", config_id="", config=v03.TaskPushNotificationConfig()
    )

    with pytest.raises(InvalidParamsError) as caught:
        up_create_push(request)

    assert [violation.field for violation in caught.value.violations] == ["taskId"]


def test_a_webhook_is_set_with_its_id_in_all_places() -> None:
    made = down_create_push(TaskPushNotificationConfig(task_id="t", id="h", url="u"))

    assert (made.parent, made.config_id) == ("tasks/t", "h")
    assert made.config.name == "tasks/t/pushNotificationConfigs/h"
    assert made.config.push_notification_config == v03.PushNotificationConfig(id="h", url="u")


def test_a_webhook_without_an_id_is_shown_under_that_of_its_task() -> None:
    assert down_push_config(TaskPushNotificationConfig(task_id="t", url="u")).name.endswith("/t")


CONFIGS = [TaskPushNotificationConfig(task_id="t", id=config_id, url="u") for config_id in ("a", "t", "b")]


@pytest.mark.req("V03-P18")
@pytest.mark.parametrize(("config_id", "expected"), [("", "t"), ("b", "b")])
def test_without_an_id_the_webhook_named_like_the_task_is_meant(config_id: str, expected: str) -> None:
    assert choose_config(CONFIGS, "t", config_id).id == expected


@pytest.mark.req("V03-P18")
def test_without_an_id_the_first_webhook_will_do() -> None:
    request = up_get_push(v03.GetTaskPushNotificationConfigRequest(name="tasks/t/pushNotificationConfigs"))

    assert choose_config(CONFIGS[:1], request.task_id, request.id).id == "a"


@pytest.mark.parametrize("config_id", ["", "x"])
def test_a_webhook_that_is_not_there_is_not_found(config_id: str) -> None:
    with pytest.raises(TaskNotFoundError):
        choose_config([] if not config_id else CONFIGS, "t", config_id)
