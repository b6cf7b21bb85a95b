"""Streams: read byte by byte, resumed in their session, nothing twice."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import pytest

from dragoman import Reconnect, agentcore
from dragoman.client.assemble import Assembly
from dragoman.errors import StreamInterruptedError
from dragoman.model import Task, TaskArtifactUpdateEvent, TaskState
from tests.agentcore.client.front import (
    ARN,
    CALLS,
    CARD,
    KEYS,
    ONE,
    OTHER,
    SESSION,
    call,
    refusal,
    runtime_card,
    sessions,
)
from tests.client.words import artifact, status, task
from tests.http.peer import Peer, as_json, error, peer, result, stream


@pytest.fixture
async def front() -> AsyncIterator[Peer]:
    async with peer() as made:
        yield made


def event(value: dict[str, object]) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "result": value}, ensure_ascii=False)


@pytest.mark.req("AC-C-70")
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("end", ["\n\n", ""])
async def test_events_are_read_byte_by_byte_in_every_form(front: Peer, newline: str, end: str) -> None:
    first, second = event(artifact("grüße 🌊")), event(status("COMPLETED"))
    half = first.index('"result"')
    text = f": hello\n\ndata: {first[:half]}\ndata: {first[half:]}\n\nid: 7\nevent: x\ndata:{second}{end}"
    data = text.replace("\n", newline).encode()
    front.on("POST", CALLS, stream(*(data[n : n + 1] for n in range(len(data)))))

    async with call(front) as client:
        events = [event async for event in client.stream("hi")]

    assert isinstance(events[0], TaskArtifactUpdateEvent)
    assert events[0].artifact.parts[0].text == "grüße 🌊"
    assert len(events) == 2


@pytest.mark.req("AC-C-71", "AC-C-13")
@pytest.mark.parametrize("end", ["cut", "end", "reset"])
async def test_a_cut_stream_is_resumed_in_the_same_session(front: Peer, end: str) -> None:
    snapshot = {"task": task("WORKING", artifacts=[artifact("one ")["artifactUpdate"]["artifact"]])}
    front.on(
        "POST",
        CALLS,
        stream(artifact("one "), end=end),
        stream(snapshot, artifact("two", append=True), status("COMPLETED")),
    )
    assembly = Assembly()

    async with call(front, session_id=ONE, qualifier="prod") as client:
        async for received in client.stream("hi"):
            assembly.apply(received)

    assert [request.json["method"] for request in front.received] == ["SendStreamingMessage", "SubscribeToTask"]
    assert sessions(front) == [ONE, ONE]
    found = assembly.result().task
    assert found is not None
    assert [part.text for part in found.artifacts[0].parts] == ["one ", "two"]


@pytest.mark.req("AC-C-71")
async def test_a_stream_of_an_allocated_session_is_resumed_there(front: Peer) -> None:
    front.on(
        "POST",
        CALLS,
        stream(status("WORKING"), end="cut", **{SESSION: OTHER}),
        stream({"task": task("COMPLETED")}),
    )

    async with call(front, session_id="") as client:
        [received async for received in client.stream("hi")]

    assert sessions(front) == ["", OTHER]


@pytest.mark.req("AC-C-71")
async def test_a_task_that_ended_meanwhile_is_asked_for(front: Peer) -> None:
    front.on(
        "POST",
        CALLS,
        stream(status("WORKING"), end="cut"),
        error(-32004, "The task is over", "UNSUPPORTED_OPERATION"),
        result(task("COMPLETED")),
    )

    async with call(front) as client:
        events = [received async for received in client.stream("hi")]

    assert isinstance(events[-1], Task)
    assert events[-1].status.state is TaskState.COMPLETED
    assert [request.json["method"] for request in front.received[1:]] == ["SubscribeToTask", "GetTask"]
    assert len(set(sessions(front))) == 1


@pytest.mark.req("AC-C-71")
async def test_a_stream_that_makes_no_progress_is_given_up_after_five_resumes(front: Peer) -> None:
    front.on("POST", CALLS, stream(status("WORKING"), end="end"), stream(end="end"))
    assert agentcore.connect(ARN, credentials=KEYS)._settings.reconnect.attempts == 5
    quick = Reconnect(attempts=5, first=0.001, longest=0.002)

    async with call(front, reconnect=quick) as client:
        with pytest.raises(StreamInterruptedError):
            [received async for received in client.stream("hi")]

    assert len(front.received) == 6


@pytest.mark.req("AC-C-71", "AC-C-54")
async def test_a_session_that_failed_meanwhile_is_tried_again_before_it_is_an_error(front: Peer) -> None:
    failed = refusal(424, -32055, "Runtime client error")
    front.on("POST", CALLS, stream(status("WORKING"), end="cut"), failed, failed, stream({"task": task("COMPLETED")}))

    async with call(front) as client:
        events = [received async for received in client.stream("hi")]

    assert len(events) == 2


@pytest.mark.req("AC-C-72")
async def test_no_chunk_is_yielded_twice(front: Peer) -> None:
    pieces = [artifact("0"), *(artifact(str(n), append=True) for n in range(1, 4))]
    held = {"artifactId": "a1", "parts": [{"text": "0"}, {"text": "1"}]}
    snapshot = {"task": task("WORKING", artifacts=[held])}
    front.on(
        "POST",
        CALLS,
        stream(*pieces[:2], end="cut"),
        stream(snapshot, *pieces[2:], status("COMPLETED")),
    )

    async with call(front) as client:
        events = [received async for received in client.stream("hi")]

    chunks = [e.artifact.parts[0].text for e in events if isinstance(e, TaskArtifactUpdateEvent)]
    assert chunks == ["0", "1", "2", "3"]


@pytest.mark.req("AC-C-73")
async def test_a_long_turn_can_be_sent_and_polled_for_in_one_call(front: Peer) -> None:
    without = runtime_card(front)
    without["capabilities"] = {"streaming": False}
    front.on("GET", CARD, as_json(without))
    working, over = result(task("WORKING")), result(task("COMPLETED"))
    front.on("POST", CALLS, result({"task": task("WORKING")}), working, working, over)

    async with call(front, card=True) as client:
        outcome = await client.run("hi")

    sent = front.received[1].json["params"]
    assert sent["configuration"]["returnImmediately"] is True
    assert outcome.task is not None
    assert outcome.task.status.state is TaskState.COMPLETED
    assert [request.json["method"] for request in front.received[2:]] == ["GetTask"] * 3


@pytest.mark.req("AC-C-73")
async def test_a_long_turn_can_be_followed_by_its_stream_in_one_call(front: Peer) -> None:
    front.on("POST", CALLS, stream(status("WORKING"), end="cut"), stream({"task": task("COMPLETED")}))

    async with call(front) as client:
        outcome = await client.run("hi")

    assert outcome.task is not None
    assert outcome.task.status.state is TaskState.COMPLETED
