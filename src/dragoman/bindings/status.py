"""Errors as JSON, the writing half: the forms of §9.5 (JSON-RPC) and §11.6 (HTTP+JSON).

Spec: ERR-14 to ERR-22, JRPC-06, HTTP-10, AMB-27, AMB-28, AMB-30, AMB-31.
"""

from __future__ import annotations

from typing import Any

import msgspec

from dragoman.errors import (
    A2AError,
    PayloadTooLargeError,
    PermissionDeniedError,
    RateLimitedError,
    UnauthenticatedError,
    UnavailableError,
)

RETRY_INFO = "type.googleapis.com/google.rpc.RetryInfo"

#: Refusals that are told by the HTTP status on JSON-RPC, too. Spec: AMB-34, AMB-35, AMB-38.
_REFUSALS = (
    UnauthenticatedError,
    PermissionDeniedError,
    RateLimitedError,
    PayloadTooLargeError,
    UnavailableError,
)

_encode = msgspec.json.Encoder().encode


def encode_status(error: A2AError) -> bytes:
    """The body ``{"error": {code, status, message, details}}``. ``details`` is left out when empty."""
    status: dict[str, Any] = {
        "code": error.http_status,
        "status": error.grpc_status,
        "message": error.message,
    }
    return _with_details(b'{"error":', status, "details", error, error.retry_after)


def encode_rpc_error(request_id: bytes, error: A2AError) -> bytes:
    """A JSON-RPC response object; ``request_id`` is JSON text. ``data`` is left out when empty."""
    body: dict[str, Any] = {"code": error.code, "message": error.message}
    return _with_details(b'{"jsonrpc":"2.0","id":%b,"error":' % request_id, body, "data", error, wait_to_tell(error))


def rpc_http_status(error: A2AError) -> int:
    """200, but for refusals before the dispatch. Spec: AMB-35."""
    return error.http_status if isinstance(error, _REFUSALS) else 200


def _with_details(start: bytes, body: dict[str, Any], member: str, error: A2AError, wait: float | None) -> bytes:
    details = error.details
    if wait is not None:
        details.append({"@type": RETRY_INFO, "retryDelay": encode_duration(wait)})
    if details:
        body[member] = details
    try:
        return b"%b%b}" % (start, _encode(body))
    except (TypeError, ValueError, RecursionError):  # what the author of the error put in is no JSON
        body.pop(member, None)
        body["message"] = error.default_message
        return b"%b%b}" % (start, _encode(body))


_SOON = 1.0


def wait_to_tell(error: A2AError) -> float | None:
    """After how many seconds the caller may come again; None: nothing is said of that. For JSON-RPC.

    Always something where the failure will pass: its code is that of every failure, and within a stream there is no
    status beside it, so that nothing else would tell. Spec: ERR-11, AMB-38.
    """
    if error.retry_after is None and isinstance(error, UnavailableError):
        return _SOON
    return error.retry_after


def encode_duration(seconds: float) -> str:
    """A google.protobuf.Duration in ProtoJSON."""
    return f"{max(seconds, 0):.3f}".rstrip("0").rstrip(".") + "s"
