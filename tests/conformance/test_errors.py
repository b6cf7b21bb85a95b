"""Errors: one table, the same on every binding, and what a caller learns from them. Spec: §3.3.2, §5.4, §9.5, §11.6."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman import Agent, Message, Part, Reply, Role
from dragoman import errors as e
from dragoman.model import AgentExtension
from tests.conformance.wire import BAD_REQUEST, ERROR_INFO, SPOKEN, said, served

# Copied from the register's tables, not from the code: class, JSON-RPC code, HTTP status, gRPC name, reason.
TABLE = [
    (e.TaskNotFoundError, -32001, 404, "NOT_FOUND", "TASK_NOT_FOUND"),
    (e.TaskNotCancelableError, -32002, 400, "FAILED_PRECONDITION", "TASK_NOT_CANCELABLE"),
    (e.PushNotificationNotSupportedError, -32003, 400, "FAILED_PRECONDITION", "PUSH_NOTIFICATION_NOT_SUPPORTED"),
    (e.UnsupportedOperationError, -32004, 400, "FAILED_PRECONDITION", "UNSUPPORTED_OPERATION"),
    (e.ContentTypeNotSupportedError, -32005, 400, "INVALID_ARGUMENT", "CONTENT_TYPE_NOT_SUPPORTED"),
    (e.InvalidAgentResponseError, -32006, 500, "INTERNAL", "INVALID_AGENT_RESPONSE"),
    (
        e.ExtendedAgentCardNotConfiguredError,
        -32007,
        400,
        "FAILED_PRECONDITION",
        "EXTENDED_AGENT_CARD_NOT_CONFIGURED",
    ),
    (e.ExtensionSupportRequiredError, -32008, 400, "FAILED_PRECONDITION", "EXTENSION_SUPPORT_REQUIRED"),
    (e.VersionNotSupportedError, -32009, 400, "FAILED_PRECONDITION", "VERSION_NOT_SUPPORTED"),
    (e.InvalidParamsError, -32602, 400, "INVALID_ARGUMENT", ""),
    (e.InternalError, -32603, 500, "INTERNAL", ""),
]
# Refusals at the level of HTTP, which JSON-RPC shows by the status too.
REFUSALS = [
    (e.UnauthenticatedError, 401, "UNAUTHENTICATED"),
    (e.PermissionDeniedError, 403, "PERMISSION_DENIED"),
    (e.RateLimitedError, 429, "RESOURCE_EXHAUSTED"),
    (e.UnavailableError, 503, "UNAVAILABLE"),
]
BOTH = pytest.mark.parametrize("spoken", SPOKEN)


def echo_agent(**facts: Any) -> Agent:
    agent = Agent("Echo", description="Repeats what you say.", **facts)

    @agent.task
    async def echo(ctx):  # type: ignore[no-untyped-def]
        return f"You said: {ctx.text}"

    return agent


def failing(error: Exception) -> Any:
    """An interceptor that answers every call with this error."""

    class Failing:
        async def call(self, op: Any, request: Any, context: Any) -> Any:
            raise error

        stream = call

    return lambda operations: Failing()


def by_task_id() -> Any:
    """An interceptor that answers with the error whose class name is the task's id."""
    kinds = {row[0].__name__: row[0] for row in TABLE}

    class ById:
        async def call(self, op: Any, request: Any, context: Any) -> Any:
            raise kinds[request.id]("Words for people", metadata={"taskId": "t-1"})

    return lambda operations: ById()


@pytest.mark.req(
    "ERR-01",
    "ERR-14",
    "ERR-15",
    "ERR-18",
    "ERR-19",
    "ERR-22",
    "ERR-24",
    "JRPC-06",
    "AMB-30",
    "AMB-31",
    "AMB-35",
    "B019",
)
async def test_on_json_rpc_an_error_has_its_code_and_an_error_info_in_an_array() -> None:
    async with served(echo_agent(), interceptors=[by_task_id()]) as wire:
        for kind, code, _, _, reason in TABLE:
            told = await wire.rpc("GetTask", {"id": kind.__name__}, id="r-9")

            assert told.status == 200
            assert told.headers["content-type"] == "application/json"
            assert (told.json["jsonrpc"], told.json["id"]) == ("2.0", "r-9")
            assert "result" not in told.json
            assert (told.error["code"], told.error["message"]) == (code, "Words for people")
            info = {"@type": ERROR_INFO, "reason": reason, "domain": "a2a-protocol.org", "metadata": {"taskId": "t-1"}}
            assert told.error.get("data", []) == ([info] if reason else [])


