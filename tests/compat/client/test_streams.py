"""Streams of agents of version 0.3: how they begin, how they end, and how our client comes back to them."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from dragoman.client import Client
from dragoman.errors import InternalError, StreamInterruptedError, TaskNotFoundError, UnsupportedOperationError
from dragoman.model import Task, TaskState
from tests.client.test_streams import shown
from tests.compat.client.words import REST, RPC, artifact, connect_to, events, message, proto, rpc_error, status, task
from tests.http.peer import Peer, as_json, peer, plain, result, stream

DONE = status("completed", final=True)
SUBSCRIBE = "/v1/tasks/t1:subscribe"


@pytest.fixture
async def server() -> AsyncIterator[Peer]:
    async with peer() as made:
        yield made


async def read(client: Client) -> list[str]:
    return [shown(event) async for event in client.stream("go")]


def methods(server: Peer) -> list[str]:
    return [request.json["method"] for request in server.received]


@pytest.mark.req("V03-04", "V03-01")
@pytest.mark.parametrize("binding", [RPC, REST])
@pytest.mark.parametrize("end", ["completed", "failed", "canceled", "rejected", "input-required"])
async def test_the_final_update_ends_the_stream_though_the_agent_keeps_it_open(
    server: Peer, binding: str, end: str
) -> None:
    answer = events(task("submitted"), status("working"), artifact("a"), status(end, final=True), stay=True)
    server.on("POST", "/", answer).on("POST", "/v1/message:stream", answer)

    async with connect_to(server, binding) as client:
        seen = await read(client)

    assert seen == ["task SUBMITTED", "WORKING", "+a", end.upper().replace("-", "_")]
    assert len(server.received) == 1


@pytest.mark.req("V03-04")
async def test_a_final_update_ends_the_stream_whatever_the_state(server: Peer) -> None:
    server.on("POST", "/", events(task("submitted"), status("working", final=True), stay=True))

    async with connect_to(server) as client:
        seen = await read(client)

    assert seen == ["task SUBMITTED", "WORKING"]
    assert methods(server) == ["message/stream"]


@pytest.mark.req("V03-04")
async def test_nothing_after_the_final_update_is_looked_at(server: Peer) -> None:
    server.on("POST", "/", events(task("working"), status("input-required", final=True), status("failed", final=True)))

    async with connect_to(server) as client:
        assert await read(client) == ["task WORKING", "INPUT_REQUIRED"]


@pytest.mark.req("V03-04")
@pytest.mark.parametrize("binding", [RPC, REST])
async def test_a_message_alone_is_a_stream(server: Peer, binding: str) -> None:
    server.on("POST", "/", events(message("hello"))).on("POST", "/v1/message:stream", events(message("hello")))

    async with connect_to(server, binding) as client:
        assert await read(client) == ["says hello"]


@pytest.mark.req("V03-04", "V03-P06")
async def test_authorization_in_between_does_not_end_the_stream(server: Peer) -> None:
    server.on("POST", "/", events(task("working"), status("auth-required"), status("working"), DONE))

    async with connect_to(server) as client:
        assert await read(client) == ["task WORKING", "AUTH_REQUIRED", "WORKING", "COMPLETED"]


@pytest.mark.req("V03-04")
@pytest.mark.parametrize("first", [status("working"), artifact("a")], ids=["status", "artifact"])
async def test_a_stream_that_does_not_begin_with_the_task_gets_one(server: Peer, first: dict[str, object]) -> None:
    server.on("POST", "/", events(first, DONE))

    async with connect_to(server) as client:
        seen = [event async for event in client.stream("go")]

    assert isinstance(seen[0], Task)
    assert (seen[0].id, seen[0].context_id) == ("t1", "c1")
    assert shown(seen[-1]) == "COMPLETED"


@pytest.mark.req("V03-04", "V03-P16")
async def test_a_further_task_is_taken(server: Peer) -> None:
    closing = task("completed", artifacts=[{"artifactId": "a1", "parts": [{"kind": "text", "text": "ab"}]}])
    server.on("POST", "/", events(task("working"), artifact("a"), closing))

    async with connect_to(server) as client:
        assert await read(client) == ["task WORKING", "+a", "task COMPLETED ab"]


@pytest.mark.req("V03-P02", "AC-C-70")
@pytest.mark.parametrize("binding", [RPC, REST])
async def test_one_event_may_take_many_lines(server: Peer, binding: str) -> None:
    answer = events(b": ping\r\n\r\n", task("working"), artifact("a"), DONE, pretty=True)
    server.on("POST", "/", answer).on("POST", "/v1/message:stream", answer)

    async with connect_to(server, binding) as client:
        assert await read(client) == ["task WORKING", "+a", "COMPLETED"]


@pytest.mark.req("V03-01", "V03-P01")
@pytest.mark.parametrize(
    "data",
    [
        b'event: error\ndata: {"code": -32001, "message": "gone"}\n\n',
        b'data: {"error": "io.a2a.spec.TaskNotFoundError", "message": "gone"}\n\n',
    ],
    ids=["JavaScript", "Java"],
)
async def test_an_error_in_a_stream_of_http_json_is_typed(server: Peer, data: bytes) -> None:
    server.on("POST", "/v1/message:stream", events(task("working"), data))

    async with connect_to(server, REST) as client:
        with pytest.raises(TaskNotFoundError, match="gone"):
            await read(client)


@pytest.mark.req("V03-01", "V03-P01")
async def test_an_error_event_before_anything_else_is_the_answer(server: Peer) -> None:
    server.on("POST", "/", events({"error": {"code": -32603, "message": "no streaming"}}))

    async with connect_to(server) as client:
        with pytest.raises(InternalError, match="no streaming"):
            await read(client)


# Cut, and joined again.


@pytest.mark.req("V03-04", "SUB-07", "AC-C-71", "AC-C-72")
async def test_a_cut_stream_is_joined_again_by_a_snapshot_without_doubles(server: Peer) -> None:
    snapshot = task("working", artifacts=[{"artifactId": "a1", "parts": [{"kind": "text", "text": t} for t in "ab"]}])
    server.on(
        "POST",
        "/",
        events(task("working"), artifact("a"), artifact("b", append=True)),
        events(snapshot, artifact("c", append=True), DONE),
    )

    async with connect_to(server) as client:
        result = await client.run("go", timeout=5)

    assert (result.text, result.state) == ("abc", TaskState.COMPLETED)
    assert methods(server) == ["message/stream", "tasks/resubscribe"]


@pytest.mark.req("V03-P17", "V03-04", "SUB-07", "AC-C-72")
async def test_live_events_only_are_completed_by_the_task_itself_without_doubles(server: Peer) -> None:
    pieces = [{"kind": "text", "text": t} for t in "abcd"]
    server.on(
        "POST",
        "/",
        events(task("working"), artifact("a")),
        events(artifact("c", append=True), artifact("d", append=True), artifact("e", append=True), DONE),
        result(task("working", artifacts=[{"artifactId": "a1", "parts": pieces}])),
    )

    async with connect_to(server) as client:
        found = await client.run("go", timeout=5)

    assert (found.text, found.state) == ("abcde", TaskState.COMPLETED)
    assert methods(server) == ["message/stream", "tasks/resubscribe", "tasks/get"]


@pytest.mark.req("V03-P17", "V03-04", "AMB-08")
@pytest.mark.parametrize(("code", "text"), [(-32602, "Task t1 is in terminal state"), (-32001, "Task not found")])
@pytest.mark.parametrize("in_stream", [True, False])
async def test_a_refused_subscription_to_an_ended_task_brings_its_end(
    server: Peer, code: int, text: str, in_stream: bool
) -> None:
    refusal = events({"error": {"code": code, "message": text}}) if in_stream else rpc_error(code, text)
    ended = result(task("completed", artifacts=[{"artifactId": "a1", "parts": [{"kind": "text", "text": "ab"}]}]))
    server.on("POST", "/", events(task("working"), artifact("a")), refusal, ended)

    async with connect_to(server) as client:
        assert await read(client) == ["task WORKING", "+a", "task COMPLETED ab"]


@pytest.mark.req("V03-P17")
async def test_a_subscription_to_a_task_that_does_not_exist_says_so(server: Peer) -> None:
    server.on("POST", "/", rpc_error(-32001, "Task not found"))

    async with connect_to(server) as client:
        with pytest.raises(TaskNotFoundError):
            async for _ in client.subscribe("t9"):
                pass


@pytest.mark.req("V03-P17")
async def test_a_task_that_cannot_be_followed_is_asked_for_instead(server: Peer) -> None:
    refusal = events({"error": {"code": -32001, "message": "Task not found"}})
    working, ended = result(task("working")), result(task("completed"))
    server.on("POST", "/", events(task("working")), refusal, working, working, ended)

    async with connect_to(server) as client:
        found = await client.run("go", timeout=5)

    assert found.state is TaskState.COMPLETED
    assert methods(server)[:4] == ["message/stream", "tasks/resubscribe", "tasks/get", "tasks/get"]


@pytest.mark.req("V03-04")
async def test_a_stream_that_cannot_be_joined_again_was_interrupted(server: Peer) -> None:
    server.on("POST", "/", events(task("working")), rpc_error(-32004, "no streams"), result(task("working")))

    async with connect_to(server) as client:
        with pytest.raises(StreamInterruptedError) as caught:
            await read(client)

    assert caught.value.task_id == "t1"


# The verb of subscriptions.


@pytest.mark.req("V03-P08")
@pytest.mark.parametrize(
    "refusal",
    [as_json({"detail": "Method Not Allowed"}, 405), as_json({"code": -32001, "message": "no task t1:subscribe"}, 404)],
)
async def test_a_subscription_is_tried_by_post_then_by_get_which_is_remembered(server: Peer, refusal: object) -> None:
    server.on("POST", SUBSCRIBE, refusal).on("GET", SUBSCRIBE, events(task("completed")))  # type: ignore[arg-type]

    async with connect_to(server, REST) as client:
        for _ in range(2):
            assert [shown(event) async for event in client.subscribe("t1")] == ["task COMPLETED"]

    assert server.targets() == [f"POST {SUBSCRIBE}", f"GET {SUBSCRIBE}", f"GET {SUBSCRIBE}"]


@pytest.mark.req("V03-P08")
async def test_the_verb_of_subscriptions_can_be_fixed(server: Peer) -> None:
    server.on("GET", SUBSCRIBE, events(task("completed")))

    async with connect_to(server, REST, subscribe_verb="GET") as client:
        assert [shown(event) async for event in client.subscribe("t1")] == ["task COMPLETED"]

    assert server.targets() == [f"GET {SUBSCRIBE}"]


@pytest.mark.req("V03-P08", "V03-P17")
async def test_a_subscription_answered_by_nothing_brings_the_task_or_the_error(server: Peer) -> None:
    server.on("POST", SUBSCRIBE, events())
    server.on("GET", "/v1/tasks/t1", as_json(proto(task("completed"))["task"]), plain(404, b'{"message": "no"}'))

    async with connect_to(server, REST) as client:
        assert [shown(event) async for event in client.subscribe("t1")] == ["task COMPLETED"]
        with pytest.raises((TaskNotFoundError, UnsupportedOperationError)):
            async for _ in client.subscribe("t1"):
                pass


@pytest.mark.req("V03-P17", "V03-04")
async def test_a_subscription_that_is_broken_off_brings_the_task_or_the_error(server: Peer) -> None:
    broken = stream(end="reset", rpc=False)
    server.on("POST", SUBSCRIBE, broken).on("GET", "/v1/tasks/t2", plain(404, b'{"message": "Task not found"}'))
    server.on("POST", "/v1/tasks/t2:subscribe", broken)
    server.on("GET", "/v1/tasks/t1", as_json(proto(task("completed"))["task"]))

    async with connect_to(server, REST) as client:
        assert [shown(event) async for event in client.subscribe("t1")] == ["task COMPLETED"]
        with pytest.raises(TaskNotFoundError):
            await anext(client.subscribe("t2"))
