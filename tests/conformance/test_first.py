"""The first thing that anybody tries."""

from __future__ import annotations

import pytest

from dragoman import Agent, TaskState

agent = Agent("Echo", description="Repeats what you say.")


@agent.task
async def echo(ctx):  # type: ignore[no-untyped-def]
    return f"You said: {ctx.text}"


@pytest.mark.req("SEND-01", "SEND-08", "SEND-09")
async def test_a_message_is_answered_with_a_completed_task(connect) -> None:  # type: ignore[no-untyped-def]
    client = await connect(agent)

    task = await client.send("hello")

    assert task.status.state is TaskState.COMPLETED
    assert task.artifacts[0].parts[0].text == "You said: hello"
    assert (await client.get_task(task.id)).status.state is TaskState.COMPLETED
