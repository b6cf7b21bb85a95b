"""Errors over gRPC, read back: which typed error a status stands for."""

from __future__ import annotations

from typing import Any

import grpc
import pytest
from google.protobuf import any_pb2, struct_pb2
from google.rpc import error_details_pb2, status_pb2
from hypothesis import given
from hypothesis import strategies as st

from dragoman.bindings.grpc.status import DETAILS_KEY, encode_status, read_status
from dragoman.errors import (
    A2A_ERRORS,
    A2AError,
    ExtensionSupportRequiredError,
    FieldViolation,
    InternalError,
    InvalidParamsError,
    MethodNotFoundError,
    PayloadTooLargeError,
    PermissionDeniedError,
    RateLimitedError,
    RemoteError,
    TaskNotCancelableError,
    TaskNotFoundError,
    UnauthenticatedError,
    UnavailableError,
    UnsupportedOperationError,
)
from dragoman.model import GET_TASK, Operation

URL = "agent.example:443"
Code = grpc.StatusCode
OTHERS = (
    InvalidParamsError,
    MethodNotFoundError,
    InternalError,
    UnavailableError,
    UnauthenticatedError,
    PermissionDeniedError,
    RateLimitedError,
)


def back(error: A2AError, op: Operation = GET_TASK) -> A2AError:
    """An error after its way over the wire."""
    status = encode_status(error)
    return read_status(op, status.code, status.text, status.trailers, url=URL)


@pytest.mark.req("ERR-18", "ERR-19", "ERR-20", "GRPC-04", "B037")
@pytest.mark.parametrize("kind", [*A2A_ERRORS, *OTHERS])
def test_every_error_comes_back_as_itself(kind: type[A2AError]) -> None:
    sent = kind("some words", violations=[FieldViolation("a.b", "is wrong")], retry_after=2.5)

    read = back(sent)

    assert type(read) is kind
    assert (read.message, read.violations, read.retry_after) == (sent.message, sent.violations, 2.5)
    assert read.origin is not None
    assert (read.origin.url, read.origin.status, read.origin.reason) == (URL, None, kind.reason)
    assert read.origin.code == Code[kind.grpc_status].value[0]


@pytest.mark.req("ERR-17", "ERR-18", "ERR-20")
def test_metadata_challenges_and_further_details_come_back() -> None:
    help_ = {"@type": "type.googleapis.com/google.rpc.Help", "links": [{"url": "https://x.example", "n": 1}]}
    task = back(TaskNotFoundError(metadata={"taskId": "ü"}, extra_details=[help_]))
    nobody = back(UnauthenticatedError(metadata={"challenge": 'Bearer realm="ä"\nx'}))

    assert task.metadata == {"taskId": "ü"}
    assert list(task.extra_details) == [help_]
    assert nobody.metadata["challenge"] == 'Bearer realm="?"?x'


@pytest.mark.req("ERR-17")
def test_a_detail_that_is_not_known_keeps_its_bytes_through_another_server() -> None:
    unknown = any_pb2.Any(type_url="type.example/some.Thing", value=b"\x00\xff")
    body = status_pb2.Status(code=5, message="m", details=[unknown]).SerializeToString()
    read = read_status(GET_TASK, Code.NOT_FOUND, "m", [(DETAILS_KEY, body)], url=URL)

    again = status_pb2.Status.FromString(dict(encode_status(read).trailers)[DETAILS_KEY])  # type: ignore[arg-type]

    assert list(again.details)[-1] == unknown


def info(reason: str, domain: str = "a2a-protocol.org") -> Any:
    detail = any_pb2.Any()
    detail.Pack(error_details_pb2.ErrorInfo(reason=reason, domain=domain))
    return detail


def trailers(*details: Any, code: int = 9) -> list[tuple[str, str | bytes]]:
    return [(DETAILS_KEY, status_pb2.Status(code=code, details=details).SerializeToString())]


