"""One small agent for each SDK of version 0.3, with the habits of its servers; our client does the same with all."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from typing import Any, NamedTuple

import pytest

from dragoman import V03Settings
from dragoman.client import Client
from dragoman.errors import TaskNotCancelableError, TaskNotFoundError
from dragoman.model import Part, Task, TaskState
from tests.client.test_streams import shown
from tests.compat.client.words import REST, RPC, artifact, connect_to, events, proto, rpc_error, status, task
from tests.http.peer import Answer, Peer, as_json, peer, plain, result

SUBSCRIBE, SEND, STREAM = "/v1/tasks/t1:subscribe", "/v1/message:send", "/v1/message:stream"
LIVE = (
    task("submitted"),
    status("working"),
    artifact("a"),
    artifact("b", append=True),
    status("completed", final=True),
)
FILE = {"kind": "file", "file": {"bytes": "aGVsbG8=", "mimeType": "text/plain"}}
DONE = task("completed", artifacts=[{"artifactId": "f", "parts": [FILE]}])
MISSING = "/v1/tasks/nope"


class Habits(NamedTuple):
    """How an SDK's server answers. ``sent`` is the body of a send, ``taken`` that of a task alone."""

    sent: Any
    taken: Any
    settings: V03Settings = V03Settings()
    statuses: tuple[int, int] = (200, 200)
    pretty: bool = False
    subscribe: str = "POST"
    refused: Answer = as_json({"detail": "Method Not Allowed"}, 405)
    missing: Answer = as_json({"message": "Task not found"}, 404)
    late: Answer = as_json({"message": "Task cannot be canceled - current state: completed"}, 409)
    stream: Callable[..., Answer] = events


def in_proto(content: str, field: str = "content") -> dict[str, Any]:
    """The task in the ProtoJSON of an SDK: how it has content of files, and parts of messages."""
    file = {"file": {"fileWithBytes": content, "mimeType": "text/plain"}}
    said = {"messageId": "m1", "role": "ROLE_USER", field: [{"text": "hi"}], "taskId": "t1", "contextId": "c1"}
    found: dict[str, Any] = proto(task("completed"))["task"]
    return {**found, "artifacts": [{"artifactId": "f", "parts": [file]}], "history": [said]}


TWICE, ONCE = "YUdWc2JHOD0=", "aGVsbG8="
PROBLEM = {"type": "https://tools.ietf.org/html/rfc9110#section-15.5.5", "title": "Not Found", "status": 404}


def unwrapped(*found: Any, **options: Any) -> Answer:
    """A stream of events with ``kind`` and no frames."""
    return events(*(f"data: {json.dumps(each)}\n\n".encode() for each in found), **options)


def java_error(name: str, status: int) -> Answer:
    return as_json({"error": f"io.a2a.spec.{name}", "message": "no"}, status)


REST_HABITS = {
    "Python": Habits({"task": in_proto(TWICE)}, in_proto(TWICE), pretty=True, subscribe="GET"),
    "JavaScript": Habits(
        {"task": in_proto(ONCE)},
        in_proto(ONCE),
        settings=V03Settings(raw_bytes=True),
        statuses=(201, 202),
        missing=as_json({"code": -32001, "message": "Task not found: nope"}, 404),
        late=as_json({"code": -32002, "message": "Task not cancelable: t1"}, 409),
    ),
    "Java": Habits(
        {"task": in_proto(TWICE)},
        in_proto(TWICE),
        missing=java_error("TaskNotFoundError", 404),
        late=java_error("TaskNotCancelableError", 409),
    ),
    "Go": Habits(
        {"task": in_proto(TWICE, "parts")}, in_proto(TWICE, "parts"), subscribe="GET", refused=plain(404, b"")
    ),
    ".NET": Habits(
        DONE,
        DONE,
        settings=V03Settings(dialect="C"),
        subscribe="GET",
        missing=as_json(PROBLEM, 404),
        late=as_json({"title": "Bad Request", "status": 400, "detail": "Task cannot be canceled"}, 400),
        stream=unwrapped,
    ),
}


