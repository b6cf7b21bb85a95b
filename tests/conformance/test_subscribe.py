"""SubscribeToTask: the task as it is, then everything that follows."""

from __future__ import annotations

import asyncio

import httpx2
import pytest

import dragoman
from dragoman import Agent, Fail, Reject, TaskState, TaskStatus, TaskStatusUpdateEvent
from dragoman.errors import TaskNotFoundError, UnsupportedOperationError
from dragoman.model import SUBSCRIBE_TO_TASK, SubscribeToTaskRequest, Task
from dragoman.ports.operations import CallContext
from dragoman.testing.serving import serving
from tests.client.words import connect_to, status, task
from tests.conformance.raw import BOUND, eventually, say
from tests.http.peer import as_json, peer, plain, stream

MEMORY = pytest.mark.parametrize("store", ["memory"], indirect=True)
UNKNOWN = "00000000-0000-7000-8000-000000000000"


class Stepper:
    """An agent that writes a chunk each time it is let to, and ends after the last."""

    def __init__(self, chunks: int = 5) -> None:
        self.go = asyncio.Semaphore(0)
        self.agent = Agent("Stepper", description="Writes chunks.")

        @self.agent.task
        async def step(ctx):
            for number in range(chunks):
                await self.go.acquire()
                yield f"{number},"


def assembled(events) -> str:
    """The text that a reader of a snapshot and the events after it has."""
    first, *rest = events
    assert isinstance(first, Task)
    assert not any(isinstance(event, Task | dragoman.Message) for event in rest)
    parts = [part.text for found in first.artifacts for part in found.parts]
    for event in rest:
        if isinstance(event, dragoman.TaskArtifactUpdateEvent):
            parts += [part.text for part in event.artifact.parts]
    return "".join(parts)


@pytest.mark.req("SUB-01", "SUB-02", "SUB-06", "AMB-07", "STRM-01", "STRM-02", "STRM-03", "STRM-04")
async def test_whoever_joins_whenever_has_the_same_in_the_end(connect) -> None:
    stepper = Stepper()
    client = await connect(stepper.agent)
    made = await client.send("go", wait=False)

    async def follow() -> list:
        return [event async for event in client.subscribe(made.id)]

    readers = []
    for _ in range(5):
        readers.append(asyncio.create_task(follow()))
        dropped = client.subscribe(made.id)
        await anext(dropped)
        await dropped.aclose()
        stepper.go.release()
        await asyncio.sleep(0)
    async with asyncio.timeout(BOUND):
        seen = await asyncio.gather(*readers)

    for events in seen:
        assert assembled(events) == "0,1,2,3,4,"
        assert events[-1].status.state is TaskState.COMPLETED


@pytest.mark.req("SUB-01", "AMB-07", "STRM-03")
@MEMORY
async def test_readers_that_join_together_get_the_same_events(connect) -> None:
    stepper = Stepper(20)
    client = await connect(stepper.agent)
    made = await client.send("go", wait=False)
    streams = [client.subscribe(made.id) for _ in range(10)]
    for opened in streams:
        await anext(opened)

    for _ in range(20):
        stepper.go.release()
    async with asyncio.timeout(BOUND):
        seen = [[event async for event in opened] for opened in streams]

    assert len(seen[0]) == 21
    assert all(events == seen[0] for events in seen)


@pytest.mark.req("SUB-03", "AMB-08", "AMB-09")
async def test_a_finished_task_cannot_be_subscribed_to(wire) -> None:
    agent = Agent("Ender", description="Ends.")

    @agent.task
    async def end(ctx):
        if ctx.text == "FAILED":
            raise Fail("x")
        if ctx.text == "REJECTED":
            raise Reject("x")
        if ctx.text == "CANCELED":
            await ctx.status(TaskState.CANCELED)
            await asyncio.Event().wait()
        return "done"

    raw = await wire(agent)

    for state in ("COMPLETED", "FAILED", "REJECTED", "CANCELED"):
        ended = (await raw.call("SendMessage", say(state))).result["task"]
        assert ended["status"]["state"] == f"TASK_STATE_{state}"
        answer = await raw.call("SubscribeToTask", {"id": ended["id"]})
        assert answer.reason == "UNSUPPORTED_OPERATION"
        assert answer.status == (200 if raw.binding == "JSONRPC" else 400)
        assert "event-stream" not in answer.headers["content-type"]


