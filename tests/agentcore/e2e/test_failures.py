"""Every row of the table of errors, on every kind of call; what is repeated, and what is not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from dragoman.agentcore import (
    AccessDenied,
    AgentCoreError,
    AgentFailed,
    AuthenticationRequired,
    RequestRejected,
    Retry,
    RuntimeClient,
    RuntimeNotFound,
    ServiceError,
    SessionBusy,
    SessionConflict,
    Throttled,
)
from dragoman.errors import CardError, ClientError
from dragoman.testing.agentcore_front import Fault, Front
from dragoman.testing.agentcore_front.refusals import ROWS
from tests.agentcore.e2e.parts import FastTime, Tides, calling, rehearsal, said

CLASSES = {
    Fault.MISSING_TOKEN: AuthenticationRequired,
    Fault.ACCESS_DENIED: AccessDenied,
    Fault.NOT_FOUND: RuntimeNotFound,
    Fault.VALIDATION: RequestRejected,
    Fault.THROTTLED: Throttled,
    Fault.QUOTA: Throttled,
    Fault.CONFLICT: SessionConflict,
    Fault.BUSY: SessionBusy,
    Fault.AGENT_FAILED: AgentFailed,
    Fault.INTERNAL: ServiceError,
    Fault.HTML_502: ServiceError,
    Fault.EMPTY_500: ServiceError,
}
PASSING = {Fault.THROTTLED, Fault.QUOTA, Fault.BUSY}
"""Repeated for every call; failures of the agent and the service are repeated for calls without side effects."""

FAILED = {Fault.AGENT_FAILED, Fault.INTERNAL, Fault.HTML_502, Fault.EMPTY_500, Fault.DROP}
METHODS = {"send": "SendMessage", "stream": "SendStreamingMessage", "get": "GetTask", "card": ""}


@pytest.fixture
def tides() -> Tides:
    """An agent in the hands of the test."""
    return Tides()


@pytest.fixture
async def front(tides: Tides) -> AsyncIterator[Front]:
    """The front before it."""
    async with rehearsal(tides.agent) as running:
        yield running


async def make(call: str, client: RuntimeClient, task_id: str) -> None:
    if call == "send":
        await client.send("hello")
    elif call == "stream":
        async for _ in client.stream("hello"):
            pass
    else:
        await client.get_task(task_id)


async def attempt(call: str, front: Front, fault: Fault, times: int) -> int:
    """Make a call that meets a fault; how often it was made. Raises what it ends with."""
    time = FastTime()
    if call == "card":
        front.fail_next(fault, times, path="agent-card.json")
        before = len(front.requests)
        try:
            async with calling(front, timing=time.timing()):
                pass
        finally:
            made = len(front.requests) - before
        return made
    async with calling(front, timing=time.timing()) as client:
        task = await client.send("first")
        front.fail_next(fault, times, method=METHODS[call])
        before = len(front.requests)
        await make(call, client, task.id)
    return len(front.requests) - before


@pytest.mark.req("E2E-09")
@pytest.mark.parametrize("call", METHODS)
@pytest.mark.parametrize("fault", CLASSES)
async def test_each_row_on_each_kind_of_call_is_an_error_of_its_own_class(
    front: Front, fault: Fault, call: str
) -> None:
    with pytest.raises(CLASSES[fault]) as raised:
        await attempt(call, front, fault, times=100)

    error = raised.value
    assert isinstance(error, AgentCoreError)
    assert isinstance(error, ClientError)
    row = ROWS.get(fault)
    assert error.origin.status == (row.status if row else {Fault.HTML_502: 502, Fault.EMPTY_500: 500}[fault])
    assert error.origin.code == (row.code if row and row.status != 403 else None)
    assert len(error.session_id) >= 33
    assert error.attempts >= 1
    if row is not None and fault is not Fault.MISSING_TOKEN:
        assert row.message in str(error)


@pytest.mark.req("E2E-09")
@pytest.mark.parametrize("call", METHODS)
@pytest.mark.parametrize("fault", [*CLASSES, Fault.DROP])
async def test_what_passes_by_itself_is_repeated_where_that_is_safe(front: Front, fault: Fault, call: str) -> None:
    repeated = fault in PASSING or (fault in FAILED and call in ("get", "card"))
    if not repeated:
        with pytest.raises(ClientError):
            await attempt(call, front, fault, times=1)
        return

    assert await attempt(call, front, fault, times=1) == 2


@pytest.mark.req("E2E-07")
async def test_a_busy_session_is_asked_again_with_the_same_message_and_another_signature(front: Front) -> None:
    time = FastTime()
    started = asyncio.get_running_loop().time()
    wall = front.now()
    timing = time.timing(wall=lambda: wall + time.past + asyncio.get_running_loop().time() - started)
    async with calling(front, timing=timing, card=False) as client:
        front.fail_next(Fault.BUSY, 3)
        task = await client.send("hello")

    assert said(task) == ["18:42, hello"]
    assert [record.status for record in front.requests] == [409, 409, 409, 200]
    assert time.waits == [0.5, 1.0, 2.0]
    assert len({record.body_digest for record in front.requests}) == 1  # the same id, the same messageId
    assert len({record.headers["x-amz-date"] for record in front.requests}) >= 3
    assert len({record.headers["authorization"] for record in front.requests}) >= 3


@pytest.mark.req("E2E-07")
async def test_a_session_that_stays_busy_is_given_up_after_its_window(front: Front) -> None:
    time = FastTime()
    async with calling(front, timing=time.timing(), card=False, retry=Retry(busy_window=20.0)) as client:
        front.fail_next(Fault.BUSY, 100)
        with pytest.raises(SessionBusy) as raised:
            await client.send("hello")

    assert raised.value.attempts == len(front.requests) == len(time.waits) + 1
    assert sum(time.waits) <= 20
    assert raised.value.retryable


@pytest.mark.req("E2E-08")
async def test_a_plain_conflict_is_not_repeated(front: Front) -> None:
    time = FastTime()
    async with calling(front, timing=time.timing(), card=False) as client:
        front.fail_next(Fault.CONFLICT)
        with pytest.raises(SessionConflict) as raised:
            await client.send("hello")

    assert (raised.value.attempts, raised.value.retryable, time.waits) == (1, False, [])
    assert len(front.requests) == 1


@pytest.mark.req("E2E-14")
async def test_a_card_that_names_another_host_gets_no_credentials_there(tides: Tides) -> None:
    connections = []

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(await reader.read(1_000))
        writer.close()

    elsewhere = await asyncio.start_server(accept, "127.0.0.1", 0)
    place = f"http://127.0.0.1:{elsewhere.sockets[0].getsockname()[1]}/runtimes/x/invocations/"
    async with elsewhere, rehearsal(tides.agent, environment={}, public_url=place) as front:
        with pytest.raises(CardError):
            async with calling(front) as client:
                await client.send("hello")

    assert connections == []
    assert [record.method for record in front.requests] == ["GET"]
