"""The HTTP+JSON codec, both halves, and its routes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dragoman.bindings import rest
from dragoman.bindings.codec import Call, ClientCodec
from dragoman.bindings.routes import match_route
from dragoman.errors import (
    A2AError,
    ContentTypeNotSupportedError,
    InternalError,
    InvalidAgentResponseError,
    InvalidParamsError,
    JSONParseError,
    MethodNotAllowedError,
    MethodNotFoundError,
    PermissionDeniedError,
    RemoteError,
    TaskNotCancelableError,
    TaskNotFoundError,
    UnauthenticatedError,
    UnavailableError,
    UnsupportedMediaTypeError,
    VersionNotSupportedError,
)
from dragoman.model import (
    CANCEL_TASK,
    CREATE_TASK_PUSH_NOTIFICATION_CONFIG,
    DELETE_TASK_PUSH_NOTIFICATION_CONFIG,
    GET_TASK,
    LIST_TASKS,
    OPERATIONS,
    SEND_MESSAGE,
    SEND_STREAMING_MESSAGE,
    SUBSCRIBE_TO_TASK,
    CancelTaskRequest,
    Empty,
    GetTaskRequest,
    ListTasksRequest,
    Operation,
    SendMessageRequest,
    SubscribeToTaskRequest,
    TaskPushNotificationConfig,
    TaskState,
    Timestamp,
)
from tests.bindings.parts import MESSAGE, PARAMS, TASK, text_event
from tests.model.strategies import messages

CODEC: ClientCodec = rest

EACH_OPERATION = pytest.mark.parametrize("op", OPERATIONS.values(), ids=lambda op: op.name)


def received(sent: rest.HttpRequest) -> Call:
    """What the server reads of a client's request."""
    return rest.decode_call(sent.method, sent.path, sent.query, sent.headers.get("content-type", ""), sent.body)


@pytest.mark.req(
    "HTTP-01", "HTTP-03", "HTTP-04", "HTTP-05", "HTTP-08", "HTTP-12", "AMB-88", "AMB-89", "TEN-02", "TEN-06"
)
@EACH_OPERATION
@given(
    data=st.data(),
    tenant=st.sampled_from(["", "acme", "tasks", "a/b:c ü%2F"]),
    in_path=st.booleans(),
    get=st.booleans(),
)
def test_what_a_client_encodes_the_server_reads_as_the_same_request(
    op: Operation, data: st.DataObject, tenant: str, in_path: bool, get: bool
) -> None:
    request = data.draw(messages(op.request))
    assume(all(getattr(request, name) not in ("", ".", "..") for name in op.path_fields))
    method = "GET" if get and op is SUBSCRIBE_TO_TASK else ""
    call = received(rest.encode_request(op, request, tenant, method=method, tenant_in_path=in_path))
    assert call.op is op
    assert call.request.tenant == (tenant or request.tenant)
    call.request.tenant = request.tenant
    assert call.request == request


@EACH_OPERATION
@given(data=st.data())
def test_what_the_server_encodes_the_client_reads_as_the_same_result(op: Operation, data: st.DataObject) -> None:
    response = data.draw(messages(op.response))
    body = rest.encode_result(Call(op, response), response)
    assert rest.decode_result(op, 200, {}, body) == response