@pytest.mark.req(
    "ERR-14",
    "ERR-15",
    "ERR-18",
    "ERR-19",
    "ERR-21",
    "ERR-24",
    "HTTP-10",
    "AMB-27",
    "AMB-28",
    "AMB-29",
    "AMB-31",
    "B029",
)
async def test_on_http_json_an_error_has_its_status_twice_and_an_error_info() -> None:
    async with served(echo_agent(), interceptors=[by_task_id()]) as wire:
        for kind, _, status, grpc, reason in TABLE:
            told = await wire.rest("GET", f"/tasks/{kind.__name__}")

            assert told.status == status
            assert told.headers["content-type"] == "application/a2a+json"
            assert set(told.json) == {"error"}
            assert (told.error["code"], told.error["status"]) == (status, grpc)
            assert told.error["message"] == "Words for people"
            info = {"@type": ERROR_INFO, "reason": reason, "domain": "a2a-protocol.org", "metadata": {"taskId": "t-1"}}
            assert told.error.get("details", []) == ([info] if reason else [])


@pytest.mark.parametrize(("kind", "status", "grpc"), REFUSALS, ids=[r[0].__name__ for r in REFUSALS])
@pytest.mark.req("ERR-11", "ERR-12", "AMB-34", "AMB-35", "AMB-38", "SEC-10")
async def test_refusals_show_by_the_http_status_on_both_bindings(
    kind: type[e.A2AError], status: int, grpc: str
) -> None:
    async with served(echo_agent(), interceptors=[failing(kind(retry_after=2.5))]) as wire:
        rpc = await wire.rpc("GetTask", {"id": "t-1"})
        rest = await wire.rest("GET", "/tasks/t-1")

    assert (rpc.status, rest.status) == (status, status)
    assert rpc.code not in {row[1] for row in TABLE if row[4]}, "no code of the A2A table"
    assert (rest.code, rest.error["status"]) == (status, grpc)
    assert (rpc.headers["retry-after"], rest.headers["retry-after"]) == ("3", "3")


@pytest.mark.parametrize("store", ["memory"], indirect=True)
@pytest.mark.req("ERR-18", "ERR-19", "ERR-24", "AMB-37", "BIND-01")
async def test_the_client_raises_the_class_that_the_server_raised(connect: Any) -> None:
    client = await connect(echo_agent(), interceptors=[by_task_id()])

    for kind, _, _, _, reason in TABLE:
        with pytest.raises(kind) as raised:
            await client.get_task(kind.__name__)

        assert type(raised.value) is kind
        assert raised.value.message == "Words for people"
        if reason:
            assert raised.value.metadata == {"taskId": "t-1"}


@pytest.mark.parametrize("store", ["memory"], indirect=True)
@pytest.mark.parametrize("kind", [row[0] for row in REFUSALS], ids=lambda kind: kind.__name__)
@pytest.mark.req("ERR-02", "ERR-04", "ERR-18", "AMB-34", "AMB-35", "AMB-38")
async def test_the_client_raises_the_refusal_that_the_server_raised(connect: Any, kind: type[e.A2AError]) -> None:
    client = await connect(echo_agent(), interceptors=[failing(kind("Not you", retry_after=4))])

    with pytest.raises(kind) as raised:
        await client.get_task("t-1")

    assert raised.value.retry_after == 4


# The errors as they come about.


def reply_agent(reply: Any) -> Agent:
    agent = Agent("Reply", description="Answers with a message.")

    @agent.reply
    async def answer(ctx):  # type: ignore[no-untyped-def]
        if isinstance(reply, Exception):
            raise reply
        return reply

    return agent


ILLEGAL = Message(message_id="m-2", role=Role.AGENT, task_id="somebody-elses", parts=[Part(text="x")])
CASES: list[tuple[str, Any, str, Any, type[e.A2AError]]] = [
    ("get of an unknown task", echo_agent, "GetTask", {"id": "no-such"}, e.TaskNotFoundError),
    ("cancel of an unknown task", echo_agent, "CancelTask", {"id": "no-such"}, e.TaskNotFoundError),
    ("subscription of an unknown task", echo_agent, "SubscribeToTask", {"id": "no-such"}, e.TaskNotFoundError),
    ("message to an unknown task", echo_agent, "SendMessage", said(taskId="no-such"), e.TaskNotFoundError),
    ("stream to an unknown task", echo_agent, "SendStreamingMessage", said(taskId="no-such"), e.TaskNotFoundError),
    (
        "stream of an agent that does not",
        lambda: echo_agent(streaming=False),
        "SendStreamingMessage",
        said(),
        e.UnsupportedOperationError,
    ),
    (
        "subscription at an agent that does not stream",
        lambda: echo_agent(streaming=False),
        "SubscribeToTask",
        {"id": "no-such"},
        e.UnsupportedOperationError,
    ),
    (
        "a part of a type that is not taken",
        echo_agent,
        "SendMessage",
        said(parts=[{"raw": "AAAA", "mediaType": "image/png"}]),
        e.ContentTypeNotSupportedError,
    ),
    (
        "a required extension that was not named",
        lambda: echo_agent(extensions=[AgentExtension(uri="https://ext.example/v1", required=True)]),
        "SendMessage",
        said(),
        e.ExtensionSupportRequiredError,
    ),
    (
        "an agent that answers illegally",
        lambda: reply_agent(ILLEGAL),
        "SendMessage",
        said(),
        e.InvalidAgentResponseError,
    ),
    ("an agent that fails", lambda: reply_agent(KeyError("k")), "SendMessage", said(), e.InternalError),
]