@pytest.mark.req("SUB-04", "AMB-09")
async def test_an_unknown_task_is_not_found(connect) -> None:
    client = await connect(Stepper().agent)

    for task_id in (UNKNOWN, "x"):
        with pytest.raises(TaskNotFoundError):
            await anext(client.subscribe(task_id))


@pytest.mark.req("SUB-05", "STREAM-08")
@pytest.mark.parametrize("binding", ["in process"], indirect=True)
@MEMORY
async def test_a_subscription_is_refused_when_the_card_offers_no_streams(connect) -> None:
    agent = Agent("Still", description="Does not stream.", streaming=False)

    @agent.task
    async def ask(ctx):
        await ctx.ask("what?")

    client = await connect(agent)
    asked = await client.send("go")

    with pytest.raises(UnsupportedOperationError):
        client.subscribe(asked)
    with pytest.raises(UnsupportedOperationError):
        await connect.app.operations.stream(SUBSCRIBE_TO_TASK, SubscribeToTaskRequest(id=asked.id), CallContext())


@pytest.mark.req("SUB-06", "SUB-02", "AMB-05", "B045", "INTASK-03")
@pytest.mark.parametrize("kind", ["resident", "events"])
async def test_a_waiting_task_is_followed_through_its_answer_to_its_end(connect, kind) -> None:
    agent = Agent("Asker", description="Asks twice.")

    async def ask(ctx):
        await ctx.ask("1?")
        await ctx.authorize("2?")
        return "done"

    async def ask_by_events(ctx):
        states = [TaskState.INPUT_REQUIRED, TaskState.AUTH_REQUIRED, TaskState.COMPLETED]
        said = sum(message.role is dragoman.Role.USER for message in ctx.history) if ctx.task_id else 1
        yield TaskStatusUpdateEvent(task_id="", context_id="", status=TaskStatus(state=states[said - 1]))

    if kind == "resident":
        agent.task(ask)
    else:
        agent.events(ask_by_events)
    client = await connect(agent)
    asked = await client.send("go")
    following = client.subscribe(asked.id)
    first = await anext(following)

    async with asyncio.timeout(BOUND):
        await client.send("one", task_id=asked.id)
        await client.send("two", task_id=asked.id)
        states = [event.status.state.name async for event in following if hasattr(event, "status")]

    assert first.status.state is TaskState.INPUT_REQUIRED
    assert states == ["WORKING", "AUTH_REQUIRED", "WORKING", "COMPLETED"]


@pytest.mark.req("B045", "SUB-06", "CTX-16")
@pytest.mark.parametrize("binding", ["in process"], indirect=True)
@pytest.mark.parametrize("store", ["sqlite"], indirect=True)
async def test_a_waiting_task_can_be_subscribed_to_after_a_restart(connect, store) -> None:
    agent = Agent("Asker", description="Asks.")

    @agent.task
    async def ask(ctx):
        return f"got {await ctx.ask('what?')}"

    asked = await (await connect(agent)).send("go")
    await connect.app.stop()
    client = await connect(agent)

    following = client.subscribe(asked.id)
    first = await anext(following)
    async with asyncio.timeout(BOUND):
        await client.send("this", task_id=asked.id)
        rest = [event async for event in following]

    assert first.status == asked.status
    assert rest[-2].artifact.parts[0].text == "got this"
    assert rest[-1].status.state is TaskState.COMPLETED


