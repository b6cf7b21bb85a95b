"""Functions of every shape, and what their results become."""

from __future__ import annotations

import asyncio
import dataclasses
import threading
from typing import Any

import msgspec
import pytest

from dragoman import Agent, Artifact, Fail, Message, Part, Reject, Reply, Role, Task
from dragoman.errors import InternalError, UnsupportedOperationError
from dragoman.model import TaskArtifactUpdateEvent
from tests.runtime.running import S, Server, said, status, texts, within


@dataclasses.dataclass
class Point:
    x: int
    y: float


class Shape(msgspec.Struct):
    name: str
    points: list[int]


class Modelled:
    """What a pydantic model looks like from here."""

    def model_dump(self, mode: str) -> dict[str, Any]:
        return {"mode": mode}


TEXT, RAW, DATA = "text", "raw", "data"
CONTENTS: dict[str, tuple[Any, list[tuple[str, Any, str]]]] = {
    "text": ("hello", [(TEXT, "hello", "")]),
    "empty text": ("", [(TEXT, "", "")]),
    "bytes": (b"\x00\xff", [(RAW, b"\x00\xff", "application/octet-stream")]),
    "bytearray": (bytearray(b"a"), [(RAW, b"a", "application/octet-stream")]),
    "dict": ({"a": [1, 2.5, None, True]}, [(DATA, {"a": [1, 2.5, None, True]}, "application/json")]),
    "empty dict": ({}, [(DATA, {}, "application/json")]),
    "list": ([1, "a"], [(DATA, [1, "a"], "application/json")]),
    "empty list": ([], [(DATA, [], "application/json")]),
    "number": (7, [(DATA, 7, "application/json")]),
    "false": (False, [(DATA, False, "application/json")]),
    "dataclass": (Point(1, 2.0), [(DATA, {"x": 1, "y": 2.0}, "application/json")]),
    "struct": (Shape("a", [1]), [(DATA, {"name": "a", "points": [1]}, "application/json")]),
    "model": (Modelled(), [(DATA, {"mode": "json"}, "application/json")]),
    "part": (Part(url="https://x.example/a.png"), [("url", "https://x.example/a.png", "")]),
    "parts": ([Part(text="a"), Part(data=None)], [(TEXT, "a", ""), (DATA, None, "")]),
}


def content(part: Part) -> tuple[str, Any, str]:
    for kind in ("text", "raw", "url"):
        if getattr(part, kind) is not None:
            return kind, getattr(part, kind), part.media_type
    return DATA, part.data, part.media_type


@pytest.mark.req("DATA-17", "DATA-18")
@pytest.mark.parametrize("name", CONTENTS)
async def test_a_result_becomes_an_artifact_and_completes_the_task(server: Server, name: str) -> None:
    value, expected = CONTENTS[name]
    agent = Agent("Giving", description="Gives what it has.")

    @agent.task
    async def work(ctx):
        return value

    task = await (await server(agent)).send("go")

    assert task.status.state is S.COMPLETED
    assert [content(part) for part in task.artifacts[0].parts] == expected
    assert task.artifacts[0].artifact_id == "artifact-1"


async def test_nothing_returned_is_no_artifact(server: Server) -> None:
    agent = Agent("Silent", description="Says nothing.")

    @agent.task
    async def work(ctx):
        return None

    task = await (await server(agent)).send("go")

    assert (task.status.state, task.artifacts) == (S.COMPLETED, [])


async def test_a_list_with_artifacts_is_several(server: Server) -> None:
    agent = Agent("Many", description="Many artifacts.")

    @agent.task
    async def work(ctx):
        return [Artifact(artifact_id="x", name="first", parts=[Part(text="1")]), "2", {"n": 3}]

    task = await (await server(agent)).send("go")

    assert [(a.artifact_id, content(a.parts[0])[1]) for a in task.artifacts] == [
        ("x", "1"),
        ("artifact-1", "2"),
        ("artifact-2", {"n": 3}),
    ]


async def test_what_is_no_json_fails_the_task(server: Server) -> None:
    agent = Agent("Odd", description="Gives an object.")

    @agent.task
    async def work(ctx):
        return object()

    assert (await (await server(agent)).send("go")).status.state is S.FAILED


