"""SendMessage: who is answered with what, and when."""

from __future__ import annotations

import asyncio
import socket

import pytest

import dragoman
from dragoman import Agent, Answer, Fail, Message, Part, Reject, Reply, TaskState
from dragoman.errors import (
    ContentTypeNotSupportedError,
    InvalidParamsError,
    PushNotificationNotSupportedError,
    TaskNotFoundError,
    UnsupportedOperationError,
)
from dragoman.model import SEND_MESSAGE, SendMessageConfiguration, SendMessageRequest, TaskPushNotificationConfig
from dragoman.ports.operations import CallContext
from dragoman.server.serving import listen
from tests.client.words import card, connect_to, task
from tests.conformance.raw import BOUND, eventually, say
from tests.http.peer import as_json, peer, result

MEMORY = pytest.mark.parametrize("store", ["memory"], indirect=True)
IN_PROCESS = pytest.mark.parametrize("binding", ["in process"], indirect=True)
UNKNOWN = "00000000-0000-7000-8000-000000000000"

TERMINAL = ("COMPLETED", "FAILED", "CANCELED", "REJECTED")
INTERRUPTED = ("INPUT_REQUIRED", "AUTH_REQUIRED")


def ending_agent() -> Agent:
    """Ends, or stops to ask, in the state that the message names."""
    agent = Agent("Ender", description="Ends as told.", input_modes=["*/*"], output_modes=["*/*"])

    @agent.task
    async def end(ctx):
        await ctx.artifact("half", last_chunk=False)
        match ctx.text:
            case "FAILED":
                raise Fail("failed")
            case "REJECTED":
                raise Reject("rejected")
            case "INPUT_REQUIRED":
                return f"got {await ctx.ask('what?')}"
            case "AUTH_REQUIRED":
                return f"got {await ctx.authorize('may I?')}"
            case "CANCELED":
                await ctx.status(TaskState.CANCELED, "gave up")
                return None
        return "done"

    return agent


class Gate:
    """An agent that works until it is let go."""

    def __init__(self) -> None:
        self.started = asyncio.Event()
        self.go = asyncio.Event()
        self.agent = Agent("Gate", description="Waits.")

        @self.agent.task
        async def wait(ctx):
            self.started.set()
            await self.go.wait()
            return "done"


async def shown(client):
    return (await client.list_tasks()).tasks


async def said(client, task_id: str, count: int) -> bool:
    return len((await client.get_task(task_id)).history) >= count


async def arrived(event: asyncio.Event) -> None:
    async with asyncio.timeout(BOUND):
        await event.wait()


# Blocking and not.


@pytest.mark.req("SEND-01", "SEND-08", "SEND-09", "SEND-03", "AMB-01", "STRM-10", "INTASK-03")
async def test_a_blocking_send_is_answered_in_every_settled_state_with_the_newest_task(connect) -> None:
    client = await connect(ending_agent())

    for state in (*TERMINAL, *INTERRUPTED):
        async with asyncio.timeout(BOUND):
            answer = await client.send(state)
        assert answer.status.state is TaskState[state]
        expected = ["half", "done"] if state == "COMPLETED" else ["half"]
        assert [artifact.parts[0].text for artifact in answer.artifacts] == expected
        assert answer == await client.get_task(answer.id)


@pytest.mark.req("SEND-08", "AMB-01", "AMB-05")
@MEMORY
async def test_a_blocking_send_waits_as_long_as_the_task_is_active(connect) -> None:
    gate = Gate()
    client = await connect(gate.agent)

    sending = asyncio.create_task(client.send("go"))
    await arrived(gate.started)
    listed = await eventually(lambda: shown(client))
    assert [found.status.state for found in listed] == [TaskState.WORKING]
    assert not sending.done()
    gate.go.set()

    assert (await sending).status.state is TaskState.COMPLETED


