"""The JSON-RPC binding, byte by byte on a real socket. Spec: §9."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman import Agent
from dragoman.errors import A2AError, InvalidAgentResponseError
from dragoman.model import OPERATIONS, Empty, TaskPushNotificationConfig
from tests.client.words import card, connect_to, task
from tests.conformance.wire import said, served
from tests.http.peer import as_json, peer, result

agent = Agent("Echo", description="Repeats what you say.")
JSON = {"A2A-Version": "1.0", "Content-Type": "application/json"}


@agent.task
async def echo(ctx):  # type: ignore[no-untyped-def]
    yield f"You said: {ctx.text}"
    yield "!"


NOT_JSON: list[bytes] = [
    b'{"jsonrpc":',
    b"",
    b"   ",
    b"\xff\xfe{}",
    b'{"jsonrpc":"2.0","id":1,"method":"ListTasks","params":{"contextId":"\xc3\x28"}}',
    b'{"jsonrpc":"2.0","id":1,"method":"ListTasks"} x',
    b"{'jsonrpc':'2.0'}",
    b'{"jsonrpc":"2.0","id":1,"method":"ListTasks","params":{"pageSize":NaN}}',
]
NO_REQUEST: list[tuple[bytes, Any]] = [
    (b"123", None),
    (b'"x"', None),
    (b"null", None),
    (b"true", None),
    (b"[]", None),
    (b'[{"jsonrpc":"2.0","id":1,"method":"ListTasks"}]', None),
    (b"{}", None),
    (b'{"id":1,"method":"ListTasks"}', 1),
    (b'{"jsonrpc":"1.0","id":"a","method":"ListTasks"}', "a"),
    (b'{"jsonrpc":2.0,"id":1,"method":"ListTasks"}', 1),
    (b'{"jsonrpc":"2.0","id":1}', 1),
    (b'{"jsonrpc":"2.0","id":1,"method":5}', 1),
    (b'{"jsonrpc":"2.0","method":"ListTasks"}', None),
    (b'{"jsonrpc":"2.0","id":{},"method":"ListTasks"}', None),
    (b'{"jsonrpc":"2.0","id":[1],"method":"ListTasks"}', None),
    (b'{"jsonrpc":"2.0","id":true,"method":"ListTasks"}', None),
    (b'{"jsonrpc":"2.0","id":1.5,"method":"ListTasks"}', None),
]


@pytest.mark.req("B015", "JRPC-07", "AMB-32", "AMB-35", "MEDIA-05", "ERR-01")
async def test_what_is_no_json_is_a_parse_error_with_id_null() -> None:
    async with served(agent) as wire:
        for body in NOT_JSON:
            told = await wire.ask("POST", "/", body, JSON)
            assert (told.status, told.code, told.json["id"]) == (200, -32700, None), body
            assert told.error["message"] == "Invalid JSON payload"
            assert told.json["jsonrpc"] == "2.0"


@pytest.mark.req("B015", "B017", "JRPC-02", "JRPC-07", "AMB-32", "AMB-35", "AMB-95", "ERR-01")
async def test_json_that_is_no_request_is_an_invalid_request_with_the_id_it_had() -> None:
    async with served(agent) as wire:
        for body, id in NO_REQUEST:
            told = await wire.ask("POST", "/", body, JSON)
            assert (told.status, told.code, told.json["id"]) == (200, -32600, id), body
            assert "id" in told.json
        assert (await wire.rpc("ListTasks")).result["totalSize"] == 0


@pytest.mark.req("B017", "JRPC-07")
async def test_an_id_comes_back_byte_by_byte_with_results_errors_and_stream_events() -> None:
    def body(id: str, method: str, params: str) -> bytes:
        return f'{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}'.encode()

    async with served(agent) as wire:
        for id in ('"r-1"', '""', "0", "-7", "9007199254740993", "1e2", "null", '"\\u00fc\\n"'):
            good = await wire.ask("POST", "/", body(id, "ListTasks", "{}"), JSON)
            bad = await wire.ask("POST", "/", body(id, "GetTask", '{"id":"t"}'), JSON)
            unknown = await wire.ask("POST", "/", body(id, "NoSuchMethod", "{}"), JSON)
            stream = await wire.ask("POST", "/", body(id, "SendStreamingMessage", json.dumps(said())), JSON)

            mark = f'"id":{id},'.encode()
            assert all(mark in told.body for told in (good, bad, unknown))
            lines = [line for line in stream.body.split(b"\n") if line.startswith(b"data: ")]
            assert len(lines) > 2
            assert all(line.startswith(b'data: {"jsonrpc":"2.0",' + mark) for line in lines)


@pytest.mark.req("B021", "AMB-39", "AMB-94", "JRPC-03")
async def test_names_that_do_not_exist_are_not_found_and_old_ones_are_told_the_new() -> None:
    async with served(agent) as wire:
        for method, right in [
            ("tasks/send", "SendMessage"),
            ("tasks/sendSubscribe", "SendStreamingMessage"),
            ("message/send", "SendMessage"),
            ("message/stream", "SendStreamingMessage"),
            ("tasks/get", "GetTask"),
            ("tasks/resubscribe", "SubscribeToTask"),
            ("Sendmessage", "SendMessage"),
            ("send_message", "SendMessage"),
            ("NoSuch", ""),
            ("", ""),
        ]:
            told = await wire.rpc(method, said())
            assert (told.status, told.code, told.reason) == (200, -32601, ""), method
            assert told.error["message"].startswith("Method not found")
            assert right in told.error["message"]
        assert (await wire.rpc("ListTasks")).result["totalSize"] == 0


@pytest.mark.req("AMB-96", "AMB-32")
async def test_absent_and_null_params_are_empty_and_other_forms_are_invalid() -> None:
    async with served(agent) as wire:
        for text in ("", ',"params":null', ',"params":{}'):
            body = f'{{"jsonrpc":"2.0","id":1,"method":"ListTasks"{text}}}'.encode()
            assert "tasks" in (await wire.ask("POST", "/", body, JSON)).result
            needs = f'{{"jsonrpc":"2.0","id":1,"method":"GetTask"{text}}}'.encode()
            told = await wire.ask("POST", "/", needs, JSON)
            assert (told.code, told.fields) == (-32602, ["id"])
        for params in ("[]", "[1]", '"x"', "5", "true"):
            body = f'{{"jsonrpc":"2.0","id":1,"method":"ListTasks","params":{params}}}'.encode()
            told = await wire.ask("POST", "/", body, JSON)
            assert (told.status, told.code) == (200, -32602)


@pytest.mark.req("JRPC-01", "JRPC-03", "JRPC-04", "MEDIA-01", "AMB-91", "B027", "BIND-01")
async def test_every_method_has_its_result_shape() -> None:
    config = TaskPushNotificationConfig(id="c", task_id="t", url="https://hooks.example")
    asked: dict[str, Any] = {}

    def stand_in(operations: Any) -> Any:
        class StandIn:
            """The operations of push and of the extended card, which no agent of today has."""

            async def call(self, op: Any, request: Any, context: Any) -> Any:
                asked[op.name] = request
                if op.response is Empty:
                    return Empty()
                if op.response is TaskPushNotificationConfig:
                    return config
                if op.name == "ListTaskPushNotificationConfigs":
                    return op.response(configs=[config], next_page_token="n")
                if op.name == "GetExtendedAgentCard":
                    return wire.app.card("http://x.example")
                return await operations.call(op, request, context)

        return StandIn()

    async with served(agent, interceptors=[stand_in]) as wire:
        sent = (await wire.rpc("SendMessage", said())).result
        id = sent["task"]["id"]
        got = (await wire.rpc("GetTask", {"id": id})).result
        listed = (await wire.rpc("ListTasks", {})).result
        key = {"taskId": "t", "id": "c"}
        created = (await wire.rpc("CreateTaskPushNotificationConfig", {**key, "url": "https://h.example"})).result
        read = (await wire.rpc("GetTaskPushNotificationConfig", key)).result
        page = {"taskId": "t", "pageSize": 1, "pageToken": "p"}
        configs = (await wire.rpc("ListTaskPushNotificationConfigs", page)).result
        deleted = await wire.rpc("DeleteTaskPushNotificationConfig", key)
        card = (await wire.rpc("GetExtendedAgentCard")).result

    assert set(sent) == {"task"}
    assert got == sent["task"]
    assert [task["id"] for task in listed["tasks"]] == [id]
    assert created == read == {"id": "c", "taskId": "t", "url": "https://hooks.example"}
    assert (configs["configs"], configs["nextPageToken"]) == ([created], "n")
    request = asked["ListTaskPushNotificationConfigs"]
    assert (request.task_id, request.page_size, request.page_token) == ("t", 1, "p")
    assert b'"result":{}' in deleted.body
    assert card["name"] == "Echo"


@pytest.mark.req("JRPC-04", "SEND-02")
async def test_a_direct_message_is_the_member_message_of_the_result() -> None:
    reply = Agent("Reply", description="Replies.")

    @reply.reply
    async def answer(ctx):  # type: ignore[no-untyped-def]
        return "hi"

    async with served(reply) as wire:
        assert set((await wire.rpc("SendMessage", said())).result) == {"message"}


@pytest.mark.req("JRPC-05", "AMB-97", "MEDIA-03", "STREAM-07", "B007")
async def test_each_event_of_a_stream_is_one_line_with_a_whole_response() -> None:
    async with (
        served(agent) as wire,
        wire.stream("JSONRPC", "SendStreamingMessage", said("é 你好 👋 \u2028\nend")) as stream,
    ):
        events = await stream.rest()

    assert stream.status == 200
    assert stream.headers["content-type"].partition(";")[0] == "text/event-stream"
    assert all(set(event) == {"jsonrpc", "id", "result"} for event in events)
    assert all(len(event["result"]) == 1 for event in events)
    assert "é 你好 👋".encode() in stream.raw
    frames = stream.raw.split(b"\n\n")
    assert frames[-1] == b""
    for frame in frames[:-1]:
        lines = frame.split(b"\n")
        assert [line for line in lines if not line.startswith((b"data: ", b"id: ", b":"))] == []
        assert sum(line.startswith(b"data: ") for line in lines) <= 1


@pytest.mark.req("JRPC-01", "AMB-93", "B035", "MEDIA-01")
async def test_the_body_is_read_whatever_its_type_and_answered_as_json() -> None:
    async with served(agent) as wire:
        for kind in ("application/json", "application/a2a+json", "text/plain", None, "application/xml; x=1"):
            told = await wire.rpc("ListTasks", {}, headers={"Content-Type": kind})
            assert "tasks" in told.result
            assert told.headers["content-type"] == "application/json"


@pytest.mark.req("JRPC-01", "AMB-35")
async def test_only_post_is_json_rpc() -> None:
    async with served(agent) as wire:
        told = [await wire.ask(method, "/") for method in ("GET", "PUT", "DELETE")]

    assert [answer.status for answer in told] == [405] * 3
    assert all("POST" in answer.headers["allow"] for answer in told)


# The client.


@pytest.mark.req("JRPC-01", "JRPC-02", "JRPC-03", "JRPC-04", "MEDIA-01", "MEDIA-05", "B023", "SEND-13", "DATA-02")
async def test_the_client_posts_whole_request_objects_to_the_interface_url() -> None:
    async with peer() as server:
        server.on("POST", "/rpc", result({"task": task("COMPLETED")}), result(task("COMPLETED")))
        entry = {"url": f"{server.url}/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
        async with connect_to(server, card=card(server.url, supportedInterfaces=[entry])) as client:
            await client.send("é")
            await client.get_task("t1", history_length=0)

    send, get = server.received
    assert [request.method for request in server.received] == ["POST", "POST"]
    assert send.headers["content-type"] == "application/json"
    assert set(send.json) == {"jsonrpc", "id", "method", "params"}
    assert (send.json["jsonrpc"], send.json["method"]) == ("2.0", "SendMessage")
    assert send.json["params"]["message"]["role"] == "ROLE_USER"
    assert "é".encode() in send.body
    assert get.json["params"] == {"id": "t1", "historyLength": 0}
    assert send.json["id"] != get.json["id"]
    assert all(name in OPERATIONS for name in (send.json["method"], get.json["method"]))


@pytest.mark.parametrize("answer", [7, "1", None])
@pytest.mark.req("B017", "AMB-37")
async def test_an_answer_to_another_request_is_an_invalid_response(answer: Any) -> None:
    async with peer() as server:
        server.on("POST", "/", as_json({"jsonrpc": "2.0", "id": answer, "result": task("COMPLETED")}))
        async with connect_to(server) as client:
            with pytest.raises(InvalidAgentResponseError):
                await client.get_task("t1")


@pytest.mark.parametrize("data", [None, {"reason": "TASK_NOT_FOUND"}, "text", [1, {"@type": 5}]])
@pytest.mark.req("AMB-30", "ERR-15")
async def test_error_data_of_any_shape_does_not_break_the_error(data: Any) -> None:
    async with peer() as server:

        async def answer(request: Any, writer: Any) -> None:
            body = {"jsonrpc": "2.0", "id": request.json["id"], "error": {"code": -32001, "message": "m", "data": data}}
            await as_json(body)(request, writer)

        server.on("POST", "/", answer)
        async with connect_to(server) as client:
            with pytest.raises(A2AError) as raised:
                await client.get_task("t1")

    assert type(raised.value).__name__ == "TaskNotFoundError"
    assert raised.value.message == "m"
