"""GetTask: the task as it stands, for those who may see it."""

from __future__ import annotations

import asyncio

import pytest

from dragoman import Agent, Artifact, Part, TaskState, TaskStatus, TaskStatusUpdateEvent
from dragoman.errors import InvalidParamsError, TaskNotFoundError
from dragoman.ports.operations import Caller
from tests.conformance.raw import say

MEMORY = pytest.mark.parametrize("store", ["memory"], indirect=True)
UNKNOWN = "00000000-0000-7000-8000-000000000000"


class Steps:
    """An agent that takes a step each time it is let to."""

    def __init__(self) -> None:
        self.go = asyncio.Semaphore(0)
        self.agent = Agent("Steps", description="Goes step by step.")

        @self.agent.task
        async def step(ctx):
            for number in range(3):
                await self.go.acquire()
                await ctx.update(f"step {number}")
                await ctx.artifact(f"{number}")


@pytest.mark.req("GET-01", "GET-05", "STRM-11", "DATA-23")
async def test_a_task_is_returned_as_it_stands_at_every_moment_and_asking_changes_nothing(connect) -> None:
    steps = Steps()
    client = await connect(steps.agent)
    stream = client.stream("go")
    first = await anext(stream)

    for number in range(3):
        steps.go.release()
        seen = [await anext(stream), await anext(stream)]
        found, again = await client.get_task(first.id), await client.get_task(first.id)
        assert found == again
        assert len(found.artifacts) >= number + 1
        assert found.artifacts[number] == seen[1].artifact
        if number < 2:
            assert found.status == seen[0].status
    last = await anext(stream)

    done = await client.get_task(first.id)
    assert done.status == last.status
    assert done.status.state is TaskState.COMPLETED
    assert [message.parts[0].text for message in done.history] == ["go", "step 0", "step 1", "step 2"]
    assert done.status.timestamp >= first.status.timestamp
    assert await client.get_task(first.id) == done


@pytest.mark.req("GET-05", "DATA-02", "BIND-01")
async def test_what_is_returned_for_a_running_task_is_what_is_returned_once_it_rests(connect) -> None:
    """Read out of memory at first, and out of the store when nobody works on the task any more."""
    agent = Agent("Asker", description="Asks.")

    @agent.events
    async def ask(ctx):
        yield Artifact(artifact_id="a", name="n", parts=[Part(text="x"), Part(data=None)], metadata={"k": [1]})
        yield TaskStatusUpdateEvent(task_id="", context_id="", status=TaskStatus(state=TaskState.INPUT_REQUIRED))

    client = await connect(agent)

    answer = await client.send("go")
    found = await client.get_task(answer.id)

    assert found == answer


@pytest.mark.req("GET-03", "ERR-09", "CTX-12")
async def test_an_unknown_id_is_not_found(wire) -> None:
    raw = await wire(Steps().agent)

    for task_id in (UNKNOWN, "x", "ä/ö", "tasks", "..a", "a:b"):
        answer = await raw.call("GetTask", {"id": task_id})
        assert answer.reason == "TASK_NOT_FOUND"
        assert answer.status == (200 if raw.binding == "JSONRPC" else 404)


@pytest.mark.req("GET-02", "LIST-11", "ERR-08")
@MEMORY
async def test_a_negative_history_length_and_an_empty_id_are_refused_by_name(connect) -> None:
    client = await connect(Steps().agent)

    for task_id, length, field in ((UNKNOWN, -1, "historyLength"), ("", None, "id")):
        with pytest.raises(InvalidParamsError) as refused:
            await client.get_task(task_id, history_length=length)
        assert [violation.field for violation in refused.value.violations] == [field]


async def by_name(scope):
    return Caller(id=dict(scope["headers"]).get(b"x-user", b"").decode())


@pytest.mark.req(
    "GET-03", "GET-04", "LIST-01", "LIST-04", "CANCEL-03", "CANCEL-05", "SUB-04", "SEND-07", "ERR-06", "ERR-10", "B123"
)
@pytest.mark.parametrize("state", ["live", "stored"])
async def test_the_task_of_somebody_else_is_a_task_that_does_not_exist(wire, state) -> None:
    release = asyncio.Event()
    agent = Agent("Private", description="Keeps secrets.")

    @agent.task
    async def private(ctx):
        if state == "live":
            await release.wait()
        return "secret"

    raw = await wire(agent, identify=by_name)
    mine = say(configuration={"returnImmediately": state == "live"}, contextId="c-1")
    task_id = (await raw.call("SendMessage", mine, x_user="ann")).result["task"]["id"]

    for user in ("bob", ""):
        for op, params in (
            ("GetTask", {"id": task_id}),
            ("CancelTask", {"id": task_id}),
            ("SubscribeToTask", {"id": task_id}),
            ("SendMessage", say(taskId=task_id)),
            ("SendStreamingMessage", say(taskId=task_id)),
        ):
            theirs = await raw.call(op, params, x_user=user)
            unknown = await raw.call(op, _renamed(params, task_id), x_user=user)
            assert theirs.reason == unknown.reason == "TASK_NOT_FOUND", op
            assert theirs.body.replace(task_id.encode(), b"") == unknown.body.replace(UNKNOWN.encode(), b"")
        for filters in ({}, {"contextId": "c-1"}, {"status": "TASK_STATE_COMPLETED"}, {"pageSize": 1}):
            listed = (await raw.call("ListTasks", filters, x_user=user)).result
            assert (listed["tasks"], listed["totalSize"], listed["nextPageToken"]) == ([], 0, "")
    owned = await raw.call("GetTask", {"id": task_id}, x_user="ann")
    assert owned.result["status"]["state"] == f"TASK_STATE_{'WORKING' if state == 'live' else 'COMPLETED'}"
    assert (await raw.call("ListTasks", {}, x_user="ann")).result["totalSize"] == 1
    release.set()


def _renamed(params, task_id):
    if "id" in params:
        return {"id": UNKNOWN}
    return {"message": {**params["message"], "taskId": UNKNOWN}}


@pytest.mark.req("GET-05", "LIST-15", "B103")
@MEMORY
async def test_many_readers_at_once_see_the_same(connect) -> None:
    steps = Steps()
    client = await connect(steps.agent)
    begun = await client.send("go", wait=False)

    found = await asyncio.gather(*(client.get_task(begun.id) for _ in range(20)))

    assert all(task == found[0] for task in found)
    with pytest.raises(TaskNotFoundError):
        await client.get_task(UNKNOWN)
