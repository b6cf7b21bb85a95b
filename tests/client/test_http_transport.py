"""The HTTP caller: what goes over the wire, and what is made of every kind of answer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from dragoman.client import connect
from dragoman.errors import (
    ClientError,
    ConnectionLostError,
    InvalidAgentResponseError,
    InvalidParamsError,
    RequestTimeoutError,
    TaskNotFoundError,
    UnauthenticatedError,
    UnsupportedOperationError,
)
from dragoman.model import Message, Task
from tests.client.words import artifact, card, connect_to, message, status, task
from tests.http.peer import BOUND, Peer, as_json, error, peer, plain, raw, reset, result, silence, stream

REST = "HTTP+JSON"


@pytest.fixture
async def server() -> AsyncIterator[Peer]:
    async with peer() as made:
        yield made


async def stream_texts(server: Peer, *bindings: str) -> list[str]:
    async with connect_to(server, *bindings) as client:
        return [type(event).__name__ async for event in client.stream("hi")]


@pytest.mark.req("VER-04", "VER-12", "PARAM-04", "JRPC-01", "JRPC-02", "JRPC-03", "MEDIA-01", "AMB-17")
async def test_a_json_rpc_call_is_one_request_object_with_the_version_in_a_header(server: Peer) -> None:
    server.on("POST", "/", result({"task": task("COMPLETED")}))

    async with connect_to(server) as client:
        await client.send("hi")

    sent = server.received[0]
    assert (sent.headers["a2a-version"], sent.headers["content-type"]) == ("1.0", "application/json")
    assert set(sent.json) == {"jsonrpc", "id", "method", "params"}
    assert (sent.json["jsonrpc"], sent.json["method"]) == ("2.0", "SendMessage")


@pytest.mark.req("HTTP-01", "HTTP-02", "PARAM-05", "MEDIA-02", "VER-04")
async def test_an_http_json_call_goes_to_its_route_with_the_version_in_a_header(server: Peer) -> None:
    server.on("POST", "/message:send", as_json({"task": task("COMPLETED")}))

    async with connect_to(server, REST) as client:
        await client.send("hi")

    sent = server.received[0]
    assert (sent.headers["a2a-version"], sent.headers["content-type"]) == ("1.0", "application/a2a+json")
    assert sent.json["message"]["parts"] == [{"text": "hi"}]


@pytest.mark.req("CARD-10", "TEN-02", "AMB-89")
@pytest.mark.parametrize("binding", ["JSONRPC", REST])
async def test_the_tenant_of_the_interface_is_in_every_request(server: Peer, binding: str) -> None:
    value = card(server.url + "/x/", binding)
    value["supportedInterfaces"][0]["tenant"] = "a/b"
    server.on("POST", "/x/", result({"task": task("COMPLETED")}))
    server.on("POST", "/x/a%2Fb/message:send", as_json({"task": task("COMPLETED")}))

    async with connect_to(server, card=value) as client:
        await client.send("hi")

    body = server.received[0].json
    assert body.get("params", body)["tenant"] == "a/b"


@pytest.mark.req("AMB-89")
async def test_the_tenant_can_be_kept_out_of_paths(server: Peer) -> None:
    value = card(server.url, REST)
    value["supportedInterfaces"][0]["tenant"] = "a"
    server.on("GET", "/tasks/t1", as_json(task("WORKING")))

    async with connect_to(server, card=value, tenant_in_path=False) as client:
        await client.get_task("t1")

    assert server.targets() == ["GET /tasks/t1?tenant=a"]


@pytest.mark.req("CARD-10")
async def test_without_a_tenant_the_field_is_left_out(server: Peer) -> None:
    server.on("POST", "/", result({"task": task("COMPLETED")}))

    async with connect_to(server) as client:
        await client.send("hi")

    assert "tenant" not in server.received[0].json["params"]


async def test_an_interface_address_with_a_query_keeps_it(server: Peer) -> None:
    server.on("POST", "/f", result({"task": task("COMPLETED")}))
    server.on("GET", "/f/tasks", as_json({"tasks": []}))

    async with connect_to(server, card=card(f"{server.url}/f?code=1")) as client:
        await client.send("hi")
    async with connect_to(server, card=card(f"{server.url}/f?code=1", REST)) as client:
        await client.list_tasks(page_size=3)

    assert server.targets() == ["POST /f?code=1", "GET /f/tasks?code=1&pageSize=3"]


@pytest.mark.req("EXT-02", "PARAM-07", "B159", "PARAM-01")
async def test_extensions_of_client_call_and_headers_are_merged_and_no_input_is_changed(server: Peer) -> None:
    server.on("POST", "/", result({"task": task("COMPLETED")}))
    own, called = {"A2A-Extensions": "urn:c", "X-Own": "1"}, {"a2a-extensions": "urn:d, urn:a", "X-OWN": "2"}

    async with connect_to(server, extensions=["urn:a", "urn:b"], headers=own) as client:
        await client.send("hi", extensions=["urn:b", "urn:e"], headers=called)

    sent = server.received[0].headers
    assert sent["a2a-extensions"] == "urn:a, urn:b, urn:c, urn:e, urn:d"
    assert sent["x-own"] == "2"
    assert own == {"A2A-Extensions": "urn:c", "X-Own": "1"}
    assert called == {"a2a-extensions": "urn:d, urn:a", "X-OWN": "2"}


@pytest.mark.req("B017")
@pytest.mark.parametrize("wrong", ["1", 7, None, True])
async def test_an_answer_with_another_id_is_an_invalid_response(server: Peer, wrong: Any) -> None:
    server.on("POST", "/", as_json({"jsonrpc": "2.0", "id": wrong, "result": {"task": task("COMPLETED")}}))

    async with connect_to(server) as client:
        with pytest.raises(InvalidAgentResponseError):
            await client.send("hi")


@pytest.mark.req("B017")
async def test_a_stream_event_with_another_id_is_an_invalid_response(server: Peer) -> None:
    event = b'data: {"jsonrpc": "2.0", "id": 99, "result": {"message": {"messageId": "m"}}}\n\n'
    server.on("POST", "/", stream(event))

    with pytest.raises(InvalidAgentResponseError):
        await stream_texts(server)


@pytest.mark.req("AMB-91", "PCFG-09")
@pytest.mark.parametrize("answer", [result({}), result(None)], ids=["object", "null"])
async def test_a_delete_over_json_rpc_takes_every_usual_result(server: Peer, answer) -> None:
    server.on("POST", "/", answer)

    async with connect_to(server) as client:
        await client.delete_push_config("t1", "p1")

    assert server.received[0].json["params"] == {"taskId": "t1", "id": "p1"}


@pytest.mark.req("AMB-91", "AMB-92")
@pytest.mark.parametrize(
    "answer",
    [plain(204, b"", kind=""), plain(200, b"{}"), plain(200, b""), plain(202, b"null")],
    ids=["204", "object", "empty", "null"],
)
async def test_a_delete_over_http_takes_every_2xx(server: Peer, answer) -> None:
    server.on("DELETE", "/tasks/t1/pushNotificationConfigs/p1", answer)

    async with connect_to(server, REST) as client:
        await client.delete_push_config("t1", "p1")


@pytest.mark.req("AMB-92")
async def test_a_create_may_be_answered_with_201(server: Peer) -> None:
    stored = {"id": "p1", "taskId": "t1", "url": "https://hook.example/"}
    server.on("POST", "/tasks/t1/pushNotificationConfigs", as_json(stored, 201))

    async with connect_to(server, REST) as client:
        made = await client.create_push_config("t1", "https://hook.example/")

    assert (made.id, made.url) == ("p1", "https://hook.example/")


@pytest.mark.req("AMB-34", "AMB-35")
async def test_a_401_is_read_before_the_body(server: Peer) -> None:
    server.on("POST", "/", error(-32001, "no such task", "TASK_NOT_FOUND", 401, www_authenticate="Bearer"))

    async with connect_to(server) as client:
        with pytest.raises(UnauthenticatedError) as caught:
            await client.get_task("t1")

    assert caught.value.metadata["challenge"] == "Bearer"


@pytest.mark.req("AMB-35", "AMB-31")
@pytest.mark.parametrize("http_status", [200, 404, 424])
async def test_an_error_object_counts_on_every_status(server: Peer, http_status: int) -> None:
    server.on("POST", "/", error(-32001, "no such task", "TASK_NOT_FOUND", http_status))

    async with connect_to(server) as client:
        with pytest.raises(TaskNotFoundError) as caught:
            await client.get_task("t1")

    assert caught.value.origin is not None
    assert caught.value.origin.status == http_status


async def test_a_redirect_is_an_error_that_says_where_to(server: Peer) -> None:
    server.on("POST", "/", plain(307, b"", location="http://elsewhere/"))

    async with connect_to(server) as client:
        with pytest.raises(InvalidAgentResponseError, match="redirects to http://elsewhere/"):
            await client.send("hi")


@pytest.mark.req("B157")
async def test_a_page_instead_of_an_answer_is_an_invalid_response(server: Peer) -> None:
    server.on("POST", "/", plain(200, b"<html>", kind="text/html"))

    async with connect_to(server) as client:
        with pytest.raises(InvalidAgentResponseError):
            await client.send("hi")
        with pytest.raises(InvalidAgentResponseError):
            await anext(client.stream("hi"))


async def test_the_timeout_of_a_call_is_kept(server: Peer) -> None:
    server.on("POST", "/", silence)

    async with connect_to(server) as client:
        with pytest.raises(RequestTimeoutError):
            await client.send("hi", timeout=0.05)
        with pytest.raises(RequestTimeoutError):
            await anext(client.stream("hi", timeout=0.05))


@pytest.mark.req("GET-05")
async def test_a_read_is_asked_again_when_the_connection_broke(server: Peer) -> None:
    server.on("POST", "/", reset, result(task("WORKING")))

    async with connect_to(server) as client:
        assert (await client.get_task("t1")).id == "t1"


@pytest.mark.req("AMB-14")
async def test_a_message_is_not_sent_again_when_the_connection_broke(server: Peer) -> None:
    server.on("POST", "/", reset, result({"task": task("COMPLETED")}))

    async with connect_to(server) as client:
        with pytest.raises(ConnectionLostError):
            await client.send("hi")

    assert len(server.received) == 1


# Streams.


@pytest.mark.req("B057", "AMB-09")
@pytest.mark.parametrize("kind", ["application/json", "", "text/event-stream", "application/problem+json"])
async def test_an_error_instead_of_a_stream_is_raised_whatever_its_content_type(server: Peer, kind: str) -> None:
    body = b'{"jsonrpc": "2.0", "id": 1, "error": {"code": -32004, "message": "no streams"}}'
    server.on("POST", "/", plain(200, body, kind=kind))

    with pytest.raises(UnsupportedOperationError, match="no streams"):
        await stream_texts(server)


@pytest.mark.req("AMB-09", "HTTP-10")
async def test_an_http_error_instead_of_a_stream_is_raised(server: Peer) -> None:
    problem = {"error": {"code": 400, "status": "INVALID_ARGUMENT", "message": "bad", "details": []}}
    server.on("POST", "/message:stream", as_json(problem, 400))

    with pytest.raises(InvalidParamsError):
        await stream_texts(server, REST)


@pytest.mark.req("B033", "AMB-10")
@pytest.mark.parametrize("binding", ["JSONRPC", REST])
async def test_an_error_inside_a_stream_is_raised_after_the_events_before_it(server: Peer, binding: str) -> None:
    rpc = binding == "JSONRPC"
    failure = {"code": -32602 if rpc else 400, "message": "broke"}
    if not rpc:
        failure["status"] = "INVALID_ARGUMENT"
    events = stream({"task": task("WORKING")}, {"error": failure}, rpc=rpc)
    server.on("POST", "/" if rpc else "/message:stream", events)

    async with connect_to(server, binding) as client:
        stream_ = client.stream("hi")
        assert isinstance(await anext(stream_), Task)
        with pytest.raises(InvalidParamsError, match="broke"):
            await anext(stream_)


async def test_a_whole_answer_instead_of_a_stream_is_its_only_event(server: Peer) -> None:
    server.on("POST", "/", result({"message": message("hello")}))

    assert await stream_texts(server) == ["Message"]


@pytest.mark.req("B155")
async def test_bare_events_on_json_rpc_are_a_clear_error(server: Peer) -> None:
    server.on("POST", "/", stream({"task": task("WORKING")}, rpc=False))

    with pytest.raises(InvalidAgentResponseError, match="no JSON-RPC response"):
        await stream_texts(server)


@pytest.mark.req("B155")
async def test_empty_frames_are_passed_over(server: Peer) -> None:
    server.on("POST", "/", stream(b"data: {}\n\n", {"task": task("COMPLETED")}, b"data: {}\n\n"))

    assert await stream_texts(server) == ["Task"]


@pytest.mark.req("B053", "AMB-97")
async def test_comments_and_odd_lines_between_events_do_no_harm(server: Peer) -> None:
    odd = b"\xef\xbb\xbf: ping\r\n\r\nretry: 10\nevent: message\n\n"
    server.on("POST", "/", stream(odd, {"task": task("WORKING")}, b":\n\n", status("COMPLETED")))

    assert await stream_texts(server) == ["Task", "TaskStatusUpdateEvent"]


@pytest.mark.req("B053")
async def test_a_last_event_without_its_blank_line_is_taken(server: Peer) -> None:
    last = b'data: {"jsonrpc":"2.0","id":1,"result":{"message":{"messageId":"m","role":"ROLE_AGENT","parts":[]}}}'
    server.on("POST", "/", stream(last))

    assert await stream_texts(server) == ["Message"]


@pytest.mark.req("B057", "B059")
@pytest.mark.parametrize("end", ["end", "cut", "reset"])
async def test_a_stream_cut_inside_its_first_event_is_an_error(server: Peer, end: str) -> None:
    server.on("POST", "/", stream(b'data: {"jsonrpc":"2.0","id":1,"result":{"mess', end=end))

    with pytest.raises((ConnectionLostError, InvalidAgentResponseError)) as caught:
        await stream_texts(server)

    assert isinstance(caught.value, ConnectionLostError)
    assert len(server.received) == 1


@pytest.mark.req("B055", "B007")
async def test_text_survives_one_byte_chunks(server: Peer) -> None:
    text = "a\u0085b\u2028c漢🚀"
    event = {"jsonrpc": "2.0", "id": 1, "result": {"message": message(text)}}
    body = f"data: {json.dumps(event, ensure_ascii=False)}\n\n".encode()
    server.on("POST", "/", stream(*(body[i : i + 1] for i in range(len(body)))))

    async with connect_to(server) as client:
        received = await anext(client.stream("hi"))

    assert isinstance(received, Message)
    assert received.parts[0].text == text


async def test_the_numbers_of_events_are_kept(server: Peer) -> None:
    server.on("POST", "/", stream((4, {"task": task("WORKING")}), (5, status("COMPLETED"))))

    async with connect_to(server) as client:
        events = client.stream("hi")
        async for _ in events:
            pass

    assert events.last_event_id == "5"


# The verb of :subscribe.

NOT_FOUND_PAGE = plain(404, b"<html>no such route", kind="text/html")
SUBSCRIBE = "/tasks/t1:subscribe"


@pytest.mark.req("AMB-88")
@pytest.mark.parametrize("refusal", [plain(405, b"", kind=""), NOT_FOUND_PAGE], ids=["405", "404 of the router"])
async def test_subscribe_falls_back_to_get_and_remembers_it(server: Peer, refusal) -> None:
    server.on("POST", SUBSCRIBE, refusal)
    server.on("GET", SUBSCRIBE, stream({"task": task("COMPLETED")}, rpc=False))

    async with connect_to(server, REST) as client:
        for _ in range(2):
            assert [type(event) async for event in client.subscribe("t1")] == [Task]

    assert server.targets() == [f"POST {SUBSCRIBE}", f"GET {SUBSCRIBE}", f"GET {SUBSCRIBE}"]


@pytest.mark.req("AMB-88", "SUB-04")
async def test_a_task_that_is_not_found_is_no_reason_to_try_another_verb(server: Peer) -> None:
    info = {
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": "TASK_NOT_FOUND",
        "domain": "a2a-protocol.org",
    }
    missing = {"error": {"code": 404, "status": "NOT_FOUND", "message": "no", "details": [info]}}
    server.on("POST", SUBSCRIBE, as_json(missing, 404))

    async with connect_to(server, REST) as client:
        with pytest.raises(TaskNotFoundError):
            await anext(client.subscribe("t1"))

    assert server.targets() == [f"POST {SUBSCRIBE}"]


@pytest.mark.req("AMB-88")
@pytest.mark.parametrize("verb", ["GET", "POST"])
async def test_the_verb_can_be_fixed(server: Peer, verb: str) -> None:
    server.on(verb, SUBSCRIBE, stream({"task": task("COMPLETED")}, rpc=False))

    async with connect_to(server, REST, subscribe_verb=verb) as client:
        assert [type(event) async for event in client.subscribe("t1")] == [Task]

    assert server.targets() == [f"{verb} {SUBSCRIBE}"]


# Letting go.


@pytest.mark.req("B067")
async def test_leaving_the_loop_early_hangs_up_promptly_and_silently(
    server: Peer, caplog: pytest.LogCaptureFixture
) -> None:
    server.on("POST", "/", stream({"task": task("WORKING")}, artifact("a"), end="stay"))

    async with connect_to(server) as client:
        async for _ in client.stream("hi"):
            break
        await asyncio.wait_for(server.hung_up.wait(), BOUND)

    assert caplog.records == []


@pytest.mark.req("B067")
async def test_a_stream_that_is_open_when_the_client_closes_ends_with_an_error(server: Peer) -> None:
    server.on("POST", "/", stream({"task": task("WORKING")}, end="stay"))

    async with connect_to(server) as client:
        events = client.stream("hi")
        await anext(events)

    await asyncio.wait_for(server.hung_up.wait(), BOUND)
    with pytest.raises(ClientError):
        await asyncio.wait_for(anext(events), BOUND)
    with pytest.raises(ClientError, match="closed"):
        await client.get_task("t1")


@pytest.mark.req("B067")
async def test_a_cancelled_reader_hangs_up_silently(server: Peer, caplog: pytest.LogCaptureFixture) -> None:
    server.on("POST", "/", stream({"task": task("WORKING")}, end="stay"))
    first = asyncio.Event()

    async def read() -> None:
        async with connect_to(server) as client:
            async for _ in client.stream("hi"):
                first.set()

    reading = asyncio.create_task(read())
    await asyncio.wait_for(first.wait(), BOUND)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading

    await asyncio.wait_for(server.hung_up.wait(), BOUND)
    assert caplog.records == []


@pytest.mark.req("B067")
def test_an_event_loop_that_ends_in_mid_stream_is_silent(capfd: pytest.CaptureFixture[str]) -> None:
    async def main() -> None:
        async with peer() as server:
            server.on("POST", "/", stream({"task": task("WORKING")}, end="stay"))
            events = (await connect(card(server.url)).open()).stream("hi")
            await asyncio.wait_for(anext(events), BOUND)

    asyncio.run(main())

    assert capfd.readouterr().err == ""


async def test_an_answer_until_the_connection_closes_is_read(server: Peer) -> None:
    body = b'data: {"jsonrpc":"2.0","id":1,"result":{"message":{"messageId":"m","role":"ROLE_AGENT","parts":[]}}}\n\n'
    server.on("POST", "/", raw(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n" + body))

    assert await stream_texts(server) == ["Message"]
