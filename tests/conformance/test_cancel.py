"""CancelTask: it reaches the work, and of racing ends one wins."""

from __future__ import annotations

import asyncio

import pytest

from dragoman import Agent, Fail, Limits, Reject, TaskState, TaskStatus, TaskStatusUpdateEvent
from dragoman.errors import InvalidParamsError, TaskNotCancelableError, TaskNotFoundError
from dragoman.model import CANCEL_TASK, CancelTaskRequest
from dragoman.ports.operations import CallContext
from tests.client.words import connect_to, task
from tests.conformance.raw import BOUND, eventually, say
from tests.http.peer import error, peer, result

MEMORY = pytest.mark.parametrize("store", ["memory"], indirect=True)
UNKNOWN = "00000000-0000-7000-8000-000000000000"


class Stubborn:
    """An agent that shows what reaches it."""

    def __init__(self) -> None:
        self.started = asyncio.Event()
        self.interrupted = 0
        self.cleaned = asyncio.Event()
        self.agent = Agent("Stubborn", description="Works until interrupted.")

        @self.agent.task
        async def work(ctx):
            try:
                self.started.set()
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                self.interrupted += 1
                if ctx.text == "finish":
                    return "finished all the same"
                if ctx.text == "clean":
                    await asyncio.shield(self.cleaned.wait())
                raise


async def shown(client):
    return (await client.list_tasks()).tasks


async def begun(client, stubborn: Stubborn, text: str = "go"):
    made = await client.send(text, wait=False)
    async with asyncio.timeout(BOUND):
        await stubborn.started.wait()
    return made


@pytest.mark.req("CANCEL-01", "CANCEL-04", "AMB-12", "AMB-13", "B087", "STRM-03")
async def test_cancel_interrupts_the_work_and_returns_the_canceled_task(connect) -> None:
    stubborn = Stubborn()
    client = await connect(stubborn.agent)
    made = await begun(client, stubborn)
    watching = client.subscribe(made.id)
    await anext(watching)

    canceled = await client.cancel(made)
    again = await client.cancel(made)

    assert canceled.status.state is TaskState.CANCELED
    assert stubborn.interrupted == 1
    async with asyncio.timeout(BOUND):
        assert [event.status async for event in watching] == [canceled.status]
    assert again == canceled == await client.get_task(made.id)


@pytest.mark.req("CANCEL-01", "SEND-08", "B087")
@MEMORY
async def test_a_blocking_caller_gets_the_canceled_task(connect) -> None:
    stubborn = Stubborn()
    client = await connect(stubborn.agent)
    sending = asyncio.create_task(client.send("go"))
    async with asyncio.timeout(BOUND):
        await stubborn.started.wait()

    page = await eventually(lambda: shown(client))
    canceled = await client.cancel(page[0])

    assert await sending == canceled


@pytest.mark.req("CANCEL-02", "AMB-12", "STRM-09")
async def test_a_task_that_ended_otherwise_cannot_be_canceled(wire) -> None:
    agent = Agent("Ender", description="Ends.")

    @agent.task
    async def end(ctx):
        if ctx.text == "FAILED":
            raise Fail("x")
        if ctx.text == "REJECTED":
            raise Reject("x")
        return "done"

    raw = await wire(agent)

    for state in ("COMPLETED", "FAILED", "REJECTED"):
        ended = (await raw.call("SendMessage", say(state))).result["task"]
        answer = await raw.call("CancelTask", {"id": ended["id"]})
        assert answer.reason == "TASK_NOT_CANCELABLE"
        assert answer.error["code"] == (-32002 if raw.binding == "JSONRPC" else 400)
        assert (await raw.call("GetTask", {"id": ended["id"]})).result == ended


@pytest.mark.req("CANCEL-04", "AMB-12")
async def test_a_repeated_cancel_is_answered_with_the_stored_task(wire) -> None:
    stubborn = Stubborn()
    raw = await wire(stubborn.agent)
    made = (await raw.call("SendMessage", say(configuration={"returnImmediately": True}))).result["task"]

    answers = [(await raw.call("CancelTask", {"id": made["id"]})).result for _ in range(3)]

    assert answers[0]["status"]["state"] == "TASK_STATE_CANCELED"
    assert answers == [answers[0]] * 3


