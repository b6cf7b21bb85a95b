"""JSON-RPC of 0.3: the ten methods, what they take and what they answer."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from dragoman import Agent
from dragoman.model import Message, Part, Role, Task, TaskState, TaskStatus
from tests.bindings.parts import RecordingOperations, ask
from tests.compat.server.recording import RecordedPush, endpoint_over, pushed
from tests.compat.server.speaking import ECHO, Old, check_kinds, envelope, serving, told

pytestmark = pytest.mark.req("V03-01")


@pytest.mark.req("B153", "V03-P05")
async def test_a_message_is_waited_for_and_answered_by_a_bare_task(old: Old) -> None:
    task = await old.result("message/send", told("hello", contextId="ctx-9"))

    check_kinds(task)
    assert (task["kind"], task["contextId"], task["status"]["state"]) == ("task", "ctx-9", "completed")
    assert task["artifacts"][0]["parts"] == [{"kind": "text", "text": "hello"}]
    assert task["history"][0] == {**told()["message"], "taskId": task["id"], "contextId": "ctx-9"}
    assert "final" not in json.dumps(task)


@pytest.mark.req("B153")
async def test_a_message_without_an_id_gets_one_that_stays() -> None:
    said = Message(message_id="", role=Role.AGENT, parts=[Part(text="Which floor?")])
    status = TaskStatus(state=TaskState.INPUT_REQUIRED, message=said)
    task = Task(id="t-1", context_id="c-1", status=status, history=[said])
    app = endpoint_over(RecordingOperations(lambda *asked: task))

    first, second = [(await ask(app, "POST", "/", envelope("tasks/get", {"id": "t-1"}))).json for _ in range(2)]

    check_kinds(first["result"])
    assert first == second


async def test_a_direct_message_is_answered_bare(old: Old) -> None:
    reply = await old.result("message/send", told("!message Which harbour?"))

    check_kinds(reply)
    assert (reply["kind"], reply["role"]) == ("message", "agent")
    assert reply["parts"] == [{"kind": "text", "text": "Which harbour?"}]


@pytest.mark.req("V03-P05")
@pytest.mark.parametrize(
    ("configuration", "state"),
    [
        ({"blocking": True}, "completed"),
        ({"acceptedOutputModes": []}, "completed"),
        ({"blocking": None}, "completed"),
        ({"blocking": False}, "working"),
    ],
)
async def test_blocking_says_whether_the_answer_waits_and_is_true_when_absent(
    configuration: dict[str, Any], state: str
) -> None:
    async with serving() as old:
        task = await old.result("message/send", {**told("!slow 300ms"), "configuration": configuration})

    assert task["status"]["state"] == state


async def test_all_kinds_of_parts_go_both_ways() -> None:
    agent = Agent("Mirror", input_modes=["*/*"])
    seen: list[Any] = []

    @agent.task
    async def mirror(ctx):  # type: ignore[no-untyped-def]
        seen.extend(ctx.message.parts)
        await ctx.artifact(list(ctx.message.parts), name="all")

    content = base64.b64encode(b"\x00\xffhello").decode()
    parts = [
        {"kind": "text", "text": "ü", "metadata": {"n": 3}},
        {"kind": "file", "file": {"bytes": content, "mimeType": "text/plain", "name": "t.txt"}},
        {"kind": "file", "file": {"uri": "https://files.example/a"}},
        {"kind": "data", "data": {"big": 12345678901234567890, "whole": 3}},
        {"kind": "data", "data": {"value": [1, 2]}, "metadata": {"data_part_compat": True}},
    ]
    async with serving(agent) as old:
        task = await old.result("message/send", told(parts=parts))

    assert task["artifacts"][0]["parts"] == parts
    assert seen[1].raw == b"\x00\xffhello"
    assert seen[4].data == [1, 2]


@pytest.mark.req("V03-P23")
async def test_a_task_is_asked_for_with_as_much_history_as_wanted(old: Old) -> None:
    asked = await old.result("message/send", told("!input Which floor?"))
    await old.result("message/send", told("4th", taskId=asked["id"], messageId="m-2"))

    lengths = {
        length: len((await old.result("tasks/get", {"id": asked["id"], "historyLength": length}))["history"])
        for length in (None, 0, 1)
    }

    assert lengths[1] == 1
    assert lengths[None] == lengths[0] > 1


async def test_a_task_is_canceled(old: Old) -> None:
    task = await old.result("message/send", told("!input Which floor?"))
    canceled = await old.result("tasks/cancel", {"id": task["id"], "metadata": {"why": "weather"}})

    check_kinds(canceled)
    assert canceled["status"]["state"] == "canceled"


@pytest.mark.req("V03-P01", "V03-P30")
@pytest.mark.parametrize(
    "name",
    [
        "TaskNotFoundError",
        "TaskNotCancelableError",
        "PushNotificationNotSupportedError",
        "UnsupportedOperationError",
        "ContentTypeNotSupportedError",
        "InvalidAgentResponseError",
        "ExtendedAgentCardNotConfiguredError",
        "ExtensionSupportRequiredError",
        "VersionNotSupportedError",
        "InvalidParamsError",
        "InternalError",
    ],
)
async def test_every_error_keeps_its_code_in_answers_and_in_streams(name: str) -> None:
    import dragoman.errors

    code = getattr(dragoman.errors, name).code
    async with serving() as old:
        error = await old.error("message/send", told(f"!error {name}"))
        streamed = await old.rpc_events("message/stream", told(f"!error {name}"))

    assert error["code"] == code
    assert [event["error"]["code"] for event in streamed] == [code]


async def test_who_asks_for_what_is_not_there_is_told(old: Old) -> None:
    done = await old.result("message/send", told())

    for method, params, code in [
        ("tasks/get", {"id": "nope"}, -32001),
        ("tasks/cancel", {"id": "nope"}, -32001),
        ("tasks/cancel", {"id": done["id"]}, -32002),
        ("message/send", told(taskId="nope"), -32001),
        ("message/send", told(taskId=done["id"]), -32004),
        ("agent/getAuthenticatedExtendedCard", None, -32007),
        ("tasks/pushNotificationConfig/get", {"id": done["id"]}, -32003),
        ("tasks/pushNotificationConfig/list", {"id": done["id"]}, -32003),
        ("tasks/pushNotificationConfig/delete", {"id": "t", "pushNotificationConfigId": "c"}, -32003),
        (
            "tasks/pushNotificationConfig/set",
            {"taskId": "t", "pushNotificationConfig": {"url": "https://x.example"}},
            -32003,
        ),
        ("message/send", {**told(), "configuration": {"pushNotificationConfig": {"url": "https://x.example"}}}, -32003),
        ("tasks/list", {}, -32601),
        ("agent/authenticatedExtendedCard", {}, -32601),
        ("message/snd", {}, -32601),
    ]:
        assert (await old.error(method, params))["code"] == code, method


BAD: list[tuple[str, Any, str]] = [
    ("message/send", None, "message"),
    ("message/send", {}, "message"),
    ("message/send", {"message": 5}, "message"),
    ("message/send", {"message": {**told()["message"], "kind": "task"}}, "message.kind"),
    ("message/send", told(parts=[{"kind": "video", "url": "x"}]), "message.parts[0]"),
    ("message/send", told(parts=[{"kind": "text"}]), "message.parts[0]"),
    ("message/send", told(parts=[{"kind": "file", "file": {"bytes": "aGk=", "uri": "https://x"}}]), "message.parts[0]"),
    ("message/send", told(parts=[{"kind": "file", "file": {}}]), "message.parts[0]"),
    ("message/send", told(parts=[{"kind": "data", "data": 5}]), "message.parts[0]"),
    ("message/send", told(parts=[{"raw": "aGk="}]), "message.parts[0]"),
    ("message/send", {**told(), "tenant": "x"}, "tenant"),
    ("message/send", told(parts=[]), "message.parts"),
    ("message/send", told(messageId=""), "message.messageId"),
    ("message/send", {**told(), "configuration": {"historyLength": -1}}, "historyLength"),
    ("tasks/get", {}, "id"),
    ("tasks/get", {"id": 5}, "id"),
    ("tasks/get", {"id": ""}, "id"),
    ("tasks/get", {"name": "tasks/t"}, "id"),
    ("tasks/get", {"id": "t", "historyLength": "many"}, "historyLength"),
    ("tasks/get", {"id": "t", "historyLength": -1}, "historyLength"),
    ("tasks/get", {"id": "t", "historyLength": True}, "historyLength"),
    ("tasks/cancel", {"id": "t", "metadata": "x"}, "metadata"),
    ("tasks/resubscribe", {}, "id"),
    ("tasks/pushNotificationConfig/set", {"taskId": "t"}, "pushNotificationConfig"),
    ("tasks/pushNotificationConfig/set", {"taskId": "t", "pushNotificationConfig": {}}, "pushNotificationConfig.url"),
    ("tasks/pushNotificationConfig/set", {"pushNotificationConfig": {"url": "https://x.example"}}, "taskId"),
    ("tasks/pushNotificationConfig/get", {}, "id"),
    ("tasks/get", [], "params"),
    ("tasks/get", "t", "params"),
]


@pytest.mark.parametrize(("method", "params", "field"), BAD)
async def test_bad_params_are_told_with_the_place(method: str, params: Any, field: str) -> None:
    async with serving() as old:
        if method == "tasks/resubscribe":
            (event,) = await old.rpc_events(method, params)
            error = event["error"]
        else:
            error = await old.error(method, params)

    assert error["code"] == -32602, error
    assert field in json.dumps(error), error


@pytest.mark.req("V03-P02")
async def test_what_is_missing_or_foreign_but_clear_is_taken(old: Old) -> None:
    bare = {"messageId": "m-1", "role": "user", "parts": [{"text": "hello"}], "surprise": {"a": 1}}
    for message in (
        bare,
        {**bare, "role": "ROLE_USER"},
        {"messageId": "m-1", "role": "ROLE_USER", "content": [{"text": "hello"}]},
        {**bare, "parts": [{"kind": "text", "text": "hello", "index": 5}]},
    ):
        task = await old.result("message/send", {"message": message, "more": None})
        assert task["artifacts"][0]["parts"] == [{"kind": "text", "text": "hello"}]


@pytest.mark.parametrize("id", ["q-1", 7, 0, "", None, "💡", 2**53])
async def test_the_id_comes_back_as_it_was(id: Any) -> None:
    async with serving() as old:
        found = await old.rpc("tasks/get", {"id": "nope"}, id=id)
        streamed = await old.rpc_events("message/stream", told(), id=id)

    assert found.json["id"] == id
    assert type(found.json["id"]) is type(id)
    assert len(streamed) > 1


@pytest.mark.parametrize(
    ("body", "code", "id"),
    [
        (b"{", -32700, None),
        (b"", -32700, None),
        (b"\xff", -32700, None),
        (b"[]", -32600, None),
        (b'[{"jsonrpc":"2.0","id":1,"method":"message/send","params":{}}]', -32600, None),
        (b'{"jsonrpc":"2.0","method":"message/send","params":{}}', -32600, None),
        (b'{"jsonrpc":"1.0","id":4,"method":"message/send"}', -32600, 4),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"message/send"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":5,"method":7}', -32600, 5),
        (b'{"jsonrpc":"2.0","id":5}', -32600, 5),
    ],
)
async def test_what_is_no_request_is_refused_in_the_form_of_0_3(body: bytes, code: int, id: Any) -> None:
    async with serving() as old:
        found = await old.post("/", body)

    error = found.json["error"]
    assert (found.status, error["code"], found.json["id"]) == (200, code, id)
    assert "data" not in error or isinstance(error["data"], dict)


# Webhooks, over an agent that takes them: ours do not send yet.


async def test_a_webhook_is_set_got_listed_and_deleted_in_the_shapes_of_0_3() -> None:
    operations = RecordedPush()
    app = endpoint_over(operations)

    async def result(method: str, params: Any) -> Any:
        found = await ask(app, "POST", "/", envelope(f"tasks/pushNotificationConfig/{method}", params))
        assert set(found.json) == {"jsonrpc", "id", "result"}, found.json
        return found.json["result"]

    webhook = {"url": "https://hooks.example", "token": "s3", "authentication": {"schemes": ["Basic", "Bearer"]}}
    made = await result("set", {"taskId": "t-1", "pushNotificationConfig": webhook})
    (stored,) = operations.configs
    got = await result("get", {"id": "t-1", "pushNotificationConfigId": "t-1"})
    first = await result("get", {"id": "t-1"})
    listed = await result("list", {"id": "t-1"})
    deleted = await result("delete", {"id": "t-1", "pushNotificationConfigId": "t-1"})
    none = await result("list", {"id": "t-1"})

    assert (stored.task_id, stored.id, stored.authentication.scheme) == ("t-1", "t-1", "Bearer")
    assert made["taskId"] == "t-1"
    assert made["pushNotificationConfig"]["url"] == "https://hooks.example"
    assert made["pushNotificationConfig"]["authentication"]["schemes"] == ["Bearer"]
    assert got == first == made
    assert listed == [made]
    assert deleted is None
    assert none == []


@pytest.mark.req("V03-P18", "V03-P19")
async def test_without_an_id_the_webhook_that_is_meant_is_found() -> None:
    operations = RecordedPush([pushed("t-1", "a"), pushed("t-1", "t-1"), pushed("t-1", "b")])
    app = endpoint_over(operations)

    async def got(config_id: Any) -> Any:
        params = {"id": "t-1", "pushNotificationConfigId": config_id}
        return (await ask(app, "POST", "/", envelope("tasks/pushNotificationConfig/get", params))).json

    assert (await got(None))["result"]["pushNotificationConfig"]["id"] == "t-1"
    assert (await got("None"))["result"]["pushNotificationConfig"]["id"] == "t-1"
    assert (await got("b"))["result"]["pushNotificationConfig"]["id"] == "b"
    assert (await got("c"))["error"]["code"] == -32001
    operations.configs = [pushed("t-1", "b")]
    assert (await got(None))["result"]["pushNotificationConfig"]["id"] == "b"
    operations.configs = []
    assert (await got(None))["error"]["code"] == -32001


async def test_the_runtime_learns_that_the_caller_speaks_0_3() -> None:
    operations = RecordedPush()
    await ask(
        endpoint_over(operations),
        "POST",
        "/",
        envelope("message/send", told()),
        headers={"X-A2A-Extensions": "urn:a, urn:b", "A2A-Extensions": "urn:c", "Last-Event-ID": "5"},
    )

    context = operations.context
    assert (context.version, context.wire, context.last_event_id) == ("1.0", "0.3", None)
    assert context.extensions == ("urn:a", "urn:b", "urn:c")


@pytest.mark.req("V03-P29")
async def test_text_is_written_as_it_is(old: Old) -> None:
    found = await old.rpc("message/send", told("schön 👋"))

    assert "schön 👋" in found.body.decode()
    assert ECHO.name == "Echo"
