"""Everything a client does, in version 0.3 on both sides: what callers see is what they see in 1.0."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from dragoman import Agent, Context, Fail, Reject
from dragoman.errors import (
    A2AError,
    PushNotificationNotSupportedError,
    TaskNotCancelableError,
    TaskNotFoundError,
    UnsupportedOperationError,
)
from dragoman.model import (
    Artifact,
    Message,
    Part,
    Task,
    TaskArtifactUpdateEvent,
    TaskPushNotificationConfig,
    TaskState,
    TaskStatusUpdateEvent,
)
from tests.client.test_streams import shown
from tests.http.peer import BOUND

NUMBERS = "0 1 2 3 4 5 6 7 8 9 "


def an_agent(release: asyncio.Event | None = None) -> Agent:
    """Does what it is told."""
    agent = Agent("Errand", description="Does what it is told", output_modes=["*/*"], input_modes=["*/*"])

    @agent.message
    async def work(ctx: Context) -> Any:
        parts = ctx.message.parts
        if ctx.text == "ask":
            answer = await ctx.ask("how far?")
            return f"to {answer.text}"
        if ctx.text == "fail":
            raise Fail("It cannot be done.")
        if ctx.text == "reject":
            raise Reject("Not me.")
        if ctx.text == "say":
            from dragoman import Reply

            return Reply("hello")
        if ctx.text == "authorize":
            await ctx.update("first")
            await ctx.authorize("Who are you?")
            return "trusted"
        if ctx.text == "count":
            async with ctx.artifact_stream(name="numbers") as out:
                for number in range(10):
                    if number == 5 and release is not None:
                        await release.wait()
                    await out.write(f"{number} ")
            return None
        return Artifact(artifact_id="back", name="echo", parts=parts, metadata={"count": len(parts)})

    return agent


@pytest.mark.req("V03-01")
async def test_the_interface_is_that_of_the_old_version(meet: Any, binding: str) -> None:
    client = await meet(an_agent())

    assert (client.interface.protocol_binding, client.interface.protocol_version) == (binding, "0.3")


@pytest.mark.req("V03-01", "V03-03")
async def test_content_of_every_kind_comes_back_as_it_was(meet: Any) -> None:
    client = await meet(an_agent())
    parts = [
        Part(text="häuser, 家, 🏠"),
        Part(raw=b"\x00\xffbytes", media_type="application/octet-stream", filename="b.bin"),
        Part(url="https://a.example/x.png", media_type="image/png", filename="x.png"),
        Part(data={"n": 3, "big": 2**53, "f": 1.5, "deep": [{"x": None}]}),
        Part(data=[1, "two", None]),
        Part(data=None),
        Part(text="noted", metadata={"by": "hand"}),
    ]

    answer = await client.send(parts, metadata={"trace": "t-7"}, message_metadata={"m": [1]})

    assert isinstance(answer, Task)
    assert answer.status.state is TaskState.COMPLETED
    assert answer.artifacts == [Artifact(artifact_id="back", name="echo", parts=parts, metadata={"count": 7})]
    assert answer.history[0].parts == parts
    assert answer.history[0].metadata == {"m": [1]}
    assert answer.status.timestamp is not None


@pytest.mark.req("V03-01", "V03-04")
async def test_a_direct_message_is_one_in_answers_and_streams(meet: Any) -> None:
    client = await meet(an_agent())

    answer = await client.send("say")
    streamed = [event async for event in client.stream("say")]

    assert isinstance(answer, Message)
    assert [shown(event) for event in (answer, *streamed)] == ["says hello", "says hello"]


@pytest.mark.req("V03-04")
@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("hi", TaskState.COMPLETED),
        ("fail", TaskState.FAILED),
        ("reject", TaskState.REJECTED),
        ("ask", TaskState.INPUT_REQUIRED),
    ],
)
async def test_a_stream_begins_with_the_task_and_ends_with_its_end(meet: Any, text: str, end: TaskState) -> None:
    client = await meet(an_agent())

    seen = [event async for event in client.stream(text)]

    assert isinstance(seen[0], Task)
    last = seen[-1]
    assert isinstance(last, TaskStatusUpdateEvent | Task)
    assert last.status.state is end


@pytest.mark.req("V03-01", "V03-04")
async def test_a_run_streams_chunks(meet: Any) -> None:
    client = await meet(an_agent())
    seen: list[type] = []

    result = await client.run("count", on_event=lambda event: seen.append(type(event)), timeout=BOUND)

    assert (result.text, result.state) == (NUMBERS, TaskState.COMPLETED)
    assert seen.count(TaskArtifactUpdateEvent) >= 1
    assert (await client.get_task(result.task_id)).artifacts == result.artifacts


@pytest.mark.req("V03-01", "V03-04")
async def test_a_question_is_answered(meet: Any) -> None:
    client = await meet(an_agent())
    talk = client.conversation()

    question = await talk.run("ask", timeout=BOUND)
    result = await talk.run("ten", timeout=BOUND)

    assert (question.question, question.waiting) == ("how far?", True)
    assert (result.text, result.task_id) == ("to ten", question.task_id)


@pytest.mark.req("V03-04", "V03-P06")
async def test_authorization_is_waited_for_and_work_goes_on(meet: Any) -> None:
    client = await meet(an_agent())

    asked = await client.run("authorize", timeout=BOUND)
    done = await client.run("me", task_id=asked.task_id, timeout=BOUND)

    assert asked.state is TaskState.AUTH_REQUIRED
    assert (done.state, done.text) == (TaskState.COMPLETED, "trusted")


@pytest.mark.req("V03-01", "V03-P05")
async def test_not_waiting_gives_the_task_at_once_and_waiting_its_end(meet: Any) -> None:
    release = asyncio.Event()
    client = await meet(an_agent(release))

    at_once = await client.send("count", wait=False)
    release.set()
    followed = await client.wait(at_once, timeout=BOUND)
    waited = await client.send("count")

    assert isinstance(at_once, Task)
    assert at_once.status.state in (TaskState.WORKING, TaskState.SUBMITTED)
    assert followed.text == NUMBERS
    assert isinstance(waited, Task)
    assert waited.status.state is TaskState.COMPLETED


@pytest.mark.req("V03-04", "V03-P17", "SUB-07")
async def test_a_task_is_joined_by_its_snapshot_and_then_its_events(meet: Any) -> None:
    release = asyncio.Event()
    client = await meet(an_agent(release))
    async with client.stream("count") as events:
        async for event in events:
            if isinstance(event, TaskArtifactUpdateEvent):
                break
        async with client.subscribe(events.task_id) as joined:
            first = await asyncio.wait_for(anext(joined), BOUND)
            release.set()
            rest = [event async for event in joined]

    after = [event async for event in client.subscribe(events.task_id)]

    assert isinstance(first, Task)
    assert isinstance(rest[-1], TaskStatusUpdateEvent)
    assert [type(event) for event in after] == [Task]
    text = "".join(part.text or "" for artifact in after[0].artifacts for part in artifact.parts)
    assert text == NUMBERS


@pytest.mark.req("V03-01", "CANCEL-01", "AMB-12")
async def test_a_task_is_canceled_and_again(meet: Any) -> None:
    client = await meet(an_agent(asyncio.Event()))
    started = await client.send("count", wait=False)

    first = await client.cancel(started)
    second = await client.cancel(started)

    assert (first.status.state, second.status.state) == (TaskState.CANCELED, TaskState.CANCELED)


@pytest.mark.req("V03-01", "V03-P01")
async def test_refusals_are_the_classes_that_they_are_in_1_0(meet: Any) -> None:
    client = await meet(an_agent(), client={"check_capabilities": False})
    done = await client.send("hi")
    hook = TaskPushNotificationConfig(url="https://hooks.example/x")

    expected: list[tuple[Any, type[A2AError]]] = [
        (client.get_task("none"), TaskNotFoundError),
        (client.cancel(done), TaskNotCancelableError),
        (client.send("more", task_id=done.id), UnsupportedOperationError),
        (client.send("more", task_id="none"), TaskNotFoundError),
        (client.list_tasks(), UnsupportedOperationError),
        (client.create_push_config(done, hook), PushNotificationNotSupportedError),
        (client.get_push_config(done, "x"), PushNotificationNotSupportedError),
        (client.list_push_configs(done), PushNotificationNotSupportedError),
        (client.delete_push_config(done, "x"), PushNotificationNotSupportedError),
    ]
    for call, kind in expected:
        with pytest.raises(kind) as caught:
            await call
        assert type(caught.value) is kind
    with pytest.raises(TaskNotFoundError):
        await anext(client.subscribe("none"))


@pytest.mark.req("V03-01", "V03-P20")
async def test_an_extended_card_that_there_is_none_of_is_refused(meet: Any) -> None:
    client = await meet(an_agent(), client={"check_capabilities": False})

    with pytest.raises(A2AError) as caught:
        await client.get_extended_card()

    assert caught.value.code in (-32007, -32004)


@pytest.mark.req("V03-P23", "SEND-15")
async def test_the_history_is_as_long_as_was_asked_for(meet: Any) -> None:
    client = await meet(an_agent())

    none, one = await client.send("hi", history_length=0), await client.send("hi", history_length=1)
    all_of_it = await client.get_task(one)
    nothing = await client.get_task(one, history_length=0)

    assert [len(task.history) for task in (none, one, nothing)] == [0, 1, 0]
    assert len(all_of_it.history) >= 1


@pytest.mark.req("V03-06", "EXT-02")
async def test_extensions_are_asked_for_and_told(meet: Any) -> None:
    agent = Agent("Extended", description="Has an extension", extensions=["urn:x:ext"])
    seen: list[tuple[str, ...]] = []

    @agent.task
    async def work(ctx: Context) -> str:
        seen.append(tuple(ctx.extensions))
        return "ok"

    client = await meet(agent)
    await client.send("hi", extensions=["urn:x:ext"])

    assert seen == [("urn:x:ext",)]
