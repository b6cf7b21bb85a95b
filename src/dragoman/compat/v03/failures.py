"""Errors in the forms of 0.3; those that read them are in `failure_reading`.

One table for all bindings (V03-P01). 0.3 fixes codes and nothing else, so that each form holds all members that its
known readers look for; ``data`` is an object or absent, since some readers choke on anything else (V03-P30).

Spec: v0.3 §2.5, §3.5, §4.5, §7.9, V03-P01, V03-P20, V03-P30.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from dragoman.bindings.status import encode_duration, wait_to_tell
from dragoman.compat.v03.failure_reading import OLD_NAMES
from dragoman.compat.v03.failure_reading import read_grpc_error as read_grpc_error
from dragoman.compat.v03.failure_reading import read_rest_error as read_rest_error
from dragoman.compat.v03.failure_reading import read_rpc_error as read_rpc_error
from dragoman.errors import (
    ERRORS_BY_CODE,
    A2AError,
    ContentTypeNotSupportedError,
    ExtendedAgentCardNotConfiguredError,
    InternalError,
    InvalidAgentResponseError,
    InvalidParamsError,
    InvalidRequestError,
    JSONParseError,
    MethodNotFoundError,
    PushNotificationNotSupportedError,
    TaskNotCancelableError,
    TaskNotFoundError,
    UnsupportedOperationError,
)

T = TypeVar("T")

_JAVA_PACKAGE = "io.a2a.spec"

_HTTP: dict[type[A2AError], int] = {
    JSONParseError: 400,
    InvalidRequestError: 400,
    InvalidParamsError: 422,
    MethodNotFoundError: 404,
    TaskNotFoundError: 404,
    ExtendedAgentCardNotConfiguredError: 404,
    TaskNotCancelableError: 409,
    ContentTypeNotSupportedError: 415,
    PushNotificationNotSupportedError: 501,
    UnsupportedOperationError: 501,
    InvalidAgentResponseError: 502,
    InternalError: 500,
}
"""Statuses of HTTP+JSON; other errors keep theirs. Spec: v0.3 §3.5."""

_GRPC: dict[type[A2AError], str] = {
    JSONParseError: "INTERNAL",
    InvalidRequestError: "INVALID_ARGUMENT",
    InvalidParamsError: "INVALID_ARGUMENT",
    MethodNotFoundError: "NOT_FOUND",
    TaskNotFoundError: "NOT_FOUND",
    TaskNotCancelableError: "FAILED_PRECONDITION",
    PushNotificationNotSupportedError: "UNIMPLEMENTED",
    UnsupportedOperationError: "UNIMPLEMENTED",
    ContentTypeNotSupportedError: "UNIMPLEMENTED",
    InvalidAgentResponseError: "INTERNAL",
    ExtendedAgentCardNotConfiguredError: "UNIMPLEMENTED",
    InternalError: "INTERNAL",
}
"""Statuses of gRPC; other errors keep theirs. Spec: v0.3 §4.5."""

_encode = msgspec.json.Encoder().encode


def rpc_error_object(error: A2AError) -> dict[str, Any]:
    """The ``error`` member of a JSON-RPC response; ``data`` is an object or absent. Codes are those of 1.0.

    ``data`` has the error's metadata and reason, and when there are any ``fieldViolations``, ``details`` and
    ``retryDelay``. What cannot be written as JSON is left out.
    """
    found: dict[str, Any] = {"code": error.code, "message": error.message}
    data = _data(error)
    if data:
        found["data"] = data
    return found


def _data(error: A2AError) -> dict[str, Any]:
    data: dict[str, Any] = dict(error.metadata)
    if error.reason:
        data["reason"] = error.reason
    if error.violations:
        data["fieldViolations"] = [{"field": v.field, "description": v.description} for v in error.violations]
    if error.extra_details:
        data["details"] = [dict(detail) for detail in error.extra_details]
    wait = wait_to_tell(error)
    if wait is not None:
        data["retryDelay"] = encode_duration(wait)
    try:
        _encode(data)
    except (TypeError, ValueError, RecursionError):  # what the author of the error put in is no JSON
        return {}
    return data


def rest_error(error: A2AError) -> tuple[int, dict[str, Any]]:
    """HTTP status and body. The body has what each known reader looks for: a code, a class name, that of Java."""
    name = _name(error)
    return _of_class(_HTTP, error, error.http_status), {
        "type": name,
        "error": f"{_JAVA_PACKAGE}.{name}",
        **rpc_error_object(error),
    }


def grpc_status(error: A2AError) -> tuple[str, str]:
    """Name of the gRPC status, and text of its details: ``TaskNotFoundError: Task not found``."""
    return _of_class(_GRPC, error, error.grpc_status), f"{_name(error)}: {error.message}"


def _name(error: A2AError) -> str:
    """The name under which 0.3 knows an error: by its code, or by its class when others share the code."""
    kind = ERRORS_BY_CODE.get(error.code) or next(k for k in type(error).__mro__ if k.__module__ == A2AError.__module__)
    return OLD_NAMES.get(kind, kind.__name__)


def _of_class(table: Mapping[type, T], error: A2AError, default: T) -> T:
    """The row of the error's class, or of the nearest above it."""
    return next((table[kind] for kind in type(error).__mro__ if kind in table), default)


def for_extended_card(error: A2AError) -> A2AError:
    """The error as callers of the extended card's method know it: -32007 where 1.0 says -32004. Spec: v0.3 §7.9."""
    if not isinstance(error, UnsupportedOperationError):
        return error
    return ExtendedAgentCardNotConfiguredError(metadata=error.metadata)