@pytest.mark.req("CANCEL-03")
async def test_an_unknown_task_is_not_found(wire) -> None:
    raw = await wire(Stubborn().agent)

    for task_id in (UNKNOWN, "x/y"):
        assert (await raw.call("CancelTask", {"id": task_id})).reason == "TASK_NOT_FOUND"


@pytest.mark.req("CANCEL-01", "AMB-05")
async def test_a_waiting_task_is_canceled_live_or_stored(connect) -> None:
    resident = Agent("Resident", description="Waits in memory.")

    @resident.task
    async def ask(ctx):
        await ctx.ask("what?")

    client = await connect(resident)
    asked = await client.send("go")

    canceled = await client.cancel(asked)

    assert canceled.status.state is TaskState.CANCELED
    assert [message.parts[0].text for message in canceled.history] == ["go", "what?"]
    assert await client.get_task(asked.id) == canceled


@pytest.mark.req("CANCEL-01")
async def test_a_stored_task_that_waits_is_canceled_too(connect) -> None:
    agent = Agent("Events", description="Leaves memory while it waits.")

    @agent.events
    async def ask(ctx):
        yield TaskStatusUpdateEvent(task_id="", context_id="", status=TaskStatus(state=TaskState.AUTH_REQUIRED))

    client = await connect(agent)
    asked = await client.send("go")

    assert (await client.cancel(asked)).status.state is TaskState.CANCELED
    assert (await client.cancel(asked)).status.state is TaskState.CANCELED


@pytest.mark.req("CANCEL-01")
@MEMORY
async def test_a_task_that_waits_for_a_slot_is_canceled_and_never_runs(connect) -> None:
    stubborn = Stubborn()
    client = await connect(stubborn.agent, limits=Limits(running_tasks=1, shutdown_grace=0.2))
    first = await begun(client, stubborn)
    queued = await client.send("finish", wait=False)
    assert queued.status.state is TaskState.SUBMITTED

    assert (await client.cancel(queued)).status.state is TaskState.CANCELED
    assert (await client.cancel(first)).status.state is TaskState.CANCELED

    assert stubborn.interrupted == 1
    assert (await client.get_task(queued.id)).status.state is TaskState.CANCELED


@pytest.mark.req("AMB-13", "CANCEL-01", "CANCEL-02", "B085")
async def test_an_agent_that_finishes_all_the_same_wins_and_the_cancel_is_refused(connect) -> None:
    stubborn = Stubborn()
    client = await connect(stubborn.agent)
    made = await begun(client, stubborn, "finish")

    with pytest.raises(TaskNotCancelableError):
        await client.cancel(made)

    done = await client.get_task(made.id)
    assert (done.status.state, done.artifacts[0].parts[0].text) == (TaskState.COMPLETED, "finished all the same")


@pytest.mark.req("AMB-13", "CANCEL-01", "CANCEL-04")
@MEMORY
async def test_a_cancel_under_way_is_shown_as_it_is_and_a_repeat_does_not_disturb_it(connect) -> None:
    stubborn = Stubborn()
    client = await connect(stubborn.agent, limits=Limits(cancel_wait=0.05, shutdown_grace=0.2))
    made = await begun(client, stubborn, "clean")

    asked = await client.cancel(made)
    again = await client.cancel(made)
    repeats = asyncio.gather(*(client.cancel(made) for _ in range(5)))
    stubborn.cleaned.set()
    await repeats
    async with asyncio.timeout(BOUND):
        ended = await client.wait(made)

    assert asked.status.state is again.status.state is TaskState.WORKING
    assert ended.task.status.state is TaskState.CANCELED
    assert stubborn.interrupted == 1


