"""SendStreamingMessage: what comes, in which order, and how it ends."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from dragoman import Agent, Artifact, Limits, Message, Part, Reply, Role, TaskState, TaskStatus, TaskStatusUpdateEvent
from dragoman.errors import (
    A2AError,
    ConnectionLostError,
    InternalError,
    InvalidAgentResponseError,
    StreamInterruptedError,
    UnsupportedOperationError,
)
from dragoman.model import Task, TaskArtifactUpdateEvent
from tests.client.words import artifact, card, connect_to, message, status, task
from tests.conformance.raw import BOUND, say
from tests.http.peer import as_json, error, peer, plain, result, stream

MEMORY = pytest.mark.parametrize("store", ["memory"], indirect=True)


def update(state: TaskState, text: str = "") -> TaskStatusUpdateEvent:
    said = Message(message_id="", role=Role.AGENT, parts=[Part(text=text)]) if text else None
    return TaskStatusUpdateEvent(task_id="", context_id="", status=TaskStatus(state=state, message=said))


def shape(event: Any) -> str:
    """An event in a word: its kind and state."""
    if isinstance(event, TaskArtifactUpdateEvent):
        return "".join(part.text or "" for part in event.artifact.parts)
    if isinstance(event, Message):
        return f"message {event.parts[0].text}"
    return f"{type(event).__name__.removesuffix('UpdateEvent')} {event.status.state.name}"


def counting_agent(**more: Any) -> Agent:
    agent = Agent("Counter", description="Counts.", **more)

    @agent.task
    async def count(ctx):
        await ctx.update("counting")
        for number in range(int(ctx.text)):
            yield f"{number} "

    return agent


@pytest.mark.req("STREAM-01", "STREAM-02", "STREAM-04", "STREAM-05", "STREAM-10", "STREAM-12")
@pytest.mark.req("STRM-01", "AMB-03", "AMB-04", "AMB-06")
async def test_a_task_stream_is_the_task_then_its_updates_in_order_then_the_end(connect) -> None:
    client = await connect(counting_agent())

    for number in (0, 1, 300):
        events = [event async for event in client.stream(str(number))]
        chunks = [f"{n} " for n in range(number)]
        assert [shape(event) for event in events] == [
            "Task WORKING", "TaskStatus WORKING", *chunks, "TaskStatus COMPLETED"
        ]  # fmt: skip
        stored = await client.get_task(events[0].id)
        assert [part.text for found in stored.artifacts for part in found.parts] == chunks


@pytest.mark.req("STREAM-02", "STREAM-03", "STREAM-06", "DATA-21")
@pytest.mark.parametrize("how", ["reply", "message", "events"])
async def test_a_message_stream_is_one_message_and_the_end(wire, how) -> None:
    agent = Agent("Replier", description="Replies.")

    async def reply(ctx):
        return Reply("hello")

    async def events(ctx):
        yield Message(message_id="", role=Role.AGENT, parts=[Part(text="hello")])

    getattr(agent, how)(events if how == "events" else reply)
    raw = await wire(agent)

    async with raw.stream("SendStreamingMessage", say(contextId="c-1")) as frames:
        events = await frames.rest()

    assert [list(event) for event in events] == [["message"]]
    assert events[0]["message"]["parts"] == [{"text": "hello"}]
    assert events[0]["message"]["contextId"] == "c-1"
    assert "taskId" not in events[0]["message"]
    assert (await raw.call("ListTasks", {})).result["totalSize"] == 0


@pytest.mark.req("STREAM-04", "B071", "B063", "B061", "STREAM-02", "B069")
async def test_a_stream_begins_with_the_task_whatever_the_agent_publishes_first(connect) -> None:
    firsts: dict[str, Any] = {
        "status": update(TaskState.WORKING),
        "artifact": Artifact(artifact_id="a", parts=[Part(text="x")]),
        "completed": update(TaskState.COMPLETED),
        "task": Task(id="", status=TaskStatus(state=TaskState.SUBMITTED)),
    }
    agent = Agent("Starter", description="Starts anyhow.")

    @agent.events
    async def start(ctx):
        yield firsts[ctx.text]
        if ctx.text != "completed":
            yield update(TaskState.COMPLETED)

    client = await connect(agent)

    for first in firsts:
        events = [event async for event in client.stream(first)]
        assert isinstance(events[0], Task)
        assert [said.parts[0].text for said in events[0].history] == [first]
        assert not any(isinstance(event, Task | Message) for event in events[1:])
        assert shape(events[-1]) == "TaskStatus COMPLETED"


@pytest.mark.req("B063", "B061", "STREAM-02", "STRM-12", "AMB-05")
async def test_a_message_on_an_open_task_becomes_a_status_message_and_nothing_after_it_is_lost(connect) -> None:
    agent = Agent("Mixer", description="Mixes.")

    @agent.events
    async def mix(ctx):
        if ctx.task_id:
            yield Artifact(artifact_id="a", parts=[Part(text="x")])
            yield update(TaskState.COMPLETED)
            return
        yield update(TaskState.WORKING)
        yield Message(message_id="", role=Role.AGENT, parts=[Part(text="by the way")])
        yield update(TaskState.INPUT_REQUIRED, "what?")

    client = await connect(agent)

    events = [event async for event in client.stream("go")]
    more = [event async for event in client.stream("this", task_id=events[0].id)]

    assert [shape(event) for event in events] == [
        "Task WORKING", "TaskStatus WORKING", "TaskStatus WORKING", "TaskStatus INPUT_REQUIRED"
    ]  # fmt: skip
    assert events[2].status.message.parts[0].text == "by the way"
    assert isinstance(more[0], Task)
    assert more[-1].status.state is TaskState.COMPLETED
    done = await client.get_task(events[0].id)
    assert [said.parts[0].text for said in done.history] == ["go", "by the way", "what?", "this"]


@pytest.mark.req("STREAM-07", "STREAM-01")
async def test_each_event_arrives_before_the_agent_goes_on(wire) -> None:
    go = asyncio.Semaphore(0)
    agent = Agent("Stepper", description="Waits after each step.")

    @agent.task
    async def step(ctx):
        for number in range(5):
            yield str(number)
            await go.acquire()

    raw = await wire(agent)

    async with raw.stream("SendStreamingMessage", say()) as frames, asyncio.timeout(BOUND):
        assert (await frames.next())["task"]["status"]["state"] == "TASK_STATE_WORKING"
        for number in range(5):
            assert (await frames.next())["artifactUpdate"]["artifact"]["parts"] == [{"text": str(number)}]
            go.release()
        assert (await frames.next())["statusUpdate"]["status"]["state"] == "TASK_STATE_COMPLETED"
        assert await frames.next() is None


@pytest.mark.req("STREAM-08", "SUB-05", "ERR-23", "CARD-25")
async def test_an_agent_that_does_not_stream_says_so_in_its_card_and_refuses(wire) -> None:
    raw = await wire(counting_agent(streaming=False))

    shown = (await raw.http.get(raw.url + "/.well-known/agent-card.json")).json()
    created = (await raw.call("SendMessage", say("0"))).result["task"]
    refused = [
        await raw.call("SendStreamingMessage", say("0")),
        await raw.call("SubscribeToTask", {"id": created["id"]}),
        await raw.call("SubscribeToTask", {"id": "unknown"}),
    ]

    assert shown["capabilities"].get("streaming", False) is False
    assert [answer.reason for answer in refused] == ["UNSUPPORTED_OPERATION"] * 3
    assert all("text/event-stream" not in answer.headers["content-type"] for answer in refused)


@pytest.mark.req("STREAM-05", "AMB-05", "STRM-10", "INTASK-03")
@MEMORY
async def test_a_stream_closes_at_input_required_and_stays_open_at_auth_required(connect) -> None:
    agent = Agent("Asker", description="Asks.")

    @agent.task
    async def ask(ctx):
        if ctx.text == "input":
            return (await ctx.ask("what?")).text
        return (await ctx.authorize("may I?")).text

    client = await connect(agent)

    async with asyncio.timeout(BOUND):
        asked = [event async for event in client.stream("input")]
        wanting = client.stream("auth")
        events = [await anext(wanting), await anext(wanting)]
        await client.send("yes", task_id=events[0].id)
        events += [event async for event in wanting]

    assert [shape(event) for event in asked] == ["Task WORKING", "TaskStatus INPUT_REQUIRED"]
    assert [shape(event) for event in events] == [
        "Task WORKING", "TaskStatus AUTH_REQUIRED", "TaskStatus WORKING", "yes", "TaskStatus COMPLETED"
    ]  # fmt: skip


@pytest.mark.req("STREAM-05", "STREAM-10", "STRM-09", "B085")
@MEMORY
async def test_nothing_follows_the_end_even_if_the_agent_goes_on(connect) -> None:
    agent = Agent("Late", description="Does not stop.")
    refused = []

    @agent.task
    async def late(ctx):
        await ctx.status(TaskState.COMPLETED)
        for late_verb in (ctx.update("late"), ctx.artifact("late"), ctx.status(TaskState.FAILED)):
            try:
                await late_verb
            except InvalidAgentResponseError as error:
                refused.append(error)

    client = await connect(agent)

    events = [event async for event in client.stream("go")]

    assert [shape(event) for event in events] == ["Task WORKING", "TaskStatus COMPLETED"]
    done = await client.get_task(events[0].id)
    assert (done.status, done.artifacts) == (events[-1].status, [])
    assert len(refused) == 3


# Errors.


@pytest.mark.req("STREAM-09", "AMB-09", "SEND-07")
async def test_an_error_known_before_the_first_event_is_an_ordinary_answer(wire) -> None:
    raw = await wire(counting_agent())
    done = (await raw.call("SendMessage", say("0"))).result["task"]

    for params, reason, http in (
        (say(taskId="unknown"), "TASK_NOT_FOUND", 404),
        (say(taskId=done["id"]), "UNSUPPORTED_OPERATION", 400),
        (say(parts=[{"raw": "", "mediaType": "image/png"}]), "CONTENT_TYPE_NOT_SUPPORTED", 400),
    ):
        answer = await raw.call("SendStreamingMessage", params)
        assert answer.reason == reason
        assert answer.status == (200 if raw.binding == "JSONRPC" else http)
        kind = "application/json" if raw.binding == "JSONRPC" else "application/a2a+json"
        assert answer.headers["content-type"] == kind


@pytest.mark.req("B033", "B083", "STREAM-05")
async def test_an_agent_that_fails_in_mid_stream_ends_it_with_the_failed_status(connect) -> None:
    agent = Agent("Breaker", description="Breaks.")

    @agent.task
    async def fail(ctx):
        yield "half"
        raise KeyError("secret")

    client = await connect(agent)

    events = [event async for event in client.stream("go")]

    assert [shape(event) for event in events] == ["Task WORKING", "half", "TaskStatus FAILED"]
    assert events[-1].status.message.parts[0].text == "The agent failed while it worked on this task."
    assert (await client.get_task(events[0].id)).status == events[-1].status


@pytest.mark.req("AMB-09", "B083")
@MEMORY
async def test_an_agent_that_fails_before_it_replied_is_an_error_with_neutral_words(connect) -> None:
    agent = Agent("Breaker", description="Breaks.")

    @agent.message
    async def fail(ctx):
        raise KeyError("secret")

    client = await connect(agent)

    for attempt in (client.send("go"), anext(client.stream("go"))):
        with pytest.raises(InternalError) as failed:
            await attempt
        assert "secret" not in str(failed.value)


# Connections and tasks.


@pytest.mark.req("B041", "STRM-04", "SUB-06", "SUB-07")
async def test_the_task_goes_on_when_its_stream_is_dropped(wire) -> None:
    go = asyncio.Event()
    agent = Agent("Worker", description="Goes on.")

    @agent.task
    async def work(ctx):
        await ctx.update("started")
        await go.wait()
        return "done"

    raw = await wire(agent)

    async with raw.stream("SendStreamingMessage", say()) as frames:
        task_id = (await frames.next())["task"]["id"]
        await frames.next()
    async with raw.stream("SubscribeToTask", {"id": task_id}) as frames, asyncio.timeout(BOUND):
        assert (await frames.next())["task"]["status"]["message"]["parts"] == [{"text": "started"}]
        go.set()
        events = await frames.rest()

    assert [list(event) for event in events] == [["artifactUpdate"], ["statusUpdate"]]
    assert events[-1]["statusUpdate"]["status"]["state"] == "TASK_STATE_COMPLETED"


@pytest.mark.req("B043", "SUB-02", "STRM-04")
@MEMORY
async def test_breaking_out_of_a_stream_and_subscribing_again_sees_the_end(connect) -> None:
    go = asyncio.Event()
    agent = Agent("Worker", description="Goes on.")

    @agent.task
    async def work(ctx):
        await go.wait()
        return "done"

    client = await connect(agent)
    async for event in client.stream("go"):
        task_id = event.id
        break

    again = client.subscribe(task_id)
    async with asyncio.timeout(BOUND):
        first = await anext(again)
        go.set()
        rest = [event async for event in again]

    assert shape(first) == "Task WORKING"
    assert [shape(event) for event in rest] == ["done", "TaskStatus COMPLETED"]


@pytest.mark.req("B067")
@MEMORY
async def test_streams_that_are_dropped_in_any_way_make_no_noise(connect, caplog) -> None:
    caplog.set_level(logging.WARNING)
    agent = Agent("Endless", description="Never ends.")

    @agent.task
    async def endless(ctx):
        await ctx.update("on")
        await asyncio.Event().wait()

    client = await connect(agent)

    async for _ in client.stream("break"):
        break
    async with client.stream("block") as held:
        await anext(held)
    reading = asyncio.create_task(anext(client.stream("cancel")))
    await asyncio.sleep(0)
    reading.cancel()
    await asyncio.gather(reading, return_exceptions=True)
    waiting = client.stream("timeout")
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            _ = [event async for event in waiting]
    del waiting
    for found in (await client.list_tasks()).tasks:
        assert (await client.cancel(found)).status.state is TaskState.CANCELED

    assert caplog.messages == []


@pytest.mark.req("B065", "AMB-97")
async def test_a_quiet_stream_is_kept_alive_by_comments(wire) -> None:
    go = asyncio.Event()
    agent = Agent("Quiet", description="Says nothing.")

    @agent.task
    async def quiet(ctx):
        await go.wait()
        return "done"

    raw = await wire(agent, heartbeat=0.02)

    async with raw.stream("SendStreamingMessage", say()) as frames, asyncio.timeout(BOUND):
        await frames.next()
        chunks = [await anext(frames._chunks) for _ in range(3)]
        go.set()
        events = await frames.rest()

    assert chunks == [b": \n\n"] * 3
    assert [list(event) for event in events] == [["artifactUpdate"], ["statusUpdate"]]


@pytest.mark.req("B007", "B055", "STREAM-07")
async def test_text_in_a_stream_is_plain_utf_8(wire) -> None:
    text = "你好 👋🏽 e\u0301 \u0085 \u2028 \u2029 end"
    agent = Agent("Speaker", description="Speaks.")

    @agent.task
    async def speak(ctx):
        yield text

    raw = await wire(agent)

    async with raw.stream("SendStreamingMessage", say()) as frames:
        await frames.raw()
        frame = await frames.raw()
        await frames.rest()
    unary = await raw.call("SendMessage", say())

    assert text.encode() in frame
    assert text.encode() in unary.body
    assert b"\n" not in frame.partition(b"data: ")[2]


# What a client makes of the streams of others.


async def read(*answers: Any, method: str = "POST", **options: Any) -> list[str]:
    """The shapes of what ``client.stream`` yields, by a peer that answers like this."""
    async with peer() as served, connect_to(served.on(method, "/", *answers), **options) as client:
        async with asyncio.timeout(BOUND):
            return [shape(event) async for event in client.stream("hi")]


@pytest.mark.req("AMB-04", "STREAM-11", "B061", "B071", "B069")
async def test_a_client_takes_any_event_at_any_place() -> None:
    events = [status("WORKING"), artifact("a"), {"task": task("WORKING")}, {"message": message("by the way")},
              {"message": message("again")}, status("COMPLETED"), ]  # fmt: skip

    assert await read(stream(*events)) == [
        "TaskStatus WORKING", "a", "Task WORKING", "message by the way", "message again", "TaskStatus COMPLETED"
    ]  # fmt: skip


@pytest.mark.req("STREAM-11", "AMB-04")
async def test_a_task_in_the_middle_replaces_the_copy_of_the_client() -> None:
    final = {"artifactId": "a3", "parts": [{"text": "final"}]}
    events = [
        {"task": task("WORKING")},
        artifact("old"),
        {"task": task("WORKING", history=[message("h")])},
        artifact("new", artifact_id="a2"),
        {"task": task("COMPLETED", artifacts=[final])},
    ]
    async with peer() as served, connect_to(served.on("POST", "/", stream(*events))) as client:
        found = await client.run("hi")

    assert [part.text for part in found.parts] == ["final"]


@pytest.mark.req("B053", "B055", "AMB-97")
async def test_a_client_reads_all_legal_sse() -> None:
    body = (
        b'\xef\xbb\xbf: ping\r\n\r\nretry: 10\r\nid:\r\nevent: message\r\ndata:{"jsonrpc":"2.0","id":1,"result":'
        b'\r\ndata:{"task":{"id":"t1","contextId":"c1","status":{"state":"TASK_STATE_WORKING"}}}}\r\n\r\n: ping\n\n'
        b'data: {"jsonrpc":"2.0","id":1,"result":{"artifactUpdate":{"taskId":"t1","contextId":"c1","artifact":'
        b'{"artifactId":"a","parts":[{"text":"\xc2\x85\xe2\x80\xa8\xf0\x9f\x91\x8b"}]}}}}\r\r'
        b'data: {"jsonrpc":"2.0","id":1,"result":{"statusUpdate":{"taskId":"t1","contextId":"c1","status":'
        b'{"state":"TASK_STATE_COMPLETED"}}}}\n\n'
    )
    expected = ["Task WORKING", "\u0085\u2028👋", "TaskStatus COMPLETED"]

    assert await read(stream(body)) == expected
    assert await read(stream(*(body[n : n + 1] for n in range(len(body))))) == expected


@pytest.mark.req("AMB-03", "STREAM-10", "B059", "SUB-07")
@pytest.mark.parametrize("end", ["end", "cut", "reset"])
async def test_a_stream_that_ends_while_the_task_is_active_was_cut_and_is_taken_up_again(end) -> None:
    half = stream({"task": task("WORKING")}, artifact("half"), end=end)
    again = stream({"task": task("WORKING", history=[])}, artifact("rest", append=True), status("COMPLETED"))
    async with peer() as served, connect_to(served.on("POST", "/", half, again)) as client:
        async with asyncio.timeout(BOUND):
            seen = [shape(event) async for event in client.stream("hi")]

    assert seen == ["Task WORKING", "half", "Task WORKING", "rest", "TaskStatus COMPLETED"]
    assert [request.json["method"] for request in served.received] == ["SendStreamingMessage", "SubscribeToTask"]


@pytest.mark.req("AMB-03", "STREAM-10", "B059")
async def test_a_cut_that_cannot_be_mended_is_an_error_and_no_success() -> None:
    half = stream({"task": task("WORKING")}, artifact("half"))
    with pytest.raises(StreamInterruptedError) as cut:
        await read(half, plain(503, b"", kind=""))

    assert cut.value.task_id == "t1"


@pytest.mark.req("AMB-08", "AMB-03")
async def test_a_client_that_meets_a_finished_task_on_its_return_gets_it() -> None:
    half = stream({"task": task("WORKING")})
    refusal = error(-32004, "over", "UNSUPPORTED_OPERATION")

    assert await read(half, refusal, result(task("COMPLETED"))) == ["Task WORKING", "Task COMPLETED"]


@pytest.mark.req("AMB-05")
@pytest.mark.parametrize("end", ["end", "stay"])
async def test_for_a_client_input_required_ends_the_turn_whether_the_stream_goes_on_or_not(end) -> None:
    events = [{"task": task("WORKING")}, status("INPUT_REQUIRED", "what?")]

    assert await read(stream(*events, end=end)) == ["Task WORKING", "TaskStatus INPUT_REQUIRED"]


@pytest.mark.req("AMB-09", "AMB-10", "B057", "B033")
async def test_a_client_raises_the_error_of_a_stream_wherever_it_comes() -> None:
    info = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "UNSUPPORTED_OPERATION",
            "domain": "a2a-protocol.org"}  # fmt: skip
    refusal = {"error": {"code": -32004, "message": "no", "data": [info]}}
    answers = {
        "an ordinary answer": error(-32004, "no", "UNSUPPORTED_OPERATION"),
        "an answer without a type": plain(
            200, b'{"jsonrpc":"2.0","id":1,"error":{"code":-32004,"message":"no"}}', kind=""
        ),
        "the first event": stream(refusal),
        "a later event": stream({"task": task("WORKING")}, refusal),
        "an answer that calls itself a stream": plain(
            200, b'{"jsonrpc":"2.0","id":1,"error":{"code":-32004,"message":"no"}}', kind="text/event-stream"
        ),
    }
    for case, answer in answers.items():
        with pytest.raises(A2AError) as refused:
            await read(answer)
        assert isinstance(refused.value, UnsupportedOperationError), case


@pytest.mark.req("B057", "B059", "AMB-03")
async def test_a_stream_without_any_event_is_no_success() -> None:
    for end in ("end", "cut", "reset"):
        with pytest.raises((StreamInterruptedError, ConnectionLostError)):
            await read(stream(b'data: {"jsonrpc":"2.0","id":1,"re', end=end))
        with pytest.raises((StreamInterruptedError, ConnectionLostError)):
            await read(stream(end=end))


@pytest.mark.req("STREAM-13", "AMB-09")
@pytest.mark.parametrize("binding", ["JSONRPC", "HTTP+JSON"])
async def test_a_streaming_request_has_the_shape_of_an_ordinary_one(binding) -> None:
    rpc = binding == "JSONRPC"
    answer = stream({"task": task("COMPLETED")}, rpc=rpc)
    async with peer() as served:
        served.on("POST", "/" if rpc else "/message:stream", answer)
        served.on("POST", "/message:send", as_json({"task": task("COMPLETED")}))
        async with connect_to(served, binding, card=card(served.url, binding)) as client:
            _ = [event async for event in client.stream("hi", message_id="m", context_id="c", history_length=1)]

    body = served.received[0].json
    assert (body["params"] if rpc else body) == {
        "message": {"messageId": "m", "contextId": "c", "role": "ROLE_USER", "parts": [{"text": "hi"}]},
        "configuration": {"historyLength": 1},
    }


@pytest.mark.req("STREAM-04", "SUB-01")
async def test_the_stream_of_a_follow_up_begins_with_the_task_as_it_took_the_message(connect) -> None:
    agent = Agent("Quick", description="Asks once, then answers at once.")

    @agent.events
    async def quick(ctx):
        state = TaskState.COMPLETED if ctx.task_id else TaskState.INPUT_REQUIRED
        if ctx.task_id:
            yield Artifact(artifact_id="a", parts=[Part(text="answer")])
        yield TaskStatusUpdateEvent(task_id="", context_id="", status=TaskStatus(state=state))

    client = await connect(agent)
    waiting = await client.send("first")
    seen = [event async for event in client.stream("second", task=waiting)]

    assert [type(event) for event in seen] == [Task, TaskArtifactUpdateEvent, TaskStatusUpdateEvent]
    assert seen[0].status.state is TaskState.WORKING
    assert seen[0].artifacts == []
    assert [message.parts[0].text for message in seen[0].history][-1] == "second"


@MEMORY
@pytest.mark.req("ERR-11", "AMB-38", "STREAM-12")
async def test_a_stream_that_the_server_ends_for_a_while_is_joined_again_on_every_binding(connect: Any) -> None:
    agent = Agent("Thinker", description="Says nothing for a while.")

    @agent.task
    async def think(ctx):
        await ctx.update("thinking")
        await asyncio.sleep(0.6)
        return "thought"

    client = await connect(agent, limits=Limits(stream_idle=0.15, shutdown_grace=0.2))

    async with asyncio.timeout(BOUND):
        events = [event async for event in client.stream("hello")]

    assert shape(events[-1]) == "TaskStatus COMPLETED" or shape(events[-1]) == "Task COMPLETED"
