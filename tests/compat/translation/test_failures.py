"""One table of errors for all forms of 0.3, and what peers send in its place."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from dragoman.bindings.remote_error import Answer
from dragoman.compat.v03.failures import (
    for_extended_card,
    grpc_status,
    read_grpc_error,
    read_rest_error,
    read_rpc_error,
    rest_error,
    rpc_error_object,
)
from dragoman.errors import (
    A2A_ERRORS,
    ERROR_DOMAIN,
    ERROR_INFO,
    JSON_RPC_ERRORS,
    A2AError,
    ContentTypeNotSupportedError,
    ExtendedAgentCardNotConfiguredError,
    ExtensionSupportRequiredError,
    FieldViolation,
    InternalError,
    InvalidAgentResponseError,
    InvalidParamsError,
    InvalidRequestError,
    JSONParseError,
    MethodNotAllowedError,
    MethodNotFoundError,
    PermissionDeniedError,
    PushNotificationNotSupportedError,
    RateLimitedError,
    RemoteError,
    TaskNotCancelableError,
    TaskNotFoundError,
    UnauthenticatedError,
    UnavailableError,
    UnsupportedOperationError,
    VersionNotSupportedError,
)
from dragoman.model import CANCEL_TASK, GET_EXTENDED_AGENT_CARD, GET_TASK, SEND_MESSAGE

TABLE: list[tuple[type[A2AError], int, int, str, str]] = [
    (JSONParseError, -32700, 400, "INTERNAL", "JSONParseError"),
    (InvalidRequestError, -32600, 400, "INVALID_ARGUMENT", "InvalidRequestError"),
    (MethodNotFoundError, -32601, 404, "NOT_FOUND", "MethodNotFoundError"),
    (InvalidParamsError, -32602, 422, "INVALID_ARGUMENT", "InvalidParamsError"),
    (InternalError, -32603, 500, "INTERNAL", "InternalError"),
    (TaskNotFoundError, -32001, 404, "NOT_FOUND", "TaskNotFoundError"),
    (TaskNotCancelableError, -32002, 409, "FAILED_PRECONDITION", "TaskNotCancelableError"),
    (PushNotificationNotSupportedError, -32003, 501, "UNIMPLEMENTED", "PushNotificationNotSupportedError"),
    (UnsupportedOperationError, -32004, 501, "UNIMPLEMENTED", "UnsupportedOperationError"),
    (ContentTypeNotSupportedError, -32005, 415, "UNIMPLEMENTED", "ContentTypeNotSupportedError"),
    (InvalidAgentResponseError, -32006, 502, "INTERNAL", "InvalidAgentResponseError"),
    (ExtendedAgentCardNotConfiguredError, -32007, 404, "UNIMPLEMENTED", "AuthenticatedExtendedCardNotConfiguredError"),
    (ExtensionSupportRequiredError, -32008, 400, "FAILED_PRECONDITION", "ExtensionSupportRequiredError"),
    (VersionNotSupportedError, -32009, 400, "FAILED_PRECONDITION", "VersionNotSupportedError"),
    (UnauthenticatedError, -32000, 401, "UNAUTHENTICATED", "UnauthenticatedError"),
    (PermissionDeniedError, -32000, 403, "PERMISSION_DENIED", "PermissionDeniedError"),
    (RateLimitedError, -32000, 429, "RESOURCE_EXHAUSTED", "RateLimitedError"),
    (UnavailableError, -32603, 503, "UNAVAILABLE", "InternalError"),
    (MethodNotAllowedError, -32601, 405, "UNIMPLEMENTED", "MethodNotFoundError"),
]
KNOWN = [*A2A_ERRORS, *JSON_RPC_ERRORS]


@pytest.mark.req("V03-01", "V03-P01", "V03-P20")
@pytest.mark.parametrize(("kind", "code", "status", "grpc", "name"), TABLE)
def test_each_error_has_its_row(kind: type[A2AError], code: int, status: int, grpc: str, name: str) -> None:
    error = kind("Why")

    assert rpc_error_object(error)["code"] == code
    found, body = rest_error(error)
    assert (found, body["code"], body["type"], body["error"], body["message"]) == (
        status,
        code,
        name,
        f"io.a2a.spec.{name}",
        "Why",
    )
    assert grpc_status(error) == (grpc, f"{name}: Why")


@pytest.mark.req("V03-P30")
def test_data_is_an_object_of_metadata_reason_and_what_else_there_is() -> None:
    error = TaskNotCancelableError(
        metadata={"state": "completed"},
        violations=[FieldViolation("id", "is over")],
        extra_details=[{"@type": "x", "n": 1}],
        retry_after=2.5,
    )

    assert rpc_error_object(error)["data"] == {
        "state": "completed",
        "reason": "TASK_NOT_CANCELABLE",
        "fieldViolations": [{"field": "id", "description": "is over"}],
        "details": [{"@type": "x", "n": 1}],
        "retryDelay": "2.5s",
    }


@pytest.mark.req("V03-P30")
def test_data_is_absent_when_there_is_nothing_to_say_or_no_way_to_say_it() -> None:
    assert "data" not in rpc_error_object(MethodNotFoundError())
    assert "data" not in rpc_error_object(TaskNotFoundError(extra_details=[{"x": object()}]))


def test_a_class_of_a_user_is_told_as_the_one_it_is_made_from() -> None:
    class GoneError(TaskNotFoundError):
        pass

    assert rest_error(GoneError())[1]["type"] == "TaskNotFoundError"
    assert grpc_status(GoneError())[0] == "NOT_FOUND"


def test_an_extended_card_that_is_not_supported_is_one_that_is_not_configured() -> None:
    assert isinstance(for_extended_card(UnsupportedOperationError()), ExtendedAgentCardNotConfiguredError)
    assert isinstance(for_extended_card(TaskNotFoundError()), TaskNotFoundError)


# Reading.


def rest_answer(status: int, body: Any, op: Any = GET_TASK) -> Answer:
    return Answer(op=op, status=status, body=body if isinstance(body, bytes) else msgspec.json.encode(body))


@pytest.mark.req("V03-01", "V03-P01")
@pytest.mark.parametrize("kind", KNOWN)
def test_each_error_comes_back_as_itself_on_all_bindings(kind: type[A2AError]) -> None:
    error = kind("Why", metadata={"k": "v"}, violations=[FieldViolation("a.b", "is wrong")])

    status, body = rest_error(error)
    name, text = grpc_status(error)
    found = [
        read_rpc_error(Answer(op=SEND_MESSAGE), rpc_error_object(error)),
        read_rest_error(rest_answer(status, body)),
        read_grpc_error(Answer(op=SEND_MESSAGE, status=0), name, 0, text, []),
    ]

    assert [type(each) for each in found] == [kind] * 3
    assert [each.message for each in found] == ["Why"] * 3
    assert [each.metadata for each in found[:2]] == [{"k": "v"}] * 2
    assert [each.violations for each in found[:2]] == [error.violations] * 2


def test_a_wait_that_was_told_comes_back() -> None:
    found = read_rpc_error(Answer(op=SEND_MESSAGE), rpc_error_object(UnavailableError(retry_after=2)))

    assert isinstance(found, UnavailableError)
    assert found.retry_after == 2


@pytest.mark.parametrize(
    ("data", "metadata"),
    [
        (None, {}),
        ({"state": "completed", "n": 3}, {"state": "completed", "n": "3"}),
        ("text", {"data": "text"}),
        ([1, 2], {"data": "[1,2]"}),
        (7, {"data": "7"}),
    ],
)
def test_data_of_any_shape_is_kept(data: Any, metadata: dict[str, str]) -> None:
    found = read_rpc_error(Answer(op=CANCEL_TASK), {"code": -32002, "message": "no", "data": data})

    assert isinstance(found, TaskNotCancelableError)
    assert found.metadata == metadata


def test_validation_records_of_python_are_violations() -> None:
    data = [{"type": "missing", "loc": ["params", "message", 0], "msg": "Field required", "input": {}}]

    found = read_rpc_error(Answer(op=SEND_MESSAGE), {"code": -32602, "message": "Invalid", "data": data})

    assert found.violations == (FieldViolation("params.message.0", "Field required"),)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"code": -31401, "message": "who?"}, UnauthenticatedError),
        ({"code": -31403, "message": "no"}, PermissionDeniedError),
        ({"code": -32099, "message": "odd", "data": {"x": 1}}, RemoteError),
        ({"code": "x"}, RemoteError),
        ({}, RemoteError),
        ("broken", RemoteError),
        (None, RemoteError),
    ],
)
def test_codes_of_peers_own_are_kept_or_understood(error: Any, kind: type[A2AError]) -> None:
    assert type(read_rpc_error(Answer(op=SEND_MESSAGE), error)) is kind


def test_an_unknown_code_keeps_code_text_and_data() -> None:
    found = read_rpc_error(Answer(op=SEND_MESSAGE), {"code": -32099, "message": "odd", "data": {"x": 1}})

    assert found.message == "odd"
    assert found.origin is not None
    assert found.origin.code == -32099
    assert found.metadata == {"x": "1"}


@pytest.mark.req("V03-P20")
@pytest.mark.parametrize(
    ("status", "body", "op", "kind"),
    [
        (404, {"message": "Task not found"}, GET_TASK, TaskNotFoundError),
        (404, {"message": "Task not found"}, SEND_MESSAGE, TaskNotFoundError),
        (404, {"detail": "Not Found"}, SEND_MESSAGE, MethodNotFoundError),
        (404, b"<html>", GET_EXTENDED_AGENT_CARD, MethodNotFoundError),
        (409, {"message": "no"}, CANCEL_TASK, TaskNotCancelableError),
        (415, b"", SEND_MESSAGE, ContentTypeNotSupportedError),
        (422, {"detail": [{"loc": ["body"], "msg": "bad"}]}, SEND_MESSAGE, InvalidParamsError),
        (400, "Bad request", SEND_MESSAGE, InvalidParamsError),
        (501, {}, SEND_MESSAGE, UnsupportedOperationError),
        (405, {"detail": "Method Not Allowed"}, GET_TASK, MethodNotAllowedError),
        (401, {"code": -32001, "message": "x"}, GET_TASK, UnauthenticatedError),
        (403, b"", GET_TASK, PermissionDeniedError),
        (429, b"", GET_TASK, RateLimitedError),
        (503, b"", GET_TASK, UnavailableError),
        (500, b"unknown exception", GET_TASK, InternalError),
        (500, {"code": -32007, "message": "none"}, GET_EXTENDED_AGENT_CARD, ExtendedAgentCardNotConfiguredError),
        (400, {"code": -32004, "message": "no", "data": {}}, SEND_MESSAGE, UnsupportedOperationError),
        (500, {"error": "io.a2a.spec.TaskNotFoundError", "message": "gone"}, GET_TASK, TaskNotFoundError),
        (500, {"type": "PushNotificationNotSupportedError"}, GET_TASK, PushNotificationNotSupportedError),
        (400, {"title": "Bad", "status": 400, "type": "about:blank"}, SEND_MESSAGE, InvalidParamsError),
        (400, {"type": f"https://{ERROR_DOMAIN}/errors/task-not-found"}, SEND_MESSAGE, TaskNotFoundError),
        (
            400,
            {
                "error": {
                    "code": 400,
                    "details": [{"@type": ERROR_INFO, "reason": "TASK_NOT_FOUND", "domain": ERROR_DOMAIN}],
                }
            },
            SEND_MESSAGE,
            TaskNotFoundError,
        ),
        (200, {"error": {"code": -32001, "message": "gone"}}, SEND_MESSAGE, TaskNotFoundError),
    ],
)
def test_an_http_error_is_told_by_code_then_name_then_form_of_1_0_then_status(
    status: int, body: Any, op: Any, kind: type[A2AError]
) -> None:
    assert type(read_rest_error(rest_answer(status, body, op))) is kind


@pytest.mark.parametrize(
    ("body", "text"),
    [({"message": "a"}, "a"), ({"detail": "b"}, "b"), ({"title": "c"}, "c"), ("d", "d")],
)
def test_the_text_of_an_http_error_is_found_wherever_it_is(body: Any, text: str) -> None:
    assert read_rest_error(rest_answer(404, body)).message == text


INFO = {"@type": ERROR_INFO, "reason": "VERSION_NOT_SUPPORTED", "domain": ERROR_DOMAIN, "metadata": {"k": "v"}}


@pytest.mark.parametrize(
    ("name", "text", "details", "op", "kind"),
    [
        ("FAILED_PRECONDITION", "VersionNotSupportedError: no", [INFO], GET_TASK, VersionNotSupportedError),
        ("UNIMPLEMENTED", "TaskNotCancelableError: no", [], CANCEL_TASK, TaskNotCancelableError),
        (
            "UNKNOWN",
            "AuthenticatedExtendedCardNotConfiguredError: no",
            [],
            GET_TASK,
            ExtendedAgentCardNotConfiguredError,
        ),
        ("NOT_FOUND", "gone", [], GET_TASK, TaskNotFoundError),
        ("FAILED_PRECONDITION", "no", [], CANCEL_TASK, TaskNotCancelableError),
        ("FAILED_PRECONDITION", "no", [], GET_EXTENDED_AGENT_CARD, ExtendedAgentCardNotConfiguredError),
        ("FAILED_PRECONDITION", "no", [], GET_TASK, RemoteError),
        ("UNIMPLEMENTED", "no: way", [], GET_TASK, UnsupportedOperationError),
        ("INVALID_ARGUMENT", "no", [{"@type": "x", "value": {}}], GET_TASK, InvalidParamsError),
        ("UNAVAILABLE", "no", [], GET_TASK, UnavailableError),
        ("UNAVAILABLE", "InternalError: no", [], GET_TASK, UnavailableError),
        ("UNKNOWN", "InternalError: no", [], GET_TASK, InternalError),
        ("UNAUTHENTICATED", "no", [], GET_TASK, UnauthenticatedError),
    ],
)
def test_a_grpc_error_is_told_by_reason_then_name_then_status(
    name: str, text: str, details: list[dict[str, Any]], op: Any, kind: type[A2AError]
) -> None:
    found = read_grpc_error(Answer(op=op, status=0), name, 0, text, details)

    assert type(found) is kind
    assert found.message == (text.partition(": ")[2] if "Error: " in text else text)
