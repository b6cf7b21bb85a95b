"""What version 0.3 has no words for is refused here or made up for, so that callers see the present version."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from dragoman import V03Settings
from dragoman.errors import ConfigurationError, RequestTimeoutError, UnsupportedOperationError
from dragoman.model import GET_TASK, GetTaskRequest, Task, TaskState
from dragoman.ports.operations import CallContext
from tests.compat.client.words import REST, RPC, connect_to, events, message, old_card, status, task
from tests.http.peer import Peer, peer, result

HISTORY = [message(text, role="user") for text in "abc"]


@pytest.fixture
async def server() -> AsyncIterator[Peer]:
    async with peer() as made:
        yield made


@pytest.mark.req("V03-01", "V03-06")
@pytest.mark.parametrize("binding", [RPC, REST])
async def test_tasks_cannot_be_listed_and_nothing_is_sent(server: Peer, binding: str) -> None:
    async with connect_to(server, binding) as client:
        with pytest.raises(UnsupportedOperationError, match=r"0\.3"):
            await client.list_tasks()

    assert server.received == []


@pytest.mark.req("V03-01")
async def test_a_tenant_cannot_be_named_and_nothing_is_sent(server: Peer) -> None:
    async with connect_to(server) as client:
        with pytest.raises(UnsupportedOperationError, match="tenant"):
            await client.operations.call(GET_TASK, GetTaskRequest(id="t1", tenant="acme"), CallContext())

    assert server.received == []


@pytest.mark.req("V03-01")
async def test_a_tenant_of_the_interface_is_left_out(server: Peer) -> None:
    entry = {"url": server.url, "protocolBinding": RPC, "protocolVersion": "0.3", "tenant": "acme"}
    server.on("POST", "/", result(task("completed")))

    async with connect_to(server, card={"name": "Both", "supportedInterfaces": [entry]}) as client:
        await client.send("hi")

    assert "acme" not in server.received[0].body.decode()


@pytest.mark.req("V03-P23", "SEND-15")
@pytest.mark.parametrize(("length", "asked", "kept"), [(0, 1, ""), (2, 2, "bc"), (None, None, "abc")])
async def test_the_history_is_as_long_as_was_asked_for_whatever_the_agent_sends(
    server: Peer, length: int | None, asked: int | None, kept: str
) -> None:
    server.on("POST", "/", result(task("completed", history=HISTORY)))

    async with connect_to(server) as client:
        got = await client.get_task("t1", history_length=length)
        sent = await client.send("hi", history_length=length)

    assert isinstance(sent, Task)
    assert ["".join(m.parts[0].text or "" for m in found.history) for found in (got, sent)] == [kept, kept]
    assert server.received[0].json["params"].get("historyLength") == asked
    assert server.received[1].json["params"]["configuration"].get("historyLength") == asked


@pytest.mark.req("V03-P23")
async def test_the_history_of_a_streamed_task_is_cut_too(server: Peer) -> None:
    server.on("POST", "/", events(task("working", history=HISTORY), status("completed", final=True), stay=True))

    async with connect_to(server) as client:
        seen = [event async for event in client.stream("hi", history_length=0)]

    assert isinstance(seen[0], Task)
    assert (seen[0].history, len(seen)) == ([], 2)


@pytest.mark.req("VER-17", "XCARD-01")
async def test_an_extended_card_that_is_not_announced_is_not_asked_for(server: Peer) -> None:
    value = old_card(server.url, supportsAuthenticatedExtendedCard=False)

    async with connect_to(server, card=value) as client:
        with pytest.raises(UnsupportedOperationError):
            await client.get_extended_card()

    assert server.received == []


@pytest.mark.req("V03-P05")
async def test_an_agent_that_does_not_wait_is_asked_again_where_that_was_wanted(server: Peer) -> None:
    working, done = result(task("working")), result(task("completed"))
    server.on("POST", "/", working, working, working, done)

    async with connect_to(server) as plain, connect_to(server, v03=V03Settings(poll_unsettled=True)) as patient:
        at_once = await plain.send("hi")
        settled = await patient.send("hi")

    assert isinstance(at_once, Task)
    assert isinstance(settled, Task)
    assert (at_once.status.state, settled.status.state) == (TaskState.WORKING, TaskState.COMPLETED)
    assert [each.json["method"] for each in server.received] == [*["message/send"] * 2, *["tasks/get"] * 2]


@pytest.mark.req("V03-P05")
async def test_asking_again_keeps_to_the_time_of_the_call_and_to_what_was_meant(server: Peer) -> None:
    server.on("POST", "/", result(task("working")))

    async with connect_to(server, v03=V03Settings(poll_unsettled=True)) as client:
        at_once = await client.send("hi", wait=False)
        with pytest.raises(RequestTimeoutError):
            await client.send("hi", timeout=0.2)

    assert isinstance(at_once, Task)


def test_a_dialect_that_there_is_none_of_is_a_mistake_of_the_caller() -> None:
    with pytest.raises(ConfigurationError, match="dialect"):
        V03Settings(dialect="D")  # type: ignore[arg-type]
