"""The verbs of a handler."""

from __future__ import annotations

import pytest

from dragoman import Agent, Part, Role
from dragoman.errors import InvalidAgentResponseError
from dragoman.model import TaskArtifactUpdateEvent
from tests.runtime.running import NOTHING, S, Server, held, said, texts, within


async def test_a_handler_sees_what_came(server: Server) -> None:
    agent = Agent("Seeing", description="Looks.", input_modes=["*/*"], output_modes=["*/*"], extensions=["urn:x"])
    seen = {}

    @agent.task
    async def work(ctx):
        seen.update(
            text=ctx.text,
            data=ctx.data,
            files=[(f.raw, f.url) for f in ctx.files],
            metadata=dict(ctx.metadata),
            modes=list(ctx.accepted_output_modes),
            extensions=list(ctx.extensions),
            context=ctx.context_id,
            caller=ctx.caller.is_anonymous,
            tenant=ctx.tenant,
            recovered=ctx.recovered,
            history=[m.message_id for m in ctx.history],
            message=ctx.message.message_id,
            ids=(ctx.task.id == ctx.task_id, ctx.task.status.state),
        )

    parts = [Part(text="a"), Part(data={"n": 1}), Part(raw=b"x"), Part(url="https://x.example"), Part(text="b")]
    client = await server(agent)
    await client.send(
        parts,
        context_id="mine",
        message_id="m-1",
        metadata={"k": "v"},
        accepted_output_modes=["text/plain"],
        extensions=["urn:x", "urn:unknown"],
    )

    assert seen == {
        "text": "a\nb",
        "data": {"n": 1},
        "files": [(b"x", None), (None, "https://x.example")],
        "metadata": {"k": "v"},
        "modes": ["text/plain"],
        "extensions": ["urn:x"],
        "context": "mine",
        "caller": True,
        "tenant": "",
        "recovered": False,
        "history": ["m-1"],
        "message": "m-1",
        "ids": (True, S.WORKING),
    }


@pytest.mark.req("STREAM-07", "B093")
async def test_progress_is_a_status_message_and_then_history(server: Server) -> None:
    agent = Agent("Working", description="Reports.")

    @agent.task
    async def work(ctx):
        await ctx.update("one", metadata={"p": 1})
        await ctx.update({"percent": 50})
        await ctx.update()
        assert [m.role for m in ctx.history] == [Role.USER, Role.AGENT, Role.AGENT]
        return "done"

    client = await server(agent)
    task = await client.send("go")

    assert task.metadata == {"p": 1}
    assert [m.parts[0].text or m.parts[0].data for m in task.history] == ["go", "one", {"percent": 50}]
    assert task.status.message is None


@pytest.mark.req("DATA-26")
async def test_an_artifact_is_described_grown_and_replaced(server: Server) -> None:
    agent = Agent("Making", description="Makes.")

    @agent.task
    async def work(ctx):
        name = await ctx.artifact(
            "a,b", name="table", description="d", media_type="text/csv", filename="t.csv", metadata={"m": 1}
        )
        assert name == "artifact-1"
        await ctx.artifact("c,d", artifact_id=name, append=True)
        assert await ctx.artifact("other") == "artifact-2"
        await ctx.artifact("new", artifact_id="artifact-2")
        async with ctx.artifact_stream(name="report", media_type="text/markdown") as out:
            await out.write("# T")
            await out.write("itle", last=True)

    client = await server(agent)
    chunks = [e.last_chunk async for e in client.stream("go") if isinstance(e, TaskArtifactUpdateEvent)]
    (task,) = (await client.list_tasks(include_artifacts=True)).tasks

    table, other, report = task.artifacts
    assert (table.name, table.description, table.metadata) == ("table", "d", {"m": 1})
    assert [(p.text, p.media_type, p.filename) for p in table.parts] == [("a,b", "text/csv", "t.csv"), ("c,d", "", "")]
    assert [p.text for p in other.parts] == ["new"]
    assert (report.name, [p.text for p in report.parts]) == ("report", ["# T", "itle"])
    assert chunks[-2:] == [False, True]


