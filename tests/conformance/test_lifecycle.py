"""The life of a task as its callers see it, and streams in general. Spec: §3.5.2, §3.7, §4.1.3."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import Any

import pytest

from dragoman import Agent, TaskState
from dragoman.errors import TaskNotCancelableError, UnsupportedOperationError
from dragoman.model import Artifact, Message, Part, Role, TaskArtifactUpdateEvent, TaskStatus, TaskStatusUpdateEvent
from tests.conformance.wire import BOUND, SPOKEN, bare, said, served

BOTH = pytest.mark.parametrize("spoken", SPOKEN)
MEMORY = pytest.mark.parametrize("store", ["memory"], indirect=True)
TERMINAL = ["COMPLETED", "FAILED", "CANCELED", "REJECTED"]
INTERRUPTED = ["INPUT_REQUIRED", "AUTH_REQUIRED"]


def status(state: str, text: str = "") -> TaskStatusUpdateEvent:
    message = Message(message_id="", role=Role.AGENT, parts=[Part(text=text)]) if text else None
    return TaskStatusUpdateEvent(task_id="", context_id="", status=TaskStatus(state=TaskState[state], message=message))


def mover() -> Agent:
    """Moves its task through the states that the message names, then ends its run."""
    agent = Agent("Mover", description="Goes where it is told.")

    @agent.events
    async def move(ctx):  # type: ignore[no-untyped-def]
        for state in ctx.text.split():
            yield status(state, f"now {state}")

    return agent


class Gate:
    """An agent whose handler waits at a gate between its chunks."""

    def __init__(self, chunks: int = 3) -> None:
        self.open = asyncio.Event()
        self.agent = Agent("Gate", description="Waits.")

        @self.agent.task
        async def wait(ctx):  # type: ignore[no-untyped-def]
            await ctx.update("waiting")
            async with asyncio.timeout(BOUND):
                await self.open.wait()
            for number in range(chunks):
                yield f"{number} "


@pytest.mark.req("STRM-09", "STRM-10", "SEND-06", "SUB-03", "CANCEL-02", "AMB-12", "SEND-08")
async def test_a_terminal_state_is_final(connect: Any) -> None:
    client = await connect(mover())
    for state in TERMINAL:
        task = await client.send(f"WORKING {state}")
        assert task.status.state is TaskState[state]

        with pytest.raises(UnsupportedOperationError):
            await client.send("WORKING", task_id=task.id)
        with pytest.raises(UnsupportedOperationError):
            [event async for event in client.stream("WORKING", task_id=task.id)]
        if state == "CANCELED":
            assert await client.cancel(task) == task
        else:
            with pytest.raises(TaskNotCancelableError):
                await client.cancel(task)

        assert await client.get_task(task) == task


@pytest.mark.req("STRM-10", "STRM-12", "INTASK-05", "SEND-08", "CTX-16")
async def test_an_interrupted_task_has_its_question_takes_a_message_and_may_be_canceled(connect: Any) -> None:
    client = await connect(mover())
    for state in INTERRUPTED:
        asked = await client.send(f"WORKING {state}")
        other = await client.send(state)

        gone_on = await client.send("COMPLETED", task_id=asked.id)
        canceled = await client.cancel(other)

        assert (asked.status.state, asked.status.message.parts[0].text) == (TaskState[state], f"now {state}")
        assert gone_on.status.state is TaskState.COMPLETED
        assert canceled.status.state is TaskState.CANCELED


@MEMORY
@pytest.mark.req("STRM-10", "STREAM-07")
async def test_a_task_may_go_from_every_open_state_to_every_other_and_each_is_seen(connect: Any) -> None:
    client = await connect(mover())
    way = "WORKING AUTH_REQUIRED WORKING INPUT_REQUIRED AUTH_REQUIRED WORKING WORKING COMPLETED"

    events = []
    async for event in client.stream(way.replace("INPUT_REQUIRED ", "")):
        events.append(event)

    states = [e.status.state.name for e in events if isinstance(e, TaskStatusUpdateEvent)]
    assert states == way.replace("INPUT_REQUIRED ", "").split()


@BOTH
@pytest.mark.req("STRM-10", "DATA-05")
async def test_states_are_written_by_their_full_names_and_never_unspecified(spoken: str) -> None:
    async with served(mover()) as wire:
        for state in [*TERMINAL, *INTERRUPTED]:
            task = (await wire.call(spoken, "SendMessage", said(state))).result["task"]
            assert task["status"]["state"] == f"TASK_STATE_{state}"
        illegal = (await wire.call(spoken, "SendMessage", said("UNSPECIFIED"))).result["task"]
        back = (await wire.call(spoken, "SendMessage", said("WORKING SUBMITTED"))).result["task"]

    assert illegal["status"]["state"] == back["status"]["state"] == "TASK_STATE_FAILED"


@BOTH
@pytest.mark.req("STRM-01", "STRM-02", "STRM-03", "STREAM-07", "SUB-02")
async def test_every_stream_of_a_task_gets_the_same_events_in_the_same_order(spoken: str) -> None:
    gate = Gate(chunks=20)
    async with served(gate.agent) as wire, AsyncExitStack() as stack:
        first = await stack.enter_async_context(wire.stream(spoken, "SendStreamingMessage", said()))
        task_id = bare(await first.next())["task"]["id"]
        bare(await first.next())
        others = [
            await stack.enter_async_context(wire.stream(binding, "SubscribeToTask", {"id": task_id}))
            for binding in (*SPOKEN, *SPOKEN)
        ]
        snapshots = [bare(await other.next())["task"] for other in others]
        gate.open.set()
        told = [[bare(event) for event in await stream.rest()] for stream in (first, *others)]
        kept = (await wire.call(spoken, "GetTask", {"id": task_id})).result

    assert all(snapshot["status"]["state"] == "TASK_STATE_WORKING" for snapshot in snapshots)
    assert all(events == told[0] for events in told)
    chunks = [event["artifactUpdate"]["artifact"]["parts"][0]["text"] for event in told[0] if "artifactUpdate" in event]
    assert chunks == [f"{number} " for number in range(20)]
    assert told[0][-1]["statusUpdate"]["status"]["state"] == "TASK_STATE_COMPLETED"
    assert "".join(part["text"] for part in kept["artifacts"][0]["parts"]) == "".join(chunks)


@BOTH
@pytest.mark.req("STRM-04", "STRM-11", "STREAM-09")
async def test_the_end_of_a_stream_touches_neither_the_other_streams_nor_the_task(spoken: str) -> None:
    gate = Gate()
    async with served(gate.agent) as wire:
        async with wire.stream(spoken, "SendStreamingMessage", said()) as first:
            task_id = bare(await first.next())["task"]["id"]
            async with wire.stream(spoken, "SubscribeToTask", {"id": task_id}) as second:
                await second.next()
                async with wire.stream(spoken, "SubscribeToTask", {"id": task_id}) as third:
                    await third.next()
                await first._chunks.aclose()  # type: ignore[attr-defined]
                gate.open.set()
                events = [bare(event) for event in await second.rest()]
        task = (await wire.call(spoken, "GetTask", {"id": task_id})).result

    assert events[-1]["statusUpdate"]["status"]["state"] == "TASK_STATE_COMPLETED"
    assert task["status"]["state"] == "TASK_STATE_COMPLETED"


@pytest.mark.req("STRM-11", "SEND-10", "SEND-11")
async def test_without_any_stream_a_task_can_be_polled_to_its_end(connect: Any) -> None:
    gate = Gate()
    client = await connect(gate.agent)
    task = await client.send("go", wait=False)
    assert task.status.state in (TaskState.SUBMITTED, TaskState.WORKING)

    gate.open.set()
    async with asyncio.timeout(BOUND):
        while task.status.state is not TaskState.COMPLETED:
            task = await client.get_task(task)
            await asyncio.sleep(0)  # in process nothing else waits for the loop

    assert "".join(part.text or "" for part in task.artifacts[0].parts) == "0 1 2 "


@MEMORY
@pytest.mark.req("STRM-05", "STRM-06", "STRM-08", "SEND-14")
async def test_the_result_is_in_artifacts_and_needs_no_message_nor_history(connect: Any) -> None:
    gate = Gate()
    gate.open.set()
    client = await connect(gate.agent)

    task = await client.send("go", history_length=0)
    result = await client.run("go", history_length=0)

    assert not task.history
    assert task.status.message is None
    assert "".join(part.text or "" for part in task.artifacts[0].parts) == "0 1 2 "
    assert result.text == "0 1 2 "


@MEMORY
@pytest.mark.req("STRM-07", "STRM-12", "SEND-19")
async def test_messages_of_the_agent_join_the_history_once_another_status_follows(connect: Any) -> None:
    client = await connect(mover())

    task = await client.send("WORKING INPUT_REQUIRED")
    done = await client.send("COMPLETED", task_id=task.id)

    assert [(m.role, m.parts[0].text) for m in done.history] == [
        (Role.USER, "WORKING INPUT_REQUIRED"),
        (Role.AGENT, "now WORKING"),
        (Role.AGENT, "now INPUT_REQUIRED"),
        (Role.USER, "COMPLETED"),
    ]


@MEMORY
@pytest.mark.req("CTX-21", "DATA-24")
async def test_the_name_of_an_artifact_stays_while_ids_are_those_of_each_task(connect: Any) -> None:
    agent = Agent("Painter", description="Paints.")

    @agent.events
    async def paint(ctx):  # type: ignore[no-untyped-def]
        artifact = Artifact(artifact_id=f"boat-{ctx.message.message_id}", name="boat.svg", parts=[Part(text=ctx.text)])
        yield TaskArtifactUpdateEvent(task_id="", context_id="", artifact=artifact)
        yield status("COMPLETED")

    client = await connect(agent)
    first = await client.send("a boat")
    second = await client.send("in red", task=first)

    assert first.artifacts[0].name == second.artifacts[0].name == "boat.svg"
    assert first.artifacts[0].artifact_id != second.artifacts[0].artifact_id