@pytest.mark.req("AMB-31", "ERR-18", "B037")
@pytest.mark.parametrize(
    ("code", "sent", "kind"),
    [
        # Six errors share FAILED_PRECONDITION: the reason decides, if it is of our domain.
        (Code.FAILED_PRECONDITION, trailers(info("TASK_NOT_CANCELABLE")), TaskNotCancelableError),
        (Code.FAILED_PRECONDITION, trailers(info("EXTENSION_SUPPORT_REQUIRED")), ExtensionSupportRequiredError),
        (Code.FAILED_PRECONDITION, trailers(info("TASK_NOT_CANCELABLE", "example.com")), RemoteError),
        (Code.FAILED_PRECONDITION, trailers(info("NEVER_HEARD_OF")), RemoteError),
        (Code.FAILED_PRECONDITION, trailers(), RemoteError),
        (Code.FAILED_PRECONDITION, [(DETAILS_KEY, b"\xff\xff garbage")], RemoteError),
        (Code.FAILED_PRECONDITION, [(DETAILS_KEY, "text")], RemoteError),
        (Code.FAILED_PRECONDITION, [], RemoteError),
        # Revision 1.0.0 had UNIMPLEMENTED for some.
        (Code.UNIMPLEMENTED, trailers(info("UNSUPPORTED_OPERATION")), UnsupportedOperationError),
        (Code.UNIMPLEMENTED, [], MethodNotFoundError),
        # Refusals are refusals, whatever else is said.
        (Code.UNAUTHENTICATED, trailers(info("TASK_NOT_FOUND")), UnauthenticatedError),
        (Code.PERMISSION_DENIED, trailers(info("TASK_NOT_FOUND")), PermissionDeniedError),
        (Code.NOT_FOUND, [], TaskNotFoundError),
        (Code.INVALID_ARGUMENT, [], InvalidParamsError),
        (Code.INTERNAL, [], InternalError),
        (Code.UNAVAILABLE, [], UnavailableError),
        (Code.RESOURCE_EXHAUSTED, [], RateLimitedError),
        (Code.UNKNOWN, [], RemoteError),
        (Code.DATA_LOSS, [], RemoteError),
    ],
)
def test_the_reason_decides_where_it_is_ours_and_else_the_code(code: Code, sent: Any, kind: type[A2AError]) -> None:
    error = read_status(GET_TASK, code, "words", sent, url=URL)

    assert type(error) is kind
    assert error.message == "words"
    assert error.origin is not None
    assert error.origin.code == code.value[0]


@pytest.mark.req("SEC-03")
def test_too_large_is_told_from_too_often() -> None:
    text = "SERVER: Received message larger than max (2000 vs. 1000)"

    assert type(read_status(GET_TASK, Code.RESOURCE_EXHAUSTED, text, [], url=URL)) is PayloadTooLargeError
    assert type(back(PayloadTooLargeError("The request is larger than 10 bytes"))) is PayloadTooLargeError


@pytest.mark.req("ERR-18", "B037")
def test_broken_details_are_kept_as_they_are() -> None:
    broken = any_pb2.Any(type_url="type.googleapis.com/google.rpc.ErrorInfo", value=b"\xff\xff")
    nan = struct_pb2.Struct()
    nan.fields["x"].number_value = float("nan")
    odd = any_pb2.Any()
    odd.Pack(nan)

    error = read_status(GET_TASK, Code.NOT_FOUND, "", trailers(broken, odd), url=URL)

    assert type(error) is TaskNotFoundError
    assert [detail["@type"] for detail in error.extra_details] == [broken.type_url, odd.type_url]


@given(st.binary(max_size=120), st.sampled_from(list(Code)))
def test_random_details_never_break_the_reading(body: bytes, code: Code) -> None:
    assert isinstance(read_status(GET_TASK, code, "", [(DETAILS_KEY, body)], url=URL), A2AError)
