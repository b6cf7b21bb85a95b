"""Streams that outlive their connections."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from dragoman.client import Reconnect
from dragoman.client.progress import Progress
from dragoman.client.reconnect import backoff
from dragoman.errors import (
    ConnectError,
    ConnectionLostError,
    StreamInterruptedError,
    TaskNotFoundError,
    UnavailableError,
    UnsupportedOperationError,
)
from dragoman.model import Message, Task, TaskArtifactUpdateEvent, TaskState, TaskStatusUpdateEvent
from dragoman.protocol.extensions import RESUMABLE_STREAMS
from tests.client.words import artifact, card, connect_to, message, status, task
from tests.http.peer import BOUND, Peer, error, free_url, peer, result, silence, stream

WORKING = {"task": task("WORKING")}
OVER = error(-32004, "The task is over", "UNSUPPORTED_OPERATION")


@pytest.fixture
async def server() -> AsyncIterator[Peer]:
    async with peer() as made:
        yield made


def resumable(server: Peer) -> dict[str, Any]:
    return card(server.url, capabilities={"streaming": True, "extensions": [{"uri": RESUMABLE_STREAMS}]})


def methods(server: Peer) -> list[str]:
    return [request.json["method"] for request in server.received]


def shown(event: object) -> str:
    """An event in a word."""
    if isinstance(event, Task):
        return (
            f"task {event.status.state.value[11:]} {''.join(p.text for a in event.artifacts for p in a.parts)}".strip()
        )
    if isinstance(event, TaskStatusUpdateEvent):
        return event.status.state.value[11:]
    if isinstance(event, TaskArtifactUpdateEvent):
        return f"+{event.artifact.parts[0].text}"
    assert isinstance(event, Message)
    return f"says {event.parts[0].text}"


async def read(server: Peer, **options: Any) -> list[str]:
    async with connect_to(server, **options) as client:
        return [shown(event) async for event in client.stream("hi")]


@pytest.mark.req("STREAM-10", "STREAM-13", "B069")
async def test_a_stream_is_read_to_the_end_of_its_task(server: Peer) -> None:
    server.on(
        "POST", "/", stream({"task": task("SUBMITTED")}, artifact("a"), artifact("b", append=True), status("COMPLETED"))
    )

    assert await read(server) == ["task SUBMITTED", "+a", "+b", "COMPLETED"]


@pytest.mark.req("STREAM-10")
async def test_a_stream_that_stays_open_after_the_end_of_its_task_is_left(server: Peer) -> None:
    server.on("POST", "/", stream(WORKING, status("FAILED"), end="stay"))

    assert await read(server) == ["task WORKING", "FAILED"]
    await asyncio.wait_for(server.hung_up.wait(), BOUND)


async def test_a_lone_message_is_a_whole_stream(server: Peer) -> None:
    server.on("POST", "/", stream({"message": message("hello")}))

    assert await read(server) == ["says hello"]


@pytest.mark.req("B061", "AMB-04", "STREAM-11")
async def test_messages_and_tasks_may_come_at_any_place(server: Peer) -> None:
    server.on(
        "POST",
        "/",
        stream(
            status("WORKING"),
            {"message": message("hm")},
            {"message": message("hm")},
            WORKING,
            {"task": task("COMPLETED")},
        ),
    )

    assert await read(server) == ["WORKING", "says hm", "says hm", "task WORKING", "task COMPLETED"]


@pytest.mark.req("AMB-05")
@pytest.mark.parametrize("end", ["end", "stay"])
async def test_a_question_ends_the_stream_whether_or_not_the_agent_ends_it(server: Peer, end: str) -> None:
    server.on("POST", "/", stream(WORKING, status("INPUT_REQUIRED", "where?"), end=end))

    assert await read(server) == ["task WORKING", "INPUT_REQUIRED"]


@pytest.mark.req("AMB-05")
async def test_an_old_question_in_the_first_snapshot_does_not_end_the_answer_to_it(server: Peer) -> None:
    server.on("POST", "/", stream({"task": task("INPUT_REQUIRED")}, status("WORKING"), status("COMPLETED")))

    async with connect_to(server) as client:
        events = [shown(event) async for event in client.stream("Rome", task_id="t1", context_id="c1")]

    assert events == ["task INPUT_REQUIRED", "WORKING", "COMPLETED"]


@pytest.mark.req("AMB-05", "SUB-06")
async def test_a_subscription_goes_on_through_questions(server: Peer) -> None:
    server.on("POST", "/", stream({"task": task("INPUT_REQUIRED")}, status("WORKING"), status("COMPLETED")))

    async with connect_to(server) as client:
        events = [shown(event) async for event in client.subscribe("t1")]

    assert events == ["task INPUT_REQUIRED", "WORKING", "COMPLETED"]


@pytest.mark.req("B059", "AMB-03", "SUB-07", "AMB-07")
@pytest.mark.parametrize("end", ["end", "cut", "reset"])
async def test_a_cut_stream_goes_on_with_the_snapshot_of_a_new_subscription(server: Peer, end: str) -> None:
    half = stream(WORKING, artifact("hal"), end=end)
    snapshot = {"task": task("WORKING", artifacts=[{"artifactId": "a1", "parts": [{"text": "half"}]}])}
    server.on("POST", "/", half, stream(snapshot, artifact(" more", append=True), status("COMPLETED")))

    events = await read(server)

    assert events == ["task WORKING", "+hal", "task WORKING half", "+ more", "COMPLETED"]
    assert methods(server) == ["SendStreamingMessage", "SubscribeToTask"]
    assert server.received[1].json["params"] == {"id": "t1"}


@pytest.mark.req("B059", "B043")
async def test_a_resumable_stream_goes_on_without_gap_and_without_double(server: Peer) -> None:
    server.on(
        "POST",
        "/",
        stream((1, WORKING), (2, artifact("a")), end="cut"),
        stream((2, artifact("a")), (3, artifact("b", append=True)), end="cut"),
        stream((4, artifact("c", append=True)), (5, status("COMPLETED"))),
    )

    events = await read(server, card=resumable(server))

    assert events == ["task WORKING", "+a", "+b", "+c", "COMPLETED"]
    assert [request.headers.get("last-event-id") for request in server.received] == [None, "2", "3"]
    assert {request.headers["a2a-extensions"] for request in server.received} == {RESUMABLE_STREAMS}


@pytest.mark.req("EXT-02")
async def test_numbers_mean_nothing_to_an_agent_that_does_not_declare_resumable_streams(server: Peer) -> None:
    server.on("POST", "/", stream((1, WORKING), end="cut"), stream((1, WORKING), (1, status("COMPLETED"))))

    assert await read(server) == ["task WORKING", "task WORKING", "COMPLETED"]
    assert "last-event-id" not in server.received[1].headers
    assert "a2a-extensions" not in server.received[0].headers


@pytest.mark.req("AMB-08", "SUB-03")
async def test_a_task_that_ended_during_the_cut_is_the_last_event(server: Peer) -> None:
    server.on("POST", "/", stream(WORKING, end="cut"), OVER, result(task("COMPLETED")))

    assert await read(server) == ["task WORKING", "task COMPLETED"]
    assert methods(server) == ["SendStreamingMessage", "SubscribeToTask", "GetTask"]


@pytest.mark.req("AMB-08")
async def test_subscribing_to_a_task_that_is_over_yields_it_and_ends(server: Peer) -> None:
    server.on("POST", "/", OVER, result(task("FAILED")))

    async with connect_to(server) as client:
        assert [shown(event) async for event in client.subscribe("t1")] == ["task FAILED"]


async def test_a_refused_subscription_to_a_task_that_goes_on_is_the_agents_error(server: Peer) -> None:
    server.on("POST", "/", OVER, result(task("WORKING")))

    async with connect_to(server) as client:
        with pytest.raises(UnsupportedOperationError):
            await anext(client.subscribe("t1"))


@pytest.mark.req("B059")
async def test_a_cut_stream_of_an_agent_without_subscriptions_is_interrupted(server: Peer) -> None:
    server.on("POST", "/", stream((7, WORKING), end="cut"), OVER, result(task("WORKING")))

    with pytest.raises(StreamInterruptedError) as caught:
        await read(server)

    assert (caught.value.task_id, caught.value.last_event_id) == ("t1", "7")


@pytest.mark.req("B059")
async def test_coming_back_ends_after_the_attempts_without_progress(server: Peer) -> None:
    server.on("POST", "/", stream(WORKING, end="cut"), stream(end="cut"))

    with pytest.raises(StreamInterruptedError, match="3 attempts") as caught:
        await read(server, reconnect=Reconnect(attempts=3, first=0.001, longest=0.002))

    assert isinstance(caught.value.__cause__, ConnectionLostError)
    assert methods(server) == ["SendStreamingMessage"] + ["SubscribeToTask"] * 3


async def test_progress_gives_new_patience(server: Peer) -> None:
    cuts = [stream(WORKING, end="cut") for _ in range(6)]
    server.on("POST", "/", *cuts, stream(WORKING, status("COMPLETED")))

    events = await read(server, reconnect=Reconnect(attempts=1, first=0.001))

    assert events[-1] == "COMPLETED"


async def test_coming_back_can_be_turned_off(server: Peer) -> None:
    server.on("POST", "/", stream(WORKING, end="cut"))

    with pytest.raises(StreamInterruptedError):
        await read(server, reconnect=Reconnect(attempts=0))

    assert len(server.received) == 1


@pytest.mark.req("AMB-38")
async def test_an_agent_that_is_busy_for_a_moment_is_asked_again(server: Peer) -> None:
    busy = error(-32603, "later", status=503, retry_after="0")
    server.on("POST", "/", stream(WORKING, end="cut"), busy, stream(WORKING, status("COMPLETED")))

    assert (await read(server))[-1] == "COMPLETED"


async def test_a_stream_that_the_agent_breaks_off_for_the_moment_is_taken_up_again(server: Peer) -> None:
    info = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "0s"}
    slow = {"error": {"code": -32603, "message": "reader too slow", "data": [info]}}
    server.on("POST", "/", stream(WORKING, slow), stream(WORKING, status("COMPLETED")))

    assert await read(server) == ["task WORKING", "task WORKING", "COMPLETED"]


async def test_a_task_that_is_gone_after_the_cut_is_the_agents_error(server: Peer) -> None:
    server.on("POST", "/", stream(WORKING, end="cut"), error(-32001, "gone", "TASK_NOT_FOUND"))

    with pytest.raises(TaskNotFoundError):
        await read(server)


@pytest.mark.req("B059", "AMB-14")
@pytest.mark.parametrize(
    ("end", "kind"), [("end", StreamInterruptedError), ("cut", ConnectionLostError), ("reset", ConnectionLostError)]
)
async def test_a_message_whose_stream_was_cut_before_anything_came_is_never_sent_again(
    server: Peer, end: str, kind: type[Exception]
) -> None:
    server.on("POST", "/", stream(b": hello\n\n", end=end))

    with pytest.raises(kind):
        await read(server)

    assert methods(server) == ["SendStreamingMessage"]


async def test_an_agent_that_is_busy_at_the_start_is_the_callers_business(server: Peer) -> None:
    server.on("POST", "/", error(-32603, "later", status=503))

    with pytest.raises(UnavailableError):
        await read(server)

    assert len(server.received) == 1


async def test_an_agent_that_is_not_there_at_the_start_is_a_connect_error(server: Peer) -> None:
    async with connect_to(server, card=card(free_url())) as client:
        with pytest.raises(ConnectError):
            await anext(client.stream("hi"))
        with pytest.raises(ConnectError):
            await anext(client.subscribe("t1"))


async def test_silence_beyond_the_idle_limit_counts_as_a_cut(server: Peer) -> None:
    server.on("POST", "/", stream(WORKING, end="stay"), stream(WORKING, status("COMPLETED")))

    assert (await read(server, idle_timeout=0.1))[-1] == "COMPLETED"


@pytest.mark.req("B065")
async def test_heartbeats_keep_a_quiet_stream_alive(server: Peer) -> None:
    async def slow(request, writer) -> None:
        await stream(WORKING, end="open")(request, writer)
        for _ in range(8):
            await asyncio.sleep(0.05)
            writer.write(b"4\r\n: \n\n\r\n")
        done = {"jsonrpc": "2.0", "id": 1, "result": {"task": task("COMPLETED")}}
        last = f"data: {json.dumps(done)}\n\n".encode()
        writer.write(b"%x\r\n%s\r\n0\r\n\r\n" % (len(last), last))

    server.on("POST", "/", slow)

    assert await read(server, idle_timeout=0.2) == ["task WORKING", "task COMPLETED"]
    assert len(server.received) == 1


async def test_a_wait_that_was_cancelled_loses_nothing(server: Peer) -> None:
    server.on("POST", "/", stream(WORKING, end="stay"), stream(WORKING, status("COMPLETED")))

    async with connect_to(server) as client:
        events = client.stream("hi")
        assert shown(await anext(events)) == "task WORKING"
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(anext(events), 0.05)
        assert [shown(event) async for event in events] == ["task WORKING", "COMPLETED"]


async def test_a_message_whose_sending_was_cancelled_is_not_sent_again(server: Peer) -> None:
    server.on("POST", "/", silence)

    async with connect_to(server) as client:
        events = client.stream("hi")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(anext(events), 0.05)
        with pytest.raises(StreamInterruptedError):
            await anext(events)

    assert len(server.received) == 1


@pytest.mark.req("SUB-07")
async def test_a_subscription_can_be_taken_up_at_an_event(server: Peer) -> None:
    server.on("POST", "/", stream((8, artifact("c")), (9, status("COMPLETED"))))

    async with connect_to(server, card=resumable(server)) as client:
        events = [shown(event) async for event in client.subscribe("t1", last_event_id="7")]

    assert events == ["+c", "COMPLETED"]
    assert server.received[0].headers["last-event-id"] == "7"


async def test_a_stream_closed_by_hand_yields_nothing_more(server: Peer) -> None:
    server.on("POST", "/", stream(WORKING, artifact("a"), end="stay"))

    async with connect_to(server) as client, client.stream("hi") as events:
        await anext(events)
        await events.aclose()
        await events.aclose()
        assert [event async for event in events] == []
        assert (events.task_id, events.state) == ("t1", TaskState.WORKING)


@pytest.mark.req("CARD-13", "STREAM-08", "SUB-05", "CARD-25")
@pytest.mark.parametrize("capabilities", [{}, {"streaming": False}])
async def test_streams_that_the_card_does_not_offer_are_refused_without_a_request(
    server: Peer, capabilities: dict[str, bool]
) -> None:
    async with connect_to(server, card=card(server.url, capabilities=capabilities)) as client:
        with pytest.raises(UnsupportedOperationError):
            client.stream("hi")
        with pytest.raises(UnsupportedOperationError):
            client.subscribe("t1")

    assert server.received == []


def test_waits_grow_to_a_bound_and_differ() -> None:
    waits = [backoff(n, 0.2, 10.0) for n in range(200)]

    assert all(0.1 <= wait <= 10.0 for wait in waits)
    assert all(wait >= 5.0 for wait in waits[6:])
    assert len(set(waits)) == len(waits)


def test_the_agents_wish_for_a_pause_is_heard_up_to_the_longest_wait() -> None:
    reconnect = Reconnect(first=0.01, longest=5.0)

    assert reconnect.wait(0, UnavailableError(retry_after=3.0)) == 3.0
    assert reconnect.wait(0, UnavailableError(retry_after=3600.0)) == 5.0
    assert reconnect.wait(8, None) is None


@pytest.mark.req("AMB-42")
def test_an_unknown_state_is_neither_terminal_nor_a_good_end() -> None:
    progress = Progress("t1")
    progress.state = 77

    assert (progress.over, progress.settled, progress.complete) == (False, False, False)
