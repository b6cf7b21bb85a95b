"""The endpoint, request by request: routing, service parameters, errors, refusals. In this process, no sockets."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any
from urllib.parse import quote

import pytest

from dragoman.bindings.endpoint import Endpoint
from dragoman.bindings.settings import EndpointSettings
from dragoman.errors import (
    ConfigurationError,
    ConnectError,
    PermissionDeniedError,
    RateLimitedError,
    TaskNotFoundError,
    UnauthenticatedError,
    UnavailableError,
    UnsupportedOperationError,
    VersionNotSupportedError,
)
from dragoman.model import OPERATIONS, Operation, Part, SendMessageResponse
from dragoman.ports.operations import CallContext, Caller
from tests.bindings.parts import (
    MESSAGE,
    PARAMS,
    REPLY,
    TASK,
    RecordingOperations,
    ask,
    card,
    endpoint,
    rpc,
)

SENDS = pytest.mark.parametrize(
    ("path", "body"), [("/", rpc()), ("/message:send", PARAMS)], ids=["JSONRPC", "HTTP+JSON"]
)


# The two bindings.


@pytest.mark.req("JRPC-01", "JRPC-04", "JRPC-07", "MEDIA-01", "SEND-01", "B007", "MEDIA-05")
@pytest.mark.parametrize("path", ["/", ""])
async def test_a_jsonrpc_call_reaches_the_operations_and_its_result_comes_back(path: str) -> None:
    operations = RecordingOperations()
    answer = await ask(endpoint(operations), "POST", path, rpc(id='"r-1"'), headers={"A2A-Version": "1.0"})
    assert (answer.status, answer.header("content-type")) == (200, "application/json")
    assert answer.header("content-length") == str(len(answer.body))
    assert answer.json["id"] == "r-1"
    assert answer.json["result"]["message"]["parts"] == [{"text": "You said: Hello"}]
    assert operations.calls[0][1].message == MESSAGE


@pytest.mark.req("HTTP-01", "HTTP-02", "MEDIA-02", "AMB-29", "AMB-92", "AMB-91")
@pytest.mark.parametrize(
    ("method", "path", "body", "name"),
    [
        ("POST", "/message:send", PARAMS, "SendMessage"),
        ("GET", "/tasks/t-1?historyLength=2", "", "GetTask"),
        ("GET", "/tasks", "", "ListTasks"),
        ("POST", "/tasks/t-1:cancel", "", "CancelTask"),
        (
            "POST",
            "/tasks/t-1/pushNotificationConfigs",
            '{"url":"https://h.example"}',
            "CreateTaskPushNotificationConfig",
        ),
        ("GET", "/tasks/t-1/pushNotificationConfigs/c", "", "GetTaskPushNotificationConfig"),
        ("GET", "/tasks/t-1/pushNotificationConfigs", "", "ListTaskPushNotificationConfigs"),
        ("DELETE", "/tasks/t-1/pushNotificationConfigs/c", "", "DeleteTaskPushNotificationConfig"),
        ("GET", "/extendedAgentCard", "", "GetExtendedAgentCard"),
    ],
)
async def test_an_http_json_call_reaches_its_operation(method: str, path: str, body: str, name: str) -> None:
    operations = RecordingOperations()
    app = endpoint(operations)
    answer = await ask(app, method, path, body)
    assert (answer.status, answer.header("content-type")) == (200, "application/a2a+json")
    assert answer.header("content-length") == str(len(answer.body))
    assert [call[0].name for call in operations.calls] == [name]
    assert isinstance(answer.json, dict)
    if name.startswith("Delete"):
        assert answer.body == b"{}"
    plain = await ask(app, method, path, body, headers={"Accept": "application/json"})
    assert plain.header("content-type") == "application/json"


@pytest.mark.req("B001", "B003", "AMB-48")
@SENDS
async def test_null_data_and_whole_numbers_go_through_unharmed(path: str, body: str) -> None:
    def echo(op: Operation, request: Any, context: CallContext) -> Any:
        return SendMessageResponse(message=request.message)

    parts = [{"data": None, "mediaType": "application/json"}, {"data": {"revision": 1, "big": 9007199254740993}}]
    parts += [{"data": 0}, {"data": False}, {"data": ""}, {"data": []}, {"data": {}}]  # type: ignore[list-item]
    text = body.replace(
        json.dumps([{"text": MESSAGE.parts[0].text}], ensure_ascii=False, separators=(",", ":")), json.dumps(parts)
    )
    assert text != body
    answer = await ask(endpoint(RecordingOperations(echo)), "POST", path, text)
    result = answer.json["result"] if path == "/" else answer.json
    assert result["message"]["parts"] == parts
    assert b"9007199254740993" in answer.body
    assert b'"revision":1,' in answer.body


@pytest.mark.req("AMB-93", "B035")
async def test_jsonrpc_takes_any_content_type_and_http_json_only_json() -> None:
    headers = {"Content-Type": "text/plain"}
    assert (await ask(endpoint(), "POST", "/", rpc(), headers=headers)).json["result"]
    refused = await ask(endpoint(), "POST", "/message:send", PARAMS, headers=headers)
    assert refused.status == 415
    assert refused.error["code"] == 415
    assert "details" not in refused.error


@pytest.mark.req("HTTP-10", "ERR-21")
@pytest.mark.parametrize(
    ("method", "path", "status", "allow"),
    [
        ("GET", "/", 405, "OPTIONS, POST"),
        ("PUT", "", 405, "OPTIONS, POST"),
        ("GET", "/message:send", 405, "OPTIONS, POST"),
        ("POST", "/.well-known/agent-card.json", 405, "GET, HEAD, OPTIONS"),
        ("DELETE", "/health", 405, "GET, HEAD, OPTIONS"),
        ("GET", "/nothing/here/at/all/x/y", 404, None),
        ("POST", "/v1/nothing", 404, None),
        ("GET", "/%ff%00", 404, None),
    ],
)
async def test_a_wrong_path_or_verb_is_an_error_body_of_the_protocol(
    method: str, path: str, status: int, allow: str | None
) -> None:
    answer = await ask(endpoint(), method, path)
    assert (answer.status, answer.header("allow")) == (status, allow)
    assert (answer.error["code"], answer.error["status"]) == (status, "UNIMPLEMENTED")
    assert answer.header("content-type") == "application/a2a+json"


async def test_options_answers_what_is_allowed_and_head_answers_without_a_body() -> None:
    for path, allow in (("/", "OPTIONS, POST"), ("/health", "GET, HEAD, OPTIONS"), ("/tasks/t", "GET, HEAD, OPTIONS")):
        answer = await ask(endpoint(), "OPTIONS", path)
        assert (answer.status, answer.header("allow"), answer.body) == (204, allow, b"")
    assert (await ask(endpoint(), "OPTIONS", "/nothing")).status == 404
    got = await ask(endpoint(), "GET", "/tasks/t")
    head = await ask(endpoint(), "HEAD", "/tasks/t")
    assert (head.status, head.body, head.header("content-length")) == (200, b"", got.header("content-length"))


# Service parameters.


@pytest.mark.req("PARAM-01", "PARAM-03", "PARAM-04", "PARAM-05", "VER-05", "AMB-18", "B147")
@SENDS
async def test_the_version_is_the_header_else_the_query_parameter_in_any_case(path: str, body: str) -> None:
    operations = RecordingOperations()
    app = endpoint(operations)
    for target, headers, version in (
        (path, {"A2A-Version": "1.0"}, "1.0"),
        (path, {"a2a-version": " 99.0 "}, "99.0"),
        (f"{path}?a2a-VERSION=1.0", {}, "1.0"),
        (f"{path}?x=1&A2A-Version=0.5", {"A2A-Version": ""}, "0.5"),
        (f"{path}?A2A-Version=0.5", {"A2A-Version": "1.0"}, "1.0"),
        (path, {}, ""),
    ):
        await ask(app, "POST", target, body, headers=headers)
        assert operations.context.version == version


@pytest.mark.req("VER-07", "AMB-17", "B147")
async def test_the_version_is_checked_before_method_and_params() -> None:
    def check(version: str) -> None:
        if version != "1.0":
            raise VersionNotSupportedError(metadata={"supportedVersions": "1.0"})

    app = endpoint(check_version=check)
    for body in (rpc(), rpc("message/send"), rpc(params="[]")):
        assert (await ask(app, "POST", "/", body)).error["code"] == -32009
    refused = await ask(app, "POST", "/message:send", "{}", headers={"A2A-Version": "99.0"})
    assert (refused.status, refused.error["details"][0]["reason"]) == (400, "VERSION_NOT_SUPPORTED")
    assert (await ask(app, "POST", "/", rpc("message/send"), headers={"A2A-Version": "1.0"})).error["code"] == -32601


@pytest.mark.req("EXT-02", "PARAM-07", "AMB-22")
async def test_extensions_are_read_from_all_header_fields_in_order_each_once() -> None:
    operations = RecordingOperations()
    headers = [
        ("A2A-Extensions", "https://a.example/x, https://b.example/y"),
        ("X-A2A-Extensions", "https://c.example"),
        ("a2a-extensions", "https://b.example/y,,https://d.example"),
    ]
    await ask(endpoint(operations), "POST", "/", rpc(), headers=headers)
    assert operations.context.extensions == (
        "https://a.example/x",
        "https://b.example/y",
        "https://c.example",
        "https://d.example",
    )


@pytest.mark.req("EXT-09", "AMB-25")
@SENDS
async def test_extensions_that_became_active_are_echoed(path: str, body: str) -> None:
    def activate(op: Operation, request: Any, context: CallContext) -> Any:
        context.activated = ("https://a.example/x", "urn:b")
        return REPLY

    answer = await ask(endpoint(RecordingOperations(activate)), "POST", path, body)
    assert answer.header("a2a-extensions") == "https://a.example/x, urn:b"


@pytest.mark.req("PARAM-01", "SEC-09")
async def test_other_headers_are_parameters_by_lower_case_name_and_not_shown_by_repr() -> None:
    operations = RecordingOperations()
    headers = [("X-Trace", "a"), ("x-trace", "b"), ("Authorization", "Bearer secret")]
    await ask(endpoint(operations), "POST", "/", rpc(), headers=headers)
    assert operations.context.parameters["x-trace"] == "a, b"
    assert dict(operations.context.parameters)["authorization"] == "Bearer secret"
    assert "secret" not in repr(operations.context)


@pytest.mark.parametrize(
    ("value", "number"), [("7", 7), ("0", 0), ("-1", None), ("1.0", None), ("x", None), ("", None), ("9" * 30, None)]
)
async def test_last_event_id_counts_only_as_a_plain_number(value: str, number: int | None) -> None:
    operations = RecordingOperations()
    await ask(endpoint(operations), "POST", "/tasks/t:subscribe", headers={"Last-Event-ID": value})
    assert operations.context.last_event_id == number


# Errors.


@pytest.mark.req("JRPC-06", "ERR-01", "ERR-22", "AMB-35", "B019")
async def test_a_protocol_error_is_200_on_jsonrpc_and_its_own_status_on_http_json() -> None:
    app = endpoint(RecordingOperations(lambda *_: TaskNotFoundError(metadata={"taskId": "t"})))
    over_rpc = await ask(app, "POST", "/", rpc("GetTask", '{"id":"t"}', id="7"))
    assert (over_rpc.status, over_rpc.json["id"], over_rpc.error["code"]) == (200, 7, -32001)
    info = {
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": "TASK_NOT_FOUND",
        "domain": "a2a-protocol.org",
        "metadata": {"taskId": "t"},
    }
    assert over_rpc.error["data"] == [info]
    over_rest = await ask(app, "GET", "/tasks/t")
    assert (over_rest.status, over_rest.error["status"], over_rest.error["details"]) == (404, "NOT_FOUND", [info])


@pytest.mark.req("ERR-13", "ERR-14", "B083")
@SENDS
async def test_an_unexpected_exception_is_logged_once_and_told_neutrally(
    path: str, body: str, caplog: pytest.LogCaptureFixture
) -> None:
    app = endpoint(RecordingOperations(lambda *_: RuntimeError("the password is hunter2")))
    answer = await ask(app, "POST", path, body)
    assert b"hunter2" not in answer.body
    assert answer.error["message"] == "Internal error"
    assert answer.status == (200 if path == "/" else 500)
    records = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert len(records) == 1
    assert records[0].exc_info


@pytest.mark.req("AMB-37")
@SENDS
async def test_a_response_that_cannot_be_written_is_an_invalid_agent_response(path: str, body: str) -> None:
    bad = SendMessageResponse(message=MESSAGE.__class__(message_id="m", role=MESSAGE.role, parts=[Part(text="\ud800")]))
    answer = await ask(endpoint(RecordingOperations(lambda *_: bad)), "POST", path, body)
    assert answer.error["code"] == (-32006 if path == "/" else 500)


@pytest.mark.req("ERR-11", "ERR-12", "AMB-38")
@SENDS
async def test_retry_advice_is_a_header_and_a_detail(path: str, body: str) -> None:
    for error, status in ((RateLimitedError(retry_after=1.2), 429), (UnavailableError(retry_after=1.2), 503)):
        app = endpoint(RecordingOperations(lambda *_, error=error: error))
        answer = await ask(app, "POST", path, body)
        assert (answer.status, answer.header("retry-after")) == (status, "2")
        details = answer.error["data" if path == "/" else "details"]
        assert details == [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "1.2s"}]


@pytest.mark.req("AMB-09", "STREAM-08", "AMB-08", "SUB-03")
@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/", rpc("SendStreamingMessage")),
        ("/", rpc("SubscribeToTask", '{"id":"t"}')),
        ("/message:stream", PARAMS),
        ("/tasks/t:subscribe", ""),
    ],
)
async def test_an_error_before_the_first_event_is_a_plain_answer(path: str, body: str) -> None:
    app = endpoint(RecordingOperations(stream=UnsupportedOperationError("over")))
    answer = await ask(app, "POST", path, body)
    assert (answer.header("content-type") or "").endswith("json")
    assert (answer.status, answer.error["message"]) == (200 if path == "/" else 400, "over")


@pytest.mark.req("JRPC-03", "JRPC-04", "AMB-39")
@pytest.mark.parametrize("op", OPERATIONS.values(), ids=lambda op: op.name)
async def test_every_method_of_the_table_is_served_over_jsonrpc(op: Operation) -> None:
    operations = RecordingOperations()
    params = {"id": "t", "taskId": "t", "url": "https://h.example", "message": json.loads(PARAMS)["message"]}
    answer = await ask(endpoint(operations), "POST", "/", rpc(op.name, json.dumps(params)))
    assert operations.calls[0][0] is op
    assert (answer.header("content-type") == "text/event-stream") == op.streaming


async def test_a_proxy_whose_agent_is_away_is_unavailable() -> None:
    app = endpoint(RecordingOperations(lambda *_: ConnectError("refused", url="http://10.0.0.7/")))
    answer = await ask(app, "POST", "/message:send", PARAMS)
    assert (answer.status, answer.error["status"]) == (503, "UNAVAILABLE")
    assert b"10.0.0.7" not in answer.body


# Authentication.


@pytest.mark.req("AUTH-05", "AUTH-06", "ERR-02", "ERR-03", "AMB-34")
@SENDS
async def test_an_unauthenticated_request_is_401_with_a_challenge_before_anything_else(path: str, body: str) -> None:
    async def identify(scope: Any) -> Caller:
        raise UnauthenticatedError(metadata={"challenge": 'Bearer realm="agents"'})

    operations = RecordingOperations()
    answer = await ask(endpoint(operations, identify=identify), "POST", path, "not even json")
    assert (answer.status, answer.header("www-authenticate")) == (401, 'Bearer realm="agents"')
    assert answer.error["code"] == (-32000 if path == "/" else 401)
    assert operations.calls == []


@pytest.mark.req("ERR-04", "AUTH-06")
@SENDS
async def test_a_forbidden_request_is_403_and_the_card_stays_public(path: str, body: str) -> None:
    async def identify(scope: Any) -> Caller:
        raise PermissionDeniedError

    app = endpoint(identify=identify)
    answer = await ask(app, "POST", path, body)
    assert (answer.status, answer.header("www-authenticate")) == (403, None)
    assert (await ask(app, "GET", "/.well-known/agent-card.json")).status == 200


@pytest.mark.req("AUTH-05", "AUTH-08")
@SENDS
async def test_the_caller_that_was_identified_is_in_the_context(path: str, body: str) -> None:
    async def identify(scope: Any) -> Caller:
        return Caller(id=dict(scope["headers"])[b"authorization"].decode())

    operations = RecordingOperations()
    await ask(endpoint(operations, identify=identify), "POST", path, body, headers={"Authorization": "alice"})
    assert operations.context.caller.id == "alice"


# Mounts.


@pytest.mark.req("B031", "HTTP-11")
@pytest.mark.parametrize(
    ("path", "scope"),
    [
        ("/agents/echo{}", {"root_path": "/agents/echo"}),  # the prefix stays in path
        ("{}", {"root_path": "/agents/echo"}),  # the prefix was cut off
        ("{}", {"root_path": ""}),
        ("/agents/echo{}", {"root_path": "/agents/echo/"}),
        ("/agents/echo{}", {"root_path": "/agents/echo", "raw_path": None}),
        ("/%61gents/echo{}", {"root_path": "/agents/echo"}),  # a client that encodes more than it has to
        ("/agents/echo{}", {"root_path": "/outer/agents/echo", "app_root_path": "/outer"}),  # a proxy cut its part
    ],
)
async def test_it_works_below_a_mount_whoever_cuts_the_prefix(path: str, scope: dict[str, Any]) -> None:
    operations = RecordingOperations()
    app = endpoint(operations)
    assert (await ask(app, "POST", path.format("/"), rpc(), **scope)).json["result"]
    assert (await ask(app, "POST", path.format("/message:send"), PARAMS, **scope)).json["message"]
    assert (await ask(app, "GET", path.format("/.well-known/agent-card.json"), **scope)).json["name"] == "Echo"
    assert (await ask(app, "GET", path.format("/tasks/a"), **scope)).json["id"] == TASK.id


@pytest.mark.req("AMB-90")
@pytest.mark.parametrize("root", ["", "/agents", "/ü b"])
async def test_an_id_with_encoded_slashes_is_one_segment(root: str) -> None:
    operations = RecordingOperations()
    await ask(endpoint(operations), "GET", f"{quote(root)}/tasks/a%2Fb%3Ac%25%C3%BC", root_path=root)
    assert operations.calls[0][1].id == "a/b:c%ü"


async def test_a_server_that_gives_no_raw_path_is_served_too() -> None:
    operations = RecordingOperations()
    await ask(endpoint(operations), "GET", "/tasks/100%25%C3%BC", raw_path=None)
    assert operations.calls[0][1].id == "100%ü"


# Bodies.


@pytest.mark.req("SEC-03")
@SENDS
async def test_a_body_over_the_limit_is_refused_by_its_declared_and_by_its_real_size(path: str, body: str) -> None:
    app = endpoint(max_body_bytes=1000)
    declared = await ask(app, "POST", path, body, headers={"Content-Length": "1001"})
    assert (declared.status, declared.header("connection")) == (413, "close")
    assert declared.error["code"] == (-32600 if path == "/" else 413)
    assert (await ask(app, "POST", path, [b" " * 600, b" " * 600, body.encode()])).status == 413
    assert (await ask(app, "POST", path, [b" " * 300, body.encode()])).status == 200


async def test_a_client_that_goes_away_while_it_sends_is_let_go_quietly(caplog: pytest.LogCaptureFixture) -> None:
    sent: list[Any] = []
    messages = [{"type": "http.request", "body": b'{"json', "more_body": True}, {"type": "http.disconnect"}]

    async def receive() -> Any:
        return messages.pop(0)

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": "/", "headers": [], "query_string": b""}
    await endpoint()(scope, receive, send)
    assert (sent, caplog.records) == ([], [])


@pytest.mark.req("B051")
async def test_a_blocked_call_ends_when_its_client_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.bindings.endpoint._PATIENCE", 0)
    canceled, gone = asyncio.Event(), asyncio.Event()

    async def forever() -> Any:
        try:
            await asyncio.Future()
        finally:
            canceled.set()

    messages = [{"type": "http.request", "body": rpc().encode()}]

    async def receive() -> Any:
        if messages:
            return messages.pop()
        await gone.wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        raise AssertionError("nobody is left to be told")

    operations = RecordingOperations(lambda *_: forever())
    scope = {"type": "http", "method": "POST", "path": "/", "headers": [], "query_string": b""}
    async with asyncio.timeout(5):
        request = asyncio.create_task(endpoint(operations)(scope, receive, send))
        await operations.called.wait()
        gone.set()
        await request
    assert canceled.is_set()


@pytest.mark.req("B051")
async def test_a_slow_call_with_its_client_still_there_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.bindings.endpoint._PATIENCE", 0)

    async def after_the_watch_began() -> Any:
        for _ in range(5):
            await asyncio.sleep(0)
        return REPLY

    answer = await ask(endpoint(RecordingOperations(lambda *_: after_the_watch_began())), "POST", "/", rpc())
    assert answer.json["result"]


# Settings.


@pytest.mark.parametrize(
    "settings",
    [
        {"public_url": "agents.example"},
        {"public_url": "ftp://agents.example"},
        {"public_url": "https://agents.example/?a=1"},
        {"cors": "https://page.example"},
        {"max_body_bytes": 0},
        {"heartbeat": -1},
        {"stall_timeout": 0},
    ],
)
def test_a_setting_out_of_range_is_a_configuration_error(settings: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        EndpointSettings(**settings)


@pytest.mark.req("SEC-01")
async def test_hsts_is_sent_where_the_public_url_is_https_or_when_told() -> None:
    async def sent(**settings: Any) -> str | None:
        return (await ask(endpoint(**settings), "POST", "/", rpc())).header("strict-transport-security")

    assert await sent() is None
    assert await sent(public_url="http://agents.example") is None
    assert await sent(public_url="https://agents.example") == "max-age=31536000"
    assert await sent(public_url="https://agents.example", hsts=False) is None
    assert await sent(hsts=True) == "max-age=31536000"


async def test_scopes_that_are_not_http_are_refused() -> None:
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "websocket.connect"}

    async def send(message: Any) -> None:
        sent.append(message)

    app = Endpoint(RecordingOperations(), card=card)
    await app({"type": "websocket"}, receive, send)
    assert sent == [{"type": "websocket.close", "code": 1000}]
    with pytest.raises(ConfigurationError):
        await app({"type": "lifespan"}, receive, send)