@pytest.mark.req("HTTP-01", "HTTP-11", "B031")
@pytest.mark.parametrize(
    ("method", "path", "name", "fields"),
    [
        ("POST", "/message:send", "SendMessage", {}),
        ("POST", "/message:stream", "SendStreamingMessage", {}),
        ("GET", "/tasks", "ListTasks", {}),
        ("GET", "/tasks/t-1", "GetTask", {"id": "t-1"}),
        ("HEAD", "/tasks/t-1", "GetTask", {"id": "t-1"}),
        ("POST", "/tasks/t-1:cancel", "CancelTask", {"id": "t-1"}),
        ("POST", "/tasks/t-1:subscribe", "SubscribeToTask", {"id": "t-1"}),
        ("GET", "/tasks/t-1:subscribe", "SubscribeToTask", {"id": "t-1"}),
        ("GET", "/tasks/a:b:subscribe", "SubscribeToTask", {"id": "a:b"}),
        ("GET", "/tasks/a%3Asubscribe", "GetTask", {"id": "a:subscribe"}),
        ("GET", "/tasks/a:b", "GetTask", {"id": "a:b"}),
        ("GET", "/tasks/%C3%BC%2F%20x", "GetTask", {"id": "ü/ x"}),
        ("POST", "/tasks/t/pushNotificationConfigs", "CreateTaskPushNotificationConfig", {"task_id": "t"}),
        ("GET", "/tasks/t/pushNotificationConfigs", "ListTaskPushNotificationConfigs", {"task_id": "t"}),
        ("GET", "/tasks/t/pushNotificationConfigs/c", "GetTaskPushNotificationConfig", {"task_id": "t", "id": "c"}),
        (
            "DELETE",
            "/tasks/t/pushNotificationConfigs/c",
            "DeleteTaskPushNotificationConfig",
            {"task_id": "t", "id": "c"},
        ),
        ("GET", "/extendedAgentCard", "GetExtendedAgentCard", {}),
        ("POST", "/acme/message:send", "SendMessage", {"tenant": "acme"}),
        ("GET", "/a%2Fb/tasks", "ListTasks", {"tenant": "a/b"}),
        ("GET", "/acme/tasks/t", "GetTask", {"tenant": "acme", "id": "t"}),
        ("POST", "/acme/tasks/t:cancel", "CancelTask", {"tenant": "acme", "id": "t"}),
        (
            "GET",
            "/acme/tasks/t/pushNotificationConfigs/c",
            "GetTaskPushNotificationConfig",
            {"tenant": "acme", "task_id": "t", "id": "c"},
        ),
        ("GET", "/tasks/tasks", "GetTask", {"id": "tasks"}),
        ("GET", "/tasks/extendedAgentCard", "GetTask", {"id": "extendedAgentCard"}),
        ("POST", "/tasks/message:send", "SendMessage", {"tenant": "tasks"}),
    ],
)
def test_a_path_leads_to_its_operation(method: str, path: str, name: str, fields: dict[str, str]) -> None:
    route = match_route(method, path)
    assert (route.op.name, route.fields) == (name, fields)


@pytest.mark.req("AMB-39")
@pytest.mark.parametrize(
    "path",
    [
        "/nothing",
        "/v1/message:send/x",
        "/tasks/",
        "//tasks",
        "/tasks//pushNotificationConfigs",
        "/tasks/:cancel/x",
        "/acme/",
        "/a/b/tasks",
        "x",
    ],
)
def test_an_unknown_path_is_not_found(path: str) -> None:
    with pytest.raises(MethodNotFoundError):
        match_route("GET", path)


@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [
        ("GET", "/message:send", "OPTIONS, POST"),
        ("PUT", "/tasks/t", "GET, HEAD, OPTIONS"),
        ("GET", "/tasks/t:cancel", "OPTIONS, POST"),
        ("HEAD", "/tasks/t:subscribe", "GET, OPTIONS, POST"),
        ("PATCH", "/acme/tasks/t/pushNotificationConfigs/c", "DELETE, GET, HEAD, OPTIONS"),
    ],
)
def test_a_wrong_verb_is_told_with_the_right_ones(method: str, path: str, allow: str) -> None:
    with pytest.raises(MethodNotAllowedError) as raised:
        match_route(method, path)
    assert raised.value.metadata["allow"] == allow


# Path, query and body together.


def call_of(method: str, target: str, body: Any = b"", content_type: str = "") -> Any:
    path, _, query = target.partition("?")
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return rest.decode_call(method, path, query, content_type, data).request


@pytest.mark.req("AMB-90")
def test_the_same_value_in_path_and_body_is_fine_and_an_empty_body_too() -> None:
    assert call_of("POST", "/tasks/t:cancel", {"id": "t"}) == CancelTaskRequest(id="t")
    assert call_of("POST", "/tasks/t:cancel", {"id": None}) == CancelTaskRequest(id="t")
    assert call_of("POST", "/tasks/t:cancel") == CancelTaskRequest(id="t")
    assert call_of("GET", "/tasks/t?id=t") == GetTaskRequest(id="t")
    config = {"taskId": "t", "url": "https://hook.example"}
    assert call_of("POST", "/tasks/t/pushNotificationConfigs", config).task_id == "t"