def _pieces() -> list[Any]:
    return ["a", "b", {"n": 1}, "c"]


@pytest.mark.req("DATA-26", "STREAM-07")
@pytest.mark.parametrize("kind", ["async generator", "generator"])
async def test_yielded_text_is_one_artifact_in_chunks_and_the_rest_are_others(server: Server, kind: str) -> None:
    agent = Agent("Yielding", description="Yields.")

    if kind == "generator":

        @agent.task
        def work(ctx):
            yield from _pieces()
    else:

        @agent.task
        async def stream(ctx):
            for piece in _pieces():
                yield piece

    client = await server(agent)
    events = [e async for e in client.stream("go") if isinstance(e, TaskArtifactUpdateEvent)]
    (task,) = (await client.list_tasks(include_artifacts=True)).tasks

    assert [(e.artifact.artifact_id, e.append) for e in events] == [
        ("artifact-1", False),
        ("artifact-1", True),
        ("artifact-2", False),
        ("artifact-1", True),
    ]
    assert [[content(p)[1] for p in a.parts] for a in task.artifacts] == [["a", "b", "c"], [{"n": 1}]]


async def test_a_plain_function_runs_in_a_thread_and_may_return_a_coroutine(server: Server) -> None:
    agent = Agent("Thread", description="In a thread.")
    threads = []

    async def later(text: str) -> str:
        return text.upper()

    @agent.task
    def work(ctx):
        threads.append(threading.current_thread())
        return later(ctx.text)

    task = await (await server(agent)).send("go")

    assert texts(task) == ["GO"]
    assert threads[0] is not threading.main_thread()


@pytest.mark.parametrize("shape", ["task", "message"])
@pytest.mark.parametrize(("error", "state"), [(Reject("No, thanks."), S.REJECTED), (Fail("It broke."), S.FAILED)])
async def test_rejecting_and_failing_end_the_task_with_the_authors_words(
    server: Server, shape: str, error: Exception, state: Any
) -> None:
    agent = Agent("Declining", description="Declines.")

    async def work(ctx):
        raise error

    getattr(agent, shape)(work)
    task = await (await server(agent)).send("go")

    assert isinstance(task, Task)
    assert (task.status.state, said(task)) == (state, str(error))


async def test_a_function_in_a_thread_and_a_generator_may_reject_too(server: Server) -> None:
    agent = Agent("Declining", description="Declines.")

    @agent.task
    def work(ctx):
        yield "half"
        raise Reject("No more.")

    task = await (await server(agent)).send("go")

    assert (task.status.state, said(task), texts(task)) == (S.REJECTED, "No more.", ["half"])


@pytest.mark.parametrize(
    ("error", "expected"), [(Reject("No."), UnsupportedOperationError), (Fail("No."), InternalError)]
)
async def test_a_reply_that_declines_is_an_error_with_the_authors_words(
    server: Server, error: Exception, expected: type[Exception]
) -> None:
    agent = Agent("Declining", description="Declines.")

    @agent.reply
    async def work(ctx):
        raise error

    client = await server(agent)
    with pytest.raises(expected, match=r"^No\.$"):
        await client.send("go")


@pytest.mark.req("SEND-02", "STREAM-03", "DATA-21", "CTX-01")
@pytest.mark.parametrize("shape", ["reply", "message", "events"])
async def test_a_direct_reply_has_an_id_a_role_and_the_context_and_makes_no_task(server: Server, shape: str) -> None:
    agent = Agent("Replying", description="Replies.")

    async def work(ctx):
        return Reply("hello", metadata={"a": 1}, extensions=["https://x.example/e"])

    async def events(ctx):
        yield Message(message_id="", role=Role.UNSPECIFIED, parts=[Part(text="hello")])

    getattr(agent, shape)(events if shape == "events" else work)
    client = await server(agent)

    reply = await client.send("hi", context_id="mine")
    fresh = await client.send("hi")
    streamed = [event async for event in client.stream("hi")]

    assert (reply.role, reply.context_id, reply.task_id, reply.parts[0].text) == (Role.AGENT, "mine", "", "hello")
    assert len({reply.message_id, fresh.message_id, streamed[0].message_id}) == 3
    assert fresh.context_id
    assert [type(event) for event in streamed] == [Message]
    if shape != "events":
        assert (reply.metadata, reply.extensions) == ({"a": 1}, ["https://x.example/e"])
    assert (await client.list_tasks()).total_size == 0


