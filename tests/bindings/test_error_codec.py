"""Every error on both wires: what the server writes, and what the client makes of it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman.bindings import jsonrpc, rest
from dragoman.errors import (
    A2A_ERRORS,
    JSON_RPC_ERRORS,
    A2AError,
    FieldViolation,
    InvalidParamsError,
    InvalidRequestError,
    JSONParseError,
    MethodNotAllowedError,
    MethodNotFoundError,
    PayloadTooLargeError,
    PermissionDeniedError,
    RateLimitedError,
    UnauthenticatedError,
    UnavailableError,
    UnsupportedMediaTypeError,
)
from dragoman.model import GET_TASK, SEND_STREAMING_MESSAGE

REFUSALS = (UnauthenticatedError, PermissionDeniedError, RateLimitedError, PayloadTooLargeError, UnavailableError)
OF_HTTP = (MethodNotAllowedError, UnsupportedMediaTypeError)

#: Errors that share their code, status and form with another one on a wire: what is read there.
SAME_ON_JSONRPC: dict[Any, Any] = {
    MethodNotAllowedError: MethodNotFoundError,
    UnsupportedMediaTypeError: InvalidRequestError,
}
SAME_ON_REST: dict[Any, Any] = {JSONParseError: InvalidParamsError, InvalidRequestError: InvalidParamsError}


def full(kind: type[A2AError]) -> A2AError:
    """An error of this kind with everything that it can hold."""
    return kind(
        "what happened — 说明",
        metadata={"taskId": "t-1"},
        violations=[FieldViolation("message.parts[0].text", "must not be empty")],
        extra_details=[{"@type": "type.example/Hint", "try": [1, None, "x"]}],
        retry_after=2.5,
    )


def over_jsonrpc(error: A2AError) -> A2AError:
    status, body = jsonrpc.encode_error(b"1", error)
    with pytest.raises(A2AError) as raised:
        jsonrpc.decode_result(GET_TASK, status, {}, body, request_id=1)
    return raised.value


def over_rest(error: A2AError) -> A2AError:
    status, body = rest.encode_error(error)
    with pytest.raises(A2AError) as raised:
        rest.decode_result(GET_TASK, status, {}, body)
    return raised.value


def assert_same(found: A2AError, sent: A2AError, kind: type[A2AError]) -> None:
    assert type(found) is kind
    assert found.message == sent.message
    assert found.details == sent.details
    assert found.violations == sent.violations
    assert found.retry_after == sent.retry_after
    assert found.metadata == (sent.metadata if sent.reason else {})
    assert found.origin is not None
    assert found.origin.reason == sent.reason


@pytest.mark.req("ERR-14", "ERR-15", "ERR-18", "ERR-19", "ERR-22", "ERR-24", "BIND-01")
@pytest.mark.parametrize("kind", [*A2A_ERRORS, *JSON_RPC_ERRORS, *REFUSALS, *OF_HTTP])
def test_an_error_comes_through_jsonrpc_with_all_that_it_holds(kind: type[A2AError]) -> None:
    expected = UnavailableError if kind.code == -32603 else SAME_ON_JSONRPC.get(kind, kind)  # it can be repeated
    found = over_jsonrpc(full(kind))
    assert_same(found, full(kind), expected)
    assert found.origin is not None
    assert found.origin.code == kind.code


@pytest.mark.req("ERR-14", "ERR-15", "ERR-18", "ERR-19", "ERR-21", "ERR-24", "BIND-01")
@pytest.mark.parametrize("kind", [*A2A_ERRORS, *JSON_RPC_ERRORS, *REFUSALS, *OF_HTTP])
def test_an_error_comes_through_http_json_with_all_that_it_holds(kind: type[A2AError]) -> None:
    assert_same(over_rest(full(kind)), full(kind), SAME_ON_REST.get(kind, kind))


@pytest.mark.req("ERR-11")
def test_an_internal_error_without_advice_to_repeat_stays_one() -> None:
    for kind in JSON_RPC_ERRORS:
        assert type(over_jsonrpc(kind())) is kind


@pytest.mark.req("ERR-11", "AMB-10")
def test_a_passing_failure_is_known_as_one_also_where_it_ends_a_stream_and_names_no_time() -> None:
    error = UnavailableError("The server is shutting down")

    _, body = jsonrpc.encode_error(b"1", error)
    with pytest.raises(UnavailableError) as raised:
        jsonrpc.decode_event(SEND_STREAMING_MESSAGE, body, request_id=1)

    assert raised.value.retry_after == 1.0


@pytest.mark.req("JRPC-06", "B019", "ERR-16")
def test_the_jsonrpc_error_object_has_code_message_and_data_only() -> None:
    body = json.loads(jsonrpc.encode_error(b'"r"', full(InvalidParamsError))[1])
    assert list(body) == ["jsonrpc", "id", "error"]
    assert set(body["error"]) == {"code", "message", "data"}
    assert all("@type" in detail for detail in body["error"]["data"])
    assert set(json.loads(jsonrpc.encode_error(b"1", MethodNotFoundError())[1])["error"]) == {"code", "message"}


@pytest.mark.req("HTTP-10", "AMB-28", "B029", "ERR-21")
@pytest.mark.parametrize("kind", [*A2A_ERRORS, *JSON_RPC_ERRORS, *REFUSALS, *OF_HTTP])
def test_the_http_error_object_agrees_with_its_status(kind: type[A2AError]) -> None:
    status, body = rest.encode_error(kind())
    error = json.loads(body)["error"]
    assert (error["code"], error["status"]) == (status, kind.grpc_status) == (kind.http_status, kind.grpc_status)
    if kind in A2A_ERRORS:
        info = {
            "@type": "type.googleapis.com/google.rpc.ErrorInfo",
            "reason": kind.reason,
            "domain": "a2a-protocol.org",
        }
        assert error["details"] == [info]
    else:
        assert "details" not in error


@pytest.mark.req("AMB-35", "AMB-34", "AMB-38")
def test_jsonrpc_errors_are_200_but_for_refusals() -> None:
    for kind in (*A2A_ERRORS, *JSON_RPC_ERRORS):
        assert jsonrpc.encode_error(b"1", kind())[0] == 200
    for kind in REFUSALS:
        assert jsonrpc.encode_error(b"1", kind())[0] == kind.http_status


def test_details_that_are_no_json_cost_the_details_and_not_the_answer() -> None:
    for broken in (object(), "\ud800", {1j: 2}):
        error = InvalidParamsError("text", extra_details=[{"@type": "x", "bad": broken}])
        for found in (over_jsonrpc(error), over_rest(error)):
            assert (type(found), found.message, found.details) == (InvalidParamsError, "Invalid parameters", [])
