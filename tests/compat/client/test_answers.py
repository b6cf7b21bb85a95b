"""What agents of version 0.3 answer, each in the habits of its SDK, and what our client makes of it."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from dragoman.errors import (
    A2AError,
    ContentTypeNotSupportedError,
    ExtendedAgentCardNotConfiguredError,
    InternalError,
    InvalidAgentResponseError,
    InvalidParamsError,
    InvalidRequestError,
    JSONParseError,
    MethodNotFoundError,
    PushNotificationNotSupportedError,
    RemoteError,
    TaskNotCancelableError,
    TaskNotFoundError,
    UnauthenticatedError,
    UnsupportedOperationError,
)
from dragoman.model import Message, Role, Task, TaskState
from tests.compat.client.words import REST, RPC, connect_to, events, message, proto, rpc_error, task
from tests.http.peer import Answer, Peer, as_json, peer, plain, result


@pytest.fixture
async def server() -> AsyncIterator[Peer]:
    async with peer() as made:
        yield made


async def sent(server: Peer, binding: str, answer: Answer, **options: Any) -> Task | Message:
    server.on("POST", "/", answer).on("POST", "/v1/message:send", answer)
    async with connect_to(server, binding, **options) as client:
        return await client.send("hi")


STATES = {
    "submitted": TaskState.SUBMITTED,
    "working": TaskState.WORKING,
    "input-required": TaskState.INPUT_REQUIRED,
    "completed": TaskState.COMPLETED,
    "canceled": TaskState.CANCELED,
    "failed": TaskState.FAILED,
    "rejected": TaskState.REJECTED,
    "auth-required": TaskState.AUTH_REQUIRED,
    "unknown": TaskState.UNSPECIFIED,
}


@pytest.mark.req("V03-01", "B151", "V03-P31")
@pytest.mark.parametrize("binding", [RPC, REST])
@pytest.mark.parametrize("word", STATES)
async def test_all_nine_states_are_known(server: Peer, word: str, binding: str) -> None:
    answer = result(task(word)) if binding == RPC else as_json(proto(task(word)))

    found = await sent(server, binding, answer)

    assert isinstance(found, Task)
    assert found.status.state is STATES[word]


@pytest.mark.req("V03-01", "V03-P02")
@pytest.mark.parametrize(
    "answer",
    [
        proto(task("completed")),
        {"task": task("completed")},
        task("completed"),
        {"task": {"id": "t1", "context_id": "c1", "status": {"state": 3}}},
    ],
    ids=["A", "B", "C", "snake case and numbers"],
)
async def test_each_json_of_http_json_is_read(server: Peer, answer: dict[str, Any]) -> None:
    found = await sent(server, REST, as_json(answer))

    assert isinstance(found, Task)
    assert (found.id, found.context_id, found.status.state) == ("t1", "c1", TaskState.COMPLETED)


@pytest.mark.req("V03-01", "V03-04")
@pytest.mark.parametrize("binding", [RPC, REST])
async def test_a_direct_message_is_read(server: Peer, binding: str) -> None:
    said = message("hello", contextId="c9")

    found = await sent(server, binding, result(said) if binding == RPC else as_json(proto(said)))

    assert isinstance(found, Message)
    assert (found.role, found.parts[0].text, found.context_id) == (Role.AGENT, "hello", "c9")


@pytest.mark.req("V03-01", "AC-C-62")
async def test_missing_kinds_are_inferred_and_unknown_members_passed_over(server: Peer) -> None:
    bare = {"id": "t1", "contextId": "c1", "status": {"state": "completed"}, "new": {"x": 1}}
    bare["artifacts"] = [{"artifactId": "a", "parts": [{"text": "one", "later": True}]}]

    found = await sent(server, RPC, result(bare))

    assert isinstance(found, Task)
    assert found.artifacts[0].parts[0].text == "one"


@pytest.mark.req("AC-C-46")
async def test_a_result_of_artifacts_alone_is_a_task_without_ids_and_one_warning(
    server: Peer, caplog: pytest.LogCaptureFixture
) -> None:
    sample = {"artifacts": [{"artifactId": "x", "name": "said", "parts": [{"kind": "text", "text": "42"}]}]}
    server.on("POST", "/", result(sample))

    with caplog.at_level(logging.WARNING, "dragoman.client"):
        async with connect_to(server) as client:
            first = await client.send("hi")
            client.card.capabilities.streaming = False
            run = await client.run("hi", timeout=5)

    assert isinstance(first, Task)
    assert (first.id, first.status.state, first.artifacts[0].parts[0].text) == ("", TaskState.UNSPECIFIED, "42")
    assert run.text == "42"
    assert len(server.received) == 2
    assert len(caplog.records) == 1


@pytest.mark.req("AC-C-46", "AC-C-42")
@pytest.mark.parametrize("wrong", [{}, {"kind": "parrot"}, [], "x", None])
async def test_a_result_that_is_neither_task_nor_message_is_an_invalid_answer(server: Peer, wrong: Any) -> None:
    with pytest.raises(InvalidAgentResponseError):
        await sent(server, RPC, result(wrong))


@pytest.mark.req("AC-C-42")
@pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
async def test_a_streaming_call_may_be_answered_by_one_result(server: Peer, kind: str) -> None:
    async def answer(request: Any, writer: Any) -> None:
        body = {"jsonrpc": "2.0", "id": request.json["id"], "result": task("completed")}
        await as_json(body, **({"content_type": kind} if kind != "application/json" else {}))(request, writer)

    server.on("POST", "/", answer)
    async with connect_to(server) as client:
        seen = [event async for event in client.stream("hi")]

    assert [type(event) for event in seen] == [Task]


@pytest.mark.req("AC-C-42", "V03-01")
@pytest.mark.parametrize("status", [200, 400, 500])
@pytest.mark.parametrize("with_id", [True, False])
async def test_a_streaming_call_may_be_answered_by_an_error(server: Peer, status: int, with_id: bool) -> None:
    server.on("POST", "/", rpc_error(-32005, "no such type", with_id=with_id, status=status))

    async with connect_to(server) as client:
        with pytest.raises(ContentTypeNotSupportedError, match="no such type"):
            async for _ in client.stream("hi"):
                pass


CODES: list[tuple[int, type[A2AError]]] = [
    (-32700, JSONParseError),
    (-32600, InvalidRequestError),
    (-32601, MethodNotFoundError),
    (-32602, InvalidParamsError),
    (-32603, InternalError),
    (-32001, TaskNotFoundError),
    (-32002, TaskNotCancelableError),
    (-32003, PushNotificationNotSupportedError),
    (-32004, UnsupportedOperationError),
    (-32005, ContentTypeNotSupportedError),
    (-32006, InvalidAgentResponseError),
    (-32007, ExtendedAgentCardNotConfiguredError),
    (-31999, RemoteError),
]


@pytest.mark.req("V03-01", "V03-P01")
@pytest.mark.parametrize(("code", "kind"), CODES)
@pytest.mark.parametrize("data", [None, {"state": "completed"}, [{"loc": ["x"]}], "text"])
async def test_each_code_is_the_class_it_is_in_1_0_whatever_its_data(
    server: Peer, code: int, kind: type[A2AError], data: Any
) -> None:
    server.on("POST", "/", rpc_error(code, "because", data=data))

    async with connect_to(server) as client:
        with pytest.raises(kind) as caught:
            await client.get_task("t1")

    assert caught.value.message.startswith("because")
    assert caught.value.origin is not None
    assert caught.value.origin.code == code


@pytest.mark.req("V03-01", "V03-P20")
@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (404, {"message": "Task not found"}, TaskNotFoundError),
        (404, {"code": -32001, "message": "Task not found"}, TaskNotFoundError),
        (404, {"error": "io.a2a.spec.TaskNotFoundError", "message": "no"}, TaskNotFoundError),
        (409, {"message": "Task cannot be canceled"}, TaskNotCancelableError),
        (415, {"message": "no"}, ContentTypeNotSupportedError),
        (501, {"message": "no"}, UnsupportedOperationError),
        (501, {"code": -32003, "type": "PushNotificationNotSupportedError"}, PushNotificationNotSupportedError),
        (422, {"message": "no"}, InvalidParamsError),
        (401, {"message": "no"}, UnauthenticatedError),
        (500, "unknown exception", InternalError),
    ],
)
async def test_errors_of_http_json_are_told_by_code_then_class_then_status(
    server: Peer, status: int, body: Any, kind: type[A2AError]
) -> None:
    server.on("GET", "/v1/tasks/t1", as_json(body, status=status))

    async with connect_to(server, REST) as client:
        with pytest.raises(kind):
            await client.get_task("t1")


@pytest.mark.req("V03-P19")
async def test_a_deletion_without_a_result_is_done(server: Peer) -> None:
    async def answer(request: Any, writer: Any) -> None:
        await as_json({"jsonrpc": "2.0", "id": request.json["id"]})(request, writer)

    server.on("POST", "/", answer)
    async with connect_to(server) as client:
        await client.delete_push_config("t1", "h1")

    assert server.received[0].json["method"] == "tasks/pushNotificationConfig/delete"


@pytest.mark.req("V03-P26")
@pytest.mark.parametrize(
    "refusal", [plain(500, b"unknown exception"), as_json({"detail": "Not Found"}, 404), as_json({"detail": "x"}, 405)]
)
async def test_servers_that_lack_list_and_delete_of_webhooks_do_not_support_them(server: Peer, refusal: Answer) -> None:
    path = "/v1/tasks/t1/pushNotificationConfigs"
    server.on("GET", path, refusal).on("DELETE", f"{path}/h1", refusal)

    async with connect_to(server, REST) as client:
        with pytest.raises(UnsupportedOperationError):
            await client.list_push_configs("t1")
        with pytest.raises(UnsupportedOperationError):
            await client.delete_push_config("t1", "h1")


@pytest.mark.req("V03-P27", "AC-C-62")
@pytest.mark.parametrize(
    "scheme",
    [
        {"type": "apiKey", "in": "header", "name": "X-Key"},
        {"apiKeySecurityScheme": {"location": "header", "name": "X-Key"}},
    ],
    ids=["kind", "proto"],
)
async def test_the_extended_card_is_read_in_both_shapes(server: Peer, scheme: dict[str, Any]) -> None:
    from tests.compat.client.words import old_card

    server.on("GET", "/v1/card", as_json(old_card(server.url, REST, securitySchemes={"key": scheme})))

    async with connect_to(server, REST) as client:
        card = await client.get_extended_card()

    found = card.security_schemes["key"].api_key_security_scheme
    assert found is not None
    assert (found.location, found.name) == ("header", "X-Key")


@pytest.mark.req("V03-P24")
async def test_a_status_without_a_message_has_none(server: Peer) -> None:
    found = await sent(server, RPC, result(task("completed")))

    assert isinstance(found, Task)
    assert (found.status.message, found.status.timestamp) == (None, None)


@pytest.mark.req("V03-01", "ERR-02")
@pytest.mark.parametrize("binding", [RPC, REST])
async def test_a_missing_credential_is_told_by_the_status_whatever_the_body_says(server: Peer, binding: str) -> None:
    body = {"jsonrpc": "2.0", "id": None, "error": {"code": -32603, "message": "no"}} if binding == RPC else {"x": 1}

    with pytest.raises(UnauthenticatedError) as caught:
        await sent(server, binding, as_json(body, 401, WWW_Authenticate="Bearer"))

    assert caught.value.metadata["challenge"] == "Bearer"


@pytest.mark.req("V03-P28")
async def test_an_http_client_that_was_brought_along_is_not_closed(server: Peer) -> None:
    async with httpx2.AsyncClient() as own:
        await sent(server, RPC, result(task("completed")), http=own)
        assert not own.is_closed


@pytest.mark.req("AC-C-62")
async def test_a_card_as_vendors_write_it_is_enough(server: Peer) -> None:
    value = {
        "name": "Sample",
        "description": "As printed",
        "version": "1",
        "url": server.url,
        "protocolVersion": "0.3.0",
        "preferredTransport": "JSONRPC",
        "capabilities": {"streaming": True},
        "defaultInputModes": ["text"],
        "defaultOutputModes": ["text"],
        "skills": [{"id": "s", "name": "S", "description": "d", "tags": []}],
    }

    found = await sent(server, RPC, result(task("completed")), card=value)

    assert isinstance(found, Task)


@pytest.mark.req("V03-01")
async def test_an_error_may_end_a_stream(server: Peer) -> None:
    refusal = {"error": {"code": -32006, "message": "the agent broke"}}
    server.on("POST", "/", events(task("working"), refusal))

    async with connect_to(server) as client:
        stream = client.stream("hi")
        first = await anext(stream)
        with pytest.raises(InvalidAgentResponseError, match="the agent broke"):
            await anext(stream)

    assert isinstance(first, Task)
