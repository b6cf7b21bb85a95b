"""What an agent does wrong is named in the log, ends its task, and tells peers nothing of the inside."""

from __future__ import annotations

import asyncio
import sys
import traceback

import pytest

from dragoman import Agent, Artifact, Reply, Task, TaskStatus
from dragoman.errors import A2AError, InternalError, InvalidAgentResponseError, UnsupportedOperationError
from dragoman.model import Message, Part, Role, StreamResponse, TaskArtifactUpdateEvent
from tests.runtime.running import NOTHING, S, Server, Step, held, reaches, said, status, texts, until, within

NEUTRAL = "The agent failed while it worked on this task."


async def after_the_end(ctx):
    yield status(S.COMPLETED)
    yield status(S.WORKING)


async def artifact_after_the_end(ctx):
    yield status(S.COMPLETED)
    yield Artifact(artifact_id="late", parts=[Part(text="late")])


async def foreign_task(ctx):
    yield status(S.WORKING)
    event = status(S.WORKING)
    event.task_id = "another"
    yield event


async def foreign_context(ctx):
    event = status(S.WORKING)
    event.context_id = "another"
    yield event


async def empty_artifact(ctx):
    yield Artifact(artifact_id="a", parts=[])


async def nameless_artifact(ctx):
    yield Artifact(artifact_id="", parts=[Part(text="x")])


async def empty_message(ctx):
    yield status(S.WORKING, message=Message(message_id="m", role=Role.AGENT, parts=[]))


async def back_to_submitted(ctx):
    yield status(S.WORKING)
    yield status(S.SUBMITTED)


async def no_event(ctx):
    yield status(S.WORKING)
    yield {"state": "secret"}


async def foreign_whole_task(ctx):
    yield status(S.WORKING)
    yield Task(id="another", context_id="", status=TaskStatus(state=S.COMPLETED))


async def still_working(ctx):
    yield status(S.WORKING)


async def lookup(ctx):
    yield status(S.WORKING)
    raise KeyError("secret")


async def leaves(ctx):
    yield status(S.WORKING)
    sys.exit("secret")


async def cancels_itself(ctx):
    yield status(S.WORKING)
    raise asyncio.CancelledError("secret")


CASES = {
    after_the_end: (S.COMPLETED, "", "after the task had ended"),
    artifact_after_the_end: (S.COMPLETED, "", "after the task had ended"),
    foreign_task: (S.FAILED, NEUTRAL, "names another task"),
    foreign_context: (S.FAILED, NEUTRAL, "names another context"),
    empty_artifact: (S.FAILED, NEUTRAL, "An artifact has no parts"),
    nameless_artifact: (S.FAILED, NEUTRAL, "no artifactId"),
    empty_message: (S.FAILED, NEUTRAL, "A message of the agent has no parts"),
    back_to_submitted: (S.FAILED, NEUTRAL, "may not follow"),
    no_event: (S.FAILED, NEUTRAL, "dict, which is no event"),
    foreign_whole_task: (S.FAILED, NEUTRAL, "another id or context"),
    still_working: (S.FAILED, "The agent ended without a result.", "left task"),
    lookup: (S.FAILED, NEUTRAL, "KeyError"),
    leaves: (S.FAILED, NEUTRAL, "sys.exit"),
    cancels_itself: (S.FAILED, NEUTRAL, "CancelledError of its own"),
}


@pytest.mark.req("AMB-37", "B083", "STRM-09")
@pytest.mark.parametrize("events", CASES, ids=lambda function: function.__name__)
async def test_a_fault_ends_the_task_with_a_neutral_text_and_a_clear_log(
    server: Server, caplog: pytest.LogCaptureFixture, events
) -> None:
    agent = Agent("Faulty", description="Breaks a rule.")
    agent.events(events)
    state, text, logged = CASES[events]
    client = await server(agent)

    streamed = [event async for event in client.stream("go")]
    (task,) = (await client.list_tasks(include_artifacts=True)).tasks

    assert (task.status.state, said(task)) == (state, text)
    assert streamed[-1].status.state is state
    assert texts(task) == []
    record = next(r for r in caplog.records if r.levelname == "ERROR" and logged in caplog_text(r))
    assert task.id in record.getMessage()
    assert "secret" not in repr(task)
    assert held(server.app) == NOTHING
    assert (await client.send("again")).status.state is state


def caplog_text(record) -> str:
    cause = record.exc_info[1] if record.exc_info else None
    return record.getMessage() + "".join(traceback.format_exception(cause) if cause else [])


@pytest.mark.req("B083")
@pytest.mark.parametrize("error", [KeyError("secret"), SystemExit("secret"), asyncio.CancelledError("secret")])
@pytest.mark.parametrize("shape", ["task", "message", "reply", "events"])
async def test_a_fault_before_anything_else_is_an_error_or_a_failed_task(
    server: Server, shape: str, error: BaseException
) -> None:
    agent = Agent("Faulty", description="Raises at once.")

    async def work(ctx):
        raise error

    async def events(ctx):
        raise error
        yield

    getattr(agent, shape)(events if shape == "events" else work)
    client = await server(agent)

    if shape == "task":
        task = await within(client.send("go"))
        assert (task.status.state, said(task)) == (S.FAILED, NEUTRAL)
    else:
        with pytest.raises(InternalError) as caught:
            await within(client.send("go"))
        assert "secret" not in str(caught.value)
        assert (await client.list_tasks()).total_size == 0
    assert held(server.app) == NOTHING


