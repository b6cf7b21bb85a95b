"""Push notifications for callers of 0.3, over its three bindings. Spec: 0.3 register, sections 6 and 7.7."""

from __future__ import annotations

import pytest

from dragoman import App
from dragoman.errors import PushNotificationNotSupportedError, TaskNotFoundError
from dragoman.model import AuthenticationInfo, TaskPushNotificationConfig
from tests.compat.both.conftest import Meet
from tests.conformance.wire import served
from tests.push.agents import counting
from tests.push.hooks import Hooks


def hook(url: str = "https://hooks.example/h", **members: object) -> TaskPushNotificationConfig:
    return TaskPushNotificationConfig(url=url, **members)  # type: ignore[arg-type]


@pytest.mark.req("V03-06", "PUSH-02", "AMB-66", "B113", "PUSH-01")
async def test_a_webhook_that_was_set_in_0_3_is_told_the_whole_task_after_each_event(meet: Meet, hooks: Hooks) -> None:
    client = await meet(counting())
    secrets = {"token": "t0k", "authentication": AuthenticationInfo(scheme="Bearer", credentials="c")}

    task = await client.send("count 2", push=hook(f"{hooks.url}/h", **secrets))
    calls = await hooks.ended("/h")

    assert [call.kind for call in calls] == ["task"] * 5
    assert [call.sequence for call in calls] == [1, 2, 3, 4, 5]
    assert [call.json["status"]["state"] for call in calls] == [*["working"] * 4, "completed"]
    assert [len(call.json.get("artifacts", [])) for call in calls] == [0, 0, 0, 1, 1]
    said = [call.json["status"].get("message", {}).get("parts", [{}])[0].get("text") for call in calls]
    assert said == [None, "step 0", "step 1", "step 1", None]
    assert {call.json["id"] for call in calls} == {task.id}
    for call in calls:
        assert call.headers["content-type"] == "application/json"
        assert call.headers["x-a2a-notification-token"] == "t0k"
        assert call.headers["authorization"] == "Bearer c"
        assert call.headers["a2a-version"] == "0.3"


@pytest.mark.req("V03-06", "PCFG-03", "PCFG-04", "PCFG-06", "PCFG-08", "PCFG-09", "AMB-61")
async def test_webhooks_are_set_got_listed_and_deleted(meet: Meet) -> None:
    client = await meet(counting())
    task = await client.send("ask 1")

    made = await client.create_push_config(task.id, hook(id="mine", token="t0k"))
    await client.create_push_config(task.id, hook("https://hooks.example/new", id="mine"))
    got = await client.get_push_config(task.id, "mine")
    listed = (await client.list_push_configs(task.id)).configs
    for _ in range(2):
        await client.delete_push_config(task.id, "mine")

    assert (made.id, made.task_id, made.token) == ("mine", task.id, "t0k")
    assert (got.id, got.url, got.token) == ("mine", "https://hooks.example/new", "")
    assert listed == [got]
    with pytest.raises(TaskNotFoundError):
        await client.get_push_config(task.id, "mine")
    with pytest.raises(TaskNotFoundError):
        await client.create_push_config("nobody", hook())


@pytest.mark.req("V03-P18", "B117", "V03-06")
async def test_a_webhook_without_an_id_is_found_under_that_of_its_task(meet: Meet) -> None:
    client = await meet(counting())
    task = await client.send("ask 1", push=hook())
    other = await client.send("ask 1")
    made = await client.create_push_config(other.id, hook())

    (config,) = (await client.list_push_configs(task.id)).configs

    assert config.id == task.id
    assert made.id == other.id


@pytest.mark.req("PCFG-10", "AMB-15")
async def test_without_push_it_is_refused_in_0_3_too(meet: Meet) -> None:
    agent = counting()
    client = await meet(agent, push=False)

    with pytest.raises(PushNotificationNotSupportedError):
        await client.send("count 1", push=hook())


@pytest.mark.req("V03-06", "PUSH-01")
async def test_each_webhook_of_a_task_reads_its_own_version(hooks: Hooks) -> None:
    async with served(App(counting())) as wire:
        task = (await wire.rpc("SendMessage", {"message": _message("ask 1")})).result["task"]
        new = {"taskId": task["id"], "url": f"{hooks.url}/new", "id": "new"}
        await wire.rpc("CreateTaskPushNotificationConfig", new)
        old = {"taskId": task["id"], "pushNotificationConfig": {"url": f"{hooks.url}/old"}}
        headers = {"A2A-Version": None}
        made = await wire.rpc("tasks/pushNotificationConfig/set", old, headers=headers)
        await wire.rpc("SendMessage", {"message": {**_message("yes"), "taskId": task["id"]}})
        new_calls, old_calls = await hooks.ended("/new"), await hooks.ended("/old")
        params = {"id": task["id"]}
        got = await wire.rpc("tasks/pushNotificationConfig/get", params, headers=headers)
        deleted = await wire.rpc(
            "tasks/pushNotificationConfig/delete", {**params, "pushNotificationConfigId": "new"}, headers=headers
        )

    assert made.result["pushNotificationConfig"]["id"] == task["id"]
    assert got.result["pushNotificationConfig"]["id"] == task["id"]
    assert deleted.json["result"] is None
    assert [call.sequence for call in new_calls] == [call.sequence for call in old_calls]
    assert {call.kind for call in old_calls} == {"task"}
    assert {call.headers["content-type"] for call in new_calls} == {"application/a2a+json"}


def _message(text: str) -> dict[str, object]:
    return {"messageId": f"m-{text}", "role": "ROLE_USER", "parts": [{"text": text}]}
