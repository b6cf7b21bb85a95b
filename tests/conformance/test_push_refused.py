"""An agent without push notifications, which is every agent of today. Spec: §3.3.4."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman import Agent
from dragoman.errors import PushNotificationNotSupportedError
from dragoman.model import TaskPushNotificationConfig
from tests.conformance.wire import SPOKEN, as_caller, by_header, said, served

BOTH = pytest.mark.parametrize("spoken", SPOKEN)
CONFIG = {"url": "https://hooks.example", "id": "c"}
CALLS = [
    ("CreateTaskPushNotificationConfig", CONFIG),
    ("GetTaskPushNotificationConfig", {"id": "c"}),
    ("ListTaskPushNotificationConfigs", {}),
    ("DeleteTaskPushNotificationConfig", {"id": "c"}),
]


def counting_agent(called: list[str]) -> Agent:
    agent = Agent("Counter", description="Writes down what it is asked.")

    @agent.task
    async def count(ctx):  # type: ignore[no-untyped-def]
        called.append(ctx.text)
        return "done"

    return agent


@BOTH
@pytest.mark.req("PCFG-10", "ERR-23", "AMB-39", "CARD-25", "B027")
async def test_all_four_operations_answer_that_push_is_not_supported_known_task_or_not(spoken: str) -> None:
    async with served(counting_agent([])) as wire:
        card = (await wire.ask("GET", "/.well-known/agent-card.json")).json
        known = (await wire.call(spoken, "SendMessage", said())).result["task"]["id"]
        for operation, request in CALLS:
            for task_id in (known, "no-such-task"):
                told = await wire.call(spoken, operation, {"taskId": task_id, **request})
                assert told.reason == "PUSH_NOTIFICATION_NOT_SUPPORTED", operation
                assert told.code == (-32003 if spoken == "JSONRPC" else 400)

    assert card["capabilities"]["pushNotifications"] is False


@BOTH
@pytest.mark.parametrize("operation", ["SendMessage", "SendStreamingMessage"])
@pytest.mark.req("AMB-15", "ERR-23", "PCFG-10", "SEND-17")
async def test_a_message_with_a_webhook_is_refused_before_any_work(spoken: str, operation: str) -> None:
    called: list[str] = []
    async with served(counting_agent(called)) as wire:
        request = {**said(), "configuration": {"taskPushNotificationConfig": CONFIG}}
        told = await wire.call(spoken, operation, request)
        listed = (await wire.call(spoken, "ListTasks")).result

    assert told.reason == "PUSH_NOTIFICATION_NOT_SUPPORTED"
    assert (called, listed["totalSize"]) == ([], 0)


@pytest.mark.parametrize("store", ["memory"], indirect=True)
@pytest.mark.req("PCFG-10", "AMB-15", "CARD-13")
async def test_a_client_is_refused_by_itself_or_by_the_agent_alike(connect: Any) -> None:
    config = TaskPushNotificationConfig(task_id="", url="https://hooks.example")
    for check in (True, False):
        client = await connect(counting_agent([]), client_settings={"check_capabilities": check})
        with pytest.raises(PushNotificationNotSupportedError):
            await client.send("hi", push=config)
        with pytest.raises(PushNotificationNotSupportedError):
            await client.list_push_configs("t")


@BOTH
@pytest.mark.req("AUTH-05", "AMB-40")
async def test_credentials_come_before_capabilities(spoken: str) -> None:
    async with served(counting_agent([]), identify=by_header) as wire:
        without = await wire.call(spoken, "ListTaskPushNotificationConfigs", {"taskId": "t"})
        within = await wire.call(spoken, "ListTaskPushNotificationConfigs", {"taskId": "t"}, headers=as_caller("ann"))

    assert (without.status, within.reason) == (401, "PUSH_NOTIFICATION_NOT_SUPPORTED")
