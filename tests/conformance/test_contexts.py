"""Context ids, task ids and turns that belong together. Spec: §3.4."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman import Agent, Message, Reply, TaskState
from dragoman.errors import InvalidParamsError, TaskNotFoundError, UnsupportedOperationError
from tests.client.words import connect_to, task
from tests.conformance.wire import SPOKEN, as_caller, by_header, said, served
from tests.http.peer import peer, result

BOTH = pytest.mark.parametrize("spoken", SPOKEN)
MEMORY = pytest.mark.parametrize("store", ["memory"], indirect=True)


def chat_agent() -> Agent:
    """Asks once, then is done; ``reply …`` is answered with a direct message, ``at once`` with a finished task."""
    agent = Agent("Chat", description="Talks.")

    @agent.message
    async def chat(ctx):  # type: ignore[no-untyped-def]
        if ctx.text.startswith("reply"):
            return Reply(ctx.text)
        if ctx.text != "at once":
            answer = await ctx.ask("what else?")
            return f"{ctx.text} and {answer.text}"
        return "done"

    return agent


@MEMORY
@pytest.mark.req("CTX-01", "CTX-02", "CTX-06", "CTX-10", "AMB-44", "DATA-21")
async def test_without_a_context_the_server_mints_one_and_a_new_id_for_each_task(connect: Any) -> None:
    client = await connect(chat_agent())
    tasks = [await client.send("at once") for _ in range(3)]
    message = await client.send("reply please")
    streamed = [event async for event in client.stream("at once")]

    ids = [task.id for task in tasks] + [streamed[0].id]
    contexts = [task.context_id for task in tasks] + [message.context_id, streamed[0].context_id]
    assert len(set(ids) - {""}) == 4
    assert len(set(contexts) - {""}) == 5
    assert tasks[0].history[0].context_id in ("", tasks[0].context_id)


@MEMORY
@pytest.mark.req("CTX-03", "CTX-04", "CTX-07", "CTX-13", "CTX-19", "AMB-45")
async def test_a_context_of_the_client_is_kept_and_holds_its_tasks_together(connect: Any) -> None:
    client = await connect(chat_agent())
    first = await client.send("at once", context_id="mine")
    second = await client.send("at once", context_id="mine")
    reply = await client.send("reply please", context_id="mine")
    other = await client.send("at once")

    assert {first.context_id, second.context_id, reply.context_id} == {"mine"}
    assert first.id != second.id
    listed = await client.list_tasks(context_id="mine")
    assert {task.id for task in listed.tasks} == {first.id, second.id}
    assert other.context_id != "mine"


@pytest.mark.req("CTX-03", "CTX-04", "AMB-33", "AMB-45")
async def test_a_server_told_so_refuses_contexts_that_it_did_not_make(connect: Any) -> None:
    client = await connect(chat_agent(), known_contexts_only=True)
    known = await client.send("at once")
    again = await client.send("at once", context_id=known.context_id)

    with pytest.raises(InvalidParamsError) as raised:
        await client.send("at once", context_id="mine")
    with pytest.raises(InvalidParamsError):
        await client.send("reply please", context_id="mine")
    with pytest.raises(InvalidParamsError):
        [event async for event in client.stream("at once", context_id="mine")]

    assert [violation.field for violation in raised.value.violations] == ["message.contextId"]
    assert again.context_id == known.context_id
    assert (await client.list_tasks()).total_size == 2


@pytest.mark.req("CTX-11", "CTX-12", "GET-03")
async def test_a_task_id_that_names_no_task_is_not_found_and_makes_none(connect: Any) -> None:
    client = await connect(chat_agent())

    with pytest.raises(TaskNotFoundError):
        await client.send("at once", task_id="chosen-by-the-client")
    with pytest.raises(TaskNotFoundError):
        [event async for event in client.stream("at once", task_id="chosen-by-the-client")]

    assert (await client.list_tasks()).total_size == 0


@pytest.mark.req("CTX-13", "CTX-14", "CTX-15", "CTX-16", "AMB-33", "STRM-12")
async def test_a_task_id_alone_implies_its_context_and_another_context_is_refused(connect: Any) -> None:
    client = await connect(chat_agent())
    asked = await client.send("bread")
    assert asked.status.state is TaskState.INPUT_REQUIRED
    assert asked.status.message.parts[0].text == "what else?"

    with pytest.raises(InvalidParamsError) as raised:
        await client.send("butter", task_id=asked.id, context_id="another")
    still = await client.get_task(asked.id)
    done = await client.send("butter", task_id=asked.id)

    assert [violation.field for violation in raised.value.violations] == ["message.contextId"]
    assert (still.status.state, len(still.history)) == (TaskState.INPUT_REQUIRED, len(asked.history))
    assert (done.id, done.context_id, done.status.state) == (asked.id, asked.context_id, TaskState.COMPLETED)
    assert done.artifacts[0].parts[0].text == "bread and butter"


@MEMORY
@pytest.mark.req("CTX-13", "CTX-15", "CTX-16")
async def test_task_id_and_its_own_context_together_go_on_with_the_task(connect: Any) -> None:
    client = await connect(chat_agent())
    asked = await client.send("bread")

    done = await client.send("butter", task_id=asked.id, context_id=asked.context_id)

    assert (done.id, done.status.state) == (asked.id, TaskState.COMPLETED)


@MEMORY
@pytest.mark.req("CTX-16", "CTX-17", "CTX-20", "CTX-18", "STRM-09", "AMB-11")
async def test_a_finished_task_is_refined_by_a_new_one_in_its_context_with_a_reference(connect: Any) -> None:
    seen: list[Message] = []
    agent = Agent("Referrer", description="Looks at references.")

    @agent.task
    async def refer(ctx):  # type: ignore[no-untyped-def]
        seen.append(ctx.message)
        return "done"

    client = await connect(agent)
    first = await client.send("draw a boat")
    with pytest.raises(UnsupportedOperationError):
        await client.send("in red", task_id=first.id)

    second = await client.send("in red", task=first)

    assert (second.id != first.id, second.context_id) == (True, first.context_id)
    assert seen[-1].reference_task_ids == [first.id]
    assert await client.get_task(first.id) == first


@BOTH
@pytest.mark.req("B125", "CTX-07", "AUTH-08")
async def test_the_context_of_somebody_else_is_not_joined(spoken: str) -> None:
    async with served(chat_agent(), identify=by_header) as wire:
        anns = (await wire.call(spoken, "SendMessage", said("at once"), headers=as_caller("ann"))).result["task"]
        bobs = (
            await wire.call(
                spoken, "SendMessage", said("at once", contextId=anns["contextId"]), headers=as_caller("bob")
            )
        ).result["task"]
        lists = [
            (await wire.call(spoken, "ListTasks", {"contextId": anns["contextId"]}, headers=as_caller(name))).result[
                "tasks"
            ]
            for name in ("ann", "bob")
        ]

    assert [[task["id"] for task in tasks] for tasks in lists] == [[anns["id"]], [bobs["id"]]]


@BOTH
@pytest.mark.req("B125", "AMB-45", "ERR-10")
async def test_where_contexts_have_to_be_known_somebody_elses_is_as_unknown_as_none(spoken: str) -> None:
    async with served(chat_agent(), identify=by_header, known_contexts_only=True) as wire:
        anns = (await wire.call(spoken, "SendMessage", said("at once"), headers=as_caller("ann"))).result["task"]
        refusals = [
            await wire.call(spoken, "SendMessage", said("at once", contextId=context), headers=as_caller("bob"))
            for context in (anns["contextId"], "no-such-context")
        ]

    assert refusals[0].body == refusals[1].body
    assert refusals[0].fields == ["message.contextId"]


# The client.


@MEMORY
@pytest.mark.req("CTX-05", "CTX-06", "CTX-16", "CTX-20", "B161")
async def test_a_conversation_names_no_context_first_and_then_the_servers_even_where_others_are_refused(
    connect: Any,
) -> None:
    client = await connect(chat_agent(), known_contexts_only=True)
    conversation = client.conversation()
    assert (conversation.context_id, conversation.task_id) == ("", "")

    asked = await conversation.send("bread")
    done = await conversation.send("butter")
    third = await conversation.send("at once")

    assert done.id == asked.id
    assert third.id != asked.id
    assert {asked.context_id, done.context_id, third.context_id} == {conversation.context_id}


@pytest.mark.req("CTX-05", "B161", "AMB-44")
async def test_the_client_writes_no_context_id_of_its_own_and_bears_an_answer_without_one() -> None:
    async with peer() as server:
        value = task("COMPLETED")
        del value["contextId"]
        server.on("POST", "/", result({"task": value}))
        async with connect_to(server) as client:
            conversation = client.conversation()
            await conversation.send("one")
            await conversation.send("two")

    assert [request.json["params"]["message"].get("contextId") for request in server.received] == [None, None]
    assert [request.json["params"]["message"].get("taskId") for request in server.received] == [None, None]


@pytest.mark.req("CTX-04", "AMB-45")
async def test_where_only_known_contexts_are_taken_one_that_a_direct_reply_began_goes_on(connect) -> None:
    agent = Agent("Talker", description="Answers without tasks.")

    @agent.reply
    async def talk(ctx):
        return "yes"

    client = await connect(agent, known_contexts_only=True)
    reply = await client.send("first")

    assert (await client.send("second", context_id=reply.context_id)).context_id == reply.context_id
    with pytest.raises(InvalidParamsError):
        await client.send("third", context_id=f"{reply.context_id[:-1]}{'0' if reply.context_id[-1] != '0' else '1'}")