@pytest.mark.req("B179")
async def test_a_fault_after_the_answer_was_sent_is_recorded_and_logged_once(
    either: Server, caplog: pytest.LogCaptureFixture
) -> None:
    agent = Agent("Late", description="Fails later.")
    step = Step()

    @agent.task
    async def work(ctx):
        await step()
        raise ValueError("secret")

    client = await either(agent)
    task = await client.send("go", wait=False)
    step.go()

    assert said(await reaches(client, task, S.FAILED)) == NEUTRAL
    assert len([r for r in caplog.records if r.exc_info and isinstance(r.exc_info[1], ValueError)]) == 1


@pytest.mark.req("AMB-37", "STREAM-03")
async def test_a_direct_message_where_a_task_is_open_fails_the_task(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    agent = Agent("Both", description="Cannot decide.")

    @agent.message
    async def work(ctx):
        await ctx.update("working")
        return Reply("and a reply")

    client = await server(agent)
    task = await within(client.send("go"))

    assert (task.status.state, said(task)) == (S.FAILED, NEUTRAL)
    assert "although it had opened a task" in caplog.text


@pytest.mark.req("AMB-37")
async def test_no_reply_is_an_invalid_response(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    agent = Agent("Silent", description="Yields nothing.")

    @agent.events
    async def work(ctx):
        return
        yield

    client = await server(agent)
    with pytest.raises(InvalidAgentResponseError, match="neither replied nor opened a task"):
        await within(client.send("go"))
    assert "neither replied nor opened a task" in caplog.text
    assert held(server.app) == NOTHING


@pytest.mark.req("AMB-37")
@pytest.mark.parametrize(
    "message",
    [
        Message(message_id="m", role=Role.AGENT, parts=[]),
        Message(message_id="m", role=Role.USER, parts=[Part(text="x")]),
        Message(message_id="m", role=Role.AGENT, parts=[Part(text="x")], context_id="another"),
        Message(message_id="m", role=Role.AGENT, parts=[Part(text="x")], task_id="a-task"),
    ],
    ids=["no parts", "the user's role", "another context", "a task"],
)
@pytest.mark.parametrize("shape", ["reply", "message"])
async def test_a_direct_message_that_breaks_a_rule_is_an_invalid_response(
    server: Server, caplog: pytest.LogCaptureFixture, shape: str, message: Message
) -> None:
    agent = Agent("Rude", description="Replies badly.")

    async def work(ctx):
        return message if shape == "reply" else Reply(message)

    getattr(agent, shape)(work)
    client = await server(agent)

    with pytest.raises(InvalidAgentResponseError):
        await within(client.send("go"))
    assert "broke a rule" in caplog.text


async def test_an_object_may_be_yielded_for_many_tasks_and_changed_afterwards(server: Server) -> None:
    agent = Agent("Reusing", description="Uses its objects again.")
    working = status(S.WORKING, message=Message(message_id="", role=Role.AGENT, parts=[Part(text="working")]))
    artifact = Artifact(artifact_id="a", parts=[Part(text="0")])
    update = TaskArtifactUpdateEvent(task_id="", context_id="", artifact=artifact, append=True)

    @agent.events
    async def work(ctx):
        yield working
        for n in range(3):
            artifact.parts[:] = [Part(text=str(n))]
            yield update
        artifact.parts[:] = [Part(text="changed")]
        yield StreamResponse(status_update=status(S.COMPLETED))

    client = await server(agent)
    tasks = await within(asyncio.gather(*(client.send("go") for _ in range(5))))

    assert [texts(task) for task in tasks] == [["0", "1", "2"]] * 5
    assert len({task.history[-1].message_id for task in tasks}) == 5


@pytest.mark.req("B083")
async def test_an_error_of_the_protocol_that_the_agent_raises_is_passed_on_by_a_reply(server: Server) -> None:
    agent = Agent("Refusing", description="Refuses.")

    @agent.reply
    async def work(ctx):
        raise UnsupportedOperationError("Not on Sundays")

    client = await server(agent)
    with pytest.raises(A2AError, match="Not on Sundays") as caught:
        await client.send("go")
    assert caught.value.code == -32004


async def test_a_caller_who_leaves_before_the_agent_decides_leaves_nothing(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    agent = Agent("Deciding", description="Takes its time.")
    steps = {"reply": Step(), "raise": Step(), "task": Step()}

    @agent.message
    async def work(ctx):
        await steps[ctx.text]()
        if ctx.text == "raise":
            raise ValueError("after the caller had left")
        return Reply("x") if ctx.text == "reply" else "x"

    client = await server(agent)
    callers = [asyncio.create_task(client.send(text)) for text in steps]
    for step in steps.values():
        await within(step.reached.wait())
    for caller in callers:
        caller.cancel()
    await asyncio.gather(*callers, return_exceptions=True)
    for step in steps.values():
        step.go()

    await until(lambda: held(server.app) == NOTHING)
    assert "after its caller had left" in caplog.text
    assert [task.status.state for task in (await client.list_tasks()).tasks] == [S.COMPLETED]


async def test_a_caller_who_leaves_at_the_moment_of_the_decision_leaves_nothing(server: Server) -> None:
    agent = Agent("Deciding", description="Decides at once.")

    @agent.message
    async def work(ctx):
        return "x"

    client = await server(agent)
    for turns in range(12):
        caller = asyncio.create_task(client.send("go"))
        for _ in range(turns):
            await asyncio.sleep(0)
        caller.cancel()
        await asyncio.gather(caller, return_exceptions=True)

    await until(lambda: held(server.app) == NOTHING)
