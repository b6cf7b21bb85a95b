"""Following a task to where it settles, whatever the agent offers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from dragoman.errors import (
    RequestTimeoutError,
    StreamInterruptedError,
    TaskNotFoundError,
    UnavailableError,
    UnsupportedOperationError,
)
from dragoman.model import TaskState
from tests.client.words import artifact, card, connect_to, message, status, task
from tests.http.peer import Peer, error, peer, result, silence, stream

WORKING = {"task": task("WORKING")}
REFUSED = error(-32004, "no streams", "UNSUPPORTED_OPERATION")


@pytest.fixture
async def server() -> AsyncIterator[Peer]:
    async with peer() as made:
        yield made


def methods(server: Peer) -> list[str]:
    return [request.json["method"] for request in server.received]


def no_streams(server: Peer) -> dict[str, Any]:
    return card(server.url, capabilities={})


@pytest.mark.req("B069", "STRM-11")
async def test_a_run_streams_where_it_can_and_shows_every_event(server: Peer) -> None:
    server.on(
        "POST", "/", stream({"task": task("SUBMITTED")}, artifact("a"), artifact("b", append=True), status("COMPLETED"))
    )
    seen: list[str] = []

    async with connect_to(server) as client:
        found = await client.run("hi", on_event=lambda event: seen.append(type(event).__name__))

    assert (found.text, found.ok, found.task_id) == ("ab", True, "t1")
    assert seen == ["Task", "TaskArtifactUpdateEvent", "TaskArtifactUpdateEvent", "TaskStatusUpdateEvent"]


async def test_a_watcher_may_be_asynchronous(server: Peer) -> None:
    server.on("POST", "/", stream(WORKING, status("COMPLETED")))
    seen: list[object] = []

    async def note(event: object) -> None:
        await asyncio.sleep(0)
        seen.append(event)

    async with connect_to(server) as client:
        await client.run("hi", on_event=note)

    assert len(seen) == 2


@pytest.mark.req("STRM-11", "SEND-11")
async def test_a_run_polls_an_agent_without_streams(server: Peer) -> None:
    done = task("COMPLETED", artifacts=[{"artifactId": "a", "parts": [{"text": "x"}]}])
    server.on(
        "POST", "/", result({"task": task("SUBMITTED")}), result(task("WORKING")), result(task("WORKING")), result(done)
    )
    seen: list[TaskState | int] = []

    async with connect_to(server, card=no_streams(server)) as client:
        found = await client.run("hi", on_event=lambda event: seen.append(event.status.state))

    assert (found.text, found.ok) == ("x", True)
    assert seen == [TaskState.SUBMITTED, TaskState.WORKING, TaskState.COMPLETED]
    assert methods(server) == ["SendMessage", "GetTask", "GetTask", "GetTask"]
    assert server.received[0].json["params"]["configuration"] == {"returnImmediately": True}


@pytest.mark.req("AMB-02")
async def test_an_immediate_answer_may_already_be_the_end(server: Peer) -> None:
    server.on("POST", "/", result({"task": task("COMPLETED")}))

    async with connect_to(server, card=no_streams(server)) as client:
        assert (await client.run("hi")).ok

    assert methods(server) == ["SendMessage"]


@pytest.mark.parametrize("streams", [True, False])
async def test_a_direct_message_ends_a_run(server: Peer, streams: bool) -> None:
    answer = {"message": message("hello")}
    server.on("POST", "/", stream(answer) if streams else result(answer))

    async with connect_to(server, card=card(server.url, capabilities={"streaming": streams})) as client:
        found = await client.run("hi")

    assert (found.text, found.task) == ("hello", None)


@pytest.mark.req("AMB-79")
async def test_an_agent_that_refuses_to_stream_after_all_is_polled(server: Peer) -> None:
    server.on("POST", "/", REFUSED, result({"task": task("WORKING")}), result(task("COMPLETED")))

    async with connect_to(server) as client:
        assert (await client.run("hi")).ok

    assert methods(server) == ["SendStreamingMessage", "SendMessage", "GetTask"]


@pytest.mark.req("B059")
async def test_a_cut_stream_that_cannot_be_resumed_is_polled(server: Peer) -> None:
    done = task("COMPLETED", artifacts=[{"artifactId": "a1", "parts": [{"text": "whole"}]}])
    server.on("POST", "/", stream(WORKING, artifact("ha"), end="cut"), REFUSED, result(task("WORKING")), result(done))

    async with connect_to(server) as client:
        found = await client.run("hi")

    assert (found.text, found.ok) == ("whole", True)
    assert methods(server) == ["SendStreamingMessage", "SubscribeToTask", "GetTask", "GetTask"]


@pytest.mark.req("B059")
async def test_a_cut_before_a_task_is_known_is_an_error(server: Peer) -> None:
    server.on("POST", "/", stream())

    async with connect_to(server) as client:
        with pytest.raises(StreamInterruptedError):
            await client.run("hi")

    assert methods(server) == ["SendStreamingMessage"]


@pytest.mark.req("AMB-05", "B095")
@pytest.mark.parametrize("state", ["INPUT_REQUIRED", "AUTH_REQUIRED"])
@pytest.mark.parametrize("end", ["end", "stay"])
async def test_a_run_ends_when_the_task_waits_for_the_caller(server: Peer, state: str, end: str) -> None:
    server.on("POST", "/", stream(WORKING, status(state, "where?"), end=end))

    async with connect_to(server) as client:
        found = await client.run("hi")

    assert (found.waiting, found.question, found.ok) == (True, "where?", False)


@pytest.mark.req("B069")
@pytest.mark.parametrize("state", ["INPUT_REQUIRED", "AUTH_REQUIRED", "COMPLETED"])
async def test_nothing_is_lost_when_all_events_come_at_once(server: Peer, state: str) -> None:
    values = [WORKING, artifact("a"), artifact("b", append=True), status(state)]
    lines = [json.dumps({"jsonrpc": "2.0", "id": 1, "result": value}) for value in values]
    server.on("POST", "/", stream("".join(f"data: {line}\n\n" for line in lines).encode()))
    seen: list[object] = []

    async with connect_to(server) as client:
        found = await client.run("hi", on_event=seen.append)

    assert (found.text, len(seen)) == ("ab", 4)


async def test_an_answer_to_a_question_waits_for_the_agent_where_there_are_no_streams(server: Peer) -> None:
    server.on("POST", "/", result({"task": task("COMPLETED")}))

    async with connect_to(server, card=no_streams(server)) as client:
        assert (await client.run("Rome", task_id="t1")).ok

    assert "configuration" not in server.received[0].json["params"]


async def test_a_message_to_a_task_that_is_over_is_the_agents_error(server: Peer) -> None:
    server.on("POST", "/", REFUSED)

    async with connect_to(server) as client:
        with pytest.raises(UnsupportedOperationError):
            await client.run("more", task_id="t1")


@pytest.mark.req("AMB-38")
async def test_polling_bears_with_failures_that_pass(server: Peer) -> None:
    busy = error(-32603, "later", status=503)
    server.on("POST", "/", result({"task": task("WORKING")}), busy, busy, result(task("COMPLETED")))

    async with connect_to(server, card=no_streams(server)) as client:
        assert (await client.run("hi")).ok


async def test_polling_gives_up_on_failures_that_stay(server: Peer) -> None:
    server.on("POST", "/", result({"task": task("WORKING")}), error(-32603, "later", status=503))

    async with connect_to(server, card=no_streams(server)) as client:
        with pytest.raises(UnavailableError):
            await client.run("hi")


async def test_polling_stops_when_the_task_is_gone(server: Peer) -> None:
    server.on("POST", "/", result({"task": task("WORKING")}), error(-32001, "gone", "TASK_NOT_FOUND"))

    async with connect_to(server, card=no_streams(server)) as client:
        with pytest.raises(TaskNotFoundError):
            await client.run("hi")


async def test_the_timeout_of_a_run_bounds_all_of_it_and_names_the_task(server: Peer) -> None:
    server.on("POST", "/", stream(WORKING, end="stay"))

    async with connect_to(server) as client:
        with pytest.raises(RequestTimeoutError, match="the task t1 goes on"):
            await client.run("hi", timeout=0.1)
        server.on("POST", "/", silence)


@pytest.mark.req("AMB-42")
async def test_an_unknown_state_is_waited_through(server: Peer) -> None:
    odd = {**task("WORKING"), "status": {"state": 77}}
    server.on("POST", "/", result({"task": odd}), result(odd), result(task("COMPLETED")))

    async with connect_to(server, card=no_streams(server)) as client:
        assert (await client.run("hi")).ok


@pytest.mark.req("SEND-11", "SUB-07")
async def test_an_existing_task_is_waited_for_by_its_stream(server: Peer) -> None:
    server.on("POST", "/", stream(WORKING, artifact("x"), status("COMPLETED")))

    async with connect_to(server) as client:
        found = await client.wait("t1")

    assert (found.text, methods(server)) == ("x", ["SubscribeToTask"])


async def test_an_existing_task_is_waited_for_by_polling(server: Peer) -> None:
    server.on("POST", "/", REFUSED, result(task("WORKING")), result(task("WORKING")), result(task("COMPLETED")))

    async with connect_to(server) as client:
        assert (await client.wait("t1")).ok


async def test_a_task_that_is_over_is_not_waited_for(server: Peer) -> None:
    server.on("POST", "/", REFUSED, result(task("FAILED")))

    async with connect_to(server) as client:
        assert (await client.wait("t1")).state is TaskState.FAILED


@pytest.mark.req("INTASK-07")
async def test_a_task_that_needs_an_authorization_is_waited_for_until_it_goes_on(server: Peer) -> None:
    server.on(
        "POST", "/", stream({"task": task("AUTH_REQUIRED")}), result(task("AUTH_REQUIRED")), result(task("COMPLETED"))
    )

    async with connect_to(server) as client:
        assert (await client.wait("t1")).ok

    assert methods(server) == ["SubscribeToTask", "GetTask", "GetTask"]