@pytest.mark.req("STRM-12", "CTX-16", "B091")
async def test_questions_are_answered_in_turn(server: Server) -> None:
    agent = Agent("Asking", description="Asks.", input_modes=["*/*"])

    @agent.task
    async def work(ctx):
        first = await ctx.ask("First?")
        second = await ctx.ask({"form": ["x"]})
        return [first.text, str(second), second.data, len(second.files)]

    client = await server(agent)
    task = await client.send("go")
    assert (task.status.state, said(task)) == (S.INPUT_REQUIRED, "First?")
    task = await client.send("one", task=task)
    assert task.status.message.parts[0].data == {"form": ["x"]}
    done = await client.send([Part(text="two"), Part(data=[2]), Part(raw=b"2")], task=task)

    assert done.artifacts[0].parts[0].data == ["one", "two", [2], 1]
    assert [m.role for m in done.history] == [Role.USER, Role.AGENT, Role.USER, Role.AGENT, Role.USER]
    assert held(server.app) == NOTHING


@pytest.mark.req("INTASK-01", "INTASK-02")
async def test_an_authorization_is_asked_for_in_its_own_state(server: Server) -> None:
    agent = Agent("Careful", description="Asks.")

    @agent.task
    async def work(ctx):
        await ctx.authorize("Sign in at https://x.example")
        return "done"

    client = await server(agent)
    task = await client.send("go")
    assert (task.status.state, said(task)) == (S.AUTH_REQUIRED, "Sign in at https://x.example")

    assert texts(await client.send("signed in", task=task)) == ["done"]


async def test_once_gives_json_the_first_time_too(server: Server) -> None:
    agent = Agent("Once", description="Once.")
    calls = []

    @agent.task
    async def work(ctx):
        async def effect():
            calls.append(1)
            return {"t": (1, 2)}

        first = await ctx.once("k", effect)
        again = await ctx.once("k", effect)
        other = await ctx.once("other", effect)
        return [first, again, other]

    task = await (await server(agent)).send("go")

    assert task.artifacts[0].parts[0].data == [{"t": [1, 2]}] * 3
    assert calls == [1, 1]


async def test_a_status_that_may_not_follow_is_raised_where_it_was_said(server: Server) -> None:
    agent = Agent("Wrong", description="Goes back.")
    caught = []

    @agent.task
    async def work(ctx):
        try:
            await ctx.status(S.SUBMITTED)
        except InvalidAgentResponseError as error:
            caught.append(str(error))
        return "went on"

    task = await within((await server(agent)).send("go"))

    assert texts(task) == ["went on"]
    assert "may not follow" in caught[0]


async def test_a_reply_function_has_no_task(server: Server) -> None:
    agent = Agent("Replying", description="Replies.")
    raised = []

    @agent.reply
    async def work(ctx):
        for verb in (ctx.update("x"), ctx.artifact("x"), ctx.ask("x"), ctx.once("k", None)):
            try:
                await verb
            except Exception as error:
                raised.append(type(error).__name__)
        return "reply"

    reply = await (await server(agent)).send("go")

    assert reply.parts[0].text == "reply"
    assert raised == ["InvalidAgentResponseError"] * 4


async def test_an_agent_may_complete_by_itself_and_say_so(server: Server) -> None:
    agent = Agent("Explicit", description="Completes.")

    @agent.events
    async def work(ctx):
        await ctx.artifact("x")
        await ctx.status(S.COMPLETED, "All done.")
        return
        yield

    task = await (await server(agent)).send("go")

    assert (task.status.state, said(task), texts(task)) == (S.COMPLETED, "All done.", ["x"])


async def test_a_handler_that_ended_its_task_itself_may_simply_return(server: Server, caplog) -> None:
    agent = Agent("Ending", description="Ends with a message of its own.")

    @agent.task
    async def work(ctx):
        await ctx.status(S.COMPLETED, "that was all")

    task = await (await server(agent)).send("go")

    assert (task.status.state, task.status.message.parts[0].text) == (S.COMPLETED, "that was all")
    assert not caplog.records


async def test_the_history_before_a_task_is_the_message_alone(server: Server) -> None:
    agent = Agent("Counting", description="Counts messages.")

    @agent.reply
    async def count(ctx):
        return f"{len(ctx.history)}: {ctx.history[0].parts[0].text}"

    reply = await (await server(agent)).send("one")

    assert reply.parts[0].text == "1: one"