@pytest.mark.req("SEND-04", "SEND-10", "SEND-11", "SEND-03", "AMB-02", "B077", "STRM-11")
@pytest.mark.parametrize("streaming", [True, False], ids=["subscribing", "polling"])
@MEMORY
async def test_an_immediate_answer_comes_before_the_work_which_can_then_be_followed(connect, streaming) -> None:
    started, go = asyncio.Event(), asyncio.Event()
    agent = Agent("Slow", description="Waits.", streaming=streaming)

    @agent.task
    async def wait(ctx):
        started.set()
        await go.wait()
        return "done"

    client = await connect(agent, client_settings={"poll": dragoman.client.Poll(first=0.001, longest=0.01)})

    answer = await client.send("go", wait=False)
    assert answer.status.state is TaskState.WORKING
    assert (answer.artifacts, answer.history[0].parts[0].text) == ([], "go")
    await arrived(started)
    go.set()
    async with asyncio.timeout(BOUND):
        result = await client.wait(answer)

    assert (result.task.status.state, result.text) == (TaskState.COMPLETED, "done")


@pytest.mark.req("SEND-12", "STREAM-13")
@MEMORY
async def test_return_immediately_changes_nothing_for_a_direct_message_nor_for_a_stream(connect) -> None:
    agent = Agent("Either", description="Replies or works.")

    @agent.message
    async def either(ctx):
        if ctx.text == "reply":
            await asyncio.sleep(0)
            return Reply("here")
        await ctx.update("working")
        return "done"

    client = await connect(agent)
    immediately = SendMessageConfiguration(return_immediately=True)

    reply = await client.send("reply", wait=False)
    request = client._compose("work", {})
    request.configuration = immediately
    stream = await client.operations.stream(dragoman.model.SEND_STREAMING_MESSAGE, request, CallContext())
    events = [event.response async for event in stream]

    assert isinstance(reply, Message)
    assert reply.parts[0].text == "here"
    assert events[0].task is not None
    assert events[-1].status_update.status.state is TaskState.COMPLETED


@pytest.mark.req("AMB-02")
async def test_a_client_accepts_any_state_of_an_immediate_answer() -> None:
    for state in ("SUBMITTED", "WORKING", *TERMINAL, *INTERRUPTED):
        async with peer() as served, connect_to(served.on("POST", "/", result({"task": task(state)}))) as client:
            answer = await client.send("hi", wait=False)
        assert answer.status.state is TaskState[state]


@pytest.mark.req("SEND-03")
def test_answers_are_not_held_back_by_nagles_algorithm() -> None:
    """asyncio turns it off on sockets that say they are TCP, and accepted ones say what the listening one says."""
    with listen("127.0.0.1", 0) as listening:
        assert listening.proto == socket.IPPROTO_TCP


# Message or task.


@pytest.mark.req("SEND-02", "SEND-20", "DATA-27", "STREAM-06")
@MEMORY
async def test_an_agent_chooses_between_message_and_task_until_a_task_exists(connect) -> None:
    agent = Agent("Either", description="Replies or works.")

    @agent.events
    async def either(ctx):
        if not ctx.task_id and ctx.text == "reply":
            yield Message(message_id="", role=dragoman.Role.AGENT, parts=[Part(text="direct")])
        elif ctx.text == "ask":
            yield dragoman.TaskStatusUpdateEvent(
                task_id="", context_id="", status=dragoman.TaskStatus(state=TaskState.INPUT_REQUIRED)
            )
        else:
            yield Message(message_id="", role=dragoman.Role.AGENT, parts=[Part(text="said")])
            yield dragoman.TaskStatusUpdateEvent(
                task_id="", context_id="", status=dragoman.TaskStatus(state=TaskState.COMPLETED)
            )

    client = await connect(agent)

    direct, asked = await client.send("reply"), await client.send("ask")
    done = await client.send("reply", task_id=asked.id)

    assert isinstance(direct, Message)
    assert (done.id, done.status.state) == (asked.id, TaskState.COMPLETED)
    assert done.history[-1].parts[0].text == "said"