@BOTH
@pytest.mark.parametrize(("make", "operation", "request_", "kind"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
@pytest.mark.req(
    "ERR-01", "ERR-09", "ERR-23", "ERR-19", "CTX-12", "AMB-08", "AMB-09", "AMB-32", "AMB-37", "AMB-39", "B029"
)
async def test_a_failure_is_answered_with_the_error_given_for_it(
    spoken: str, make: Any, operation: str, request_: Any, kind: type[e.A2AError]
) -> None:
    row = next(row for row in TABLE if row[0] is kind)
    async with served(make()) as wire:
        told = await wire.call(spoken, operation, request_)

    assert told.status == (200 if spoken == "JSONRPC" else row[2])
    assert told.code == (row[1] if spoken == "JSONRPC" else row[2])
    assert told.reason == row[4]


@BOTH
@pytest.mark.req("SEND-06", "SUB-03", "CANCEL-02", "STRM-09", "CTX-20", "ERR-01", "ERR-19", "B029")
async def test_a_finished_task_refuses_message_subscription_and_cancel_each_with_its_error(spoken: str) -> None:
    async with served(echo_agent()) as wire:
        task = (await wire.call(spoken, "SendMessage", said())).result["task"]
        message = await wire.call(spoken, "SendMessage", said(taskId=task["id"]))
        stream = await wire.call(spoken, "SendStreamingMessage", said(taskId=task["id"]))
        subscription = await wire.call(spoken, "SubscribeToTask", {"id": task["id"]})
        cancel = await wire.call(spoken, "CancelTask", {"id": task["id"]})
        after = (await wire.call(spoken, "GetTask", {"id": task["id"]})).result

    assert [told.reason for told in (message, stream, subscription)] == ["UNSUPPORTED_OPERATION"] * 3
    assert (cancel.reason, cancel.metadata["taskId"]) == ("TASK_NOT_CANCELABLE", task["id"])
    assert after == task


# Validation.

BAD_SENDS: list[tuple[str, Any, list[str]]] = [
    ("no message", {}, ["message"]),
    ("message null", {"message": None}, ["message"]),
    ("message of a wrong type", {"message": "text"}, ["message"]),
    ("no messageId", {"message": {"role": "ROLE_USER", "parts": [{"text": "x"}]}}, ["message.messageId"]),
    ("empty messageId", said(messageId=""), ["message.messageId"]),
    ("no role", {"message": {"messageId": "m", "parts": [{"text": "x"}]}}, ["message.role"]),
    ("role of the agent", said(role="ROLE_AGENT"), ["message.role"]),
    ("role that is unknown", said(role="ROLE_BOSS"), ["message.role"]),
    ("role of version 0.3", said(role="user"), ["message.role"]),
    ("role by an unknown number", said(role=7), ["message.role"]),
    ("no parts", {"message": {"messageId": "m", "role": "ROLE_USER"}}, ["message.parts"]),
    ("empty parts", said(parts=[]), ["message.parts"]),
    ("a part without content", said(parts=[{"text": "x"}, {}]), ["message.parts[1]"]),
    ("a part with two contents", said(parts=[{"text": "x", "url": "https://a.example"}]), ["message.parts[0].url"]),
    ("a text that is a number", said(parts=[{"text": 5}]), ["message.parts[0].text"]),
    ("bytes that are not base64", said(parts=[{"raw": "*"}]), ["message.parts[0].raw"]),
    ("a taskId that is a number", said(taskId=5), ["message.taskId"]),
    (
        "a negative historyLength",
        {**said(), "configuration": {"historyLength": -1}},
        ["configuration.historyLength"],
    ),
    ("two faults at once", said(messageId="", parts=[]), ["message.messageId", "message.parts"]),
]
BAD_OTHERS: list[tuple[str, Any, list[str]]] = [
    ("ListTasks", {"pageSize": 0}, ["pageSize"]),
    ("ListTasks", {"pageSize": 101}, ["pageSize"]),
    ("ListTasks", {"status": "working"}, ["status"]),
    ("ListTasks", {"statusTimestampAfter": "yesterday"}, ["statusTimestampAfter"]),
    ("ListTasks", {"historyLength": -1}, ["historyLength"]),
    ("GetTask", {"id": "t", "historyLength": -1}, ["historyLength"]),
]


@BOTH
@pytest.mark.req("ERR-07", "ERR-08", "ERR-16", "SEC-14", "AMB-32", "AMB-42", "AMB-99", "B005", "B019")
async def test_bad_input_names_its_fields_and_never_reaches_the_agent(spoken: str) -> None:
    called: list[str] = []
    agent = Agent("Counter", description="Writes down what it is asked.")

    @agent.task
    async def count(ctx):  # type: ignore[no-untyped-def]
        called.append(ctx.text)

    async with served(agent) as wire:
        for operation, request, fields in [("SendMessage", *case[1:]) for case in BAD_SENDS] + BAD_OTHERS:
            told = await wire.call(spoken, operation, request)

            assert (told.status, told.code) == ((200, -32602) if spoken == "JSONRPC" else (400, 400)), request
            assert told.fields == fields, request
            assert all(v["description"] for v in told.detail(BAD_REQUEST)["fieldViolations"])
    assert not called


@pytest.mark.req("AMB-32", "ERR-07", "ERR-09")
async def test_an_id_that_is_no_text_is_invalid_and_any_text_that_matches_nothing_is_not_found() -> None:
    async with served(echo_agent()) as wire:
        for operation in ("GetTask", "CancelTask", "SubscribeToTask"):
            for id in ("", 5, None, ["t"]):
                told = await wire.rpc(operation, {"id": id})
                assert (told.code, told.fields) == (-32602, ["id"])
            for id in ("x", "../../etc/passwd", "é😀", "a" * 5000, "x:cancel"):
                told = await wire.rpc(operation, {"id": id})
                assert (told.code, told.reason) == (-32001, "TASK_NOT_FOUND")
                assert len(told.body) < 2000


@BOTH
@pytest.mark.parametrize("shape", ["reply", "task"])
@pytest.mark.req("ERR-13", "ERR-14", "SEC-09", "B083")
async def test_the_words_of_an_unknown_exception_stay_in_the_log(
    spoken: str, shape: str, caplog: pytest.LogCaptureFixture
) -> None:
    agent = Agent("Fragile", description="Breaks.")

    @getattr(agent, shape)
    async def broken(ctx):  # type: ignore[no-untyped-def]
        raise RuntimeError("hunter2")

    async with served(agent) as wire:
        told = await wire.call(spoken, "SendMessage", said())

    assert b"hunter2" not in told.body
    assert "hunter2" in caplog.text
    if shape == "reply":
        assert told.code == (-32603 if spoken == "JSONRPC" else 500)
    else:
        assert told.result["task"]["status"]["state"] == "TASK_STATE_FAILED"


@BOTH
@pytest.mark.req("ERR-11", "ERR-12")
async def test_a_server_that_stops_says_so_and_when_to_come_back(spoken: str) -> None:
    async with served(echo_agent()) as wire:
        wire.app.begin_stop()
        told = await wire.call(spoken, "SendMessage", said())

    assert told.status == 503
    assert int(told.headers["retry-after"]) > 0


@pytest.mark.req("ERR-17")
async def test_an_error_may_carry_further_details() -> None:
    error = e.TaskNotFoundError(extra_details=[{"@type": "type.example/Hint", "text": "look elsewhere"}])
    async with served(echo_agent(), interceptors=[failing(error)]) as wire:
        told = await wire.rpc("GetTask", {"id": "t"})

    assert told.detail("type.example/Hint") == {"@type": "type.example/Hint", "text": "look elsewhere"}
    assert told.reason == "TASK_NOT_FOUND"


@BOTH
@pytest.mark.req("SEND-02", "AMB-44")
async def test_a_reply_agent_that_keeps_the_rules_is_no_error(spoken: str) -> None:
    async with served(reply_agent(Reply("fine"))) as wire:
        message = (await wire.call(spoken, "SendMessage", said())).result["message"]

    assert message["parts"] == [{"text": "fine"}]
    assert message["contextId"]
