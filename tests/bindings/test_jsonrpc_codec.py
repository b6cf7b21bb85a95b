"""The JSON-RPC codec, both halves."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.bindings import jsonrpc
from dragoman.bindings.codec import ClientCodec
from dragoman.errors import (
    A2AError,
    InvalidAgentResponseError,
    InvalidParamsError,
    InvalidRequestError,
    JSONParseError,
    MethodNotFoundError,
    RateLimitedError,
    RemoteError,
    TaskNotFoundError,
    UnauthenticatedError,
    UnavailableError,
)
from dragoman.http.sse import encode_sse
from dragoman.model import (
    CANCEL_TASK,
    DELETE_TASK_PUSH_NOTIFICATION_CONFIG,
    GET_EXTENDED_AGENT_CARD,
    GET_TASK,
    LIST_TASKS,
    OPERATIONS,
    SEND_MESSAGE,
    SEND_STREAMING_MESSAGE,
    Empty,
    GetTaskRequest,
    ListTasksRequest,
    Operation,
    StreamResponse,
    Task,
)
from tests.bindings.parts import MESSAGE, REPLY, TASK, rpc, text_event
from tests.model.strategies import messages

CODEC: ClientCodec = jsonrpc

EACH_OPERATION = pytest.mark.parametrize("op", OPERATIONS.values(), ids=lambda op: op.name)


@pytest.mark.req("JRPC-02", "JRPC-03", "JRPC-04", "DATA-02", "TEN-02", "CARD-10")
@EACH_OPERATION
@given(data=st.data(), tenant=st.sampled_from(["", "acme", "a/b ü"]), request_id=st.integers() | st.text())
def test_what_a_client_encodes_the_server_reads_as_the_same_request(
    op: Operation, data: st.DataObject, tenant: str, request_id: int | str
) -> None:
    request = data.draw(messages(op.request))
    sent = jsonrpc.encode_request(op, request, tenant, request_id=request_id)
    call = jsonrpc.decode_call(sent.body)
    assert call.op is op
    assert json.loads(call.id) == request_id
    assert call.request.tenant == (tenant or request.tenant)
    call.request.tenant = request.tenant
    assert call.request == request


@pytest.mark.req("JRPC-04", "JRPC-07")
@EACH_OPERATION
@given(data=st.data(), request_id=st.integers(-(2**63), 2**63) | st.text())
def test_what_the_server_encodes_the_client_reads_as_the_same_result(
    op: Operation, data: st.DataObject, request_id: int | str
) -> None:
    response = data.draw(messages(op.response))
    call = jsonrpc.Call(op, op.request, json.dumps(request_id).encode())
    body = jsonrpc.encode_result(call, response)
    assert jsonrpc.decode_result(op, 200, {}, body, request_id=request_id) == response


@pytest.mark.req("JRPC-01", "JRPC-02")
def test_a_request_is_a_post_to_the_interface_url_itself() -> None:
    sent = jsonrpc.encode_request(GET_TASK, GetTaskRequest(id="t-1"), request_id="r-7")
    assert (sent.method, sent.target, sent.headers["content-type"]) == ("POST", "", "application/json")
    assert json.loads(sent.body) == {"jsonrpc": "2.0", "id": "r-7", "method": "GetTask", "params": {"id": "t-1"}}


def test_encoding_with_a_tenant_leaves_the_given_request_alone() -> None:
    request = GetTaskRequest(id="t-1")
    jsonrpc.encode_request(GET_TASK, request, "acme")
    assert request.tenant == ""


@pytest.mark.req("B023", "SEND-13")
def test_a_history_length_of_zero_is_transmitted() -> None:
    sent = jsonrpc.encode_request(GET_TASK, GetTaskRequest(id="t", history_length=0))
    assert b'"historyLength":0' in sent.body


# Reading requests.


@pytest.mark.req("B015", "AMB-32", "AMB-95")
@pytest.mark.parametrize(
    ("body", "error"),
    [
        (b'{"jsonrpc":', JSONParseError),
        (b"", JSONParseError),
        (b"\xff\xfe", JSONParseError),
        (b"\xef\xbb\xbf{}", JSONParseError),
        (b"{'jsonrpc': '2.0'}", JSONParseError),
        (rpc().encode() + b"{}", JSONParseError),
        (b'{"jsonrpc":"2.0","id":1,"method":"\xff","params":{}}', JSONParseError),
        (b"123", InvalidRequestError),
        (b'"x"', InvalidRequestError),
        (b"null", InvalidRequestError),
        (b"[]", InvalidRequestError),
        (f"[{rpc()}]".encode(), InvalidRequestError),
        (b"{}", InvalidRequestError),
        (b'{"jsonrpc":"1.0","id":1,"method":"GetTask"}', InvalidRequestError),
        (b'{"jsonrpc":2.0,"id":1,"method":"GetTask"}', InvalidRequestError),
        (b'{"id":1,"method":"GetTask"}', InvalidRequestError),
        (b'{"jsonrpc":"2.0","id":1}', InvalidRequestError),
        (b'{"jsonrpc":"2.0","id":1,"method":7}', InvalidRequestError),
        (b'{"jsonrpc":"2.0","method":"GetTask","params":{"id":"t"}}', InvalidRequestError),
        (b"[" * 100_000, InvalidRequestError),
        (b'{"jsonrpc":"2.0","id":1,"method":"GetTask","params":' + b"[" * 100_000, InvalidRequestError),
    ],
)
def test_a_body_that_is_no_request_object_is_told_from_one_that_is_no_json(body: bytes, error: type[A2AError]) -> None:
    with pytest.raises(error) as raised:
        jsonrpc.decode_call(body)
    assert type(raised.value) is error


@pytest.mark.req("B017", "AMB-95")
@pytest.mark.parametrize("bad", ["true", "1.5", "{}", "[1]", '"\\ud800"', "1e999"])
def test_an_id_that_is_neither_text_nor_a_whole_number_is_refused_and_answered_with_null(bad: str) -> None:
    body = rpc("GetTask", '{"id":"t"}', id=bad).encode()
    with pytest.raises((InvalidRequestError, JSONParseError)):
        jsonrpc.decode_call(body)
    assert jsonrpc.read_id(body) == b"null"


@pytest.mark.req("B017", "JRPC-07")
@pytest.mark.parametrize(
    "good", ["null", "0", "-7", "9007199254740993", "123456789012345678901234567890", '""', '"ü\\n"', "1.0"]
)
def test_an_id_is_echoed_as_it_was_written(good: str) -> None:
    call = jsonrpc.decode_call(rpc("GetTask", '{"id":"t"}', id=good).encode())
    assert call.id == good.encode()
    assert f'"id":{good},'.encode() in jsonrpc.encode_result(call, TASK)


@pytest.mark.req("JRPC-07")
def test_the_id_of_a_broken_request_is_still_found() -> None:
    assert jsonrpc.read_id(b'{"jsonrpc":"1.0","id":"r-1","method":5}') == b'"r-1"'
    assert jsonrpc.read_id(b'[{"id":1}]') == b"null"


@pytest.mark.req("AMB-96")
@pytest.mark.parametrize("members", ["", ',"params":null', ',"params":{}'])
def test_absent_and_null_params_are_an_empty_object(members: str) -> None:
    body = f'{{"jsonrpc":"2.0","id":1,"method":"GetExtendedAgentCard"{members}}}'
    assert jsonrpc.decode_call(body.encode()).op is GET_EXTENDED_AGENT_CARD
    with pytest.raises(InvalidParamsError) as raised:
        jsonrpc.decode_call(body.replace("GetExtendedAgentCard", "GetTask").encode())
    assert [v.field for v in raised.value.violations] == ["id"]


@pytest.mark.req("AMB-96", "AMB-32")
@pytest.mark.parametrize("params", ["[]", '["t"]', '"t"', "1", "true"])
def test_params_that_are_no_object_are_invalid_params(params: str) -> None:
    with pytest.raises(InvalidParamsError) as raised:
        jsonrpc.decode_call(rpc("GetTask", params).encode())
    assert [v.field for v in raised.value.violations] == ["params"]


@pytest.mark.req("B021", "AMB-94", "AMB-39")
@pytest.mark.parametrize(
    ("method", "right"),
    [
        ("tasks/send", "SendMessage"),
        ("message/send", "SendMessage"),
        ("tasks/sendSubscribe", "SendStreamingMessage"),
        ("Sendmessage", "SendMessage"),
        ("send_message", "SendMessage"),
        ("tasks/resubscribe", "SubscribeToTask"),
        ("agent/getAuthenticatedExtendedCard", "GetExtendedAgentCard"),
    ],
)
def test_a_name_of_old_is_not_found_and_the_right_one_is_named(method: str, right: str) -> None:
    with pytest.raises(MethodNotFoundError, match=rf"\b{right}\b"):
        jsonrpc.decode_call(rpc(method).encode())


@pytest.mark.req("B005", "DATA-16", "B001")
def test_unknown_members_are_ignored_in_envelope_and_params() -> None:
    params = '{"bogus":{"a":[1]},"message":{"messageId":"m","role":"ROLE_USER","parts":[{"data":null}],"x":1}}'
    body = rpc(params=params).replace('"method"', '"trace":{"a":1},"method"')
    call = jsonrpc.decode_call(body.encode())
    assert call.request.message.parts[0].data is None


@pytest.mark.req("B005", "ERR-08", "AMB-32")
def test_a_wrong_type_in_the_params_names_its_field() -> None:
    with pytest.raises(InvalidParamsError) as raised:
        jsonrpc.decode_call(rpc(params='{"message":"text"}').encode())
    assert [v.field for v in raised.value.violations] == ["message"]


@pytest.mark.req("DATA-06")
def test_params_may_be_spelled_in_snake_case() -> None:
    body = rpc("ListTasks", '{"context_id":"c","page_size":3,"include_artifacts":true}')
    assert jsonrpc.decode_call(body.encode()).request == ListTasksRequest(
        context_id="c", page_size=3, include_artifacts=True
    )


# Reading answers.


def result_of(
    body: Any, op: Operation = GET_TASK, *, status: int = 200, request_id: int | str = 1, **headers: str
) -> Any:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return jsonrpc.decode_result(op, status, headers, data, url="http://agent.example", request_id=request_id)


@pytest.mark.req("B017", "AMB-37")
@pytest.mark.parametrize("other", [2, "1", None, 1.5, True])
def test_an_answer_with_another_id_is_an_invalid_response(other: Any) -> None:
    body = {"jsonrpc": "2.0", "id": other, "result": json.loads(b'{"id":"t","status":{"state":1}}')}
    with pytest.raises(InvalidAgentResponseError):
        result_of(body)


@pytest.mark.req("AMB-91")
@pytest.mark.parametrize("rest", ['"result":{}', '"result":null', '"result":{"anything":1}'])
def test_delete_is_done_whatever_the_result_looks_like(rest: str) -> None:
    body = f'{{"jsonrpc":"2.0","id":1,{rest}}}'.encode()
    assert result_of(body, DELETE_TASK_PUSH_NOTIFICATION_CONFIG) == Empty()


@pytest.mark.req("AMB-34", "AMB-35", "ERR-02")
@pytest.mark.parametrize("body", [b"<html>", b"", b'{"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"x"}}'])
def test_401_is_unauthenticated_whatever_the_body_says(body: bytes) -> None:
    with pytest.raises(UnauthenticatedError) as raised:
        result_of(body, status=401, **{"www-authenticate": 'Bearer realm="a"'})
    assert raised.value.metadata["challenge"] == 'Bearer realm="a"'
    assert raised.value.origin is not None
    assert (raised.value.origin.status, raised.value.origin.body) == (401, body)


@pytest.mark.req("AMB-35")
def test_an_error_body_counts_on_any_http_status() -> None:
    body = {"jsonrpc": "2.0", "id": 1, "error": {"code": -32001, "message": "gone"}}
    for status in (200, 400, 404, 424, 500):
        with pytest.raises(TaskNotFoundError, match="gone"):
            result_of(body, status=status)


@pytest.mark.req("AMB-35")
def test_an_unknown_code_becomes_a_remote_error_that_keeps_everything() -> None:
    data = [{"@type": "type.example/Quota", "left": 0}]
    body = {"jsonrpc": "2.0", "id": 1, "error": {"code": -32055, "message": "no", "data": data}}
    with pytest.raises(RemoteError, match="no") as raised:
        result_of(body, status=424)
    origin = raised.value.origin
    assert origin is not None
    assert (origin.status, origin.code, origin.details, origin.url) == (
        424,
        -32055,
        tuple(data),
        "http://agent.example",
    )
    assert raised.value.details == data


@pytest.mark.req("AMB-35", "AMB-38", "ERR-12")
def test_a_bare_status_of_a_gateway_is_read_with_its_retry_after() -> None:
    with pytest.raises(RateLimitedError) as limited:
        result_of(b"slow down", status=429, **{"retry-after": "7"})
    assert limited.value.retry_after == 7
    with pytest.raises(UnavailableError) as unavailable:
        result_of(
            b"",
            status=503,
            **{"retry-after": "Thu, 12 Mar 2026 12:00:30 GMT", "date": "Thu, 12 Mar 2026 12:00:00 GMT"},
        )
    assert unavailable.value.retry_after == 30


@pytest.mark.req("AMB-30", "B037")
@pytest.mark.parametrize(
    "data", [None, "text", 7, [], [1, "a", None, [], {}], {"reason": 5}, [{"@type": 3, "domain": []}], {"x": {"y": 1}}]
)
def test_odd_error_data_never_breaks_the_error(data: Any) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "error": {"code": -32002, "message": ["odd"], "data": data}}
    with pytest.raises(A2AError) as raised:
        result_of(body, CANCEL_TASK)
    assert raised.value.code == -32002


@pytest.mark.req("AMB-30", "AMB-31")
def test_the_reason_wins_over_the_code_when_the_domain_is_ours() -> None:
    info = {
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": "TASK_NOT_FOUND",
        "domain": "a2a-protocol.org",
    }
    body = {"jsonrpc": "2.0", "id": 1, "error": {"code": -32603, "message": "x", "data": info}}
    with pytest.raises(TaskNotFoundError):
        result_of(body)
    body["error"]["data"] = [{**info, "domain": "else.example"}]  # type: ignore[index]
    with pytest.raises(A2AError) as raised:
        result_of(body)
    assert raised.value.code == -32603
    assert raised.value.reason == ""


@pytest.mark.parametrize(
    "body", [b"", b"<html></html>", b"[]", b"7", b"{}", b'{"jsonrpc":"2.0","id":1}', b"\xff", b"[" * 9999]
)
@pytest.mark.req("AMB-37", "B057")
def test_an_answer_that_is_no_response_is_an_invalid_response(body: bytes) -> None:
    with pytest.raises(InvalidAgentResponseError):
        result_of(body)


@pytest.mark.req("AMB-43")
def test_a_result_without_a_required_id_is_read_all_the_same() -> None:
    task = result_of({"jsonrpc": "2.0", "id": 1, "result": {"status": {"state": "TASK_STATE_WORKING"}}})
    assert (type(task), task.id) == (Task, "")


def test_the_body_kept_with_an_error_is_bounded() -> None:
    with pytest.raises(A2AError) as raised:
        result_of(b"x" * 1_000_000, status=500)
    assert raised.value.origin is not None
    assert len(raised.value.origin.body) == 64 * 1024


# Streams.


@pytest.mark.req("JRPC-05", "AMB-97", "B007")
def test_an_event_is_one_line_of_a_whole_response_object_with_the_number_before_it() -> None:
    call = jsonrpc.Call(SEND_STREAMING_MESSAGE, MESSAGE, b'"r"')
    event = text_event("a\nb\u2028你好")
    frame = jsonrpc.stream_framing(call).encode(event.json, 12)
    assert frame == b'id: 12\ndata: {"jsonrpc":"2.0","id":"r","result":' + event.json + b"}\n\n"
    assert frame.count(b"\n") == 3
    assert "你好".encode() in frame
    data = frame.split(b"data: ")[1].strip()
    assert jsonrpc.decode_event(SEND_STREAMING_MESSAGE, data, request_id="r") == event.response
    assert jsonrpc.stream_framing(call).encode(event.json) == encode_sse(data)


@pytest.mark.req("AMB-10", "B033")
def test_an_error_event_is_raised_as_the_error_that_it_is() -> None:
    call = jsonrpc.Call(SEND_STREAMING_MESSAGE, MESSAGE, b"1")
    frame = jsonrpc.encode_stream_error(call, UnavailableError(retry_after=1.5))
    data = frame.removeprefix(b"data: ").strip()
    assert json.loads(data)["id"] == 1
    with pytest.raises(UnavailableError) as raised:
        jsonrpc.decode_event(SEND_STREAMING_MESSAGE, data, request_id=1)
    assert raised.value.retry_after == 1.5


@pytest.mark.req("B155")
def test_empty_events_are_skipped_and_bare_ones_are_an_invalid_response() -> None:
    def event(data: bytes) -> StreamResponse | None:
        return jsonrpc.decode_event(SEND_STREAMING_MESSAGE, data, request_id=1)

    assert event(b"{}") is None
    assert event(b"") is None
    assert event(b'{"jsonrpc":"2.0","id":1,"result":{}}') is None
    with pytest.raises(InvalidAgentResponseError, match="JSON-RPC"):
        event(text_event("bare").json)


@pytest.mark.req("B017")
def test_an_event_with_another_id_is_an_invalid_response() -> None:
    call = jsonrpc.Call(SEND_STREAMING_MESSAGE, MESSAGE, b"2")
    data = jsonrpc.stream_framing(call).encode(text_event("x").json).removeprefix(b"data: ")
    with pytest.raises(InvalidAgentResponseError):
        jsonrpc.decode_event(SEND_STREAMING_MESSAGE, data, request_id=1)


def test_a_reply_comes_through_unchanged() -> None:
    call = jsonrpc.decode_call(rpc().encode())
    assert (call.op, call.request.message) == (SEND_MESSAGE, MESSAGE)
    assert result_of(jsonrpc.encode_result(call, REPLY), SEND_MESSAGE) == REPLY


def test_listing_needs_no_params() -> None:
    assert jsonrpc.decode_call(rpc("ListTasks", "null").encode()).op is LIST_TASKS