@pytest.mark.req("SEND-20", "SEND-07", "CTX-12")
@MEMORY
async def test_an_agent_that_only_replies_knows_no_task(connect) -> None:
    agent = Agent("Replier", description="Replies.")
    agent.reply(lambda ctx: "hello")
    client = await connect(agent)

    with pytest.raises(TaskNotFoundError):
        await client.send("hi", task_id=UNKNOWN)


# What is refused.


@pytest.mark.req("SEND-06", "AMB-11", "STRM-09", "STREAM-09")
async def test_a_finished_task_takes_no_message_and_does_not_change(connect) -> None:
    client = await connect(ending_agent())

    for state in TERMINAL:
        ended = await client.send(state)
        with pytest.raises(UnsupportedOperationError) as refused:
            await client.send("more", task_id=ended.id)
        assert refused.value.code == -32004
        with pytest.raises(UnsupportedOperationError):
            _ = [event async for event in client.stream("more", task_id=ended.id)]
        assert await client.get_task(ended.id) == ended


@pytest.mark.req("AMB-11", "CTX-20")
@MEMORY
async def test_a_client_refines_a_finished_task_by_a_new_one_in_its_context(connect) -> None:
    client = await connect(ending_agent())
    ended = await client.send("COMPLETED")

    refined = await client.send("better", task=ended)

    assert refined.id != ended.id
    assert refined.context_id == ended.context_id
    assert refined.history[0].reference_task_ids == [ended.id]


@pytest.mark.req("SEND-07", "STREAM-09", "B073", "CTX-12", "CTX-11")
async def test_an_unknown_task_id_is_not_found_and_makes_no_task(connect) -> None:
    client = await connect(ending_agent())

    for ids in ({"task_id": UNKNOWN}, {"task_id": UNKNOWN, "context_id": "c"}, {"task_id": "x/../y"}):
        with pytest.raises(TaskNotFoundError) as refused:
            await client.send("hi", **ids)
        assert refused.value.code == -32001
        with pytest.raises(TaskNotFoundError):
            _ = [event async for event in client.stream("hi", **ids)]

    assert (await client.list_tasks()).total_size == 0


@pytest.mark.req("B013", "SEND-01", "CTX-10")
async def test_a_message_without_task_id_or_with_an_empty_one_starts_a_task(wire) -> None:
    raw = await wire(ending_agent())

    ids = [(await raw.call("SendMessage", say(**more))).result["task"]["id"] for more in ({}, {"taskId": ""})]

    assert len(set(ids)) == 2


@pytest.mark.req("SEND-05", "STREAM-09", "AMB-16")
@MEMORY
async def test_a_part_of_a_type_that_the_agent_does_not_take_is_refused_before_any_work(connect) -> None:
    agent = Agent("Picky", description="Takes some.", input_modes=["text/plain", "image/*"])
    ran = []

    @agent.task
    async def take(ctx):
        ran.append(ctx.text)
        return "ok"

    client = await connect(agent)

    for part in (Part(text="a", media_type="text/html"), Part(raw=b"a", media_type="application/pdf"), {"json": 1}):
        with pytest.raises(ContentTypeNotSupportedError) as refused:
            await client.send(["first", part])
        assert refused.value.code == -32005
        with pytest.raises(ContentTypeNotSupportedError):
            _ = [event async for event in client.stream(["first", part])]
    assert ran == []

    for part in (
        Part(text="a"),
        Part(text="a", media_type="TEXT/plain; charset=utf-8"),
        Part(raw=b"", media_type="image/png"),
        Part(data=1),
    ):
        assert (await client.send(part)).status.state is TaskState.COMPLETED


@pytest.mark.req("SEND-16", "AMB-16")
@MEMORY
async def test_the_accepted_output_modes_reach_the_agent_and_are_refused_only_when_none_can_be_met(connect) -> None:
    agent = Agent("Shaper", description="Shapes.", output_modes=["text/plain", "application/json"])

    @agent.task
    async def shape(ctx):
        if "application/json" in ctx.accepted_output_modes:
            return {"modes": list(ctx.accepted_output_modes)}
        return ",".join(ctx.accepted_output_modes) or "any"

    client = await connect(agent)

    async def ask(*modes: str) -> Part:
        return (await client.send("hi", accepted_output_modes=modes)).artifacts[0].parts[0]

    assert (await ask()).text == "any"
    assert (await ask("application/json", "x/y")).data == {"modes": ["application/json", "x/y"]}
    assert (await ask("text/*")).text == "text/*"
    assert (await ask("*/*")).text == "*/*"
    with pytest.raises(ContentTypeNotSupportedError):
        await ask("image/png")