@pytest.mark.req("B047", "SUB-01", "SUB-02")
@MEMORY
async def test_subscribing_while_the_task_ends_sees_the_end_or_the_clean_refusal(connect) -> None:
    agent = Agent("Quick", description="Ends at once.")
    gates: dict[str, asyncio.Event] = {}

    @agent.task
    async def quick(ctx):
        gates[ctx.task_id] = gate = asyncio.Event()
        await gate.wait()
        return "x"

    client = await connect(agent)

    async def watch(task_id: str) -> str:
        try:
            opened = await client.operations.stream(
                SUBSCRIBE_TO_TASK, SubscribeToTaskRequest(id=task_id), CallContext()
            )
        except UnsupportedOperationError:
            return "refused"
        async with opened:
            last = [event.response async for event in opened][-1]
        ended = last.task or last.status_update
        return ended.status.state.name

    for turn in range(40):
        made = await client.send("go", wait=False)
        await eventually(lambda made=made: made.id in gates)
        watching = asyncio.create_task(watch(made.id))
        for _ in range(turn // 2):
            await asyncio.sleep(0)
        gates[made.id].set()
        late = asyncio.create_task(watch(made.id))
        async with asyncio.timeout(BOUND):
            assert {await watching, await late} <= {"COMPLETED", "refused"}


@pytest.mark.req("SUB-06", "SUB-07", "AMB-08")
@MEMORY
async def test_for_a_client_a_finished_task_is_a_stream_of_one(connect) -> None:
    agent = Agent("Done", description="Is done.")
    agent.task(lambda ctx: "x")
    client = await connect(agent)
    done = await client.send("go")

    assert [event async for event in client.subscribe(done)] == [done]


@pytest.mark.req("AMB-88", "AMB-49", "HTTP-01")
async def test_both_verbs_subscribe_with_and_without_a_body_over_http_json(waiting_over_http) -> None:
    url, task_id, http = waiting_over_http

    for method, content in (("GET", None), ("GET", b"{}"), ("POST", None), ("POST", b""), ("POST", b"{}")):
        headers = {"a2a-version": "1.0", **({"content-type": "application/a2a+json"} if content else {})}
        request = http.build_request(method, f"{url}/tasks/{task_id}:subscribe", content=content, headers=headers)
        response = await http.send(request, stream=True)
        assert (response.status_code, response.headers["content-type"]) == (200, "text/event-stream")
        first = await anext(response.aiter_bytes())
        assert b'data: {"task":{"id":"%b"' % task_id.encode() in first
        await response.aclose()
    for method in ("GET", "POST"):
        refused = await http.request(method, f"{url}/tasks/{UNKNOWN}:subscribe", headers={"a2a-version": "1.0"})
        assert refused.status_code == 404
        assert refused.json()["error"]["details"][0]["reason"] == "TASK_NOT_FOUND"


@pytest.fixture
async def waiting_over_http():
    """URL of an agent, the id of a task of it that waits, and a client."""
    agent = Agent("Asker", description="Asks.")

    @agent.task
    async def ask(ctx):
        await ctx.ask("what?")

    app = dragoman.App(agent, limits=dragoman.Limits(shutdown_grace=0.2))
    async with serving(app) as url, httpx2.AsyncClient(timeout=BOUND) as http:
        answer = await http.post(f"{url}/message:send", json=say(), headers={"a2a-version": "1.0"})
        yield url, answer.json()["task"]["id"], http


@pytest.mark.req("AMB-88", "SUB-07")
@pytest.mark.parametrize("refusal", ["405", "404 of a router", "404 for the id with its verb"])
async def test_a_client_finds_out_which_verb_subscribes_and_remembers_it(refusal) -> None:
    info = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "TASK_NOT_FOUND",
            "domain": "a2a-protocol.org", "metadata": {"taskId": "t1:subscribe"}}  # fmt: skip
    body = {"error": {"code": 404, "status": "NOT_FOUND", "message": "Task t1:subscribe not found", "details": [info]}}
    answer = {
        "405": plain(405, b"", kind=""),
        "404 of a router": plain(404, b'{"detail":"Not Found"}'),
        "404 for the id with its verb": as_json(body, 404),
    }[refusal]
    async with peer() as served:
        served.on("POST", "/tasks/t1:subscribe", answer)
        served.on("GET", "/tasks/t1:subscribe", stream({"task": task("WORKING")}, status("COMPLETED"), rpc=False))
        async with connect_to(served, "HTTP+JSON") as client:
            for _ in range(2):
                states = [event.status.state async for event in client.subscribe("t1")]
                assert states == [TaskState.WORKING, TaskState.COMPLETED]

    assert [target.split()[0] for target in served.targets()] == ["POST", "GET", "GET"]


@pytest.mark.req("AMB-88")
async def test_a_clean_not_found_is_believed_at_once() -> None:
    info = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "TASK_NOT_FOUND",
            "domain": "a2a-protocol.org"}  # fmt: skip
    body = {"error": {"code": 404, "status": "NOT_FOUND", "message": "Task not found", "details": [info]}}
    async with (
        peer() as served,
        connect_to(served.on("POST", "/tasks/t1:subscribe", as_json(body, 404)), "HTTP+JSON") as client,
    ):
        with pytest.raises(TaskNotFoundError):
            await anext(client.subscribe("t1"))

    assert served.targets() == ["POST /tasks/t1:subscribe"]