@pytest.fixture
async def server() -> AsyncIterator[Peer]:
    async with peer() as made:
        yield made


async def use(client: Client) -> list[str]:
    """A file is sent, work is streamed, and a task followed."""
    answer = await client.send(["hi", Part(raw=b"hello", media_type="text/plain")])
    assert isinstance(answer, Task)
    assert (answer.status.state, answer.artifacts[0].parts[0].raw) == (TaskState.COMPLETED, b"hello")
    assert (await client.get_task("t1")).id == "t1"
    seen = [shown(event) async for event in client.stream("go")]
    return [*seen, *[shown(event) async for event in client.subscribe("t1")]]


@pytest.mark.req("V03-01", "V03-P02", "V03-P08", "V03-P09", "V03-P20")
@pytest.mark.parametrize("sdk", REST_HABITS)
async def test_over_http_json_all_look_alike(server: Peer, sdk: str) -> None:
    habits = REST_HABITS[sdk]
    server.on("POST", SEND, as_json(habits.sent, status=habits.statuses[0]))
    server.on("GET", "/v1/tasks/t1", as_json(habits.taken))
    server.on("GET", MISSING, habits.missing)
    server.on("POST", "/v1/tasks/t1:cancel", habits.late)
    server.on("POST", STREAM, habits.stream(*LIVE, pretty=habits.pretty))
    server.on("POST", SUBSCRIBE, habits.refused if habits.subscribe == "GET" else habits.stream(task("completed")))
    server.on("GET", SUBSCRIBE, habits.stream(task("completed")))

    async with connect_to(server, REST, v03=habits.settings) as client:
        seen = await use(client)
        with pytest.raises(TaskNotFoundError):
            await client.get_task("nope")
        if sdk != ".NET":  # a bare 400 says no more than that
            with pytest.raises(TaskNotCancelableError):
                await client.cancel("t1")

    assert seen == ["task SUBMITTED", "WORKING", "+a", "+b", "COMPLETED", "task COMPLETED"]


RPC_HABITS: dict[str, tuple[Any, Answer]] = {
    "Python": (
        {**DONE, "status": {"state": "completed", "timestamp": "2026-02-03T08:15:30.250123+00:00"}},
        rpc_error(-32001, "Task not found", with_id=False),
    ),
    "JavaScript": ({**DONE, "history": []}, rpc_error(-32001, "Task not found: nope", status=500)),
    "Java": ({**DONE, "metadata": None}, rpc_error(-32001, "Task not found")),
    "Go": (
        {**DONE, "status": {"state": "completed", "timestamp": "2026-02-03T08:15:30.250123456Z"}},
        rpc_error(-32001, "task not found", data={"taskId": "nope"}),
    ),
    ".NET": ({**DONE, "status": {"state": "completed", "timestamp": "2026-02-03T08:15:30"}}, rpc_error(-32001, "no")),
}


@pytest.mark.req("V03-01", "V03-P30")
@pytest.mark.parametrize("sdk", RPC_HABITS)
async def test_over_json_rpc_all_look_alike(server: Peer, sdk: str) -> None:
    done, missing = RPC_HABITS[sdk]
    server.on("POST", "/", result(done), result(done), events(*LIVE), events(task("completed")), missing)

    async with connect_to(server, RPC) as client:
        seen = await use(client)
        with pytest.raises(TaskNotFoundError):
            await client.get_task("nope")

    assert seen == ["task SUBMITTED", "WORKING", "+a", "+b", "COMPLETED", "task COMPLETED"]


@pytest.mark.req("V03-01")
async def test_a_time_without_a_zone_is_in_utc(server: Peer) -> None:
    server.on("POST", "/", result(RPC_HABITS[".NET"][0]))

    async with connect_to(server, RPC) as client:
        found = await client.get_task("t1")

    assert str(found.status.timestamp).startswith("2026-02-03 08:15:30")
    assert found.status.timestamp is not None
    assert found.status.timestamp.utcoffset() is not None