@pytest.mark.req("AMB-15", "SEND-12")
@MEMORY
async def test_a_push_configuration_is_refused_before_the_work_by_an_agent_without_push(connect) -> None:
    client = await connect(ending_agent(), client_settings={"check_capabilities": False})
    config = TaskPushNotificationConfig(url="https://example.com/hook")

    for wait in (True, False):
        with pytest.raises(PushNotificationNotSupportedError):
            await client.send("hi", push=config, wait=wait)

    assert (await client.list_tasks()).total_size == 0


@pytest.mark.req("SEND-17")
@pytest.mark.parametrize("binding", ["JSONRPC", "HTTP+JSON"])
async def test_a_client_leaves_the_task_id_of_a_push_configuration_empty(binding) -> None:
    path = "/" if binding == "JSONRPC" else "/message:send"
    answer = result({"task": task("WORKING")}) if binding == "JSONRPC" else as_json({"task": task("WORKING")})
    config = TaskPushNotificationConfig(url="https://example.com/hook", task_id="other")
    async with peer() as served, connect_to(served.on("POST", path, answer), binding) as client:
        await client.send("hi", push=config, wait=False)

    body = served.received[0].json
    sent = (body["params"] if binding == "JSONRPC" else body)["configuration"]
    assert sent == {"taskPushNotificationConfig": {"url": "https://example.com/hook"}, "returnImmediately": True}
    assert config.task_id == "other"


# History.


def talking_agent() -> Agent:
    agent = Agent("Talker", description="Talks.")

    @agent.task
    async def talk(ctx):
        await ctx.update("one")
        await ctx.update("two")
        return f"got {await ctx.ask('what?')}"

    return agent


@pytest.mark.req(
    "SEND-13", "SEND-14", "SEND-15", "GET-02", "LIST-14", "AMB-52", "DATA-15", "B023", "B025", "STREAM-04"
)  # fmt: skip
async def test_history_length_limits_the_history_wherever_a_task_is_shown(connect) -> None:
    client = await connect(talking_agent())

    for length in (None, 0, 1, 2, 3, 100):
        said = ["go", "one", "two"]
        expected = said if length is None else said[len(said) - min(length, 3) :]
        asked = await client.send("go", history_length=length)
        stored = await client.get_task(asked.id, history_length=length)
        listed = (await client.list_tasks(history_length=length, context_id=asked.context_id)).tasks[0]
        first = await anext(client.stream("answer", task_id=asked.id, history_length=length))
        assert [message.parts[0].text for message in asked.history] == expected
        assert [message.parts[0].text for message in stored.history] == expected
        assert [message.parts[0].text for message in listed.history] == (expected if length is not None else [])
        said += ["what?", "answer"]
        expected = said if length is None else said[len(said) - min(length, 5) :]
        assert [message.parts[0].text for message in first.history] == expected


@pytest.mark.req("SEND-13", "SEND-14", "SEND-15", "STREAM-13")
@MEMORY
async def test_history_length_limits_the_first_task_of_a_stream(connect) -> None:
    client = await connect(talking_agent())

    for length in (None, 0, 1):
        events = [event async for event in client.stream("go", history_length=length)]
        assert len(events[0].history) == (1 if length is None else length)
        assert events[-1].status.state is TaskState.INPUT_REQUIRED


