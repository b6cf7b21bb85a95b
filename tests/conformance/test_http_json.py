"""The HTTP+JSON binding, byte by byte on a real socket. Spec: §11."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from dragoman import Agent, TaskState
from dragoman.errors import TaskNotFoundError
from dragoman.model import Empty, TaskPushNotificationConfig, Timestamp
from tests.client.words import card, connect_to, status, task
from tests.conformance.wire import Told, bare, said, served
from tests.http.peer import as_json, peer, stream

agent = Agent("Echo", description="Repeats what you say.")


@agent.task
async def echo(ctx):  # type: ignore[no-untyped-def]
    if ctx.text == "ask":
        await ctx.ask("and?")
    yield f"You said: {ctx.text}"
    yield "!"


def as_error(told: Told, status: int, name: str) -> None:
    assert (told.status, told.code, told.error["status"]) == (status, status, name)


@pytest.mark.req("HTTP-01", "HTTP-11", "HTTP-12", "AMB-90", "AMB-91", "AMB-92", "B027", "B029", "BIND-01")
async def test_every_route_works_plain_and_below_a_tenant_with_the_whole_message_as_body() -> None:
    config = TaskPushNotificationConfig(id="c", task_id="t", url="https://hooks.example")
    asked: list[tuple[str, Any]] = []

    def stand_in(operations: Any) -> Any:
        class StandIn:
            """The operations of push and of the extended card, which no agent of today has."""

            async def call(self, op: Any, request: Any, context: Any) -> Any:
                asked.append((op.name, request))
                if op.response is Empty:
                    return Empty()
                if op.response is TaskPushNotificationConfig:
                    return config
                if op.name == "ListTaskPushNotificationConfigs":
                    return op.response(configs=[config], next_page_token="n")
                if op.name == "GetExtendedAgentCard":
                    return wire.app.card("http://x.example")
                return await operations.call(op, request, context)

            async def stream(self, op: Any, request: Any, context: Any) -> Any:
                return await operations.stream(op, request, context)

        return StandIn()

    async with served(agent, interceptors=[stand_in]) as wire:
        for root in ("", "/acme", "/a%2Fb"):
            sent = await wire.rest("POST", f"{root}/message:send", said("ask"))
            id = sent.result["task"]["id"]
            got = await wire.rest("GET", f"{root}/tasks/{id}?historyLength=0")
            listed = await wire.rest("GET", f"{root}/tasks?pageSize=1")
            canceled = await wire.rest("POST", f"{root}/tasks/{id}:cancel")
            place = f"{root}/tasks/t/pushNotificationConfigs"
            created = await wire.rest("POST", place, {"url": "https://h.example"})
            read = await wire.rest("GET", f"{place}/c")
            configs = await wire.rest("GET", f"{place}?pageSize=1&pageToken=p")
            request = asked[-1][1]
            deleted = await wire.rest("DELETE", f"{place}/c")
            extended = await wire.rest("GET", f"{root}/extendedAgentCard")

            answers = (sent, got, listed, canceled, created, read, configs, deleted, extended)
            assert {told.status for told in answers} == {200}
            assert {told.headers["content-type"] for told in answers} == {"application/a2a+json"}
            assert (got.json["id"], "history" in got.json) == (id, False)
            assert [task["id"] for task in listed.json["tasks"]] == [id]
            assert canceled.json["status"]["state"] == "TASK_STATE_CANCELED"
            assert created.json == read.json == {"id": "c", "taskId": "t", "url": "https://hooks.example"}
            assert (request.task_id, request.page_size, request.page_token) == ("t", 1, "p")
            assert (configs.json["configs"], configs.json["nextPageToken"]) == ([created.json], "n")
            assert deleted.body == b"{}"
            assert extended.json["name"] == "Echo"
            tenant = {"": "", "/acme": "acme", "/a%2Fb": "a/b"}[root]
            assert {request.tenant for _, request in asked} == {tenant}
            asked.clear()


@pytest.mark.req("HTTP-09", "AMB-97", "MEDIA-03", "STREAM-07")
async def test_each_event_of_a_stream_is_one_line_with_a_bare_response() -> None:
    async with (
        served(agent) as wire,
        wire.stream("HTTP+JSON", "SendStreamingMessage", said("é 你好 👋 \u2028\nend")) as stream,
    ):
        events = await stream.rest()

    assert stream.status == 200
    assert stream.headers["content-type"].partition(";")[0] == "text/event-stream"
    assert {name for event in events for name in event} == {"task", "artifactUpdate", "statusUpdate"}
    assert all(len(event) == 1 for event in events)
    assert "é 你好 👋".encode() in stream.raw
    for frame in stream.raw.split(b"\n\n")[:-1]:
        assert all(line.startswith((b"data: ", b"id: ", b":")) for line in frame.split(b"\n"))


@pytest.mark.parametrize(
    ("method", "path", "status", "name"),
    [
        ("GET", "/no/such/path", 404, "UNIMPLEMENTED"),
        ("GET", "/tasks/", 404, "UNIMPLEMENTED"),
        ("POST", "/v1/", 404, "UNIMPLEMENTED"),
        ("POST", "/message:shout", 404, "UNIMPLEMENTED"),
        ("POST", "/tasks/t:dance", 405, "UNIMPLEMENTED"),
        ("DELETE", "/tasks/t", 405, "UNIMPLEMENTED"),
        ("PUT", "/message:send", 405, "UNIMPLEMENTED"),
        ("GET", "/message:send", 405, "UNIMPLEMENTED"),
        ("GET", "/tasks/no-such", 404, "NOT_FOUND"),
    ],
)
@pytest.mark.req("HTTP-10", "AMB-39", "ERR-14", "ERR-21")
async def test_a_wrong_path_or_verb_is_an_error_of_the_binding_and_only_a_task_is_task_not_found(
    method: str, path: str, status: int, name: str
) -> None:
    async with served(agent) as wire:
        told = await wire.rest(method, path)

    as_error(told, status, name)
    assert told.headers["content-type"] == "application/a2a+json"
    assert told.error["message"]
    assert told.reason == ("TASK_NOT_FOUND" if name == "NOT_FOUND" else "")
    assert bool(told.headers.get("allow")) is (status == 405)


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.req("AMB-88", "SUB-01")
async def test_subscribing_takes_both_verbs_with_and_without_body(method: str) -> None:
    async with served(agent) as wire:
        id = (await wire.rest("POST", "/message:send", said("ask"))).result["task"]["id"]
        for body in (None, b"", b"{}", json.dumps({"id": id}).encode()):
            request = wire.http.build_request(
                method, f"{wire.url}/tasks/{id}:subscribe", content=body, headers={"A2A-Version": "1.0"}
            )
            response = await wire.http.send(request, stream=True)
            line = await anext(line async for line in response.aiter_lines() if line.startswith("data: "))
            await response.aclose()
            assert (response.status_code, json.loads(line[6:])["task"]["id"]) == (200, id)
        missing = await wire.rest(method, "/tasks/no-such:subscribe")
        as_task = await wire.rest("GET", f"/tasks/{id}%3Asubscribe")

    assert (missing.status, missing.reason, missing.metadata["taskId"]) == (404, "TASK_NOT_FOUND", "no-such")
    assert as_task.metadata["taskId"] == f"{id}:subscribe"


@pytest.mark.req("AMB-90", "AMB-89", "ERR-08")
async def test_one_field_in_two_places_has_to_be_the_same() -> None:
    async with served(agent) as wire:

        async def begun(tenant: str = "") -> str:
            path = f"/{tenant}/message:send" if tenant else "/message:send"
            return str((await wire.rest("POST", path, said("ask"))).result["task"]["id"])

        good = [
            await wire.rest("POST", f"/tasks/{(id := await begun())}:cancel", {"id": id}),
            await wire.rest("POST", f"/acme/tasks/{await begun('acme')}:cancel", {"tenant": "acme"}),
            await wire.rest("POST", f"/tasks/{await begun('acme')}:cancel?tenant=acme", {"tenant": "acme"}),
        ]
        plain = await begun()
        bad = [
            (await wire.rest("POST", f"/tasks/{plain}:cancel", {"id": "other"}), "id"),
            (await wire.rest("POST", f"/acme/tasks/{plain}:cancel", {"tenant": "umbrella"}), "tenant"),
            (await wire.rest("GET", f"/acme/tasks/{plain}?tenant=umbrella"), "tenant"),
            (await wire.rest("POST", f"/acme/tasks/{plain}:cancel?tenant=umbrella"), "tenant"),
        ]
        untouched = (await wire.rest("GET", f"/tasks/{plain}")).result

    assert [told.result["status"]["state"] for told in good] == ["TASK_STATE_CANCELED"] * 3
    for told, field in bad:
        as_error(told, 400, "INVALID_ARGUMENT")
        assert told.fields == [field]
    assert untouched["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"


@pytest.mark.req("HTTP-03", "HTTP-04", "HTTP-05", "HTTP-07", "AMB-99", "B025")
async def test_query_values_are_read_as_what_their_field_is_and_named_when_bad() -> None:
    async with served(agent) as wire:
        first = (await wire.rest("POST", "/message:send", said("one", contextId="c 1/ü"))).result["task"]
        second = (await wire.rest("POST", "/message:send", said("ask"))).result["task"]

        async def ids(query: str) -> list[str]:
            return [task["id"] for task in (await wire.rest("GET", f"/tasks?{query}")).result["tasks"]]

        assert await ids("contextId=c%201%2F%C3%BC") == [first["id"]]
        assert await ids("contextId=c+1/%C3%BC") == [first["id"]]
        assert await ids("status=TASK_STATE_INPUT_REQUIRED") == [second["id"]]
        assert await ids("status=6") == [second["id"]]
        assert await ids("statusTimestampAfter=2000-01-01T00:00:00Z&pageSize=1") == [second["id"]]
        assert await ids("statusTimestampAfter=2000-01-01T00%3A00%3A00%2B01%3A00") == [second["id"], first["id"]]
        assert await ids("statusTimestampAfter=2999-01-01T00:00:00.000Z") == []
        assert len(await ids("utm_source=gateway")) == 2
        with_artifacts = (await wire.rest("GET", "/tasks?includeArtifacts=true&pageSize=2")).result["tasks"]
        without = (await wire.rest("GET", "/tasks?includeArtifacts=false")).result["tasks"]
        bad = {
            query: (await wire.rest("GET", f"/tasks?{query}"))
            for query in (
                "status=working",
                "status=WORKING",
                "status=99",
                "pageSize=x",
                "pageSize=1.5",
                "includeArtifacts=yes",
                "includeArtifacts=1",
                "statusTimestampAfter=1",
                "historyLength=-1",
            )
        }

    assert any("artifacts" in task for task in with_artifacts)
    assert not any("artifacts" in task for task in without)
    for query, told in bad.items():
        as_error(told, 400, "INVALID_ARGUMENT")
        assert told.fields == [query.partition("=")[0]], query


@pytest.mark.req("B025", "B023", "SEND-14", "BIND-01")
async def test_history_is_the_same_on_both_bindings_unset_whole_and_zero_none() -> None:
    async with served(agent) as wire:
        id = (await wire.rest("POST", "/message:send", said("ask"))).result["task"]["id"]
        await wire.rest("POST", "/message:send", said("more", taskId=id, messageId="m-2"))
        for request in ({"id": id}, {"id": id, "historyLength": 0}, {"id": id, "historyLength": 2}):
            rest = (await wire.call("HTTP+JSON", "GetTask", request)).result
            rpc = (await wire.call("JSONRPC", "GetTask", request)).result
            assert rest == rpc
            expected = {None: 3, 0: 0, 2: 2}[request.get("historyLength")]  # type: ignore[call-overload]
            assert len(rest.get("history", [])) == expected
            assert ("history" in rest) is bool(expected)


@pytest.mark.req("AMB-32", "HTTP-10", "B005", "B015", "MEDIA-05", "SEC-14")
async def test_a_bad_body_is_an_invalid_argument() -> None:
    async with served(agent) as wire:
        headers = {"A2A-Version": "1.0", "Content-Type": "application/a2a+json"}
        for body in (b"", b"{", b"\xff", b"[]", b'"x"', b"5", b"null", b'{"message": 5}', b"[" * 20000):
            told = await wire.ask("POST", "/message:send", body, headers)
            as_error(told, 400, "INVALID_ARGUMENT")


@pytest.mark.req("HTTP-02", "AMB-29", "AMB-93", "B035", "MEDIA-02")
async def test_json_types_are_taken_and_the_answer_is_a2a_json_unless_only_json_is_accepted() -> None:
    async with served(agent) as wire:
        for kind in ("application/json", "application/a2a+json", "Application/JSON; charset=utf-8", None):
            told = await wire.rest("POST", "/message:send", said(), headers={"Content-Type": kind})
            assert (told.status, told.headers["content-type"]) == (200, "application/a2a+json"), kind
        for kind in ("text/plain", "application/xml", "application/x-www-form-urlencoded", "application/jsonx"):
            told = await wire.rest("POST", "/message:send", said(), headers={"Content-Type": kind})
            assert (told.status, told.code, told.reason) == (415, 415, ""), kind
        for accept, kind in (
            ("application/json", "application/json"),
            ("application/json, application/a2a+json", "application/a2a+json"),
            ("*/*", "application/a2a+json"),
            ("application/*", "application/a2a+json"),
            ("text/html", "application/a2a+json"),
        ):
            good = await wire.rest("GET", "/tasks", headers={"Accept": accept})
            bad = await wire.rest("GET", "/tasks/no-such", headers={"Accept": accept})
            assert (good.headers["content-type"], bad.headers["content-type"]) == (kind, kind), accept


# The client.


@pytest.mark.req(
    "HTTP-01", "HTTP-02", "HTTP-03", "HTTP-04", "HTTP-05", "HTTP-07", "HTTP-08", "HTTP-11", "B023", "MEDIA-02"
)
async def test_the_client_writes_paths_queries_and_bodies_as_the_binding_says() -> None:
    async with peer() as server:
        page = {"tasks": [], "nextPageToken": "", "pageSize": 50, "totalSize": 0}
        server.on("POST", "/base/message:send", as_json({"task": task("COMPLETED")}))
        server.on("GET", "/base/tasks/a%2Fb%20c", as_json(task("WORKING")))
        server.on("GET", "/base/tasks", as_json(page))
        server.on("POST", "/base/tasks/t1:cancel", as_json(task("CANCELED")))
        entry = {"url": f"{server.url}/base", "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0"}
        async with connect_to(server, "HTTP+JSON", card=card(server.url, supportedInterfaces=[entry])) as client:
            await client.send("é", metadata={"nested": {"deep": [1]}})
            await client.get_task("a/b c", history_length=0)
            await client.list_tasks(
                context_id="c 1&2=ü",
                status=TaskState.WORKING,
                page_size=5,
                page_token="p+/=",
                history_length=0,
                status_timestamp_after=Timestamp.parse("2026-01-02T03:04:05Z"),
                include_artifacts=True,
            )
            await client.cancel("t1")

    send, get, listed, cancel = server.received
    assert (send.method, send.target) == ("POST", "/base/message:send")
    assert send.headers["content-type"] == "application/a2a+json"
    assert (send.json["message"]["parts"], send.json["metadata"]) == ([{"text": "é"}], {"nested": {"deep": [1]}})
    assert (get.method, get.target, get.body) == ("GET", "/base/tasks/a%2Fb%20c?historyLength=0", b"")
    assert (listed.method, listed.body) == ("GET", b"")
    query = urlsplit(listed.target).query
    assert dict(parse_qsl(query)) == {
        "contextId": "c 1&2=ü",
        "status": "TASK_STATE_WORKING",
        "pageSize": "5",
        "pageToken": "p+/=",
        "historyLength": "0",
        "statusTimestampAfter": "2026-01-02T03:04:05.000Z",
        "includeArtifacts": "true",
    }
    assert query.isascii()
    assert not set(query) & set(" ü/\"'")
    assert (cancel.method, cancel.target) == ("POST", "/base/tasks/t1:cancel")
    assert cancel.json == {}


@pytest.mark.req("AMB-88")
async def test_the_client_subscribes_by_post_then_by_get_and_remembers_which() -> None:
    events = stream({"task": task("WORKING")}, status("COMPLETED"), rpc=False)
    async with peer() as server:
        server.on("POST", "/tasks/t1:subscribe", as_json({"error": {"code": 405, "message": "no"}}, 405))
        server.on("GET", "/tasks/t1:subscribe", events)
        async with connect_to(server, "HTTP+JSON") as client:
            for _ in range(2):
                assert len([event async for event in client.subscribe("t1")]) == 2

    assert server.targets() == ["POST /tasks/t1:subscribe", "GET /tasks/t1:subscribe", "GET /tasks/t1:subscribe"]


@pytest.mark.parametrize(
    ("status_", "body"),
    [
        (404, {"error": {"code": 404, "status": "NOT_FOUND", "message": "m"}}),
        (404, {"code": 5, "message": "m"}),
        (
            409,
            {
                "error": {
                    "details": [
                        {
                            "@type": "type.googleapis.com/google.rpc.ErrorInfo",
                            "reason": "TASK_NOT_FOUND",
                            "domain": "a2a-protocol.org",
                        }
                    ]
                }
            },
        ),
        (404, {"type": "https://a2a-protocol.org/errors/task-not-found", "title": "Task not found", "status": 404}),
    ],
    ids=["the form of 11.6", "a bare google.rpc.Status", "an older status with a reason", "problem+json"],
)
@pytest.mark.req("AMB-27", "AMB-28", "AMB-31")
async def test_the_client_reads_every_form_that_errors_were_published_in(status_: int, body: Any) -> None:
    async with peer() as server:
        server.on("GET", "/tasks/t1", as_json(body, status_))
        async with connect_to(server, "HTTP+JSON") as client:
            with pytest.raises(TaskNotFoundError):
                await client.get_task("t1")


@pytest.mark.req("HTTP-09", "BIND-01", "JRPC-05")
async def test_both_bindings_stream_the_same_events() -> None:
    async with served(agent) as wire:
        told = {}
        for binding in ("JSONRPC", "HTTP+JSON"):
            async with wire.stream(binding, "SendStreamingMessage", said("hi")) as opened:
                told[binding] = [bare(event) for event in await opened.rest()]

    shapes = [
        [(next(iter(event)), event.get("artifactUpdate", {}).get("artifact", {}).get("parts")) for event in events]
        for events in told.values()
    ]
    assert shapes[0] == shapes[1]