@pytest.mark.req("AMB-89", "AMB-90", "ERR-08")
@pytest.mark.parametrize(
    ("method", "target", "body", "field"),
    [
        ("POST", "/tasks/t:cancel", {"id": "other"}, "id"),
        ("POST", "/tasks/t:cancel", {"id": 5}, "id"),
        ("GET", "/tasks/t?id=other", b"", "id"),
        ("POST", "/tasks/t/pushNotificationConfigs", {"task_id": "other", "url": "u"}, "taskId"),
        ("POST", "/tasks/t/pushNotificationConfigs", {"taskId": "other", "url": "u"}, "taskId"),
        ("GET", "/acme/tasks/t?tenant=other", b"", "tenant"),
        ("POST", "/acme/message:send?tenant=other", json.loads(PARAMS), "tenant"),
        ("POST", "/acme/message:send", {**json.loads(PARAMS), "tenant": "other"}, "tenant"),
        ("POST", "/message:send?tenant=acme", {**json.loads(PARAMS), "tenant": "other"}, "tenant"),
        ("POST", "/acme/tasks/t:subscribe", {"tenant": "other"}, "tenant"),
        ("GET", "/tasks?contextId=a&context_id=b", b"", "contextId"),
    ],
)
def test_two_different_values_for_one_field_are_invalid(method: str, target: str, body: Any, field: str) -> None:
    with pytest.raises(InvalidParamsError) as raised:
        call_of(method, target, body)
    assert [v.field for v in raised.value.violations] == [field]


@pytest.mark.req("AMB-89", "TEN-06")
@pytest.mark.parametrize(
    ("target", "body"),
    [
        ("/acme/message:send", PARAMS),
        ("/message:send?tenant=acme", PARAMS),
        ("/message:send", PARAMS.replace("{", '{"tenant":"acme",', 1)),
        ("/acme/message:send?tenant=acme&unrelated=1", PARAMS.replace("{", '{"tenant":"acme",', 1)),
    ],
)
def test_a_tenant_may_come_by_path_query_or_body(target: str, body: str) -> None:
    assert call_of("POST", target, body.encode()) == SendMessageRequest(tenant="acme", message=MESSAGE)


@pytest.mark.req("HTTP-04", "HTTP-05", "HTTP-06", "DATA-06", "DATA-16", "AMB-99", "B027")
def test_query_values_are_read_by_what_the_field_is() -> None:
    request = call_of(
        "GET",
        "/tasks?contextId=a%20b%2Bc&status=TASK_STATE_WORKING&page_size=7&historyLength=0&includeArtifacts=true"
        "&statusTimestampAfter=2026-03-12T13:00:00.125+01:00&pageToken=&utm_source=x",
    )
    assert request == ListTasksRequest(
        context_id="a b+c",
        status=TaskState.WORKING,
        page_size=7,
        history_length=0,
        include_artifacts=True,
        status_timestamp_after=Timestamp.parse("2026-03-12T12:00:00.125Z"),
    )
    assert call_of("GET", "/tasks?status=2&includeArtifacts=false") == ListTasksRequest(
        status=TaskState.WORKING, include_artifacts=False
    )


@pytest.mark.req("HTTP-05", "LIST-11", "AMB-99", "ERR-08")
@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("pageSize=many", "pageSize"),
        ("pageSize=1.5", "pageSize"),
        ("pageSize=99999999999", "pageSize"),
        ("pageSize=", "pageSize"),
        ("page_size=x", "pageSize"),
        ("status=working", "status"),
        ("includeArtifacts=True", "includeArtifacts"),
        ("includeArtifacts=1", "includeArtifacts"),
        ("statusTimestampAfter=yesterday", "statusTimestampAfter"),
        ("statusTimestampAfter=2026-03-12%2012:00:00Z", "statusTimestampAfter"),
    ],
)
def test_a_bad_query_value_names_its_field(query: str, field: str) -> None:
    with pytest.raises(InvalidParamsError) as raised:
        call_of("GET", f"/tasks?{query}")
    assert [v.field for v in raised.value.violations] == [field]


def test_a_query_of_very_many_parameters_is_refused() -> None:
    with pytest.raises(InvalidParamsError):
        call_of("GET", "/tasks?" + "a=1&" * 5000)


@pytest.mark.req("AMB-93", "B035")
def test_a_post_must_be_json_if_it_says_what_it_is() -> None:
    for good in ("", "application/json", "application/a2a+json", "Application/JSON; charset=utf-8"):
        assert call_of("POST", "/tasks/t:cancel", b"", good)
    for bad in ("text/plain", "application/xml", "multipart/form-data; boundary=x", "application/grpc"):
        with pytest.raises(UnsupportedMediaTypeError) as raised:
            call_of("POST", "/tasks/t:cancel", b"", bad)
        assert raised.value.http_status == 415
        assert raised.value.details == []