@pytest.mark.req("SEND-13", "DATA-15", "B023", "B025", "LIST-05")
async def test_no_history_is_a_missing_member_on_the_wire(wire) -> None:
    raw = await wire(talking_agent())

    without = (await raw.call("SendMessage", say(configuration={"historyLength": 0}))).result["task"]
    got = (await raw.call("GetTask", {"id": without["id"], "historyLength": 0})).result
    default = (await raw.call("GetTask", {"id": without["id"]})).result
    async with raw.stream("SendStreamingMessage", say(configuration={"historyLength": 0})) as frames:
        first = (await frames.next())["task"]

    assert "history" not in without
    assert "history" not in got
    assert "history" not in first
    assert len(default["history"]) == 3


# More than one message.


@pytest.mark.req("SEND-19", "CTX-16", "CTX-14", "B075", "B095", "B091", "STRM-12", "AMB-05")
async def test_a_question_is_answered_by_a_message_to_its_task(connect) -> None:
    client = await connect(ending_agent())

    for state in INTERRUPTED:
        asked = await client.send(state)
        done = await client.send("this", task_id=asked.id)
        assert (done.id, done.context_id) == (asked.id, asked.context_id)
        assert (done.status.state, done.artifacts[-1].parts[0].text) == (TaskState.COMPLETED, "got this")


@pytest.mark.req("B095", "B161", "CTX-05", "CTX-16", "CTX-20")
@MEMORY
async def test_a_conversation_goes_on_with_the_task_that_asked_and_keeps_its_context(connect) -> None:
    conversation = (await connect(ending_agent())).conversation()

    asked = await conversation.send("INPUT_REQUIRED")
    done = await conversation.send("this")
    other = await conversation.send("COMPLETED")

    assert done.id == asked.id
    assert other.id != asked.id
    assert {asked.context_id, done.context_id} == {other.context_id}


@pytest.mark.req("CTX-15", "CTX-04")
@MEMORY
async def test_a_message_that_names_another_context_than_its_task_is_refused(connect) -> None:
    client = await connect(ending_agent())
    asked = await client.send("INPUT_REQUIRED")

    with pytest.raises(InvalidParamsError) as refused:
        await client.send("this", task_id=asked.id, context_id="other")

    assert [violation.field for violation in refused.value.violations] == ["message.contextId"]
    assert (await client.get_task(asked.id)).status.state is TaskState.INPUT_REQUIRED


@pytest.mark.req("SEND-19", "B079")
@pytest.mark.parametrize("wait", [True, False])
@MEMORY
async def test_messages_to_a_working_task_are_taken_and_harm_nobody(connect, wait) -> None:
    started, go = asyncio.Event(), asyncio.Event()
    agent = Agent("Collector", description="Collects.")

    @agent.task
    async def collect(ctx):
        started.set()
        await go.wait()
        answers: list[Answer] = [await ctx.ask("1?"), await ctx.ask("2?")]
        return "+".join(answer.text for answer in answers)

    client = await connect(agent)
    first = await client.send("go", wait=False)
    following = asyncio.create_task(client.wait(first))
    await arrived(started)

    more = [asyncio.create_task(client.send(text, task_id=first.id, wait=wait)) for text in ("a", "b")]
    if not wait:
        assert {(await sending).status.state for sending in more} == {TaskState.WORKING}
    else:
        await eventually(lambda: said(client, first.id, 3))
    go.set()

    async with asyncio.timeout(BOUND):
        done = (await following).task
        assert {(await sending).id for sending in more} == {first.id}
    assert done.status.state is TaskState.COMPLETED
    assert sorted(done.artifacts[0].parts[0].text.split("+")) == ["a", "b"]


@pytest.mark.req("SEND-18", "AMB-14")
@MEMORY
async def test_a_repeated_message_id_is_a_message_like_any_other(connect) -> None:
    client = await connect(ending_agent())

    first, second = [await client.send("hi", message_id="same") for _ in range(2)]

    assert first.id != second.id
    assert first.history[0].message_id == second.history[0].message_id == "same"


@pytest.mark.req("AMB-14", "DATA-19")
async def test_a_client_gives_every_message_an_id_of_its_own() -> None:
    async with peer() as served, connect_to(served.on("POST", "/", result({"task": task("WORKING")}))) as client:
        for _ in range(3):
            await client.send("same text", wait=False)

    assert len({request.json["params"]["message"]["messageId"] for request in served.received}) == 3


