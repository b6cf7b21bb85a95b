"""What the front answers when it refuses, or when the container failed: one table of real statuses and codes. Pure.

Spec: agentcore 3.2.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from dragoman.testing.agentcore_front.headers import ERROR_TYPE

ErrorId = Literal["echo", "absent", "text"]
"""The ``id`` in bodies of the front: that of the request, none at all, or the text ``"null"``."""


class Row(msgspec.Struct, frozen=True):
    """One row of the table. ``code`` is None where the body is no JSON-RPC."""

    status: int
    code: int | None
    exception: str
    message: str


class Fault(enum.StrEnum):
    """What the front can be told to answer: the rows of the table, and answers that no table has."""

    MISSING_TOKEN = "missing_token"
    ACCESS_DENIED = "access_denied"
    NOT_FOUND = "not_found"
    VALIDATION = "validation"
    THROTTLED = "throttled"
    QUOTA = "quota"
    CONFLICT = "conflict"
    BUSY = "busy"
    AGENT_FAILED = "agent_failed"
    INTERNAL = "internal"
    DROP = "drop"
    HTML_502 = "html_502"
    EMPTY_500 = "empty_500"


_LIMIT_TEXT = "Rate limit exceeded - Too many requests"

ROWS: Mapping[Fault, Row] = {
    Fault.MISSING_TOKEN: Row(401, -32001, "UnauthorizedException", "Missing Authentication Token"),
    Fault.ACCESS_DENIED: Row(403, None, "AccessDeniedException", "Access denied"),
    Fault.NOT_FOUND: Row(
        404, -32051, "ResourceNotFoundException", "Resource not found - Requested resource does not exist"
    ),
    Fault.VALIDATION: Row(400, -32052, "ValidationException", "Validation error - Invalid request data"),
    Fault.THROTTLED: Row(429, -32053, "ThrottlingException", _LIMIT_TEXT),
    Fault.QUOTA: Row(429, -32053, "ServiceQuotaExceededException", _LIMIT_TEXT),
    Fault.CONFLICT: Row(409, -32054, "ConflictException", "Resource conflict - Resource already exists"),
    Fault.BUSY: Row(409, -32054, "RetryableConflictException", "Session operation in progress, please retry"),
    Fault.AGENT_FAILED: Row(
        424,
        -32055,
        "RuntimeClientError",
        "Runtime client error - Please check your CloudWatch logs for more information",
    ),
    Fault.INTERNAL: Row(
        500,
        -32603,
        "InternalServerException",
        "Internal error - An unexpected error occurred while processing the request",
    ),
}

OWN_CODES = frozenset(range(-32055, -32050))
"""Codes that belong to the front. A container must not answer with one."""


class Refusal(Exception):
    """The front refuses a call, or reports that the container failed.

    * ``message``: instead of the row's own text;
    * ``headers``: beside those of the body;
    * ``names_exception``: whether ``x-amzn-ErrorType`` is sent, as it is on 403 and where there is no JSON-RPC.
    """

    def __init__(
        self,
        fault: Fault,
        message: str = "",
        *,
        headers: Mapping[str, str] | None = None,
        names_exception: bool = False,
    ) -> None:
        self.row = ROWS[fault]
        self.fault = fault
        self.message = message or self.row.message
        self.headers = dict(headers or {})
        if names_exception or self.row.code is None:
            self.headers[ERROR_TYPE] = self.row.exception
        super().__init__(self.message)

    def body(self, request_id: object, error_id: ErrorId = "echo") -> bytes:
        """The body; ``request_id`` is the ``id`` of the request, UNSET when it had none that could be read."""
        if self.row.code is None:
            return msgspec.json.encode({"message": self.message})
        answer: dict[str, Any] = {"jsonrpc": "2.0"}
        if error_id == "text":
            answer["id"] = "null"
        elif error_id == "echo" and request_id is not msgspec.UNSET and self.row.status != 401:
            answer["id"] = request_id
        return msgspec.json.encode({**answer, "error": {"code": self.row.code, "message": self.message}})
