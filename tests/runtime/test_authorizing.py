"""Who may reach what, asked again while a stream is open. Spec: §13.1."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import pytest

from dragoman import OWN, Agent, App, Limits, Reach
from dragoman.errors import ConfigurationError, TaskNotFoundError
from dragoman.model import (
    OPERATIONS,
    SEND_STREAMING_MESSAGE,
    SUBSCRIBE_TO_TASK,
    Message,
    Part,
    Role,
    SendMessageRequest,
    SubscribeToTaskRequest,
)
from dragoman.ports.operations import CallContext, Caller, EventStream
from dragoman.ports.scoping import Scope

BOUND = 5.0


def request(text: str) -> SendMessageRequest:
    return SendMessageRequest(message=Message(message_id="m", role=Role.USER, parts=[Part(text=text)]))


def by(name: str) -> CallContext:
    return CallContext(caller=Caller(id=name))


class Steps:
    """An agent that says a word each time it is let go on."""

    def __init__(self) -> None:
        self.go = asyncio.Semaphore(0)
        self.agent = Agent("Steps", description="Goes step by step.")

        @self.agent.task
        async def walk(ctx):  # type: ignore[no-untyped-def]
            for word in ("one", "two", "three"):
                async with asyncio.timeout(BOUND):
                    await self.go.acquire()
                yield word


async def until(stream: EventStream, text: str) -> None:
    async with asyncio.timeout(BOUND):
        while batch := await stream.next_batch():
            if any(text.encode() in event.json for event in batch):
                return
    raise AssertionError(f"the stream ended before {text!r}")


@pytest.mark.req("AUTH-08", "AUTH-10", "SUB-01")
@pytest.mark.parametrize("how", ["SubscribeToTask", "SendStreamingMessage"])
async def test_a_stream_ends_as_if_the_task_were_gone_once_its_reader_may_not_see_it_any_more(how: str) -> None:
    steps, reach = Steps(), {"bob": Reach(owners=frozenset({"ann"}))}
    asked: list[str] = []

    def authorize(caller: Caller, operation: str, tenant: str) -> Reach:
        asked.append(operation)
        return reach.get(caller.id, OWN)

    app = App(steps.agent, authorize=authorize, limits=Limits(authorized_for=0, shutdown_grace=0.1))
    async with app:
        anns = await app.operations.stream(SEND_STREAMING_MESSAGE, request("go"), by("ann"))
        task_id = app.runtime._registry.all()[0].task_id
        if how == "SubscribeToTask":
            bobs = await app.operations.stream(SUBSCRIBE_TO_TASK, SubscribeToTaskRequest(id=task_id), by("bob"))
        else:
            more = SendMessageRequest(
                message=Message(message_id="n", role=Role.USER, parts=[Part(text="x")], task_id=task_id)
            )
            bobs = await app.operations.stream(SEND_STREAMING_MESSAGE, more, by("bob"))
        steps.go.release()
        await until(bobs, "one")
        del reach["bob"]
        steps.go.release()
        with pytest.raises(TaskNotFoundError, match="Task not found"):
            await until(bobs, "two")
        steps.go.release()
        await until(anns, "three")
        await bobs.aclose()
        await anns.aclose()

    assert set(asked) == {how, "SendStreamingMessage"}


@pytest.mark.req("AUTH-08")
async def test_what_was_said_holds_for_a_while() -> None:
    steps, asked = Steps(), 0

    def authorize(caller: Caller, operation: str, tenant: str) -> None:
        nonlocal asked
        asked += 1

    app = App(steps.agent, authorize=authorize, limits=Limits(authorized_for=60, shutdown_grace=0.1))
    async with app, await app.operations.stream(SEND_STREAMING_MESSAGE, request("go"), by("ann")) as stream:
        for _ in range(3):
            steps.go.release()
        await until(stream, "three")

    assert asked == 1


@pytest.mark.req("AUTH-08", "AUTH-09")
async def test_every_operation_is_asked_about_with_caller_and_tenant() -> None:
    steps = Steps()
    asked: list[tuple[Any, ...]] = []

    async def authorize(caller: Caller, operation: str, tenant: str) -> Reach:
        asked.append((caller.id, operation, tenant))
        return OWN

    app = App(steps.agent, authorize=authorize, push=True, limits=Limits(shutdown_grace=0.1))
    requests = {
        "SendMessage": request("x"),
        "SendStreamingMessage": request("x"),
        "TaskPushNotificationConfig": None,
    }
    async with app:
        for name, op in OPERATIONS.items():
            if name == "GetExtendedAgentCard":
                continue
            made = requests.get(name) or op.request(**_required(name))
            made.tenant = "acme"
            if isinstance(made, SendMessageRequest):
                made.message.task_id = "none"
            verb = app.operations.stream if op.streaming else app.operations.call
            with suppress(TaskNotFoundError):
                await verb(op, made, by("ann"))

    assert asked == [("ann", name, "acme") for name in OPERATIONS if name != "GetExtendedAgentCard"]


def _required(name: str) -> dict[str, Any]:
    if name == "CreateTaskPushNotificationConfig":
        return {"task_id": "t", "url": "https://hooks.example/h"}
    if "PushNotification" in name:
        return {"task_id": "t"} | ({} if name.startswith("List") else {"id": "c"})
    return {} if name == "ListTasks" else {"id": "t"}


def test_a_wide_scope_covers_its_tenant_and_agent_only() -> None:
    team = Scope("t", "ann", "a", frozenset({"bob"}))
    everybody = Scope("t", "ann", "a", everybody=True)

    assert [team.covers(Scope("t", owner, "a")) for owner in ("ann", "bob", "cy")] == [True, True, False]
    assert everybody.covers(Scope("t", "cy", "a"))
    for scope in (team, everybody):
        assert not scope.covers(Scope("u", "ann", "a"))
        assert not scope.covers(Scope("t", "ann", "b"))
        assert scope.own == Scope("t", "ann", "a")


def test_owners_are_a_set_and_not_one_text() -> None:
    with pytest.raises(ConfigurationError, match="owners"):
        Reach(owners="ann")  # type: ignore[arg-type]