@pytest.mark.req("AMB-32", "B005")
def test_bad_bodies_are_parse_errors_or_name_the_field() -> None:
    for body in (b"{", b"\xff", b"nonsense"):
        for path in ("/message:send", "/tasks/t:cancel"):
            with pytest.raises(JSONParseError) as raised:
                call_of("POST", path, body)
            assert (raised.value.http_status, raised.value.grpc_status) == (400, "INVALID_ARGUMENT")
    for body in (b"[]", b"1", b"[" * 100_000):
        for path in ("/message:send", "/tasks/t:cancel"):
            with pytest.raises((InvalidParamsError, JSONParseError)):
                call_of("POST", path, body)
    with pytest.raises(InvalidParamsError) as missing:
        call_of("POST", "/message:send", b"{}")
    assert [v.field for v in missing.value.violations] == ["message"]


@pytest.mark.req("HTTP-02", "AMB-29")
@pytest.mark.parametrize(
    ("accept", "type_"),
    [
        ("", "application/a2a+json"),
        ("*/*", "application/a2a+json"),
        ("application/json", "application/json"),
        ("Application/JSON;q=0.9", "application/json"),
        ("application/json, text/event-stream", "application/json"),
        ("application/json, */*;q=0.1", "application/a2a+json"),
        ("application/a2a+json, application/json", "application/a2a+json"),
        ("text/html", "application/a2a+json"),
    ],
)
def test_the_answers_type_is_plain_json_only_for_who_takes_nothing_else(accept: str, type_: str) -> None:
    assert rest.response_type(accept) == type_


# The client half.


@pytest.mark.req("AMB-88")
def test_subscribing_is_a_post_first_and_a_get_on_demand() -> None:
    request = SubscribeToTaskRequest(id="t")
    posted = rest.encode_request(SUBSCRIBE_TO_TASK, request)
    assert (posted.method, posted.target) == ("POST", "/tasks/t:subscribe")
    got = rest.encode_request(SUBSCRIBE_TO_TASK, request, method="GET")
    assert (got.method, got.target, got.body) == ("GET", "/tasks/t:subscribe", b"")


@pytest.mark.req("B023", "HTTP-04")
def test_a_history_length_of_zero_is_in_the_query() -> None:
    assert rest.encode_request(GET_TASK, GetTaskRequest(id="t", history_length=0)).query == "historyLength=0"
    assert rest.encode_request(GET_TASK, GetTaskRequest(id="t")).query == ""


@pytest.mark.req("HTTP-02", "HTTP-12")
def test_what_is_in_the_path_is_not_repeated_in_the_body() -> None:
    config = TaskPushNotificationConfig(task_id="t", id="c", url="https://hook.example")
    sent = rest.encode_request(CREATE_TASK_PUSH_NOTIFICATION_CONFIG, config, "acme")
    assert sent.target == "/acme/tasks/t/pushNotificationConfigs"
    assert json.loads(sent.body) == {"tenant": "acme", "id": "c", "url": "https://hook.example"}
    assert sent.headers["content-type"] == "application/a2a+json"


@pytest.mark.parametrize("bad", ["", ".", ".."])
def test_an_id_that_would_lead_to_another_route_is_refused_before_it_is_sent(bad: str) -> None:
    with pytest.raises(InvalidParamsError) as raised:
        rest.encode_request(GET_TASK, GetTaskRequest(id=bad))
    assert [v.field for v in raised.value.violations] == ["id"]


@pytest.mark.req("AMB-91", "AMB-92")
@pytest.mark.parametrize(("status", "body"), [(200, b"{}"), (200, b"null"), (200, b""), (204, b""), (202, b"ok")])
def test_delete_is_done_on_any_2xx(status: int, body: bytes) -> None:
    assert rest.decode_result(DELETE_TASK_PUSH_NOTIFICATION_CONFIG, status, {}, body) == Empty()


@pytest.mark.req("AMB-92")
def test_any_2xx_is_a_result() -> None:
    assert rest.decode_result(GET_TASK, 201, {}, rest.encode_result(Call(GET_TASK, TASK), TASK)) == TASK


def failure(status: int, body: Any, op: Operation = GET_TASK, **headers: str) -> A2AError:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    with pytest.raises(A2AError) as raised:
        rest.decode_result(op, status, headers, data)
    assert raised.value.origin is not None
    assert raised.value.origin.status == status
    return raised.value


@pytest.mark.req("AMB-28")
@pytest.mark.parametrize(
    "body",
    [
        {"error": {"code": 404, "status": "NOT_FOUND", "message": "gone"}},
        {"code": 5, "message": "gone"},
        {"error": {"code": 5, "message": "gone"}},
        {"code": 404, "status": "NOT_FOUND", "message": "gone", "details": None},
    ],
)
def test_the_status_object_is_read_with_and_without_wrapper_by_http_or_grpc_code(body: Any) -> None:
    error = failure(404, body)
    assert (type(error), error.message) == (TaskNotFoundError, "gone")


