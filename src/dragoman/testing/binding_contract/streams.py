"""Streams: their events, their order, their ends, and each for itself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from dragoman.errors import InternalError, TaskNotFoundError, UnavailableError, UnsupportedOperationError
from dragoman.model import (
    SEND_STREAMING_MESSAGE,
    SUBSCRIBE_TO_TASK,
    SendMessageRequest,
    SubscribeToTaskRequest,
    Task,
    TaskState,
)
from dragoman.ports.operations import CallContext, Event
from dragoman.protocol.extensions import RESUMABLE_STREAMS
from dragoman.server import Agent, Context
from dragoman.testing.binding_contract.operations import echo
from dragoman.testing.binding_contract.reaching import BOUND, Reach, proves, refusal
from dragoman.testing.binding_contract.scripted import (
    STREAMS,
    Answer,
    Scripted,
    sample_message,
    sample_request,
    status_event,
    text_of,
)

SEND = SendMessageRequest(message=sample_message())
SUBSCRIBE = SubscribeToTaskRequest(id="t-1")


def counter() -> Agent:
    """Streams as many chunks of a kilobyte as it is told."""
    agent = Agent("Counter", description="Counts")

    @agent.task
    async def count(ctx: Context) -> AsyncIterator[str]:
        for number in range(int(ctx.text)):
            yield f"{number} ".ljust(1024)

    return agent


class StreamContract:
    """What a stream carries over the wire."""

    @proves("BIND-07")
    async def test_events_come_in_order_and_the_stream_ends_after_the_last(self, reach: Reach) -> None:
        """A thousand of them, with nothing missing and nothing twice."""
        scripted = Scripted(events={"SendStreamingMessage": [status_event(n) for n in range(1, 1001)]})
        operations = (await reach(echo(), interceptors=[scripted])).operations

        async with (
            asyncio.timeout(BOUND),
            await operations.stream(SEND_STREAMING_MESSAGE, SEND, CallContext()) as stream,
        ):
            texts = [text_of(event) async for event in stream]
            after = await stream.next_batch()

        assert texts == [str(n) for n in range(1, 1001)]
        assert after == []

    @proves("BIND-07", "AMB-09")
    async def test_an_error_before_the_first_event_is_that_of_the_call(self, reach: Reach) -> None:
        """It comes from the opening, not from the stream."""
        refused: dict[str, Answer] = {
            op.name: TaskNotFoundError("No such task", metadata={"task": "t-1"}) for op in STREAMS
        }
        operations = (await reach(echo(), interceptors=[Scripted(refused)])).operations

        for op in STREAMS:
            error = await refusal(operations.stream(op, sample_request(op), CallContext()))
            assert isinstance(error, TaskNotFoundError)
            assert (error.message, error.metadata) == ("No such task", {"task": "t-1"})

    @proves("BIND-07", "AMB-10")
    async def test_an_error_of_an_open_stream_comes_after_its_events(self, reach: Reach) -> None:
        """With its type."""
        events: list[Event | Exception] = [
            status_event(1),
            status_event(2),
            UnavailableError("Come again", retry_after=1),
        ]
        operations = (await reach(echo(), interceptors=[Scripted(events={"SubscribeToTask": events})])).operations
        came: list[str] = []

        async def read() -> None:
            async with await operations.stream(SUBSCRIBE_TO_TASK, SUBSCRIBE, CallContext()) as stream:
                async for event in stream:
                    came.append(text_of(event))

        error = await refusal(read())

        assert came == ["1", "2"]
        assert isinstance(error, UnavailableError)
        assert error.message == "Come again"

    @proves("BIND-06", "ERR-13")
    async def test_an_unknown_failure_of_an_open_stream_tells_nothing_of_itself(self, reach: Reach) -> None:
        """InternalError, without the text of the exception."""
        events: list[Event | Exception] = [status_event(1), ValueError("secret")]
        operations = (await reach(echo(), interceptors=[Scripted(events={"SubscribeToTask": events})])).operations

        async def read() -> None:
            async with await operations.stream(SUBSCRIBE_TO_TASK, SUBSCRIBE, CallContext()) as stream:
                async for _ in stream:
                    pass

        error = await refusal(read())

        assert type(error) is InternalError
        assert "secret" not in str(error)

    @proves("BIND-07")
    async def test_an_event_of_a_mebibyte_comes_whole_between_small_ones(self, reach: Reach) -> None:
        """Whatever the window of flow control is."""
        large = "é" * 2**19
        events = [status_event(1), status_event(2, large), status_event(3)]
        operations = (await reach(echo(), interceptors=[Scripted(events={"SubscribeToTask": events})])).operations

        async with (
            asyncio.timeout(BOUND),
            await operations.stream(SUBSCRIBE_TO_TASK, SUBSCRIBE, CallContext()) as stream,
        ):
            texts = [text_of(event) async for event in stream]

        assert texts == ["1", large, "3"]

    @proves("BIND-07")
    async def test_a_stream_that_nobody_reads_holds_back_no_call_and_no_other_stream(self, reach: Reach) -> None:
        """Four megabytes wait on one stream, while others go on; then they come, too."""
        client = (await reach(counter())).client
        sent = SendMessageRequest(message=sample_message("4000"))

        async with asyncio.timeout(3 * BOUND):
            slow = await client.operations.stream(SEND_STREAMING_MESSAGE, sent, CallContext())
            first = await slow.next_batch()
            results = await asyncio.gather(*(client.run("100") for _ in range(5)))
            rest = [event async for event in slow]

        assert [len(result.text) for result in results] == [100 * 1024] * 5
        texts = [_chunk(event) for event in (*first, *rest)]
        assert [text for text in texts if text] == [f"{n} ".ljust(1024) for n in range(4000)]

    @proves("BIND-07")
    async def test_twenty_streams_run_side_by_side(self, reach: Reach) -> None:
        """Each with its own events in order."""
        client = (await reach(counter())).client

        async with asyncio.timeout(3 * BOUND):
            results = await asyncio.gather(*(client.run(str(50 + number)) for number in range(20)))

        lengths = [len(result.text) for result in results]
        assert lengths == [(50 + number) * 1024 for number in range(20)]

    @proves("BIND-07", "STRM-04")
    async def test_a_stream_that_is_closed_early_leaves_the_task_alone(self, reach: Reach) -> None:
        """And it can be subscribed to, from a snapshot on."""
        client = (await reach(echo())).client
        async with asyncio.timeout(BOUND):
            async with client.stream("wait") as stream:
                begun = await anext(stream)
                assert isinstance(begun, Task)
            again = client.subscribe(begun.id)
            snapshot = await anext(again)
            await client.cancel(begun.id)
            rest = [event async for event in again]

        assert isinstance(snapshot, Task)
        assert (snapshot.id, snapshot.status.state) == (begun.id, TaskState.WORKING)
        assert len(rest) >= 1

    @proves("BIND-07", "SUB-03")
    async def test_a_task_that_is_over_cannot_be_subscribed_to(self, reach: Reach) -> None:
        """UnsupportedOperationError, before a stream is open."""
        reached = await reach(echo())
        sent = await reached.client.send("hello")
        assert isinstance(sent, Task)

        request = SubscribeToTaskRequest(id=sent.id)
        error = await refusal(reached.operations.stream(SUBSCRIBE_TO_TASK, request, CallContext()))

        assert isinstance(error, UnsupportedOperationError)

    @proves("BIND-08", "AMB-79")
    async def test_an_agent_without_streams_says_so_on_its_card_and_when_it_is_asked(self, reach: Reach) -> None:
        """By UnsupportedOperationError; the other operations work."""
        agent = Agent("Plain", description="Answers", streaming=False)

        @agent.task
        async def answer(ctx: Context) -> str:
            return "done"

        reached = await reach(agent)

        error = await refusal(reached.operations.stream(SEND_STREAMING_MESSAGE, SEND, CallContext()))

        assert reached.client.card.capabilities.streaming is False
        assert isinstance(error, UnsupportedOperationError)
        assert (await reached.client.run("hello")).text == "done"

    @proves("BIND-07")
    async def test_a_stream_carries_the_numbers_of_its_events_and_the_number_to_resume_from(self, reach: Reach) -> None:
        """With the extension active: what the client has goes out, the numbers come back."""
        scripted = Scripted(
            events={"SubscribeToTask": [status_event(8), status_event(9)]}, activate=(RESUMABLE_STREAMS,)
        )
        operations = (await reach(echo(), interceptors=[scripted])).operations
        context = CallContext(extensions=(RESUMABLE_STREAMS,), last_event_id=7)

        async with asyncio.timeout(BOUND), await operations.stream(SUBSCRIBE_TO_TASK, SUBSCRIBE, context) as stream:
            numbers = [event.number async for event in stream]

        assert numbers == [8, 9]
        assert scripted.seen[0][2].last_event_id == 7


def _chunk(event: Event) -> str:
    update = event.response.artifact_update
    return "".join(part.text or "" for part in update.artifact.parts) if update is not None else ""
