"""The operations as methods, and the choice of the interface."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest

from dragoman.client import connect
from dragoman.errors import (
    CardError,
    ConfigurationError,
    ConnectError,
    InvalidAgentResponseError,
    OutboundUrlError,
    PushNotificationNotSupportedError,
    TaskNotCancelableError,
    UnsupportedOperationError,
    VersionNotSupportedError,
)
from dragoman.model import AgentInterface, Message, Task, TaskPushNotificationConfig, TaskState
from tests.client.words import card, connect_to, message, serve_card, task
from tests.http.peer import BOUND, Peer, as_json, error, free_url, peer, result, stream

REST = "HTTP+JSON"


@pytest.fixture
async def server() -> AsyncIterator[Peer]:
    async with peer() as made:
        yield made


def params(server: Peer) -> Any:
    return server.received[-1].json["params"]


@pytest.mark.req("SEND-01", "DATA-27")
async def test_send_returns_the_task_or_the_message(server: Peer) -> None:
    server.on("POST", "/", result({"task": task("COMPLETED")}), result({"message": message("hi")}))

    async with connect_to(server) as client:
        assert isinstance(await client.send("a"), Task)
        assert isinstance(await client.send("b"), Message)


@pytest.mark.req("AMB-37", "DATA-27")
async def test_an_answer_without_task_and_message_is_an_invalid_response(server: Peer) -> None:
    server.on("POST", "/", result({}))

    async with connect_to(server) as client:
        with pytest.raises(InvalidAgentResponseError):
            await client.send("a")


@pytest.mark.req("AMB-43", "AMB-44", "B153")
async def test_missing_ids_in_an_answer_are_borne(server: Peer) -> None:
    odd = {
        "id": "t1",
        "status": {"state": "TASK_STATE_COMPLETED", "message": {"role": "ROLE_AGENT"}},
        "artifacts": [{}],
    }
    server.on("POST", "/", result({"task": odd}))

    async with connect_to(server) as client:
        answer = await client.send("a")

    assert isinstance(answer, Task)
    assert (answer.context_id, answer.artifacts[0].artifact_id) == ("", "")


@pytest.mark.req("SEND-10", "SEND-08")
async def test_waiting_is_the_default_and_can_be_turned_off(server: Peer) -> None:
    server.on("POST", "/", result({"task": task("WORKING")}))

    async with connect_to(server) as client:
        await client.send("a")
        waiting = params(server)
        await client.send("a", wait=False)

    assert "configuration" not in waiting
    assert params(server)["configuration"] == {"returnImmediately": True}


@pytest.mark.req("B023", "SEND-14", "DATA-15")
@pytest.mark.parametrize("binding", ["JSONRPC", REST])
async def test_a_history_length_of_zero_is_transmitted(server: Peer, binding: str) -> None:
    server.on("POST", "/", result(task("WORKING")))
    server.on("GET", "/tasks/t1", as_json(task("WORKING")))

    async with connect_to(server, binding) as client:
        await client.get_task("t1", history_length=0)

    sent = server.received[0]
    assert "historyLength=0" in sent.target if binding == REST else params(server)["historyLength"] == 0


@pytest.mark.req("LIST-08", "B027")
async def test_all_tasks_are_read_page_by_page_until_the_token_is_empty(server: Peer) -> None:
    pages = [{"tasks": [task("WORKING", f"t{n}")], "nextPageToken": token} for n, token in enumerate(["p2", "p3", ""])]
    server.on("POST", "/", *map(result, pages))

    async with connect_to(server) as client:
        found = [item.id async for item in client.tasks(context_id="c1", page_size=1, status=TaskState.WORKING)]

    assert found == ["t0", "t1", "t2"]
    sent = [request.json["params"] for request in server.received]
    assert [item.get("pageToken") for item in sent] == [None, "p2", "p3"]
    assert all(
        (item["contextId"], item["pageSize"], item["status"]) == ("c1", 1, "TASK_STATE_WORKING") for item in sent
    )


async def test_pages_that_lead_in_a_circle_are_an_invalid_response(server: Peer) -> None:
    server.on("POST", "/", result({"tasks": [], "nextPageToken": "again"}))

    async with connect_to(server) as client:
        with pytest.raises(InvalidAgentResponseError):
            _ = [item async for item in client.tasks()]


@pytest.mark.req("DATA-07", "DATA-11", "HTTP-05")
async def test_a_moment_is_sent_in_utc(server: Peer) -> None:
    server.on("POST", "/", result({"tasks": []}))

    async with connect_to(server) as client:
        await client.list_tasks(status_timestamp_after=datetime(2026, 1, 2, 3, 4, 5, 678000, tzinfo=UTC))
        with pytest.raises(ValueError, match="time zone"):
            await client.list_tasks(status_timestamp_after=datetime(2026, 1, 2))

    assert params(server)["statusTimestampAfter"] == "2026-01-02T03:04:05.678Z"


@pytest.mark.req("AMB-12", "CANCEL-04")
async def test_canceling_a_canceled_task_is_a_success(server: Peer) -> None:
    server.on("POST", "/", error(-32002, "no", "TASK_NOT_CANCELABLE"), result(task("CANCELED")))

    async with connect_to(server) as client:
        assert (await client.cancel("t1")).status.state is TaskState.CANCELED


@pytest.mark.req("AMB-12")
async def test_canceling_a_completed_task_is_the_agents_error(server: Peer) -> None:
    server.on("POST", "/", error(-32002, "no", "TASK_NOT_CANCELABLE"), result(task("COMPLETED")))

    async with connect_to(server) as client:
        with pytest.raises(TaskNotCancelableError):
            await client.cancel("t1")


@pytest.mark.req("CANCEL-06", "AMB-13")
async def test_a_cancel_returns_the_task_as_it_is_and_may_carry_metadata(server: Peer) -> None:
    server.on("POST", "/", result(task("WORKING")))

    async with connect_to(server) as client:
        found = await client.cancel(await client.get_task("t1"), metadata={"why": "late"})

    assert found.status.state is TaskState.WORKING
    assert params(server) == {"id": "t1", "metadata": {"why": "late"}}


@pytest.mark.req("PCFG-03", "PCFG-12", "PCFG-13")
async def test_webhooks_are_made_read_listed_and_removed(server: Peer) -> None:
    stored = {"id": "p1", "taskId": "t1", "url": "https://hook/"}
    server.on("POST", "/", result(stored), result(stored), result({"configs": [stored]}), result({}))
    config = TaskPushNotificationConfig(url="https://hook/", token="s")

    async with connect_to(server) as client:
        assert (await client.create_push_config("t1", config)).id == "p1"
        assert (await client.get_push_config("t1", "p1")).url == "https://hook/"
        assert len((await client.list_push_configs("t1")).configs) == 1
        await client.delete_push_config("t1", "p1")

    assert server.received[0].json["params"] == {"taskId": "t1", "url": "https://hook/", "token": "s"}
    assert config.task_id == ""


@pytest.mark.req("CARD-13", "PCFG-10", "XCARD-03", "AMB-15")
async def test_what_the_card_does_not_offer_is_refused_without_a_request(server: Peer) -> None:
    async with connect_to(server, card=card(server.url, capabilities={})) as client:
        with pytest.raises(PushNotificationNotSupportedError):
            await client.create_push_config("t1", "https://hook/")
        with pytest.raises(PushNotificationNotSupportedError):
            await client.list_push_configs("t1")
        with pytest.raises(PushNotificationNotSupportedError):
            await client.send("hi", push=TaskPushNotificationConfig(url="https://hook/"))
        with pytest.raises(UnsupportedOperationError):
            await client.get_extended_card()

    assert server.received == []


@pytest.mark.req("XCARD-10", "XCARD-05")
async def test_the_extended_card_takes_the_place_of_the_public_one(server: Peer) -> None:
    server.on("POST", "/", result(card(server.url, name="Extended")))

    async with connect_to(server) as client:
        await client.get_extended_card()
        assert client.card.name == "Extended"


# The interface.


@pytest.mark.req("CARD-09", "CARD-05")
async def test_the_first_interface_of_the_card_is_used(server: Peer) -> None:
    server.on("POST", "/message:send", as_json({"task": task("COMPLETED")}))

    async with connect_to(server, REST, "JSONRPC") as client:
        assert client.interface.protocol_binding == REST
        await client.send("hi")

    assert server.targets() == ["POST /message:send"]


@pytest.mark.req("CARD-12")
async def test_the_next_interface_is_used_when_one_cannot_be_reached_and_remembered(server: Peer) -> None:
    value = card(server.url)
    dead = {"url": free_url(), "protocolBinding": REST, "protocolVersion": "1.0"}
    value["supportedInterfaces"].insert(0, dead)
    server.on("POST", "/", result(task("WORKING")))

    async with connect_to(server, card=value) as client:
        assert client.interface.protocol_binding == REST
        await client.get_task("t1")
        assert client.interface.protocol_binding == "JSONRPC"
        await client.get_task("t1")


async def test_when_no_interface_can_be_reached_the_first_error_is_raised() -> None:
    first, second = free_url(), free_url()
    value = card(first)
    value["supportedInterfaces"].append({"url": second, "protocolBinding": REST, "protocolVersion": "1.0"})

    async with connect(value, timeout=BOUND) as client:
        with pytest.raises(ConnectError) as caught:
            await client.get_task("t1")

    assert caught.value.url == first


@pytest.mark.req("CARD-12")
async def test_an_interface_that_answers_with_an_error_is_not_left(server: Peer) -> None:
    value = card(server.url, "JSONRPC", REST)
    refusal = error(-32009, "only 0.3 here", "VERSION_NOT_SUPPORTED")
    server.on("POST", "/", refusal)

    async with connect_to(server, card=value) as client:
        with pytest.raises(VersionNotSupportedError):
            await client.send("hi")

    assert server.targets() == ["POST /"]


@pytest.mark.req("VER-10", "CARD-11")
async def test_the_caller_may_choose_the_binding(server: Peer) -> None:
    async with connect_to(server, card=card(server.url, "JSONRPC", REST), bindings=[REST]) as client:
        assert client.interface.protocol_binding == REST


@pytest.mark.req("B135")
async def test_an_interface_given_by_the_caller_is_used_instead_of_the_cards(server: Peer) -> None:
    server.on("POST", "/", result(task("WORKING")))
    right = AgentInterface(url=server.url, protocol_binding="JSONRPC", protocol_version="1.0")

    with pytest.raises(CardError):
        await connect(card(f"{server.url}/v1/card")).open()
    async with connect(card(f"{server.url}/v1/card"), interface=right) as client:
        await client.get_task("t1")


async def test_an_interface_alone_is_enough_and_then_everything_is_tried(server: Peer) -> None:
    server.on("POST", "/", stream({"task": task("COMPLETED")}))
    target = AgentInterface(url=server.url, protocol_binding="JSONRPC", protocol_version="1.0")

    async with connect(target) as client:
        assert [type(event) async for event in client.stream("hi")] == [Task]


@pytest.mark.parametrize("bindings", [["PIGEON"], [], ["JSONRPC", "REST"]])
def test_a_binding_that_is_not_known_is_a_configuration_error(bindings: list[str]) -> None:
    with pytest.raises(ConfigurationError, match=r"allowed are JSONRPC, HTTP\+JSON"):
        connect("http://a/", bindings=bindings)


async def test_a_connection_can_be_opened_and_closed_by_hand(server: Peer) -> None:
    serve_card(server)
    connection = connect(server.url)

    client = await connection.open()
    await connection.aclose()
    await connection.aclose()

    assert client.card.name == "Peer"


@pytest.mark.req("AMB-71")
async def test_an_untrusted_card_cannot_lead_inside(server: Peer) -> None:
    async with connect(card(server.url), allow_private=False) as client:
        with pytest.raises(OutboundUrlError):
            await client.send("hi")

    assert server.connections == 0


async def test_many_calls_run_together(server: Peer) -> None:
    server.on("POST", "/", result(task("WORKING")))

    async with connect_to(server) as client:
        found = await asyncio.gather(*(client.get_task("t1") for _ in range(50)))

    assert len(found) == 50