@pytest.mark.req("AMB-27")
def test_problem_json_is_read_too() -> None:
    error = failure(
        400,
        {
            "type": "https://a2a-protocol.org/errors/version-not-supported",
            "title": "Version not supported",
            "status": 400,
            "detail": "Only 1.0",
            "errors": [{"field": "pageSize", "message": "too large"}],
        },
    )
    assert (type(error), error.message) == (VersionNotSupportedError, "Only 1.0")
    assert [(v.field, v.description) for v in error.violations] == [("pageSize", "too large")]


@pytest.mark.req("AMB-31")
@pytest.mark.parametrize(
    ("status", "reason", "kind"),
    [
        (409, "TASK_NOT_CANCELABLE", TaskNotCancelableError),
        (415, "CONTENT_TYPE_NOT_SUPPORTED", ContentTypeNotSupportedError),
        (502, "INVALID_AGENT_RESPONSE", InvalidAgentResponseError),
    ],
)
def test_the_statuses_of_the_older_table_are_read_by_their_reason(
    status: int, reason: str, kind: type[A2AError]
) -> None:
    info = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason, "domain": "a2a-protocol.org"}
    assert type(failure(status, {"error": {"code": status, "details": [info]}})) is kind


@pytest.mark.req("AMB-35", "ERR-02", "ERR-04")
@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (
            401,
            {"error": {"details": [{"reason": "TASK_NOT_FOUND", "domain": "a2a-protocol.org"}]}},
            UnauthenticatedError,
        ),
        (403, b"no", PermissionDeniedError),
        (404, b"<html>", MethodNotFoundError),
        (409, b"", RemoteError),
        (400, {"error": {"code": 400, "status": "FAILED_PRECONDITION"}}, RemoteError),
        (418, b"teapot", RemoteError),
        (500, b"", InternalError),
        (502, b"", UnavailableError),
        (504, {"message": "Endpoint request timed out"}, UnavailableError),
        (302, b"", RemoteError),
    ],
)
def test_without_a_reason_the_status_decides(status: int, body: Any, kind: type[A2AError]) -> None:
    assert type(failure(status, body)) is kind


@pytest.mark.req("AMB-12", "AMB-31")
def test_a_bare_409_means_not_cancelable_only_where_something_was_canceled() -> None:
    assert type(failure(409, b"", CANCEL_TASK)) is TaskNotCancelableError


@pytest.mark.req("B037")
@pytest.mark.parametrize(
    "error", [None, 7, [], "text", {"details": 5}, {"details": [{}]}, {"code": "x", "status": {}}, {"code": True}]
)
def test_odd_error_bodies_still_give_the_error_of_the_status(error: Any) -> None:
    assert type(failure(503, {"error": error})) is UnavailableError


@pytest.mark.req("AMB-10", "B033")
def test_an_error_event_is_raised_as_the_error_that_it_is() -> None:
    frame = rest.encode_stream_error(Call(SEND_STREAMING_MESSAGE, MESSAGE), UnavailableError("later", retry_after=3))
    with pytest.raises(UnavailableError, match="later") as raised:
        rest.decode_event(SEND_STREAMING_MESSAGE, frame.removeprefix(b"data: ").strip())
    assert raised.value.retry_after == 3


@pytest.mark.req("HTTP-09", "B155")
def test_events_are_bare_and_empty_ones_are_skipped() -> None:
    event = text_event('with an "error" in it')
    call = Call(SEND_STREAMING_MESSAGE, MESSAGE)
    frame = rest.stream_framing(call).encode(event.json, 3)
    assert frame == b"id: 3\ndata: " + event.json + b"\n\n"
    assert rest.decode_event(SEND_STREAMING_MESSAGE, event.json) == event.response
    assert rest.decode_event(SEND_STREAMING_MESSAGE, b"{}") is None
    assert rest.decode_event(SEND_STREAMING_MESSAGE, b" ") is None
    with pytest.raises(InvalidAgentResponseError, match="JSON-RPC"):
        rest.decode_event(SEND_STREAMING_MESSAGE, b'{"jsonrpc":"2.0","id":1,"result":{}}')


@pytest.mark.req("AMB-37", "B057")
@pytest.mark.parametrize("body", [b"", b"<html>", b"7", b"[]", b"null"])
def test_a_2xx_that_is_no_message_is_an_invalid_response(body: bytes) -> None:
    assert type(failure(200, body, LIST_TASKS)) is InvalidAgentResponseError
    assert type(failure(200, body, SEND_MESSAGE)) is InvalidAgentResponseError