@pytest.mark.req("B097")
@MEMORY
async def test_contexts_do_not_see_each_other(connect) -> None:
    both = asyncio.Barrier(2)
    agent = Agent("Secretive", description="Tells what it knows.")

    @agent.task
    async def tell(ctx):
        async with asyncio.timeout(BOUND):
            await both.wait()
        return f"{ctx.context_id}:" + "|".join(message.parts[0].text for message in ctx.history)

    client = await connect(agent)

    one, two = await asyncio.gather(client.send("1", context_id="a"), client.send("2", context_id="b"))

    assert [found.artifacts[0].parts[0].text for found in (one, two)] == ["a:1", "b:2"]


# Agents that fail.


@pytest.mark.req("B083", "SEND-08")
@pytest.mark.parametrize("late", [False, True], ids=["before the first event", "after WORKING"])
@MEMORY
async def test_a_task_whose_agent_raises_has_failed_with_neutral_words(connect, late) -> None:
    agent = Agent("Raiser", description="Raises.")
    causes = {
        "key": KeyError("secret"),
        "a2a": TaskNotFoundError("secret"),
        "cancelled": asyncio.CancelledError("secret"),
        "exit": SystemExit("secret"),
    }

    @agent.task
    async def fail(ctx):
        if late:
            await ctx.update("working")
        raise causes[ctx.text]

    client = await connect(agent)

    for cause in causes:
        async with asyncio.timeout(BOUND):
            failed = await client.send(cause)
        assert failed.status.state is TaskState.FAILED
        assert failed.status.message.parts[0].text == "The agent failed while it worked on this task."
        assert await client.get_task(failed.id) == failed


@pytest.mark.req("B179", "SEND-04")
@MEMORY
async def test_a_failure_after_the_answer_is_seen_by_those_who_follow(connect) -> None:
    gate = asyncio.Event()
    agent = Agent("Late", description="Fails late.")

    @agent.task
    async def late(ctx):
        await gate.wait()
        raise KeyError("secret")

    client = await connect(agent)
    first = await client.send("go", wait=False)
    gate.set()

    async with asyncio.timeout(BOUND):
        followed = await client.wait(first)

    assert followed.task.status.state is TaskState.FAILED


@pytest.mark.req("SEND-01")
@MEMORY
async def test_metadata_and_tenant_of_the_request_reach_the_agent(connect) -> None:
    agent = Agent("Reader", description="Reads.")

    @agent.task
    async def read(ctx):
        return {"metadata": dict(ctx.metadata), "tenant": ctx.tenant, "references": ctx.message.reference_task_ids}

    client = await connect(agent)
    request = SendMessageRequest(
        tenant="acme",
        message=Message(message_id="m", role=dragoman.Role.USER, parts=[Part(text="x")], reference_task_ids=["t-0"]),
        metadata={"k": [1, None]},
    )

    answer = await client.operations.call(SEND_MESSAGE, request, CallContext())

    assert answer.task.artifacts[0].parts[0].data == {
        "metadata": {"k": [1, None]},
        "tenant": "acme",
        "references": ["t-0"],
    }


@pytest.mark.req("SEND-11", "B069")
async def test_a_client_that_cannot_stream_polls_until_the_task_is_settled() -> None:
    states = [as_json({"jsonrpc": "2.0", "id": n, "result": task(state)}) for n, state in enumerate(
        ("SUBMITTED", "WORKING", "COMPLETED"), start=2
    )]  # fmt: skip
    async with peer() as served:
        silent = card(served.url, capabilities={})
        served.on("POST", "/", result({"task": task("SUBMITTED")}), *states)
        async with connect_to(served, card=silent) as client:
            found = await client.run("hi")

    assert found.task.status.state is TaskState.COMPLETED
    assert [request.json["method"] for request in served.received] == ["SendMessage", "GetTask", "GetTask", "GetTask"]
    assert served.received[0].json["params"]["configuration"] == {"returnImmediately": True}
