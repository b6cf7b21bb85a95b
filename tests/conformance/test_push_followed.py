"""A task followed by push alone, on every binding: the agent tells a receiver, and the client asks when it is told."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import dragoman
from dragoman import Agent, App, TaskState
from dragoman.client import Poll
from dragoman.errors import RequestTimeoutError
from dragoman.jose import new_key
from dragoman.model import GET_TASK, AuthenticationInfo, Operation, TaskPushNotificationConfig
from dragoman.push import PushSigner
from dragoman.webhook import Notification, Receiver, SenderKeys
from tests.push.agents import counting, settings
from tests.webhook.serving import receiving

BOUND = 5.0
NEVER = {"poll": Poll(first=60, longest=60, unheard=60)}


class Counted:
    """Counts the looks at the task; a stream is a failure."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner
        self.looks = 0

    def __call__(self, inner: Any) -> Counted:
        self.inner = inner
        return self

    async def call(self, op: Operation, request: Any, context: Any) -> Any:
        self.looks += op is GET_TASK
        return await self.inner.call(op, request, context)

    async def stream(self, op: Operation, request: Any, context: Any) -> Any:
        raise AssertionError("a stream was opened")


@pytest.mark.req("PUSH-11", "PUSH-13", "PUSH-14", "PUSH-17", "PUSH-21", "PCFG-12", "SEND-17")
async def test_a_task_ends_right_for_who_is_told_by_push_alone(connect) -> None:  # type: ignore[no-untyped-def]
    counted = Counted(None)
    told: list[Notification] = []
    client = await connect(counting(), client_settings={**NEVER, "interceptors": [counted]})

    async with asyncio.timeout(BOUND), receiving(lambda url: Receiver(told.append, url=url)) as receiver:
        with receiver.expect() as expected:
            result = await client.run("slowly 5", pushed=expected)

    assert result.ok
    assert result.text == "done"
    assert {notification.task_id for notification in told} == {result.task_id}
    assert counted.looks >= 1


@pytest.mark.req("PUSH-21", "PUSH-13", "AMB-60")
async def test_a_task_that_was_there_before_is_followed_once_its_webhook_is_created(connect) -> None:  # type: ignore[no-untyped-def]
    client = await connect(counting(), client_settings=NEVER)

    async with asyncio.timeout(BOUND), receiving(lambda url: Receiver(url=url)) as receiver:
        task = await client.send("slowly 20", wait=False)
        expected = receiver.expect(task)
        await client.create_push_config(task, expected.config)
        result = await client.wait(task, pushed=expected)

    assert result.ok
    assert result.task_id == task.id


@pytest.mark.req("PUSH-21")
async def test_a_question_is_heard_by_push_and_so_is_what_follows_the_answer(connect) -> None:  # type: ignore[no-untyped-def]
    client = await connect(counting(), client_settings=NEVER)

    async with asyncio.timeout(BOUND), receiving(lambda url: Receiver(url=url)) as receiver:
        with receiver.expect() as expected:
            asked = await client.run("ask 2", pushed=expected)
            await client.send("yes", task=asked.task, wait=False)
            result = await client.wait(asked.task, pushed=expected)

    assert asked.state is TaskState.INPUT_REQUIRED
    assert result.state in (TaskState.COMPLETED, TaskState.INPUT_REQUIRED)


@pytest.mark.req("PUSH-14", "PUSH-18", "PUSH-12")
async def test_every_proof_that_a_receiver_asks_for_is_brought_by_our_agent(connect) -> None:  # type: ignore[no-untyped-def]
    signer = PushSigner(new_key("ES256"), issuer="https://agent.example.com")
    told: list[Notification] = []
    over = asyncio.Event()

    def make(url: str) -> Receiver:
        def handle(notification: Notification) -> None:
            told.append(notification)
            if notification.settled:
                over.set()

        keys = SenderKeys({"keys": signer.public_keys}, issuer="https://agent.example.com")
        info = AuthenticationInfo(scheme="Basic", credentials="dTpw")
        return Receiver(handle, url=url, keys=keys, authentication=info)

    client = await connect(counting(signer=signer))
    async with asyncio.timeout(BOUND), receiving(make) as receiver:
        await client.send("count 3", push=receiver.expect().config)
        await over.wait()

    assert [n.sequence for n in told] == [1, 2, 3, 4, 5, 6]
    assert all(n.signed and n.sent_ms for n in told)
    assert len({n.id for n in told}) == 6


@pytest.mark.req("PUSH-11", "PUSH-12")
async def test_what_the_function_refuses_is_told_again_until_it_takes_it_in_order(connect) -> None:  # type: ignore[no-untyped-def]
    told: list[int | None] = []
    failures, over = 0, asyncio.Event()

    def handle(notification: Notification) -> None:
        nonlocal failures
        if notification.sequence == 2 and not failures:
            failures += 1
            raise RuntimeError("not now")
        told.append(notification.sequence)
        if notification.settled:
            over.set()

    client = await connect(counting())
    async with asyncio.timeout(BOUND), receiving(lambda url: Receiver(handle, url=url)) as receiver:
        await client.send("count 3", push=receiver.expect().config)
        await over.wait()

    assert told == [1, 2, 3, 4, 5, 6]


@pytest.mark.req("PUSH-21")
async def test_when_nothing_is_heard_the_task_is_looked_at_all_the_same(connect) -> None:  # type: ignore[no-untyped-def]
    client = await connect(counting(), client_settings={"poll": Poll(unheard=0.05)})
    receiver = Receiver(url="http://127.0.0.1:9/nobody")

    async with asyncio.timeout(BOUND):
        result = await client.run("slowly 5", pushed=receiver.expect())

    assert result.ok


@pytest.mark.req("PUSH-21")
async def test_following_by_push_has_an_end(connect) -> None:  # type: ignore[no-untyped-def]
    client = await connect(counting(), client_settings=NEVER)
    receiver = Receiver(url="http://127.0.0.1:9/nobody")

    with pytest.raises(RequestTimeoutError):
        await client.run("slowly 100", pushed=receiver.expect(), timeout=0.2)


@pytest.mark.req("PUSH-11", "PUSH-14", "PUSH-21")
@pytest.mark.parametrize("binding", ["JSONRPC", "HTTP+JSON", "GRPC"])
async def test_a_listener_of_0_3_is_told_whole_tasks_and_follows_the_same_way(connect, binding: str) -> None:  # type: ignore[no-untyped-def]
    told: list[Notification] = []
    await connect(counting())
    spoken = dragoman.connect(connect.url, bindings=(binding,), versions=("0.3",), **NEVER)

    async with (
        asyncio.timeout(BOUND),
        spoken as client,
        receiving(lambda url: Receiver(told.append, url=url)) as receiver,
    ):
        result = await client.run("slowly 3", pushed=receiver.expect())

    assert client.interface.protocol_version.startswith("0.3")
    assert result.ok
    assert {(n.wire, type(n.event).__name__) for n in told} == {("0.3", "Task")}


@pytest.mark.req("PUSH-21")
async def test_an_agent_without_push_is_not_followed_by_push() -> None:
    agent = Agent("Plain", description="No push.")
    agent.task(lambda ctx: "done")
    config = TaskPushNotificationConfig(url="https://h.example/")

    async with App(agent) as app, dragoman.connect(app) as client:
        with pytest.raises(dragoman.errors.PushNotificationNotSupportedError):
            await client.send("x", push=config)


def test_the_settings_of_these_agents_are_short() -> None:
    assert settings().poll < 1