@pytest.mark.parametrize("value", ["text", {"a": 1}, Message(message_id="m", role=Role.AGENT, parts=[Part(text="m")])])
async def test_a_reply_function_may_return_the_content_itself_again_and_again(server: Server, value: Any) -> None:
    agent = Agent("Replying", description="Replies.")

    @agent.reply
    async def work(ctx):
        return value

    client = await server(agent)
    replies = [await client.send("go") for _ in range(3)]

    assert len({reply.context_id for reply in replies}) == 3
    assert all(reply.parts == replies[0].parts for reply in replies)


@pytest.mark.req("SEND-02", "STREAM-06")
async def test_a_message_function_opens_its_task_with_its_first_verb(server: Server) -> None:
    agent = Agent("Deciding", description="Decides.")

    @agent.message
    async def work(ctx):
        assert ctx.task_id == ""
        if ctx.text == "reply":
            return Reply("direct")
        if ctx.text == "update":
            await ctx.update("now it is a task")
            assert ctx.task.status.state is S.WORKING
        if ctx.text == "ask":
            return f"answer {await ctx.ask('?')}"
        return "result"

    client = await server(agent)

    assert isinstance(await client.send("reply"), Message)
    assert texts(await client.send("update")) == ["result"]
    assert texts(await client.send("return")) == ["result"]
    task = await client.send("ask")
    assert task.status.state is S.INPUT_REQUIRED
    assert texts(await client.send("yes", task=task)) == ["answer yes"]
    assert (await client.list_tasks()).total_size == 3


@pytest.mark.req("B063", "STREAM-02")
async def test_a_message_that_an_agent_of_events_yields_on_a_task_is_a_status_message(server: Server) -> None:
    agent = Agent("Chatty", description="Yields messages.")

    @agent.events
    async def work(ctx):
        yield status(S.WORKING)
        yield Message(message_id="m1", role=Role.AGENT, parts=[Part(text="first")])
        yield status(S.INPUT_REQUIRED, message=Message(message_id="m2", role=Role.AGENT, parts=[Part(text="second")]))
        yield Artifact(artifact_id="a", parts=[Part(text="x")])
        yield status(S.COMPLETED)

    client = await server(agent)
    states = []
    task = await client.send("go", wait=False)
    async for event in client.subscribe(task):
        assert not isinstance(event, Message)
        if not isinstance(event, TaskArtifactUpdateEvent):
            states.append(event.status.state)
    done = await client.get_task(task)

    assert states[-1] is S.COMPLETED
    assert [m.message_id for m in done.history if m.role is Role.AGENT] == ["m1", "m2"]


async def test_a_whole_task_that_is_yielded_becomes_updates_of_the_real_one(server: Server) -> None:
    agent = Agent("Whole", description="Yields a task.")

    @agent.events
    async def work(ctx):
        yield Task(
            id="",
            context_id="",
            status=status(S.COMPLETED).status,
            artifacts=[Artifact(artifact_id="a", parts=[Part(text="x")])],
        )

    task = await (await server(agent)).send("go")

    assert (task.status.state, texts(task), len(task.history)) == (S.COMPLETED, ["x"], 1)
    assert task.id
    assert task.context_id


async def test_the_cleanup_of_a_generator_runs_when_its_task_is_canceled(server: Server) -> None:
    agent = Agent("Tidy", description="Cleans up.")
    began, cleaned = asyncio.Event(), asyncio.Event()

    @agent.task
    async def work(ctx):
        try:
            yield "half"
            began.set()
            await asyncio.Event().wait()
        finally:
            cleaned.set()

    client = await server(agent)
    task = await client.send("go", wait=False)
    await within(began.wait())
    await client.cancel(task)

    assert cleaned.is_set()
