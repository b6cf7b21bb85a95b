"""What tasks, messages, artifacts and events of a served agent look like, whatever the agent does."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from dragoman import Agent, Artifact, Message, Part, Reply, Role, TaskState, TaskStatus, TaskStatusUpdateEvent
from dragoman.errors import InvalidAgentResponseError
from dragoman.model import Task, TaskArtifactUpdateEvent
from tests.client.words import connect_to, task
from tests.conformance.raw import say
from tests.http.peer import as_json, peer, result, stream

MEMORY = pytest.mark.parametrize("store", ["memory"], indirect=True)
MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
STATES = {state.value for state in TaskState} - {"TASK_STATE_UNSPECIFIED"}

busy = Agent("Busy", description="Uses every verb.", output_modes=["*/*"])


@busy.task
async def work(ctx):
    await ctx.update("first")
    await ctx.update([Part(text="second"), Part(data={"kind": 1, "final": True})], metadata={"kind": "mine"})
    one = await ctx.artifact("a", name="one", last_chunk=False)
    await ctx.artifact("b", artifact_id=one, append=True)
    await ctx.artifact(b"bytes", name="two", metadata={"file": 1})
    answer = await ctx.ask("what?")
    return answer.text


def objects(value: Any, name: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every JSON object of the protocol in a value, with the member that holds it; free content is left out."""
    if isinstance(value, dict):
        yield name, value
        for key, item in value.items():
            if key not in ("metadata", "data"):
                yield from objects(item, key)
    elif isinstance(value, list):
        for item in value:
            yield from objects(item, name)


async def everything(raw) -> list[Any]:
    """Whatever operations show of a task with two turns."""
    async with raw.stream("SendStreamingMessage", say()) as frames:
        events = await frames.rest()
    task_id = events[0]["task"]["id"]
    answered = (await raw.call("SendMessage", say("this", taskId=task_id))).result
    got = (await raw.call("GetTask", {"id": task_id})).result
    listed = (await raw.call("ListTasks", {"includeArtifacts": True, "historyLength": 10})).result
    return [*events, answered, got, listed]


@pytest.mark.req(
    "DATA-03", "DATA-04", "DATA-07", "DATA-08", "DATA-11", "DATA-12", "DATA-14", "DATA-19", "DATA-20", "DATA-21",
    "DATA-22", "DATA-23", "DATA-24", "DATA-25", "DATA-27", "DATA-28", "AMB-44", "AMB-47", "STREAM-10", "B011",
)  # fmt: skip
async def test_all_that_is_sent_keeps_the_rules_of_the_data_model(wire) -> None:
    seen = await everything(await wire(busy))

    task_id, context_id = seen[0]["task"]["id"], seen[0]["task"]["contextId"]
    for name, value in [pair for item in seen for pair in objects(item)]:
        assert all(re.fullmatch("[a-z][A-Za-z]*", key) for key in value), value
        assert not {"kind", "final", "file"} & set(value), value
        assert None not in value.values()
        if name in ("task", "tasks"):
            assert value["id"] == task_id
            assert value["contextId"] == context_id
        elif name == "status":
            assert value["state"] in STATES
            assert MOMENT.fullmatch(value["timestamp"])
        elif name in ("message", "history"):
            assert value["messageId"]
            assert value["parts"]
            assert (value["taskId"], value["contextId"]) == (task_id, context_id)
            assert value["role"] in ("ROLE_USER", "ROLE_AGENT")
        elif name in ("artifact", "artifacts"):
            assert value["artifactId"]
            assert value["parts"]
        elif name in ("statusUpdate", "artifactUpdate"):
            assert (value["taskId"], value["contextId"]) == (task_id, context_id)
            assert ("status" in value) != ("artifact" in value)
    assert all(len(event) == 1 for event in seen[:-2])
    assert all(set(event) <= {"task", "statusUpdate", "artifactUpdate"} for event in seen[:-2])


