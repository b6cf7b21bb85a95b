"""The agent for the conformance suite does what the suite expects for each of its keys."""

from __future__ import annotations

import asyncio
import itertools
import sys
from collections.abc import Iterator
from typing import Any

import pytest

import dragoman
from dragoman.client import Client
from dragoman.errors import ExtensionSupportRequiredError, UnsupportedOperationError
from dragoman.model import Message, Part, Role, Task, TaskArtifactUpdateEvent, TaskState, TaskStatusUpdateEvent
from examples.process import AgentProcess

COMMAND = [sys.executable, "-m", "examples.tck.agent", "--host", "127.0.0.1"]
NUMBERS = itertools.count(1)

ENDS = {
    "tck-complete-task": (TaskState.COMPLETED, "Hello from TCK"),
    "tck-input-required": (TaskState.INPUT_REQUIRED, None),
    "tck-reject-task": (TaskState.REJECTED, "rejected"),
    "tck-task-failure": (TaskState.FAILED, "The task failed, as it was told to"),
    "tck-auth-required": (TaskState.AUTH_REQUIRED, "Grant access to the example account, then go on"),
    "tck-delayed-complete": (TaskState.COMPLETED, "Done after delay"),
    "tck-multi-turn": (TaskState.INPUT_REQUIRED, None),
}
PARTS: dict[str, dict[str, Any]] = {
    "tck-artifact-text": {"text": "Generated text content"},
    "tck-artifact-file": {"raw": b"tck", "filename": "output.txt", "media_type": "text/plain"},
    "tck-artifact-file-url": {
        "url": "https://example.com/output.txt",
        "filename": "output.txt",
        "media_type": "text/plain",
    },
    "tck-artifact-data": {"data": {"key": "value", "count": 42}},
    "tck-stream-001": {"text": "Stream hello from TCK"},
    "tck-stream-003": {"text": "Stream task lifecycle"},
    "tck-stream-ordering-001": {"text": "Ordered output"},
    "tck-stream-artifact-text": {"text": "Streamed text content"},
    "tck-stream-artifact-file": {"raw": b"tck", "filename": "output.txt", "media_type": "text/plain"},
    "tck-stream-basic": {"text": "Streamed content"},
}


@pytest.fixture(scope="module")
def served() -> Iterator[AgentProcess]:
    with AgentProcess([*COMMAND, "--grpc-port", "0"], environment={"TCK_STREAMING_TIMEOUT": "0.1"}) as process:
        yield process


def message(key: str, text: str = "hi", **ids: str) -> Message:
    return Message(message_id=f"{key}-{next(NUMBERS):08x}", role=Role.USER, parts=[Part(text=text)], **ids)


def text_of(task: Task | TaskStatusUpdateEvent) -> str | None:
    return task.status.message.parts[0].text if task.status.message else None


async def send(client: Client, what: Message) -> Task:
    answer = await client.send(what)
    assert isinstance(answer, Task)
    return answer


@pytest.mark.parametrize(("key", "end"), ENDS.items())
@pytest.mark.req("SEND-03", "SEND-08", "AMB-01")
async def test_key_in_the_message_id_decides_how_a_send_ends(client: Client, key: str, end: tuple[Any, Any]) -> None:
    task = await send(client, message(key))

    assert (task.status.state, text_of(task)) == end


@pytest.mark.parametrize(("key", "part"), PARTS.items())
@pytest.mark.req("SEND-01", "SEND-09", "DATA-17", "DATA-18")
async def test_key_decides_the_one_artifact(client: Client, key: str, part: dict[str, Any]) -> None:
    task = await send(client, message(key))

    assert task.status.state is TaskState.COMPLETED
    assert [artifact.parts for artifact in task.artifacts] == [[Part(**part)]]


async def test_key_at_the_start_of_the_text_decides_when_the_id_says_nothing(client: Client) -> None:
    task = await send(client, message("anything", "tck-artifact-text please"))

    assert [part.text for part in task.artifacts[0].parts] == ["Generated text content"]


async def test_an_unknown_key_completes_and_repeats_the_id(client: Client) -> None:
    asked = message("tck-dm-test-001")

    task = await send(client, asked)

    assert (task.status.state, text_of(task)) == (
        TaskState.COMPLETED,
        f"Unhandled messageId prefix: {asked.message_id}",
    )


