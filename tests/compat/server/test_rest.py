"""HTTP+JSON of 0.3: its routes, the kinds of JSON that are read and answered, its errors."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from dragoman import App
from dragoman.errors import ConfigurationError
from dragoman.server import V03ServerSettings
from tests.bindings.parts import ask
from tests.compat.server.recording import RecordedPush, endpoint_over, pushed
from tests.compat.server.speaking import ECHO, Old, check_kinds, checked_body, serving, told, told_in_proto

pytestmark = pytest.mark.req("V03-01")


@pytest.mark.req("V03-P02")
async def test_a_message_is_sent_in_the_json_of_the_protobuf_messages(old: Old) -> None:
    found = await old.rest("POST", "/message:send", told_in_proto("hello", contextId="ctx-9"))

    assert (found.status, found.headers["content-type"]) == (200, "application/json")
    assert "kind" not in found.body.decode()
    task = found.json["task"]
    assert task["contextId"] == "ctx-9"
    assert task["status"]["state"] == "TASK_STATE_COMPLETED"
    assert task["history"][0]["content"] == [{"text": "hello"}]
    assert task["history"][0]["role"] == "ROLE_USER"
    assert task["artifacts"][0]["parts"] == [{"text": "hello"}]


async def test_the_words_of_the_protobuf_messages_are_used(old: Old) -> None:
    asked = (await old.rest("POST", "/message:send", told_in_proto("!input Which floor?"))).json["task"]
    canceled = await old.rest("POST", f"/tasks/{asked['id']}:cancel", {"name": f"tasks/{asked['id']}"})
    reply = await old.rest("POST", "/message:send", told_in_proto("!message hi"))

    assert canceled.json["status"]["state"] == "TASK_STATE_CANCELLED"
    assert reply.json["message"]["role"] == "ROLE_AGENT"
    assert reply.json["message"]["content"] == [{"text": "hi"}]


@pytest.mark.parametrize(
    "body",
    [
        told_in_proto(),
        {"request": {"message_id": "m-1", "role": "ROLE_USER", "content": [{"text": "hello"}]}},
        {"message": {"messageId": "m-1", "role": 1, "parts": [{"text": "hello"}]}, "surprise": 1},
        {"message": {"messageId": "m-1", "role": "ROLE_USER", "parts": [{"text": "hello"}], "more": {}}},
    ],
)
@pytest.mark.req("V03-P02")
async def test_all_spellings_of_form_a_are_read_and_answered_in_it(body: Any) -> None:
    async with serving() as old:
        found = await old.rest("POST", "/message:send", body)

    assert found.json["task"]["artifacts"][0]["parts"] == [{"text": "hello"}]


async def test_who_writes_kinds_is_answered_in_kinds_in_wrappers(old: Old) -> None:
    found = await old.rest("POST", "/message:send", told())
    bare = await old.rest("POST", "/message:send", {"message": {**told()["message"], "kind": None}})
    async with old.stream("/v1/message:stream", json.dumps(told()).encode()) as events:
        streamed = await events.rest()

    for answer in (found.json, bare.json):
        check_kinds(answer)
        assert answer["task"]["kind"] == "task"
        assert answer["task"]["status"]["state"] == "completed"
    assert [next(iter(event)) for event in streamed][0::4] == ["task"]
    assert streamed[-1]["statusUpdate"]["kind"] == "status-update"
    assert streamed[-1]["statusUpdate"]["final"] is True


@pytest.mark.parametrize("form", ["A", "B", "C"])
async def test_the_operator_may_choose_the_form(form: Any) -> None:
    async with serving(v03=V03ServerSettings(rest_form=form)) as old:
        for body in (told(), told_in_proto()):
            answer = (await old.rest("POST", "/message:send", body)).json
            task = answer if form == "C" else answer["task"]
            assert ("kind" in task) is (form != "A")
            got = (await old.rest("GET", f"/tasks/{task['id']}")).json
            assert got["status"]["state"] == ("TASK_STATE_COMPLETED" if form == "A" else "completed")


async def test_a_form_that_is_none_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="rest_form"):
        V03ServerSettings(rest_form="D")  # type: ignore[arg-type]


@pytest.mark.req("V03-P09")
@pytest.mark.parametrize("raw", [False, True])
async def test_files_are_base64_of_base64_unless_the_operator_says_otherwise(raw: bool) -> None:
    once = base64.b64encode(b"hello").decode()
    written = once if raw else base64.b64encode(once.encode()).decode()
    part = {"file": {"fileWithBytes": written, "mimeType": "text/plain", "name": "t.txt"}}
    agent_said: list[bytes] = []
    from dragoman import Agent

    agent = Agent("Mirror", input_modes=["*/*"])

    @agent.task
    async def mirror(ctx):  # type: ignore[no-untyped-def]
        agent_said.append(ctx.message.parts[0].raw)
        await ctx.artifact(list(ctx.message.parts))

    async with serving(agent, v03=V03ServerSettings(raw_bytes=raw)) as old:
        task = (await old.rest("POST", "/message:send", told_in_proto(content=[part]))).json["task"]

    assert agent_said == [b"hello"]
    assert task["artifacts"][0]["parts"] == [part]


@pytest.mark.req("V03-P05")
@pytest.mark.parametrize(
    ("more", "state"),
    [
        ({}, "TASK_STATE_COMPLETED"),
        ({"configuration": {"blocking": True}}, "TASK_STATE_COMPLETED"),
        ({"configuration": {"acceptedOutputModes": ["text/plain"]}}, "TASK_STATE_WORKING"),
        ({"configuration": {"blocking": False}}, "TASK_STATE_WORKING"),
    ],
)
async def test_a_configuration_without_blocking_does_not_wait(more: Any, state: str) -> None:
    async with serving() as old:
        found = await old.rest("POST", "/message:send", {**told_in_proto("!slow 300ms"), **more})

    assert found.json["task"]["status"]["state"] == state


async def test_a_task_is_got_bare_with_its_history(old: Old) -> None:
    task = (await old.rest("POST", "/message:send", told_in_proto("!input Which floor?"))).json["task"]
    await old.rest("POST", "/message:send", told_in_proto("4th", taskId=task["id"], messageId="m-2"))
    path = f"/tasks/{task['id']}"

    whole = await old.rest("GET", path)
    short = await old.rest("GET", f"{path}?historyLength=1")
    snake = await old.rest("GET", f"{path}?history_length=1&other=x")
    zero = await old.rest("GET", f"{path}?historyLength=0")
    head = await old.rest("HEAD", path)

    assert whole.json["id"] == task["id"]
    assert len(whole.json["history"]) > 1
    assert len(short.json["history"]) == len(snake.json["history"]) == 1
    assert zero.json["history"] == whole.json["history"]
    assert (head.status, head.body, head.headers["content-type"]) == (200, b"", "application/json")


@pytest.mark.req("V03-P08", "V03-P17")
@pytest.mark.parametrize("verb", ["GET", "POST"])
async def test_a_task_is_watched_again_by_both_verbs(old: Old, verb: str) -> None:
    asked = (await old.rest("POST", "/message:send", told_in_proto("!input Which floor?"))).json["task"]
    done = (await old.rest("POST", "/message:send", told_in_proto())).json["task"]
    body = json.dumps({"name": "x"}).encode() if verb == "POST" else None

    async with old.stream(f"/v1/tasks/{done['id']}:subscribe", body, verb) as events:
        assert (events.status, events.headers["content-type"]) == (200, "text/event-stream")
        over = await events.rest()
    async with old.stream(f"/v1/tasks/{asked['id']}:subscribe", body, verb) as events:
        waiting = await events.rest()
    missing = await old.rest(verb, "/tasks/nope:subscribe", {} if verb == "POST" else None)

    assert [event["task"]["status"]["state"] for event in over] == ["TASK_STATE_COMPLETED"]
    assert [event["task"]["status"]["state"] for event in waiting] == ["TASK_STATE_INPUT_REQUIRED"]
    checked_body(missing, 404, -32001, "TaskNotFoundError")


@pytest.mark.req("V03-P20", "V03-P01", "B149")
async def test_errors_have_their_status_and_a_body_that_every_client_understands(old: Old) -> None:
    done = (await old.rest("POST", "/message:send", told_in_proto())).json["task"]
    long = {"configuration": {"historyLength": -1, "blocking": True}}
    wrong = told_in_proto()

    for method, path, body, status, code, name in [
        ("GET", "/tasks/nope", None, 404, -32001, "TaskNotFoundError"),
        ("POST", "/tasks/nope:cancel", None, 404, -32001, "TaskNotFoundError"),
        ("POST", f"/tasks/{done['id']}:cancel", {}, 409, -32002, "TaskNotCancelableError"),
        ("GET", "/tasks", None, 501, -32004, "UnsupportedOperationError"),
        ("GET", "/card", None, 404, -32007, "AuthenticatedExtendedCardNotConfiguredError"),
        ("GET", "/nonsense", None, 404, -32601, "MethodNotFoundError"),
        ("GET", "", None, 404, -32601, "MethodNotFoundError"),
        ("GET", "/tasks/", None, 404, -32601, "MethodNotFoundError"),
        ("GET", "/message:send/x", None, 404, -32601, "MethodNotFoundError"),
        ("GET", "/tasks/t/pushNotificationConfigs", None, 501, -32003, "PushNotificationNotSupportedError"),
        ("DELETE", "/tasks/t/pushNotificationConfigs/c", None, 501, -32003, "PushNotificationNotSupportedError"),
        ("POST", "/message:send", {}, 422, -32602, "InvalidParamsError"),
        ("POST", "/message:send", {**wrong, **long}, 422, -32602, "InvalidParamsError"),
        ("POST", "/message:send", told(parts=[{"kind": "video"}]), 422, -32602, "InvalidParamsError"),
        ("POST", "/message:send", told_in_proto(taskId=done["id"]), 501, -32004, "UnsupportedOperationError"),
        ("POST", "/message:stream", {"message": 5}, 422, -32602, "InvalidParamsError"),
        ("GET", "/tasks/t?historyLength=many", None, 422, -32602, "InvalidParamsError"),
        (
            "POST",
            "/message:send",
            told_in_proto("!error ContentTypeNotSupportedError"),
            415,
            -32005,
            "ContentTypeNotSupportedError",
        ),
        (
            "POST",
            "/message:send",
            told_in_proto("!error InvalidAgentResponseError"),
            502,
            -32006,
            "InvalidAgentResponseError",
        ),
        ("POST", "/message:send", told_in_proto("!error InternalError"), 500, -32603, "InternalError"),
    ]:
        checked_body(await old.rest(method, path, body), status, code, name)
    broken = await old.post("/v1/message:send", b"{")
    checked_body(broken, 400, -32700, "JSONParseError")


async def test_a_body_that_is_no_json_by_its_type_is_refused(old: Old) -> None:
    body = json.dumps(told_in_proto()).encode()
    for kind in ("application/json; charset=utf-8", "application/a2a+json", "application/x+json", "text/json"):
        assert (await old.post("/v1/message:send", body, {"Content-Type": kind})).status == 200, kind
    refused = await old.post("/v1/message:send", body, {"Content-Type": "text/plain"})

    assert refused.status == 415
    assert refused.json["code"] == -32600


@pytest.mark.parametrize(
    ("path", "allow"),
    [
        ("/message:send", "OPTIONS, POST"),
        ("/card", "GET, HEAD, OPTIONS"),
        ("/tasks", "GET, HEAD, OPTIONS"),
        ("/tasks/t", "GET, HEAD, OPTIONS"),
        ("/tasks/t:cancel", "OPTIONS, POST"),
        ("/tasks/t:subscribe", "GET, OPTIONS, POST"),
        ("/tasks/t/pushNotificationConfigs", "GET, HEAD, OPTIONS, POST"),
        ("/tasks/t/pushNotificationConfigs/c", "DELETE, GET, HEAD, OPTIONS"),
    ],
)
async def test_other_verbs_are_told_which_are_allowed(path: str, allow: str) -> None:
    app = endpoint_over(RecordedPush(), cors=("*",))
    refused = await ask(app, "PUT", f"/v1{path}")
    preflight = await ask(app, "OPTIONS", f"/v1{path}", headers={"Origin": "https://page.example"})
    nowhere = await ask(app, "OPTIONS", "/v1/nowhere")

    assert (refused.status, refused.header("allow"), refused.json["code"]) == (405, allow, -32601)
    assert (preflight.status, preflight.header("allow")) == (204, allow)
    assert "x-a2a-extensions" in str(preflight.header("access-control-allow-headers"))
    assert nowhere.status == 404


async def test_ids_in_paths_are_decoded_and_verbs_are_the_last_word() -> None:
    operations = RecordedPush()
    app = endpoint_over(operations)
    for path, id in [("a%2Fb", "a/b"), ("a%3Acancel", "a:cancel"), ("%C3%A9", "é"), ("x:y", "x:y")]:
        await ask(app, "GET", f"/v1/tasks/{path}")
        assert operations.calls[-1][1].id == id
    await ask(app, "POST", "/v1/tasks/a:b:cancel")
    assert operations.calls[-1][1].id == "a:b"


WEBHOOK = {"url": "https://hooks.example", "token": "s3"}


@pytest.mark.parametrize(
    ("body", "query", "id"),
    [
        (
            {
                "parent": "tasks/x",
                "configId": "c",
                "config": {"name": "tasks/x/pushNotificationConfigs/c", "pushNotificationConfig": WEBHOOK},
            },
            "",
            "c",
        ),
        (
            {"parent": "tasks/x", "configId": "c", "config": {"pushNotificationConfig": {**WEBHOOK, "id": "own"}}},
            "",
            "own",
        ),
        ({"config": {"name": "tasks/x/pushNotificationConfigs/n", "pushNotificationConfig": WEBHOOK}}, "", "n"),
        ({"config": {"taskId": "x", "pushNotificationConfig": WEBHOOK}}, "", "t-1"),
        ({"name": "tasks/x/pushNotificationConfigs/n", "pushNotificationConfig": WEBHOOK}, "", "n"),
        ({"name": "tasks/x/pushNotificationConfigs", "pushNotificationConfig": WEBHOOK}, "", "t-1"),
        ({"name": "tasks/x/pushNotificationConfigs/None", "push_notification_config": WEBHOOK}, "", "t-1"),
        ({"taskId": "x", "pushNotificationConfig": WEBHOOK}, "", "t-1"),
        ({"id": "own", **WEBHOOK}, "", "own"),
        (WEBHOOK, "?configId=q", "q"),
        ({"config": {"pushNotificationConfig": WEBHOOK}, "config_id": "c"}, "?configId=q", "c"),
    ],
)
async def test_all_shapes_of_a_new_webhook_are_read_and_the_task_of_the_path_wins(
    body: Any, query: str, id: str
) -> None:
    operations = RecordedPush()
    made = await ask(
        endpoint_over(operations), "POST", f"/v1/tasks/t-1/pushNotificationConfigs{query}", json.dumps(body)
    )

    (stored,) = operations.configs
    assert (stored.task_id, stored.id, stored.url, stored.token) == ("t-1", id, WEBHOOK["url"], "s3")
    assert made.status == 200
    if "taskId" in body:
        assert (made.json["taskId"], made.json["pushNotificationConfig"]["id"]) == ("t-1", id)
    else:
        assert made.json["name"] == f"tasks/t-1/pushNotificationConfigs/{id}"


@pytest.mark.parametrize("body", [{}, {"config": {}}, {"config": {"pushNotificationConfig": 5}}, {"url": 5}])
async def test_a_webhook_without_an_address_is_refused(body: Any) -> None:
    operations = RecordedPush()
    refused = await ask(endpoint_over(operations), "POST", "/v1/tasks/t/pushNotificationConfigs", json.dumps(body))

    assert (refused.status, refused.json["code"]) == (422, -32602)
    assert not operations.configs


async def test_webhooks_are_got_listed_and_deleted() -> None:
    operations = RecordedPush([pushed("t-1", id) for id in "abcde"])
    app = endpoint_over(operations)
    got = await ask(app, "GET", "/v1/tasks/t-1/pushNotificationConfigs/b")
    listed = await ask(app, "GET", "/v1/tasks/t-1/pushNotificationConfigs?pageSize=1")
    deleted = await ask(app, "DELETE", "/v1/tasks/t-1/pushNotificationConfigs/b")
    missing = await ask(app, "GET", "/v1/tasks/t-1/pushNotificationConfigs/b")
    operations.configs = []
    empty = await ask(app, "GET", "/v1/tasks/t-1/pushNotificationConfigs")

    assert got.json["pushNotificationConfig"]["id"] == "b"
    assert [entry["pushNotificationConfig"]["id"] for entry in listed.json["configs"]] == list("abcde")
    assert (deleted.status, deleted.body) == (204, b"")
    assert missing.status == 404
    assert empty.json == {"configs": []}


async def test_the_extensions_that_are_active_are_told_by_the_older_name() -> None:
    from dragoman import Agent

    agent = Agent("Extended", extensions=["urn:a", "urn:b"])

    @agent.task
    async def work(ctx):  # type: ignore[no-untyped-def]
        return "done"

    async with serving(App(agent)) as old:
        both = {"X-A2A-Extensions": "urn:a, urn:x", "A2A-Extensions": "urn:b"}
        found = await old.rest("POST", "/message:send", told_in_proto(), headers=both)
        rpc = await old.rpc("message/send", told(), headers=both)
        new = await old.wire.rpc("ListTasks", headers=both)

    for answer in (found, rpc):
        assert answer.headers["x-a2a-extensions"] == "urn:a, urn:b"
        assert "a2a-extensions" not in answer.headers
    assert "x-a2a-extensions" not in new.headers
    assert ECHO.name == "Echo"