@pytest.mark.req("DATA-20", "DATA-22", "B091", "B093", "STRM-07")
@pytest.mark.parametrize("store", ["memory", "sqlite"], indirect=True)
async def test_the_history_has_every_turn_once_and_in_order(connect) -> None:
    client = await connect(busy)

    asked = await client.send("go")
    done = await client.send("this", task=asked)

    said = [(message.role, message.parts[0].text) for message in done.history]
    user, agent = Role.USER, Role.AGENT
    assert said == [(user, "go"), (agent, "first"), (agent, "second"), (agent, "what?"), (user, "this")]
    assert asked.status.message.parts[0].text == "what?"
    assert [message.parts[0].text for message in asked.history] == ["go", "first", "second"]
    assert len({message.message_id for message in done.history}) == 5
    assert done.metadata == {"kind": "mine"}
    assert (await client.get_task(done.id)).history == done.history


@pytest.mark.req("DATA-24", "DATA-26", "SEND-09")
@MEMORY
async def test_artifacts_have_ids_of_their_own_and_chunks_join_theirs(connect) -> None:
    client = await connect(busy)

    asked = await client.send("go")

    assert [(a.name, [p.text or p.raw for p in a.parts]) for a in asked.artifacts] == [
        ("one", ["a", "b"]),
        ("two", [b"bytes"]),
    ]
    assert len({artifact.artifact_id for artifact in asked.artifacts}) == 2


@pytest.mark.req("DATA-22", "CTX-10", "B013")
@MEMORY
async def test_every_task_has_an_id_of_its_own(connect) -> None:
    client = await connect(busy)

    tasks = [await client.send("go", message_id="same", context_id="c") for _ in range(20)]

    assert len({found.id for found in tasks}) == 20


def piece(text: str, artifact_id: str = "a", **more: Any) -> TaskArtifactUpdateEvent:
    artifact = Artifact(artifact_id=artifact_id, parts=[Part(text=text)], name=more.pop("name", ""))
    return TaskArtifactUpdateEvent(task_id="", context_id="", artifact=artifact, **more)


def status(state: TaskState | int, **more: Any) -> TaskStatusUpdateEvent:
    return TaskStatusUpdateEvent(task_id="", context_id="", status=TaskStatus(state=state, **more))


CHUNKS = {
    "append to a known id": ([piece("1"), piece("2", append=True)], [["1", "2"]]),
    "append to an unknown id": ([piece("1", append=True), piece("2", append=True)], [["1", "2"]]),
    "no append replaces": ([piece("1"), piece("2", append=True), piece("3")], [["3"]]),
    "append after the last chunk": ([piece("1", last_chunk=True), piece("2", append=True)], [["1", "2"]]),
    "two at once": ([piece("1"), piece("x", "b"), piece("2", append=True), piece("y", "b", append=True)],
                    [["1", "2"], ["x", "y"]]),
    "a new id each time": ([piece("1", "a", append=True), piece("2", "b", append=True)], [["1"], ["2"]]),
}  # fmt: skip


@pytest.mark.req("DATA-26", "AMB-57", "B089", "STREAM-12")
async def test_the_agent_the_store_and_the_client_put_chunks_together_alike(connect) -> None:
    agent = Agent("Chunks", description="Sends chunks.")

    @agent.events
    async def chunks(ctx):
        for event in CHUNKS[ctx.text][0]:
            yield event
        yield status(TaskState.COMPLETED)

    client = await connect(agent)

    for case, (_, expected) in CHUNKS.items():
        followed = (await client.run(case)).task
        answered = await client.send(case)
        stored = await client.get_task(answered.id)
        for seen in (followed, answered, stored):
            assert seen.status.state is TaskState.COMPLETED
            assert [[part.text for part in artifact.parts] for artifact in seen.artifacts] == expected, case


