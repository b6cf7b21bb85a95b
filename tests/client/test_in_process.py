"""A client of an agent in the same process, which must behave as over a wire."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from dragoman.client import connect
from dragoman.errors import (
    InternalError,
    InvalidAgentResponseError,
    InvalidParamsError,
    RequestTimeoutError,
    TaskNotFoundError,
)
from dragoman.model import (
    Part,
    SendMessageRequest,
    SendMessageResponse,
    Task,
    TaskState,
    TaskStatus,
)
from tests.client.local import FixedAgent, FixedOperations, FixedStream, Served, events
from tests.client.words import artifact, status, task


def a_task(**more: Any) -> Task:
    return Task(id="t1", context_id="c1", status=TaskStatus(state=TaskState.COMPLETED), **more)


async def test_an_agent_object_is_started_used_and_stopped() -> None:
    agent = FixedAgent(FixedOperations(SendMessage=SendMessageResponse(task=a_task())))

    async with connect(Served(agent)) as client:
        assert agent.running
        answer = await client.send("hi")

    assert isinstance(answer, Task)
    assert not agent.running


async def test_a_running_local_agent_is_left_running() -> None:
    agent = FixedAgent(FixedOperations(SendMessage=SendMessageResponse(task=a_task())))

    async with connect(agent) as client:
        await client.send("hi")

    assert agent.running


@pytest.mark.req("DATA-02", "B101")
async def test_nothing_is_shared_between_the_two_sides() -> None:
    kept = a_task(metadata={"a": [1]})
    operations = FixedOperations(SendMessage=SendMessageResponse(task=kept))
    said = {"numbers": [1, 2]}

    async with connect(FixedAgent(operations)) as client:
        answer = await client.send(Part(data=said))

    request = operations.seen[0][1]
    assert isinstance(request, SendMessageRequest)
    assert request.message.parts[0].data == said
    assert request.message.parts[0].data is not said
    assert isinstance(answer, Task)
    assert answer == kept
    assert answer.metadata is not kept.metadata


async def test_service_parameters_and_timeouts_arrive_as_over_a_wire() -> None:
    operations = FixedOperations(SendMessage=SendMessageResponse(task=a_task()))

    async with connect(FixedAgent(operations), extensions=["urn:a"], headers={"X-Trace": "7"}) as client:
        await client.send("hi", timeout=3.0)

    context = operations.seen[0][2]
    assert (context.version, context.extensions, context.timeout) == ("1.0", ("urn:a",), 3.0)
    assert context.parameters == {"x-trace": "7"}
    assert context.caller.is_anonymous


async def test_events_are_read_anew_and_keep_their_numbers() -> None:
    batch = events({"task": task("WORKING")}, artifact("a"), status("COMPLETED"))
    stream = FixedStream(batch)

    async with connect(FixedAgent(FixedOperations(SendStreamingMessage=stream))) as client:
        found = client.stream("hi")
        received = [event async for event in found]

    assert len(received) == 3
    assert received[0] == batch[0].response.task
    assert received[0] is not batch[0].response.task
    assert (found.last_event_id, stream.closed) == ("3", True)


async def test_errors_of_the_protocol_come_as_they_are() -> None:
    operations = FixedOperations(GetTask=TaskNotFoundError(metadata={"taskId": "x"}))

    async with connect(FixedAgent(operations)) as client:
        with pytest.raises(TaskNotFoundError) as caught:
            await client.get_task("x")

    assert caught.value.metadata == {"taskId": "x"}


async def test_a_failure_inside_is_logged_and_told_in_neutral_words(caplog: pytest.LogCaptureFixture) -> None:
    operations = FixedOperations(
        GetTask=ValueError("secret"), SendStreamingMessage=FixedStream(failure=KeyError("secret"))
    )

    async with connect(FixedAgent(operations)) as client:
        with caplog.at_level(logging.ERROR), pytest.raises(InternalError) as caught:
            await client.get_task("x")
        with pytest.raises(InternalError):
            await anext(client.stream("hi"))

    assert "secret" not in str(caught.value)
    assert [record.exc_info is not None for record in caplog.records] == [True, True]


async def test_the_timeout_of_a_call_is_kept() -> None:
    class Slow(FixedOperations):
        async def call(self, *args: Any) -> Any:
            await asyncio.Event().wait()

    async with connect(FixedAgent(Slow())) as client:
        with pytest.raises(RequestTimeoutError, match="GetTask"):
            await client.get_task("t1", timeout=0.01)


async def test_what_cannot_be_written_is_refused_before_it_is_sent() -> None:
    operations = FixedOperations(SendMessage=SendMessageResponse(task=a_task()))

    async with connect(FixedAgent(operations)) as client:
        with pytest.raises(InvalidParamsError):
            await client.send("\ud800")

    assert operations.seen == []


async def test_an_answer_that_cannot_be_written_is_an_invalid_response() -> None:
    broken = a_task(metadata={"x": "\ud800"})

    async with connect(FixedAgent(FixedOperations(GetTask=broken))) as client:
        with pytest.raises(InvalidAgentResponseError):
            await client.get_task("t1")


async def test_interceptors_see_every_call_the_first_one_outermost() -> None:
    operations = FixedOperations(GetTask=a_task())
    order: list[str] = []

    class Noting:
        def __init__(self, name: str, inner: Any) -> None:
            self.name, self.inner = name, inner

        async def call(self, op: Any, request: Any, context: Any) -> Any:
            order.append(self.name)
            return await self.inner.call(op, request, context)

        async def stream(self, op: Any, request: Any, context: Any) -> Any:
            return await self.inner.stream(op, request, context)

    wrap = [lambda inner: Noting("outer", inner), lambda inner: Noting("inner", inner)]
    async with connect(FixedAgent(operations), interceptors=wrap) as client:
        await client.get_task("t1")

    assert order == ["outer", "inner"]


async def test_what_names_no_agent_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="names no agent"):
        await connect(42).open()  # type: ignore[arg-type]