@pytest.mark.parametrize("key", ["tck-message-response", "tck-stream-002"])
@pytest.mark.req("SEND-01", "STREAM-02", "STREAM-03")
async def test_a_direct_answer_is_a_message_and_the_whole_stream(client: Client, key: str) -> None:
    answer = await client.send(message(key))
    events = [event async for event in client.stream(message(key))]

    assert isinstance(answer, Message)
    assert [type(event) for event in events] == [Message]
    assert answer.parts == events[0].parts == [Part(text="Direct message response")]


@pytest.mark.parametrize("key", ["tck-stream-artifact-chunked", "tck-stream-chunked"])
@pytest.mark.req("STREAM-01", "STREAM-04", "STREAM-05", "DATA-26")
async def test_chunks_come_one_by_one_with_one_artifact_id(client: Client, key: str) -> None:
    events = [event async for event in client.stream(message(key))]

    chunks = [event for event in events if isinstance(event, TaskArtifactUpdateEvent)]
    assert isinstance(events[0], Task)
    assert [(c.artifact.parts[0].text, c.append, c.last_chunk) for c in chunks] == [
        ("chunk-1 ", False, False),
        ("chunk-2", True, True),
    ]
    assert len({chunk.artifact.artifact_id for chunk in chunks}) == 1
    assert isinstance(events[-1], TaskStatusUpdateEvent)
    assert events[-1].status.state is TaskState.COMPLETED


@pytest.mark.req("CTX-11", "CTX-14", "SEND-20", "B075", "B091")
async def test_a_waiting_task_takes_messages_with_one_id_and_is_completed_by_its_key(client: Client) -> None:
    task = await send(client, message("tck-input-required"))
    again = Message(message_id="tck-input-required-same", role=Role.USER, parts=[Part(text="one")], task_id=task.id)
    twice = Message(message_id="tck-input-required-same", role=Role.USER, parts=[Part(text="two")], task_id=task.id)
    assert (await send(client, again)).status.state is TaskState.INPUT_REQUIRED
    assert (await send(client, twice)).status.state is TaskState.INPUT_REQUIRED

    done = await send(client, message("tck-complete-task", task_id=task.id))

    assert done.status.state is TaskState.COMPLETED
    assert done.context_id == task.context_id
    assert [m.parts[0].text for m in done.history if m.role is Role.USER] == ["hi", "one", "two", "hi"]


async def test_a_multi_turn_task_waits_until_it_is_told_done(client: Client) -> None:
    task = await send(client, message("tck-multi-turn"))
    assert (await send(client, message("x", "more", task_id=task.id))).status.state is TaskState.INPUT_REQUIRED

    done = await send(client, message("y", "done", task_id=task.id))

    assert done.status.state is TaskState.COMPLETED


@pytest.mark.req("SEND-10", "CANCEL-01", "B087")
async def test_a_task_that_never_ends_is_canceled(client: Client) -> None:
    answer = await client.send(message("tck-cancel"), wait=False)
    assert isinstance(answer, Task)

    canceled = await client.cancel(answer.id)

    assert canceled.status.state is TaskState.CANCELED


@pytest.mark.req("SUB-01", "SUB-02", "SUB-06", "AMB-05")
async def test_a_subscription_stays_open_while_the_task_waits_and_ends_with_it(client: Client) -> None:
    task = await send(client, message("tck-input-required"))
    events = client.subscribe(task.id)
    first = await anext(events)
    await send(client, message("tck-complete-task", task_id=task.id))

    async with asyncio.timeout(10):
        rest = [event async for event in events]

    assert isinstance(first, Task)
    assert isinstance(rest[-1], TaskStatusUpdateEvent)
    assert text_of(rest[-1]) == "Hello from TCK"


@pytest.mark.req("CARD-25")
async def test_without_streaming_the_card_says_so_and_streams_are_refused() -> None:
    with AgentProcess([*COMMAND, "--no-streaming"]) as process:
        async with dragoman.connect(process.url) as client:
            assert not client.card.capabilities.streaming
            with pytest.raises(UnsupportedOperationError):
                await anext(client.stream(message("tck-stream-001")))


@pytest.mark.req("EXT-03")
async def test_with_a_required_extension_a_message_without_it_is_refused() -> None:
    with AgentProcess([*COMMAND, "--required-extension"]) as process:
        async with dragoman.connect(process.url) as client:
            assert [extension.required for extension in client.card.capabilities.extensions] == [True]
            with pytest.raises(ExtensionSupportRequiredError):
                await client.send(message("tck-complete-task"))