@pytest.mark.req("CANCEL-04", "B085", "CANCEL-02")
@MEMORY
async def test_of_a_cancel_and_an_end_at_the_same_time_one_wins_everywhere(connect) -> None:
    agent = Agent("Racer", description="Ends soon.")
    gates: dict[str, asyncio.Event] = {}

    @agent.task
    async def race(ctx):
        gates[ctx.task_id] = gate = asyncio.Event()
        await gate.wait()
        await asyncio.sleep(0)
        return "done"

    client = await connect(agent)

    seen = set()
    for turn in range(30):
        stream = client.stream("go")
        made = await anext(stream)
        await eventually(lambda made=made: made.id in gates)
        if turn % 2:
            gates[made.id].set()
        cancels = asyncio.gather(client.cancel(made), client.cancel(made), return_exceptions=True)
        for _ in range(turn // 2):
            await asyncio.sleep(0)
        gates[made.id].set()
        async with asyncio.timeout(BOUND):
            outcomes = await cancels
            events = [event async for event in stream]
        stored = await client.get_task(made.id)
        seen.add(stored.status.state)
        assert events[-1].status == stored.status
        assert sum(getattr(event, "status", None) is not None for event in events) == 1
        for outcome in outcomes:
            if stored.status.state is TaskState.CANCELED:
                assert outcome == stored
            else:
                assert isinstance(outcome, TaskNotCancelableError)
    assert seen <= {TaskState.CANCELED, TaskState.COMPLETED}


@pytest.mark.req("CANCEL-06", "ERR-08")
@MEMORY
async def test_metadata_is_taken_and_an_empty_id_is_refused(connect) -> None:
    stubborn = Stubborn()
    client = await connect(stubborn.agent)
    made = await begun(client, stubborn)

    with pytest.raises(InvalidParamsError) as refused:
        await client.operations.call(CANCEL_TASK, CancelTaskRequest(id=""), CallContext())
    assert (await client.cancel(made, metadata={"why": "enough"})).status.state is TaskState.CANCELED

    assert refused.value.code == -32602


@pytest.mark.req("CANCEL-06")
async def test_a_client_sends_the_metadata_of_a_cancel() -> None:
    async with peer() as served, connect_to(served.on("POST", "/", result(task("CANCELED")))) as client:
        await client.cancel("t1", metadata={"why": [1]})

    assert served.received[0].json["params"] == {"id": "t1", "metadata": {"why": [1]}}


@pytest.mark.req("AMB-12", "AMB-13", "CANCEL-02", "CANCEL-04")
async def test_a_client_takes_the_refusal_to_cancel_a_canceled_task_for_success() -> None:
    refusal = error(-32002, "no", "TASK_NOT_CANCELABLE")
    async with peer() as served, connect_to(served.on("POST", "/", refusal, result(task("CANCELED")))) as client:
        assert (await client.cancel("t1")).status.state is TaskState.CANCELED
    async with peer() as served, connect_to(served.on("POST", "/", refusal, result(task("FAILED")))) as client:
        with pytest.raises(TaskNotCancelableError):
            await client.cancel("t1")
    async with peer() as served, connect_to(served.on("POST", "/", result(task("WORKING")))) as client:
        assert (await client.cancel("t1")).status.state is TaskState.WORKING
    gone = error(-32001, "gone", "TASK_NOT_FOUND")
    async with peer() as served, connect_to(served.on("POST", "/", gone)) as client:
        with pytest.raises(TaskNotFoundError):
            await client.cancel("t1")


@pytest.mark.req("CANCEL-01", "CANCEL-04")
@MEMORY
async def test_an_agent_that_answers_a_cancel_with_a_question_can_be_canceled_again(connect) -> None:
    agent = Agent("Doubter", description="Asks back.")
    started = asyncio.Event()

    @agent.task
    async def doubt(ctx):
        try:
            started.set()
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await ctx.ask("really?")

    client = await connect(agent, limits=Limits(cancel_wait=0.05, shutdown_grace=0.2))
    made = await client.send("go", wait=False)
    async with asyncio.timeout(BOUND):
        await started.wait()

    doubted, canceled = await client.cancel(made), await client.cancel(made)

    assert doubted.status.state is TaskState.INPUT_REQUIRED
    assert canceled.status.state is TaskState.CANCELED
