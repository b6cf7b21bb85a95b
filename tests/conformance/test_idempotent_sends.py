"""Idempotent sends: a message that comes again begins nothing anew. An extension of this package."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from dragoman import Agent, App, Message, Reply, TaskState
from dragoman.errors import InvalidParamsError
from dragoman.extensions import IDEMPOTENT_SENDS, IdempotentSends
from dragoman.model import TaskStatusUpdateEvent
from dragoman.ports.clock import SystemClock
from tests.conformance.wire import BOUND, SPOKEN, as_caller, by_header, said, served

BOTH = pytest.mark.parametrize("spoken", SPOKEN)
MEMORY = pytest.mark.parametrize("store", ["memory"], indirect=True)
ASKING: dict[str, Any] = {"extensions": [IDEMPOTENT_SENDS]}


class Counting:
    """Counts how often its handler is begun, and waits to be let go on, if told so."""

    def __init__(self, *, holds: bool = False, opening: str = "task", extension: Any = None) -> None:
        self.runs = 0
        self.begun = asyncio.Event()
        self.may_end = asyncio.Event()
        if not holds:
            self.may_end.set()
        self.agent = Agent("Counter", description="Counts.", extensions=[extension or IdempotentSends()])

        async def work(ctx):  # type: ignore[no-untyped-def]
            self.runs += 1
            self.begun.set()
            if opening == "task":
                await ctx.update("working")
            await self.may_end.wait()
            return f"run {self.runs}" if opening == "task" else Reply(f"run {self.runs}")

        getattr(self.agent, opening)(work)


def text(answer: Any) -> str:
    parts = answer.parts if isinstance(answer, Message) else answer.artifacts[0].parts
    return "".join(part.text or "" for part in parts)


@pytest.mark.req("SEND-01", "EXT-02", "DATA-20")
async def test_the_same_message_gives_the_same_task_however_it_is_sent(connect: Any) -> None:
    counting = Counting()
    client = await connect(counting.agent, client_settings=ASKING)

    first = await client.send("hello", message_id="m-1")
    again = await client.send("hello", message_id="m-1")
    at_once = await client.send("hello", message_id="m-1", wait=False, history_length=0)
    streamed = [event async for event in client.stream("hello", message_id="m-1")]
    other = await client.send("hello", message_id="m-2")

    assert again == first
    assert (at_once.id, at_once.history) == (first.id, [])
    assert [event.id for event in streamed] == [first.id]
    assert (other.id == first.id, counting.runs) == (False, 2)


@MEMORY
@pytest.mark.req("SEND-01", "EXT-17")
async def test_without_the_extension_asked_for_each_message_begins_a_task(connect: Any) -> None:
    counting = Counting()
    client = await connect(counting.agent)

    first, second = [await client.send("hello", message_id="m-1") for _ in range(2)]

    assert (first.id == second.id, counting.runs) == (False, 2)


@pytest.mark.req("EXT-12", "SEND-01")
async def test_the_same_id_with_another_content_is_an_error_that_names_it(connect: Any) -> None:
    client = await connect(Counting().agent, client_settings=ASKING)
    await client.send("hello", message_id="m-1", message_metadata={"b": 1, "a": 2})

    with pytest.raises(InvalidParamsError) as refused:
        await client.send("other", message_id="m-1")
    with pytest.raises(InvalidParamsError):
        await client.send("hello", message_id="m-1")
    same = await client.send("hello", message_id="m-1", message_metadata={"a": 2, "b": 1})

    assert refused.value.violations[0].field == "message.messageId"
    assert same.status.state is TaskState.COMPLETED


@MEMORY
@pytest.mark.req("SEND-08", "SEND-10", "STREAM-04")
async def test_a_message_that_comes_again_while_the_first_is_worked_on_waits_for_the_same_end(connect: Any) -> None:
    counting = Counting(holds=True)
    client = await connect(counting.agent, client_settings=ASKING)

    async with asyncio.timeout(BOUND):
        first = asyncio.create_task(client.send("hello", message_id="m-1"))
        await counting.begun.wait()
        again = asyncio.create_task(client.send("hello", message_id="m-1"))
        at_once = await client.send("hello", message_id="m-1", wait=False)
        stream = client.stream("hello", message_id="m-1")
        snapshot = await anext(stream)
        counting.may_end.set()
        rest = [event async for event in stream]
        one, two = await first, await again

    assert one == two
    assert at_once.id == snapshot.id == one.id
    assert at_once.status.state is TaskState.WORKING
    assert isinstance(rest[-1], TaskStatusUpdateEvent)
    assert rest[-1].status.state is TaskState.COMPLETED
    assert counting.runs == 1


@MEMORY
@pytest.mark.parametrize("opening", ["reply", "message"])
@pytest.mark.req("SEND-02", "STREAM-03")
async def test_a_direct_reply_is_given_again(connect: Any, opening: str) -> None:
    counting = Counting(opening=opening, holds=True)
    client = await connect(counting.agent, client_settings=ASKING)

    async with asyncio.timeout(BOUND):
        first = asyncio.create_task(client.send("hello", message_id="m-1"))
        await counting.begun.wait()
        meanwhile = asyncio.create_task(client.send("hello", message_id="m-1"))
        counting.may_end.set()
        answers = [await first, await meanwhile, await client.send("hello", message_id="m-1")]
        streamed = [event async for event in client.stream("hello", message_id="m-1")]
        streamed += [event async for event in client.stream("hello", message_id="m-2")]
        streamed += [event async for event in client.stream("hello", message_id="m-2")]

    assert [text(answer) for answer in answers] == ["run 1"] * 3
    assert [text(event) for event in streamed] == ["run 1", "run 2", "run 2"]


@pytest.mark.req("CTX-16", "SEND-06")
async def test_a_message_for_a_task_is_taken_once(connect: Any) -> None:
    agent = Agent("Asker", description="Asks twice.", extensions=[IdempotentSends()])

    @agent.task
    async def ask(ctx):  # type: ignore[no-untyped-def]
        answers = [(await ctx.ask("one?")).text, (await ctx.ask("two?")).text]
        return ",".join(answers)

    client = await connect(agent, client_settings=ASKING)
    task = await client.send("go")

    first = await client.send("a", task=task, message_id="m-a")
    again = await client.send("a", task=task, message_id="m-a")
    with pytest.raises(InvalidParamsError):
        await client.send("b", task=task, message_id="m-a")
    done = await client.send("b", task=task, message_id="m-b")
    late = await client.send("b", task_id=task.id, message_id="m-b")

    assert first.status.state is again.status.state is TaskState.INPUT_REQUIRED
    assert [message.message_id for message in again.history].count("m-a") == 1
    assert text(done) == text(late) == "a,b"


@BOTH
@pytest.mark.req("AUTH-08", "TEN-03")
async def test_a_message_id_is_its_callers_own(spoken: str) -> None:
    counting = Counting()
    asked = {"A2A-Extensions": IDEMPOTENT_SENDS}
    async with served(counting.agent, identify=by_header) as wire:
        tasks = [
            (await wire.call(spoken, "SendMessage", request, headers={**asked, **as_caller(caller)})).result["task"][
                "id"
            ]
            for caller in ("ann", "bob")
            for request in (said(), {**said(), "tenant": "acme"}, said())
        ]

    assert tasks[0] == tasks[2]
    assert tasks[3] == tasks[5]
    assert len(set(tasks)) == 4


@BOTH
@pytest.mark.req("SEND-01", "STRM-04")
async def test_a_caller_that_is_lost_before_its_task_exists_finds_the_work_that_it_began(spoken: str) -> None:
    counting = Counting(opening="message", holds=True)
    asked = {"A2A-Extensions": IDEMPOTENT_SENDS}
    async with served(counting.agent) as wire, asyncio.timeout(2 * BOUND):
        lost = asyncio.create_task(wire.call(spoken, "SendMessage", said(), headers=asked))
        await counting.begun.wait()
        lost.cancel()
        await asyncio.gather(lost, return_exceptions=True)
        again = asyncio.create_task(wire.call(spoken, "SendMessage", said(), headers=asked))
        counting.may_end.set()
        answer = (await again).result["message"]

    assert (answer["parts"], counting.runs) == ([{"text": "run 1"}], 1)


@pytest.mark.req("SEND-01")
async def test_the_task_is_found_again_after_a_restart(tmp_path: Any) -> None:
    store = f"sqlite:///{tmp_path}/tasks.db"
    found = []
    for _ in range(2):
        counting = Counting()
        async with served(counting.agent, store=store) as wire:
            told = await wire.rpc("SendMessage", said(), headers={"A2A-Extensions": IDEMPOTENT_SENDS})
        found.append((told.result["task"]["id"], counting.runs))

    assert found == [(found[0][0], 1), (found[0][0], 0)]


@pytest.mark.req("SEND-01")
async def test_after_the_window_a_message_id_is_as_good_as_new() -> None:
    class LongAgo(SystemClock):
        def now_ms(self) -> int:
            return super().now_ms() - 3_600_000

    counting = Counting(extension=IdempotentSends(window=60))
    asked = {"A2A-Extensions": IDEMPOTENT_SENDS}
    async with served(counting.agent, clock=LongAgo()) as wire:
        tasks = [
            (await wire.rpc("SendMessage", said(text), headers=asked)).result["task"]["id"]
            for text in ("one", "two", "two")
        ]

    assert (len(set(tasks)), counting.runs) == (3, 3)


@pytest.mark.req("SEND-01", "AMB-22")
async def test_callers_of_the_older_version_have_it_too() -> None:
    counting = Counting()
    sent = {
        "message": {"messageId": "m-1", "kind": "message", "role": "user", "parts": [{"kind": "text", "text": "x"}]}
    }
    headers = {"A2A-Version": None, "X-A2A-Extensions": IDEMPOTENT_SENDS}
    async with served(counting.agent) as wire:
        told = [await wire.rpc("message/send", sent, headers=headers) for _ in range(2)]

    assert told[0].result["id"] == told[1].result["id"]
    assert told[0].headers["x-a2a-extensions"] == IDEMPOTENT_SENDS
    assert counting.runs == 1


@pytest.mark.req("SEND-01")
async def test_agents_on_one_store_do_not_find_each_others_tasks(tmp_path: Any) -> None:
    store = f"sqlite:///{tmp_path}/tasks.db"
    ids = []
    for name in ("One", "Two"):
        agent = Agent(name, description="x", extensions=[IdempotentSends()])

        @agent.task
        async def work(ctx):  # type: ignore[no-untyped-def]
            return ctx.text

        async with served(agent, store=store) as wire:
            told = await wire.rpc("SendMessage", said(), headers={"A2A-Extensions": IDEMPOTENT_SENDS})
        ids.append(told.result["task"]["id"])

    assert ids[0] != ids[1]


async def test_the_memory_of_direct_replies_is_bounded() -> None:
    counting = Counting(opening="reply", extension=IdempotentSends(remembered=3))
    async with App(counting.agent):
        pass
    asked = {"A2A-Extensions": IDEMPOTENT_SENDS}
    async with served(counting.agent) as wire:
        for number in range(5):
            await wire.rpc("SendMessage", said(messageId=f"m-{number}"), headers=asked)
        await wire.rpc("SendMessage", said(messageId="m-4"), headers=asked)
        await wire.rpc("SendMessage", said(messageId="m-0"), headers=asked)

    assert counting.runs == 6