@pytest.mark.req("DATA-25", "B101")
@MEMORY
async def test_an_agent_may_yield_the_same_event_objects_for_every_task(connect) -> None:
    """The author's objects are the author's: what is filled in is filled into copies."""
    agent = Agent("Constant", description="Reuses its events.")
    working = status(TaskState.WORKING, message=Message(message_id="", role=Role.UNSPECIFIED, parts=[Part(text="w")]))
    chunk, done = piece("x"), status(TaskState.COMPLETED)

    @agent.events
    async def constant(ctx):
        yield working
        yield chunk
        yield done

    client = await connect(agent)

    first, second = await client.send("1"), await client.send("2")

    for seen in (first, second):
        assert seen.status.state is TaskState.COMPLETED
        assert seen.artifacts[0].parts[0].text == "x"
        said = seen.history[1]
        assert (said.task_id, said.context_id, said.role) == (seen.id, seen.context_id, Role.AGENT)
    assert first.history[1].message_id != second.history[1].message_id
    assert (working.task_id, chunk.context_id, done.status.timestamp) == ("", "", None)


@pytest.mark.req("DATA-02", "B101")
@MEMORY
async def test_an_agent_may_go_on_writing_into_an_artifact_that_it_published(connect) -> None:
    agent = Agent("Grower", description="Lets one object grow.")

    @agent.task
    async def grow(ctx):
        artifact = Artifact(artifact_id="a", parts=[Part(text="1")])
        await ctx.artifact(artifact, last_chunk=False)
        artifact.parts.append(Part(text="2"))
        artifact.name = "late"
        await ctx.artifact(artifact)
        artifact.parts.append(Part(text="3"))

    client = await connect(agent)

    events = [event async for event in client.stream("go")]

    updates = [event for event in events if isinstance(event, TaskArtifactUpdateEvent)]
    assert [[part.text for part in update.artifact.parts] for update in updates] == [["1"], ["1", "2"]]
    assert [update.artifact.name for update in updates] == ["", "late"]
    for seen in (await client.get_task(events[0].id), await client.send("go")):
        assert [[part.text for part in found.parts] for found in seen.artifacts] == [["1", "2"]]


@pytest.mark.req("DATA-19", "DATA-20", "DATA-21")
@MEMORY
async def test_a_message_that_the_agent_wrote_itself_gets_the_ids_it_lacks(connect) -> None:
    agent = Agent("Writer", description="Writes its own messages.")
    note = Message(message_id="", role=Role.AGENT, parts=[Part(text="note")])

    @agent.task
    async def write(ctx):
        await ctx.update(note)
        await ctx.update(Message(message_id="m-2", role=Role.AGENT, parts=[Part(text="second")]))

    client = await connect(agent)

    done = await client.send("go")

    assert [message.parts[0].text for message in done.history] == ["go", "note", "second"]
    assert all((message.task_id, message.context_id) == (done.id, done.context_id) for message in done.history)
    assert done.history[1].message_id
    assert done.history[2].message_id == "m-2"
    assert note.message_id == note.task_id == ""


@pytest.mark.req("DATA-21", "AMB-44", "CTX-02", "SEND-01", "SEND-02")
@pytest.mark.parametrize("context_id", ["", "c-1"])
@MEMORY
async def test_a_direct_message_has_a_context_and_no_task(connect, context_id) -> None:
    agent = Agent("Replier", description="Replies.")
    same = Message(message_id="m", role=Role.AGENT, parts=[Part(text="same")])

    @agent.reply
    async def reply(ctx):
        return same if ctx.text == "same" else Reply("hello", metadata={"n": 1})

    client = await connect(agent)

    answers = [await client.send(text, context_id=context_id) for text in ("hi", "same", "same")]

    for answer in answers:
        assert isinstance(answer, Message)
        assert answer.context_id == context_id if context_id else answer.context_id
        assert answer.task_id == ""
        assert answer.role is Role.AGENT
    assert answers[0].metadata == {"n": 1}
    assert same.context_id == ""
    assert len({answer.context_id for answer in answers}) == (1 if context_id else 3)


