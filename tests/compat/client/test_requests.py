"""What our client sends to agents of version 0.3: in full, by the methods, paths and headers of that version."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from dragoman import V03Settings
from dragoman.client import Client
from dragoman.model import Part, TaskPushNotificationConfig
from tests.compat.client.words import REST, RPC, connect_to, events, old_card, proto, status, task
from tests.http.peer import Peer, as_json, peer, plain, result

HOOK = TaskPushNotificationConfig(id="h1", url="https://hooks.example/a", token="s3")
STORED = {"taskId": "t1", "pushNotificationConfig": {"id": "h1", "url": "https://hooks.example/a", "token": "s3"}}
CONFIGS = "/v1/tasks/t1/pushNotificationConfigs"


@pytest.fixture
async def server() -> AsyncIterator[Peer]:
    async with peer() as made:
        yield made


async def use_everything(client: Client) -> None:
    """One call of each operation."""
    await client.send(
        ["hi", {"n": 1}], context_id="c1", message_id="m1", history_length=2, accepted_output_modes=["a/b"]
    )
    async for _ in client.stream("go", message_id="m2"):
        pass
    await client.get_task("t1", history_length=3)
    await client.cancel("t1", metadata={"why": "weather"})
    async for _ in client.subscribe("t1"):
        pass
    await client.create_push_config("t1", HOOK)
    assert (await client.get_push_config("t1", "h1")).task_id == "t1"
    assert [config.id for config in (await client.list_push_configs("t1")).configs] == ["h1"]
    await client.delete_push_config("t1", "h1")
    assert (await client.get_extended_card()).name == "Elder"


@pytest.mark.req("V03-01", "V03-P05", "AC-C-62")
async def test_json_rpc_requests_are_those_of_0_3_and_written_in_full(server: Peer) -> None:
    done = task("completed")
    server.on(
        *("POST", "/", result(done), events(done), result(done), result(task("canceled")), events(done)),
        *(result(STORED), result(STORED), result([STORED]), result(None), result(old_card(server.url))),
    )

    async with connect_to(server) as client:
        await use_everything(client)

    sent = {each.json["method"]: each.json.get("params") for each in server.received}
    message = sent["message/send"]["message"]
    assert list(sent) == [
        *("message/send", "message/stream", "tasks/get", "tasks/cancel", "tasks/resubscribe"),
        *(f"tasks/pushNotificationConfig/{verb}" for verb in ("set", "get", "list", "delete")),
        "agent/getAuthenticatedExtendedCard",
    ]
    assert message == {
        "kind": "message",
        "messageId": "m1",
        "role": "user",
        "contextId": "c1",
        "parts": [{"kind": "text", "text": "hi"}, {"kind": "data", "data": {"n": 1}}],
    }
    assert sent["message/send"]["configuration"] == {
        "acceptedOutputModes": ["a/b"],
        "historyLength": 2,
        "blocking": True,
    }
    assert sent["message/stream"]["configuration"]["acceptedOutputModes"] == []
    assert sent["tasks/get"] == {"id": "t1", "historyLength": 3}
    assert sent["tasks/cancel"] == {"id": "t1", "metadata": {"why": "weather"}}
    assert sent["tasks/resubscribe"] == sent["tasks/pushNotificationConfig/list"] == {"id": "t1"}
    assert sent["tasks/pushNotificationConfig/set"] == STORED
    assert sent["tasks/pushNotificationConfig/get"] == {"id": "t1", "pushNotificationConfigId": "h1"}
    assert sent["agent/getAuthenticatedExtendedCard"] is None


@pytest.mark.req("V03-01", "V03-P02", "V03-P05", "V03-P08")
async def test_http_json_requests_are_the_proto_json_of_0_3(server: Peer) -> None:
    done, stored = proto(task("completed")), {"name": "tasks/t1/pushNotificationConfigs/h1", **STORED}
    server.on("POST", "/v1/message:send", as_json(done, status=201))
    server.on("POST", "/v1/message:stream", events(task("completed")))
    server.on("GET", "/v1/tasks/t1", as_json(done["task"]))
    server.on("POST", "/v1/tasks/t1:cancel", as_json(done["task"], status=202))
    server.on("POST", "/v1/tasks/t1:subscribe", events(task("completed")))
    server.on("POST", CONFIGS, as_json(stored, status=201))
    server.on("GET", f"{CONFIGS}/h1", as_json(stored))
    server.on("GET", CONFIGS, as_json({"configs": [stored]}))
    server.on("DELETE", f"{CONFIGS}/h1", plain(204, b""))
    server.on("GET", "/v1/card", as_json(old_card(server.url, REST)))

    async with connect_to(server, REST) as client:
        await use_everything(client)

    assert server.targets() == [
        *("POST /v1/message:send", "POST /v1/message:stream", "GET /v1/tasks/t1?historyLength=3"),
        *("POST /v1/tasks/t1:cancel", "POST /v1/tasks/t1:subscribe", f"POST {CONFIGS}", f"GET {CONFIGS}/h1"),
        *(f"GET {CONFIGS}", f"DELETE {CONFIGS}/h1", "GET /v1/card"),
    ]
    sent, created, canceled = (server.received[number].json for number in (0, 5, 3))
    assert sent["message"]["content"] == [{"text": "hi"}, {"data": {"data": {"n": 1}}}]
    assert (sent["message"]["role"], sent["configuration"]["blocking"]) == ("ROLE_USER", True)
    assert "kind" not in str(sent)
    assert (created["parent"], created["configId"], created["config"]["name"]) == ("tasks/t1", "h1", stored["name"])
    assert canceled == {"name": "tasks/t1"}
    assert {each.headers.get("content-type", "application/json") for each in server.received} == {"application/json"}


@pytest.mark.req("V03-06", "EXT-02")
@pytest.mark.parametrize("binding", [RPC, REST])
async def test_version_and_extensions_go_in_the_headers_of_0_3(server: Peer, binding: str) -> None:
    server.on("POST", "/", result(task("completed"), X_A2A_Extensions="urn:a"))
    server.on("POST", "/v1/message:send", as_json(proto(task("completed")), X_A2A_Extensions="urn:a"))
    seen: list[tuple[str, ...]] = []

    def note(operations: Any) -> Any:
        class Noting:
            async def call(self, op: Any, request: Any, context: Any) -> Any:
                answer = await operations.call(op, request, context)
                seen.append(context.activated)
                return answer

        return Noting()

    async with connect_to(server, binding, extensions=["urn:a"], interceptors=[note]) as client:
        await client.send("hi", headers={"X-A2A-Extensions": "urn:b"})

    headers = server.received[0].headers
    assert (headers["a2a-version"], headers["x-a2a-extensions"]) == ("0.3", "urn:a, urn:b")
    assert "a2a-extensions" not in headers
    assert seen == [("urn:a",)]


@pytest.mark.req("V03-P05")
@pytest.mark.parametrize("binding", [RPC, REST])
async def test_not_to_wait_is_said_too(server: Peer, binding: str) -> None:
    server.on("POST", "/", result(task("working")))
    server.on("POST", "/v1/message:send", as_json(proto(task("working"))))

    async with connect_to(server, binding) as client:
        await client.send("hi", wait=False)

    body = server.received[0].json
    assert body.get("params", body)["configuration"]["blocking"] is False


@pytest.mark.req("V03-P09", "V03-03")
@pytest.mark.parametrize(("raw_bytes", "text"), [(False, "YUdWc2JHOD0="), (True, "aGVsbG8=")])
async def test_file_content_goes_as_text_of_its_base64_unless_the_peer_takes_it_raw(
    server: Peer, raw_bytes: bool, text: str
) -> None:
    piece = {"artifactId": "a", "parts": [{"file": {"fileWithBytes": text, "mimeType": "text/plain"}}]}
    server.on("POST", "/v1/message:send", as_json({"task": {**proto(task("completed"))["task"], "artifacts": [piece]}}))

    async with connect_to(server, REST, v03=V03Settings(raw_bytes=raw_bytes)) as client:
        answer = await client.send(Part(raw=b"hello", media_type="text/plain", filename="h.txt"))

    file = server.received[0].json["message"]["content"][0]["file"]
    assert file == {"fileWithBytes": text, "mimeType": "text/plain", "name": "h.txt"}
    assert answer.artifacts[0].parts[0].raw == b"hello"


@pytest.mark.req("V03-P02", "V03-01")
@pytest.mark.parametrize(("dialect", "hook"), [("B", {"config": STORED}), ("C", STORED["pushNotificationConfig"])])
async def test_the_json_with_kinds_can_be_asked_for_over_http_json(server: Peer, dialect: Any, hook: Any) -> None:
    answer = {"task": task("completed")} if dialect == "B" else task("completed")
    server.on("POST", "/v1/message:send", as_json(answer))
    server.on("POST", CONFIGS, as_json(STORED))

    async with connect_to(server, REST, v03=V03Settings(dialect=dialect)) as client:
        found = await client.send("hi")
        stored = await client.create_push_config("t1", HOOK)

    sent = server.received[0].json["message"]
    assert (sent["kind"], sent["role"], sent["parts"]) == ("message", "user", [{"kind": "text", "text": "hi"}])
    assert server.received[1].json == hook
    assert (found.id, stored.id) == ("t1", "h1")


@pytest.mark.req("V03-03")
@pytest.mark.parametrize("binding", [RPC, REST])
async def test_data_that_is_no_object_travels_wrapped_and_comes_back_as_it_was(server: Peer, binding: str) -> None:
    echoed: dict[str, Any] = {}

    async def echo(request: Any, writer: Any) -> None:
        body = request.json
        sent = body.get("params", body)["message"]
        parts = sent.get("parts") or sent["content"]
        echoed["parts"] = parts
        found = {**task("completed"), "artifacts": [{"artifactId": "a", "parts": parts}]}
        made = proto(found) if binding == REST else {"jsonrpc": "2.0", "id": body.get("id"), "result": found}
        if binding == REST:
            made["task"]["artifacts"] = [{"artifactId": "a", "parts": parts}]
        await as_json(made)(request, writer)

    server.on("POST", "/", echo).on("POST", "/v1/message:send", echo)

    async with connect_to(server, binding) as client:
        answer = await client.send(Part(data=[1, None, "x"]))

    assert echoed["parts"][0]["metadata"] == {"data_part_compat": True}
    assert answer.artifacts[0].parts[0].data == [1, None, "x"]


async def test_a_status_without_a_state_is_read(server: Peer) -> None:
    server.on("POST", "/", events(task("unknown"), status("completed", final=True)))

    async with connect_to(server) as client:
        seen = [event async for event in client.stream("hi")]

    assert len(seen) == 2


@pytest.mark.req("V03-01")
async def test_ids_of_every_form_go_over_json_rpc(server: Peer) -> None:
    odd = "sessions/7/täsk 1"
    server.on("POST", "/", result(task("completed", task_id=odd)))

    async with connect_to(server) as client:
        found = await client.get_task(odd)

    assert (found.id, server.received[0].json["params"]) == (odd, {"id": odd})
