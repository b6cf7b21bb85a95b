"""Push notifications: configurations on every binding, and what they lead to. Spec: §3.1.7 to §3.1.10, §4.3.3."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman import App
from dragoman.errors import InvalidParamsError, RateLimitedError, TaskNotFoundError
from dragoman.model import AuthenticationInfo, TaskPushNotificationConfig, TaskState
from tests.conformance.wire import SPOKEN, as_caller, by_header, said, served
from tests.push.agents import counting
from tests.push.hooks import Hooks

BOTH = pytest.mark.parametrize("spoken", SPOKEN)
ANN, BOB = as_caller("ann"), as_caller("bob")
URL = "https://hooks.example/h"


def hook(url: str = URL, **members: Any) -> TaskPushNotificationConfig:
    return TaskPushNotificationConfig(url=url, **members)


SECRETS: dict[str, Any] = {
    "token": "t0k",
    "authentication": AuthenticationInfo(scheme="Bearer", credentials="s3cret"),
}


@pytest.mark.req("PCFG-01", "PCFG-03", "PCFG-04", "PCFG-06", "PCFG-13", "AMB-59", "AMB-62", "AMB-70", "PUSH-10")
async def test_a_configuration_is_kept_with_an_id_and_shown_without_its_secrets(connect) -> None:  # type: ignore[no-untyped-def]
    client = await connect(counting())
    task = await client.send("ask 1")

    made = await client.create_push_config(task.id, hook(**SECRETS))
    other = await client.create_push_config(task.id, hook(id="mine"))
    got = await client.get_push_config(task.id, made.id)
    listed = (await client.list_push_configs(task.id)).configs

    assert made.id
    assert other.id == "mine"
    assert (made.task_id, made.url, made.token) == (task.id, URL, "t0k")
    assert made.authentication == SECRETS["authentication"]
    assert (got.id, got.task_id, got.url, got.token) == (made.id, task.id, URL, "")
    assert got.authentication == AuthenticationInfo(scheme="Bearer")
    assert listed == [got, await client.get_push_config(task.id, "mine")]


@pytest.mark.req("AMB-61")
async def test_create_with_a_known_id_replaces(connect) -> None:  # type: ignore[no-untyped-def]
    client = await connect(counting())
    task = await client.send("ask 1")

    for url in (URL, "https://hooks.example/other", "https://hooks.example/other"):
        await client.create_push_config(task.id, hook(url, id="mine"))

    (config,) = (await client.list_push_configs(task.id)).configs
    assert config.url == "https://hooks.example/other"


@pytest.mark.req("PCFG-08", "PCFG-09", "AMB-63")
async def test_delete_is_idempotent(connect) -> None:  # type: ignore[no-untyped-def]
    client = await connect(counting())
    task = await client.send("ask 1")
    made = await client.create_push_config(task.id, hook())

    for config_id in (made.id, made.id, "never-was"):
        await client.delete_push_config(task.id, config_id)

    assert (await client.list_push_configs(task.id)).configs == []
    with pytest.raises(TaskNotFoundError):
        await client.get_push_config(task.id, made.id)


@pytest.mark.req("PCFG-05", "PCFG-11", "AMB-63", "ERR-09")
async def test_an_unknown_task_and_an_unknown_configuration_are_not_found(connect) -> None:  # type: ignore[no-untyped-def]
    client = await connect(counting())
    task = await client.send("ask 1")

    for call in (
        client.create_push_config("nobody", hook()),
        client.get_push_config("nobody", "x"),
        client.list_push_configs("nobody"),
        client.delete_push_config("nobody", "x"),
        client.get_push_config(task.id, "x"),
    ):
        with pytest.raises(TaskNotFoundError):
            await call


@pytest.mark.req("PCFG-07", "AMB-64")
async def test_configurations_are_listed_in_pages(connect) -> None:  # type: ignore[no-untyped-def]
    client = await connect(counting())
    task = await client.send("ask 1")
    for number in range(5):
        await client.create_push_config(task.id, hook(id=f"c{number}"))

    found, token, sizes = [], "", []
    while True:
        page = await client.list_push_configs(task.id, page_size=2, page_token=token)
        found += [config.id for config in page.configs]
        sizes.append(len(page.configs))
        token = page.next_page_token
        if not token:
            break

    assert found == [f"c{number}" for number in range(5)]
    assert sizes == [2, 2, 1]
    assert len((await client.list_push_configs(task.id)).configs) == 5
    for wrong in ({"page_size": -1}, {"page_token": "forged"}):
        with pytest.raises(InvalidParamsError):
            await client.list_push_configs(task.id, **wrong)


@pytest.mark.req("PCFG-13", "ERR-08")
async def test_a_configuration_that_cannot_be_used_is_refused_by_its_fields(connect) -> None:  # type: ignore[no-untyped-def]
    client = await connect(counting())
    task = await client.send("ask 1")
    wrong = {
        "url": hook(""),
        "token": hook(token="a\r\nX-Evil: 1"),
        "authentication.scheme": hook(authentication=AuthenticationInfo(scheme="")),
        "authentication.credentials": hook(authentication=AuthenticationInfo(scheme="Bearer", credentials="a\nb")),
        "id": hook(id="i" * 257),
    }
    for field, config in wrong.items():
        with pytest.raises(InvalidParamsError) as refused:
            await client.create_push_config(task.id, config)
        assert [violation.field for violation in refused.value.violations] == [field]
        with pytest.raises(InvalidParamsError) as refused:
            await client.send("count 1", push=config)
        path = f"configuration.taskPushNotificationConfig.{field}"
        assert [violation.field for violation in refused.value.violations] == [path]


@pytest.mark.req("SEC-10", "PCFG-06")
async def test_a_task_has_so_many_configurations_and_no_more(connect) -> None:  # type: ignore[no-untyped-def]
    client = await connect(counting(webhooks_per_task=3))
    task = await client.send("ask 1", push=hook(id="c0"))
    for number in (1, 2):
        await client.create_push_config(task.id, hook(id=f"c{number}"))

    with pytest.raises(RateLimitedError, match="3 push notification configurations"):
        await client.create_push_config(task.id, hook(id="c3"))
    with pytest.raises(RateLimitedError):
        await client.send("yes", task=task, push=hook(id="c4"))
    await client.create_push_config(task.id, hook("https://hooks.example/new", id="c2"))

    assert [config.id for config in (await client.list_push_configs(task.id)).configs] == ["c0", "c1", "c2"]
    assert (await client.get_task(task.id)).status.state is TaskState.INPUT_REQUIRED


@pytest.mark.req("B117", "SEND-17", "PCFG-12", "PUSH-01", "PUSH-19", "SEND-12", "STREAM-13")
async def test_a_configuration_inside_a_message_counts_from_the_first_event_on(connect, hooks: Hooks) -> None:  # type: ignore[no-untyped-def]
    client = await connect(counting())

    waited = await client.send("count 1", push=hook(f"{hooks.url}/waited"))
    begun = await client.send("count 1", push=hook(f"{hooks.url}/begun"), wait=False)
    async with client.stream("count 1", push=hook(f"{hooks.url}/stream")) as stream:
        async for _ in stream:
            pass

    for path in ("/waited", "/begun", "/stream"):
        calls = await hooks.ended(path)
        assert [call.sequence for call in calls] == [1, 2, 3, 4]
        assert [call.kind for call in calls] == ["task", "statusUpdate", "artifactUpdate", "statusUpdate"]
    for task in (waited, begun):
        (config,) = (await client.list_push_configs(task.id)).configs
        assert config.id


@pytest.mark.req("PCFG-12", "PUSH-19")
async def test_a_configuration_inside_a_further_message_counts_from_there_on(connect, hooks: Hooks) -> None:  # type: ignore[no-untyped-def]
    client = await connect(counting())
    asked = await client.send("ask 1")

    await client.send("yes", task=asked, push=hook(f"{hooks.url}/h"))

    calls = await hooks.ended("/h")
    assert calls[0].sequence == 3
    assert calls[0].kind == "statusUpdate"


@pytest.mark.req("AMB-60", "PCFG-02")
async def test_a_task_that_is_over_is_told_once_as_a_whole(connect, hooks: Hooks) -> None:  # type: ignore[no-untyped-def]
    client = await connect(counting())
    task = await client.send("count 1")

    made = await client.create_push_config(task.id, hook(f"{hooks.url}/h"))

    (call,) = await hooks.ended("/h")
    assert call.task["id"] == task.id
    assert call.task["artifacts"]
    assert (await client.get_push_config(task.id, made.id)).id == made.id


@pytest.mark.req("PUSH-21", "STRM-11", "INTASK-07")
async def test_a_task_that_is_followed_by_push_alone_ends_right(connect, hooks: Hooks) -> None:  # type: ignore[no-untyped-def]
    client = await connect(counting())
    begun = await client.send("ask 1", push=hook(f"{hooks.url}/h"), wait=False)

    await hooks.until(lambda: any("INPUT_REQUIRED" in call.state for call in hooks.taken("/h")))
    await client.send("yes", task=begun, wait=False)
    calls = await hooks.ended("/h")

    assert [call.sequence for call in calls] == [1, 2, 3, 4, 5, 6]
    assert (await client.get_task(begun.id)).status.state is TaskState.COMPLETED


@pytest.mark.req("CARD-25", "PCFG-10")
async def test_the_card_declares_push(connect) -> None:  # type: ignore[no-untyped-def]
    client = await connect(counting())
    await client.send("count 0")
    assert client.card is not None
    assert client.card.capabilities.push_notifications is True


# Whose they are.


@BOTH
@pytest.mark.parametrize("kind", ["memory", "sqlite"])
@pytest.mark.req("PCFG-05", "PCFG-11", "CANCEL-05", "AUTH-08", "AUTH-10", "AMB-36", "B123")
async def test_the_webhooks_of_somebody_elses_task_do_not_exist(spoken: str, kind: str, tmp_path: Any) -> None:
    store = "memory" if kind == "memory" else f"sqlite:///{tmp_path}/tasks.db"
    async with served(counting(), identify=by_header, store=store) as wire:

        async def call(operation: str, request: dict[str, Any], headers: Any = ANN) -> Any:
            return await wire.call(spoken, operation, request, headers=headers)

        task = (await call("SendMessage", said("ask 1"))).result["task"]
        pages = []
        for number in range(3):
            await call("CreateTaskPushNotificationConfig", {"taskId": task["id"], "url": URL, "id": f"c{number}"})
            pages = (await call("ListTaskPushNotificationConfigs", {"taskId": task["id"], "pageSize": 2})).result
        for operation, request in (
            ("CreateTaskPushNotificationConfig", {"url": URL, "id": "c0"}),
            ("GetTaskPushNotificationConfig", {"id": "c0"}),
            ("ListTaskPushNotificationConfigs", {}),
            ("ListTaskPushNotificationConfigs", {"pageToken": pages["nextPageToken"]}),
            ("DeleteTaskPushNotificationConfig", {"id": "c0"}),
        ):
            theirs = await call(operation, {"taskId": task["id"], **request}, BOB)
            nobodys = await call(operation, {"taskId": "no-such-task", **request}, BOB)
            assert theirs.reason == nobodys.reason == "TASK_NOT_FOUND", operation
            assert theirs.error["message"] == nobodys.error["message"]
        bobs = (await call("SendMessage", said("ask 1"), BOB)).result["task"]
        stolen = {"taskId": bobs["id"], "pageToken": pages["nextPageToken"]}
        refused = await call("ListTaskPushNotificationConfigs", stolen, BOB)
        listed = (await call("ListTaskPushNotificationConfigs", {"taskId": task["id"]})).result

    assert refused.fields == ["pageToken"]
    assert [config["id"] for config in listed["configs"]] == ["c0", "c1", "c2"]
    assert listed["nextPageToken"] == ""


@BOTH
@pytest.mark.req("B119", "PUSH-04")
async def test_all_webhooks_of_a_task_are_told_whoever_moves_it(spoken: str, hooks: Hooks) -> None:
    app = App(counting(), identify=by_header)
    async with served(app) as wire:
        request = {**said("ask 1"), "configuration": {"taskPushNotificationConfig": {"url": f"{hooks.url}/h"}}}
        task = (await wire.call(spoken, "SendMessage", request, headers=ANN)).result["task"]
        await wire.call(spoken, "CancelTask", {"id": task["id"]}, headers=ANN)
        await hooks.until(lambda: any("CANCELED" in call.state for call in hooks.taken("/h")))