BAD_EVENTS = {
    "artifact without parts": TaskArtifactUpdateEvent(
        task_id="", context_id="", artifact=Artifact(artifact_id="a", parts=[])
    ),
    "artifact without id": piece("x", ""),
    "part without content": TaskArtifactUpdateEvent(
        task_id="", context_id="", artifact=Artifact(artifact_id="a", parts=[Part()])
    ),
    "message without parts": Message(message_id="m", role=Role.AGENT, parts=[]),
    "message of the user": Message(message_id="m", role=Role.USER, parts=[Part(text="x")]),
    "message of another task": Message(message_id="m", role=Role.AGENT, task_id="other", parts=[Part(text="x")]),
    "message of another context": Message(message_id="m", role=Role.AGENT, context_id="other", parts=[Part(text="x")]),
    "unspecified state": status(TaskState.UNSPECIFIED),
    "unknown state": status(42),
    "another task": TaskStatusUpdateEvent(
        task_id="other", context_id="", status=TaskStatus(state=TaskState.COMPLETED)
    ),
    "another context": TaskStatusUpdateEvent(
        task_id="", context_id="other", status=TaskStatus(state=TaskState.COMPLETED)
    ),
    "task with an unspecified state": Task(id="", status=TaskStatus(state=TaskState.UNSPECIFIED)),
    "task with another id": Task(id="other", status=TaskStatus(state=TaskState.COMPLETED)),
}  # fmt: skip


@pytest.mark.req("DATA-12", "DATA-14", "DATA-17", "DATA-20", "DATA-21", "DATA-24", "DATA-25", "B009", "B011")
@pytest.mark.parametrize("event", BAD_EVENTS.values(), ids=BAD_EVENTS)
@pytest.mark.parametrize("binding", ["in process"], indirect=True)
@MEMORY
async def test_an_event_that_breaks_a_rule_fails_the_task_and_is_never_seen(connect, event) -> None:
    agent = Agent("Breaker", description="Breaks a rule.")

    @agent.events
    async def break_rule(ctx):
        yield status(TaskState.WORKING)
        yield event
        yield status(TaskState.COMPLETED)

    client = await connect(agent)

    done = await client.send("go")

    assert done.status.state is TaskState.FAILED
    assert done.artifacts == []
    assert done.status.message.parts[0].text == "The agent failed while it worked on this task."


@pytest.mark.req("B009", "B093")
@MEMORY
async def test_a_refused_event_changes_nothing_and_the_agent_may_go_on(connect) -> None:
    agent = Agent("Careful", description="Catches refusals.")

    @agent.task
    async def careful(ctx):
        for state in (TaskState.UNSPECIFIED, TaskState.SUBMITTED, 42):
            with pytest.raises(InvalidAgentResponseError):
                await ctx.status(state)
        with pytest.raises(InvalidAgentResponseError):
            await ctx.artifact([Part()])
        await ctx.update("fine")
        return "ok"

    client = await connect(agent)

    done = await client.send("go")

    assert done.status.state is TaskState.COMPLETED
    assert [part.text for artifact in done.artifacts for part in artifact.parts] == ["ok"]


@pytest.mark.req("B093")
@MEMORY
async def test_a_message_id_stands_once_in_the_history(connect) -> None:
    agent = Agent("Repeater", description="Says it again.")

    @agent.events
    async def repeat(ctx):
        for state in (TaskState.WORKING, TaskState.WORKING, TaskState.WORKING, TaskState.COMPLETED):
            yield status(state, message=Message(message_id="m-1", role=Role.AGENT, parts=[Part(text="x")]))

    client = await connect(agent)

    followed, answered = (await client.run("go")).task, await client.send("go")

    for seen in (followed, answered, await client.get_task(answered.id)):
        assert [message.role for message in seen.history] == [Role.USER, Role.AGENT]
        assert seen.status.message.message_id == "m-1"


# What a client reads of others.


