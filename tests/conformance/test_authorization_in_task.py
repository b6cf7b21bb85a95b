"""A task that waits for an authorization. Spec: §7.6."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from dragoman import Agent, TaskState
from dragoman.model import TaskStatusUpdateEvent
from tests.conformance.wire import BOUND, SPOKEN, as_caller, bare, by_header, said, served

BOTH = pytest.mark.parametrize("spoken", SPOKEN)
MEMORY = pytest.mark.parametrize("store", ["memory"], indirect=True)


class Bank:
    """Asks for an authorization, and goes on when the credential came out of band."""

    def __init__(self) -> None:
        self.credential = asyncio.Event()
        self.agent = Agent("Bank", description="Pays.")

        @self.agent.task
        async def pay(ctx):  # type: ignore[no-untyped-def]
            await ctx.update("looking")
            await ctx.status(TaskState.AUTH_REQUIRED, "Sign in at https://bank.example/consent")
            async with asyncio.timeout(BOUND):
                await self.credential.wait()
            await ctx.update("paying")
            return "paid"


def asking_agent() -> Agent:
    """Asks for two authorizations by message and tells what it was answered and who its caller is."""
    agent = Agent("Bank", description="Pays.")

    @agent.task
    async def pay(ctx):  # type: ignore[no-untyped-def]
        first = await ctx.authorize("May I read the account?")
        second = await ctx.authorize("May I pay?")
        return {"answers": [first.text, second.text], "scopes": sorted(ctx.caller.scopes), "caller": ctx.caller.id}

    return agent


@pytest.mark.req("INTASK-01", "INTASK-02", "INTASK-05", "INTASK-10", "INTASK-11", "SEND-08", "STRM-12")
async def test_an_authorization_is_asked_for_by_the_state_with_words_and_each_one_anew(connect: Any) -> None:
    client = await connect(asking_agent())

    first = await client.send("pay")
    second = await client.send("yes", task=first)
    done = await client.send("no", task=second)

    assert first.status.state is second.status.state is TaskState.AUTH_REQUIRED
    assert first.status.message.parts[0].text == "May I read the account?"
    assert second.status.message.parts[0].text == "May I pay?"
    assert done.status.state is TaskState.COMPLETED
    assert done.artifacts[0].parts[0].data == {"answers": ["yes", "no"], "scopes": [], "caller": ""}


@BOTH
@pytest.mark.req("INTASK-01", "INTASK-03", "INTASK-04", "AMB-05", "STREAM-11")
async def test_streams_stay_open_and_the_work_goes_on_by_itself_once_the_credential_is_there(spoken: str) -> None:
    bank = Bank()
    async with served(bank.agent) as wire, wire.stream(spoken, "SendStreamingMessage", said("pay")) as stream:
        states, asked = [], False
        task_id = bare(await stream.next())["task"]["id"]
        while not asked:
            event = bare(await stream.next())["statusUpdate"]
            asked = event["status"]["state"] == "TASK_STATE_AUTH_REQUIRED"
        async with wire.stream(spoken, "SubscribeToTask", {"id": task_id}) as second:
            snapshot = bare(await second.next())["task"]
            bank.credential.set()
            states = [
                bare(e)["statusUpdate"]["status"]["state"] for e in await stream.rest() if "statusUpdate" in bare(e)
            ]
            others = [
                bare(e)["statusUpdate"]["status"]["state"] for e in await second.rest() if "statusUpdate" in bare(e)
            ]
        task = (await wire.call(spoken, "GetTask", {"id": task_id})).result

    assert event["status"]["message"]["parts"] == [{"text": "Sign in at https://bank.example/consent"}]
    assert snapshot["status"]["state"] == "TASK_STATE_AUTH_REQUIRED"
    assert states == others == ["TASK_STATE_WORKING", "TASK_STATE_COMPLETED"]
    assert [m["role"] for m in task["history"]].count("ROLE_USER") == 1, "no message of the client was needed"


@MEMORY
@pytest.mark.req("INTASK-07", "SUB-07", "SEND-11")
async def test_the_client_does_not_miss_that_the_task_went_on(connect: Any) -> None:
    bank = Bank()
    client = await connect(bank.agent)
    task = await client.send("pay")
    assert task.status.state is TaskState.AUTH_REQUIRED

    def grant(event: Any) -> None:
        bank.credential.set()

    async with asyncio.timeout(BOUND):
        result = await client.wait(task, on_event=grant)

    assert (result.state, result.text) == (TaskState.COMPLETED, "paid")


@MEMORY
@pytest.mark.req("INTASK-06", "INTASK-07")
async def test_an_agent_that_calls_an_agent_passes_the_request_on(connect: Any) -> None:
    bank = Bank()
    inner = await connect(bank.agent)
    clerk = Agent("Clerk", description="Has the bank pay.")

    @clerk.task
    async def ask_bank(ctx):  # type: ignore[no-untyped-def]
        task = await inner.send(ctx.text)
        await ctx.status(TaskState.AUTH_REQUIRED, task.status.message.parts[0].text)
        return (await inner.wait(task)).text

    outer = await connect(clerk)
    seen = []
    async with asyncio.timeout(BOUND):
        async for event in outer.stream("pay"):
            if isinstance(event, TaskStatusUpdateEvent):
                seen.append((event.status.state.name, event.status.message and event.status.message.parts[0].text))
                bank.credential.set()

    assert seen == [("AUTH_REQUIRED", "Sign in at https://bank.example/consent"), ("COMPLETED", None)]


@BOTH
@pytest.mark.req("INTASK-10", "AUTH-08", "ERR-06")
async def test_the_state_opens_the_task_to_nobody_else(spoken: str) -> None:
    async with served(asking_agent(), identify=by_header) as wire:
        task = (await wire.call(spoken, "SendMessage", said("pay"), headers=as_caller("ann"))).result["task"]
        stranger = await wire.call(spoken, "SendMessage", said("yes", taskId=task["id"]), headers=as_caller("bob"))
        still = (await wire.call(spoken, "GetTask", {"id": task["id"]}, headers=as_caller("ann"))).result

    assert task["status"]["state"] == "TASK_STATE_AUTH_REQUIRED"
    assert stranger.reason == "TASK_NOT_FOUND"
    assert still == task
