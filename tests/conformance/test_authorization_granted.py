"""Authorizations that come out of band, and those that pass through an agent. Spec: §7.6."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import dragoman
from dragoman import Agent, App, Limits, TaskState
from dragoman.errors import TaskNotFoundError, UnsupportedOperationError
from dragoman.model import TaskStatusUpdateEvent
from tests.conformance.wire import BOUND

MEMORY = pytest.mark.parametrize("store", ["memory"], indirect=True)
CONSENT = "Sign in at https://bank.example/consent"


def bank(*, rerun: bool = False) -> Agent:
    """Reads by one authorization and pays by another; says what it used."""
    agent = Agent("Bank", description="Pays.")

    @agent.task(rerun=rerun)
    async def pay(ctx):  # type: ignore[no-untyped-def]
        said = []
        while not (read := await ctx.authorize(CONSENT)):
            said.append(read.text)
            if read.text == "no":
                return "refused"
        why = (await ctx.ask("What for?")).text
        paid = await ctx.authorize("Now confirm the payment")
        return {"read": read.value, "paid": paid.value, "why": why, "said": said, "scopes": sorted(ctx.caller.scopes)}

    return agent


def result_of(task: Any) -> Any:
    return task.artifacts[0].parts[0].data


def states(events: list[Any]) -> list[str]:
    updates = [event.status for event in events if isinstance(event, TaskStatusUpdateEvent)]
    return [getattr(status.state, "name", "") for status in updates]


@pytest.mark.req("INTASK-01", "INTASK-02", "INTASK-03", "INTASK-04", "INTASK-10", "INTASK-11")
async def test_the_work_goes_on_with_what_the_application_hands_in_each_for_its_own_question(connect: Any) -> None:
    client = await connect(bank())
    events: list[Any] = []
    async with asyncio.timeout(BOUND):
        async with client.stream("pay") as stream:
            async for event in stream:
                events.append(event)
                if isinstance(event, TaskStatusUpdateEvent) and event.status.state is TaskState.AUTH_REQUIRED:
                    await connect.app.grant(stream.task_id, "token-1")
            task_id = stream.task_id
        asked = await client.send("rent", task_id=task_id)
        await connect.app.grant(task_id, "token-2")
        done = (await client.wait(task_id)).task

    assert states(events) == ["AUTH_REQUIRED", "WORKING", "INPUT_REQUIRED"]
    assert asked.status.state is TaskState.AUTH_REQUIRED
    assert asked.status.message.parts[0].text == "Now confirm the payment"
    assert result_of(done) == {"read": "token-1", "paid": "token-2", "why": "rent", "said": [], "scopes": []}
    assert "token" not in str([message.parts for message in done.history])


@MEMORY
@pytest.mark.req("INTASK-05", "INTASK-10")
async def test_messages_are_taken_meanwhile_and_grant_nothing(connect: Any) -> None:
    client = await connect(bank())
    task = await client.send("pay")

    again = await client.send("which account?", task=task)
    refused = await client.send("no", task=again)

    assert again.status.state is TaskState.AUTH_REQUIRED
    assert again.status.message.parts[0].text == CONSENT
    assert refused.artifacts[0].parts[0].text == "refused"


@MEMORY
@pytest.mark.req("INTASK-10", "INTASK-11", "ERR-06", "TEN-03")
async def test_nothing_can_be_handed_in_for_a_task_that_waits_for_none_or_is_of_another_tenant(connect: Any) -> None:
    client = await connect(bank())
    task = await client.send("pay")
    grant = connect.app.grant

    with pytest.raises(TaskNotFoundError):
        await grant("nothing")
    with pytest.raises(TaskNotFoundError):
        await grant(task.id, "token-1", tenant="acme")
    await grant(task.id, "token-1")
    with pytest.raises(UnsupportedOperationError):
        await grant(task.id, "once more")
    async with asyncio.timeout(BOUND):
        waiting = await client.wait(task)
    assert waiting.state is TaskState.INPUT_REQUIRED
    with pytest.raises(UnsupportedOperationError):
        await grant(task.id, "for a question")
    await client.cancel(task)
    with pytest.raises(UnsupportedOperationError):
        await grant(task.id)


@pytest.mark.req("INTASK-04", "INTASK-11")
async def test_after_a_restart_what_was_handed_in_is_asked_for_anew_and_answers_are_not_mixed_up(
    tmp_path: Any,
) -> None:
    store = f"sqlite:///{tmp_path}/tasks.db"
    limits = Limits(shutdown_grace=0.2, lease=2)
    async with App(bank(), store=store, limits=limits) as app, dragoman.connect(app) as client:
        task: Any = await client.send("pay")
        await app.grant(task.id, "token-1")
        async with asyncio.timeout(BOUND):
            await client.wait(task)
        waiting: Any = await client.send("rent", task_id=task.id)
        assert waiting.status.message.parts[0].text == "Now confirm the payment"

    async with App(bank(), store=store, limits=limits) as app, dragoman.connect(app) as client:
        await app.grant(task.id, "token-2")  # for the question that was open
        async with asyncio.timeout(BOUND):
            async for event in client.subscribe(task.id):
                asked = event.status.message if isinstance(event, TaskStatusUpdateEvent) else None
                if asked is not None and text(asked) == CONSENT:
                    await app.grant(task.id, "token-1 again")
            done = await client.get_task(task.id)

    found = result_of(done)
    assert (found["read"], found["paid"], found["why"], found["said"]) == ("token-1 again", "token-2", "rent", [])


@MEMORY
@pytest.mark.req("INTASK-04", "INTASK-03")
async def test_a_handler_that_was_put_aside_goes_on_when_the_credential_comes(connect: Any) -> None:
    client = await connect(bank(), limits=Limits(shutdown_grace=0.2, suspended_tasks=1))
    tasks = [await client.send("pay") for _ in range(3)]

    async with asyncio.timeout(BOUND):
        for number, task in enumerate(tasks):
            await connect.app.grant(task.id, f"token-{number}")
            assert (await client.wait(task)).state is TaskState.INPUT_REQUIRED


@MEMORY
@pytest.mark.req("INTASK-01")
async def test_an_authorization_that_does_not_come_in_time_is_a_timeout_for_the_handler(connect: Any) -> None:
    agent = Agent("Hasty", description="Waits a moment.")

    @agent.task
    async def wait(ctx):  # type: ignore[no-untyped-def]
        try:
            await ctx.authorize(CONSENT, timeout=0.01)
        except TimeoutError:
            return "too late"

    client = await connect(agent)
    async with asyncio.timeout(BOUND):
        result = await client.wait(await client.send("x"))

    assert result.text == "too late"


@MEMORY
@pytest.mark.req("INTASK-06", "INTASK-07", "INTASK-04", "INTASK-05", "INTASK-02")
async def test_an_agent_passes_on_what_the_agent_that_it_calls_asks_for_and_what_is_said_to_that(connect: Any) -> None:
    inner = await connect(bank())
    inner_app = connect.app
    clerk = Agent("Clerk", description="Has the bank pay.")

    @clerk.task
    async def ask_bank(ctx):  # type: ignore[no-untyped-def]
        task = await inner.send(ctx.text, wait=False)
        found.append(task.id)
        result = await ctx.follow(inner, task)
        assert result.state is TaskState.INPUT_REQUIRED
        await inner.send((await ctx.ask(result.task.status.message.parts[0].text)).text, task=result.task)
        return (await ctx.follow(inner, task.id)).data

    found: list[str] = []
    outer = await connect(clerk)
    async with asyncio.timeout(2 * BOUND):
        task = await outer.send("pay")
        assert task.status.state is TaskState.AUTH_REQUIRED
        assert task.status.message.parts[0].text == CONSENT
        assert task.status.message.task_id == task.id
        await outer.send("which account?", task=task, wait=False)
        passed = await until(inner, found[0], lambda seen: any(text(m) == "which account?" for m in seen.history))
        assert passed.status.state is TaskState.AUTH_REQUIRED
        await until(outer, task.id, lambda seen: seen.status.state is TaskState.AUTH_REQUIRED)
        await inner_app.grant(found[0], "token-1")
        asked = await outer.wait(task)
        assert (asked.state, text(asked.task.status.message)) == (TaskState.INPUT_REQUIRED, "What for?")
        confirm = await outer.send("rent", task=asked.task)
        assert text(confirm.status.message) == "Now confirm the payment"
        await inner_app.grant(found[0], "token-2")
        done = await outer.wait(task)

    assert result_of(done.task)["why"] == "rent"
    assert result_of(done.task)["said"] == ["which account?"]


def text(message: Any) -> str:
    return "".join(part.text or "" for part in message.parts)


async def until(client: Any, task_id: str, holds: Any) -> Any:
    """The task, as soon as something holds of it."""
    async with client.subscribe(task_id) as stream:
        async for _ in stream:
            if holds(task := await client.get_task(task_id)):
                return task
    raise AssertionError("the task has ended")