@pytest.mark.req("AMB-43", "AMB-44", "AMB-42", "DATA-16", "DATA-09", "AMB-47", "AMB-48")
async def test_a_client_reads_an_answer_that_lacks_ids_and_has_more_than_it_knows() -> None:
    answer = {
        "id": "t1",
        "status": {
            "state": 42,
            "timestamp": "2026-01-02T03:04:05.123456+02:00",
            "message": {"role": "ROLE_AGENT", "parts": [{"text": "x", "kind": "text"}]},
        },
        "artifacts": [{"parts": [{"data": None}, {"data": 3}]}],
        "kind": "task",
    }
    async with peer() as served, connect_to(served.on("POST", "/", result({"task": answer}))) as client:
        found = await client.send("hi", wait=False)

    assert (found.context_id, found.status.state, found.artifacts[0].artifact_id) == ("", 42, "")
    assert found.status.timestamp.rfc3339() == "2026-01-02T01:04:05.123Z"
    assert [part.data for part in found.artifacts[0].parts] == [None, 3]


@pytest.mark.req("AMB-42", "B009", "B069")
async def test_an_unspecified_or_unknown_state_does_not_end_a_stream() -> None:
    states: list[Any] = ["TASK_STATE_UNSPECIFIED", 42, "TASK_STATE_COMPLETED"]
    events = [{"statusUpdate": {"taskId": "t1", "contextId": "c1", "status": {"state": state}}} for state in states]
    served_stream = stream({"task": task("SUBMITTED")}, *events)
    async with peer() as served, connect_to(served.on("POST", "/", served_stream)) as client:
        seen = [event.status.state async for event in client.stream("hi")]

    assert seen == [TaskState.SUBMITTED, TaskState.UNSPECIFIED, 42, TaskState.COMPLETED]


@pytest.mark.req("DATA-27")
@pytest.mark.parametrize("answer", [{}, {"task": task("WORKING"), "message": {"messageId": "m"}}])
async def test_an_answer_with_none_or_two_of_task_and_message_is_an_error(answer) -> None:
    async with peer() as served, connect_to(served.on("POST", "/", result(answer))) as client:
        with pytest.raises(InvalidAgentResponseError):
            await client.send("hi")


@pytest.mark.req("DATA-03", "DATA-04", "DATA-12", "DATA-19", "DATA-20", "DATA-28", "CTX-05", "DATA-15", "B023")
@pytest.mark.parametrize("binding", ["JSONRPC", "HTTP+JSON"])
async def test_what_a_client_sends_keeps_the_rules_too(binding) -> None:
    rpc = binding == "JSONRPC"
    sent = {"task": task("COMPLETED")}
    path = "/" if rpc else "/message:send"
    async with (
        peer() as served,
        connect_to(served.on("POST", path, result(sent) if rpc else as_json(sent)), binding) as client,
    ):
        await client.send([Part(data=None), "text", b"\x00"], history_length=0, accepted_output_modes=["text/plain"])

    params = served.received[0].json["params"] if rpc else served.received[0].json
    message_id = params["message"].pop("messageId")
    assert message_id
    assert params == {
        "message": {
            "role": "ROLE_USER",
            "parts": [{"data": None}, {"text": "text"}, {"raw": "AA==", "mediaType": "application/octet-stream"}],
        },
        "configuration": {"historyLength": 0, "acceptedOutputModes": ["text/plain"]},
    }


@pytest.mark.req("B089")
@MEMORY
async def test_an_artifact_that_goes_on_after_its_last_chunk_is_kept_and_named_in_the_log(connect, caplog) -> None:
    agent = Agent("Late", description="Goes on after the end.")

    @agent.events
    async def late(ctx):
        yield piece("one", last_chunk=True)
        yield piece(" two", append=True)
        yield status(TaskState.COMPLETED)

    task = await (await connect(agent)).send("go")

    assert [part.text for part in task.artifacts[0].parts] == ["one", " two"]
    assert "goes on after its last chunk" in caplog.text
