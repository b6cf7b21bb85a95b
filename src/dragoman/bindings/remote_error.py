"""Errors as JSON, the reading half: which typed error an answer stands for.

A client decides in this order: HTTP 401 and 403, whatever the body says; then ``ErrorInfo.reason`` when its
``domain`` is ours; then the JSON-RPC code; then the HTTP status or the gRPC code. Peers follow two revisions of
the error table, wrap or do not wrap the status object, and put all sorts of things into the details: nothing of
that may break the handling of the error itself.

Spec: the order given under topic 18, ERR-18, AMB-27, AMB-28, AMB-30, AMB-31, AMB-34, AMB-35, AMB-38.
"""

from __future__ import annotations

from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any

import msgspec

from dragoman.bindings.status import RETRY_INFO
from dragoman.errors import (
    BAD_REQUEST,
    ERROR_DOMAIN,
    ERROR_INFO,
    ERRORS_BY_CODE,
    ERRORS_BY_REASON,
    A2AError,
    ErrorOrigin,
    FieldViolation,
    InternalError,
    InvalidAgentResponseError,
    InvalidParamsError,
    MethodNotAllowedError,
    MethodNotFoundError,
    PayloadTooLargeError,
    PermissionDeniedError,
    RateLimitedError,
    RemoteError,
    TaskNotCancelableError,
    TaskNotFoundError,
    UnauthenticatedError,
    UnavailableError,
    UnsupportedMediaTypeError,
)
from dragoman.model import CANCEL_TASK, Operation

#: How much of a body an error keeps.
KEPT_BODY = 64 * 1024

_GRPC_NAMES = {
    3: "INVALID_ARGUMENT",
    5: "NOT_FOUND",
    7: "PERMISSION_DENIED",
    8: "RESOURCE_EXHAUSTED",
    9: "FAILED_PRECONDITION",
    12: "UNIMPLEMENTED",
    13: "INTERNAL",
    14: "UNAVAILABLE",
    16: "UNAUTHENTICATED",
}

_BY_STATUS: dict[int, type[A2AError]] = {
    400: InvalidParamsError,
    401: UnauthenticatedError,
    403: PermissionDeniedError,
    404: MethodNotFoundError,
    405: MethodNotAllowedError,
    413: PayloadTooLargeError,
    415: UnsupportedMediaTypeError,
    429: RateLimitedError,
    500: InternalError,
    501: MethodNotFoundError,
    502: UnavailableError,
    503: UnavailableError,
    504: UnavailableError,
}

#: Headers of answers that may hold a secret.
_UNTOLD_HEADERS = frozenset({"set-cookie", "set-cookie2", "authorization", "proxy-authorization"})

#: Statuses that decide whatever the details say.
_HTTP_OF_GRPC = {"UNAUTHENTICATED": 401, "PERMISSION_DENIED": 403}

_BY_NAME: dict[str, type[A2AError]] = {
    "INVALID_ARGUMENT": InvalidParamsError,
    "NOT_FOUND": TaskNotFoundError,
    "PERMISSION_DENIED": PermissionDeniedError,
    "RESOURCE_EXHAUSTED": RateLimitedError,
    "UNIMPLEMENTED": MethodNotFoundError,
    "INTERNAL": InternalError,
    "UNAVAILABLE": UnavailableError,
    "UNAUTHENTICATED": UnauthenticatedError,
}


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """An answer as it came, for the reading of its error. ``headers`` have names in lower case; on gRPC, whose metadata
    they are, ``status`` is 0."""

    op: Operation
    status: int = 200
    headers: Mapping[str, str] = {}
    body: bytes = b""
    url: str = ""


class _Report(msgspec.Struct, kw_only=True):
    """What the body says, form removed.

    ``code`` is a JSON-RPC code, ``number`` a code of the other form, ``status`` the HTTP status or 0.
    """

    message: str = ""
    code: int | None = None
    number: int = 0
    status: int = 0
    name: str = ""
    details: list[Any] = []
    reason: str = ""
    violations: list[FieldViolation] = []


def rpc_error(answer: Answer, error: Any) -> A2AError:
    """The typed error for the ``error`` member of a JSON-RPC response, whatever it holds."""
    if not isinstance(error, dict):
        error = {"message": error}
    code = error.get("code")
    if isinstance(code, int) and code > 0:
        return status_error(answer, error)  # a gateway that speaks the other form
    report = _Report(
        message=_text(error.get("message")),
        code=code if isinstance(code, int) else None,
        status=answer.status if answer.status >= 400 else 0,
        details=_as_list(error.get("data")),
    )
    return _build(answer, report)


def status_error(answer: Answer, body: Any = None) -> A2AError:
    """The typed error for an HTTP+JSON body, or for an HTTP status alone (``body`` None).

    Takes the ``error`` member or the bare status object, and ``application/problem+json``.
    """
    if isinstance(body, dict) and "error" in body:
        body = body["error"]
    if isinstance(body, str):
        body = {"message": body}
    return _build(answer, _read_status(answer, body if isinstance(body, dict) else {}))


def bare_error(answer: Answer) -> A2AError:
    """The typed error for an HTTP error status, with whatever its body may tell."""
    try:
        return status_error(answer, msgspec.json.decode(answer.body))
    except (msgspec.DecodeError, RecursionError):
        return status_error(answer)


def grpc_error(answer: Answer, name: str, number: int, message: str, details: list[dict[str, Any]]) -> A2AError:
    """The typed error for a gRPC status and its details in ProtoJSON. ``answer`` has no HTTP status (0). Spec: B037."""
    status = _HTTP_OF_GRPC.get(name, 0)
    if name == "RESOURCE_EXHAUSTED" and "larger than" in message:
        status = 413  # two refusals share it; the words are those of the gRPC libraries, and ours
    return _build(answer, _Report(message=message, number=number, status=status, name=name, details=details))


def bad_answer(answer: Answer, why: str) -> InvalidAgentResponseError:
    """The error for an answer that cannot be understood. Spec: AMB-37."""
    return InvalidAgentResponseError(f"The agent's answer cannot be understood: {why}", origin=_origin(answer))


def _read_status(answer: Answer, body: dict[str, Any]) -> _Report:
    number, name = body.get("code"), body.get("status")
    if not isinstance(number, int):
        number = name if isinstance(name, int) else 0  # problem+json has the HTTP status in "status"
    http = answer.status if answer.status >= 400 else number if 400 <= number < 600 else 0
    return _Report(
        message=_text(body.get("message")) or _text(body.get("detail")) or _text(body.get("title")),
        number=number,
        status=http,
        name=_text(name) or _GRPC_NAMES.get(number, ""),
        details=_as_list(body.get("details")),
        reason=_reason_of_type(_text(body.get("type"))),
        violations=_violations(body.get("errors")),
    )


def _build(answer: Answer, report: _Report) -> A2AError:
    reason, metadata, violations, others = report.reason, {}, list(report.violations), []
    retry_after = _retry_after(answer.headers)
    for detail in report.details:
        if _is_own_info(detail):
            reason, metadata = _text(detail["reason"]), _strings(detail.get("metadata"))
        elif detail.get("@type") == BAD_REQUEST:
            violations += _violations(detail.get("fieldViolations"))
        elif detail.get("@type") == RETRY_INFO:
            retry_after = retry_after if retry_after is not None else _seconds(detail.get("retryDelay"))
        else:
            others.append(detail)
    kind = _choose(answer, report, reason, temporary=retry_after is not None)
    if kind is UnauthenticatedError and "www-authenticate" in answer.headers:
        metadata["challenge"] = answer.headers["www-authenticate"]
    if reason != kind.reason:
        others = [detail for detail in report.details if _is_own_info(detail)] + others
    return kind(
        report.message or _default_message(kind, report),
        metadata=metadata,
        violations=violations,
        extra_details=others,
        retry_after=retry_after,
        origin=_origin(answer, report, reason),
    )


def _choose(answer: Answer, report: _Report, reason: str, *, temporary: bool) -> type[A2AError]:
    by_status = _by_status(answer, report)
    if report.status in (401, 403):
        return _BY_STATUS[report.status]
    if reason in ERRORS_BY_REASON:
        return ERRORS_BY_REASON[reason]
    if report.code is None:
        return by_status
    by_code = ERRORS_BY_CODE.get(report.code)
    if by_code is InternalError and temporary:
        return UnavailableError
    # An unknown code is told by the status only where that is plain (AMB-35); a known one may be made finer by it.
    if by_code is None:
        return by_status if by_status in (RateLimitedError, UnavailableError) else RemoteError
    return by_status if by_status.code == by_code.code and by_status is not RemoteError else by_code


def _by_status(answer: Answer, report: _Report) -> type[A2AError]:
    status, name = report.status, report.name
    if name == "FAILED_PRECONDITION" and status in (0, 400):
        return RemoteError  # six errors share it: without a reason there is nothing to choose by
    if status == 404 and name == "NOT_FOUND":
        return TaskNotFoundError
    # What revision 1.0.0 gave statuses of their own (AMB-31).
    if status == 409 and answer.op is CANCEL_TASK:
        return TaskNotCancelableError
    if status == 502 and (name or report.message):
        return InvalidAgentResponseError
    return _BY_STATUS.get(status) or (_BY_NAME.get(name, RemoteError) if not status else RemoteError)


def _default_message(kind: type[A2AError], report: _Report) -> str:
    if kind is RemoteError and report.status:
        return f"{kind.default_message}: HTTP {report.status}"
    return ""


def _origin(answer: Answer, report: _Report | None = None, reason: str = "") -> ErrorOrigin:
    return ErrorOrigin(
        url=answer.url,
        status=answer.status or None,
        code=(report.code or report.number or None) if report else None,
        reason=reason,
        details=report.details if report else (),
        body=answer.body[:KEPT_BODY],
        headers={name: value for name, value in answer.headers.items() if name not in _UNTOLD_HEADERS},
    )


def _is_own_info(detail: dict[str, Any]) -> bool:
    return (
        detail.get("@type", ERROR_INFO) == ERROR_INFO
        and detail.get("domain") == ERROR_DOMAIN
        and isinstance(detail.get("reason"), str)
    )


def _violations(found: Any) -> list[FieldViolation]:
    return [
        FieldViolation(_text(item.get("field")), _text(item.get("description")) or _text(item.get("message")))
        for item in _as_list(found)
    ]


def _reason_of_type(uri: str) -> str:
    """The reason in the ``type`` of problem+json: ``https://a2a-protocol.org/errors/task-not-found``."""
    if not uri.startswith(f"https://{ERROR_DOMAIN}/"):
        return ""
    return uri.rpartition("/")[2].upper().replace("-", "_")


def _as_list(value: Any) -> list[Any]:
    """The objects in a list, or a lone object (1.0.0 and 0.3 have one in ``data``)."""
    items = value if isinstance(value, list) else [value]
    return [item for item in items if isinstance(item, dict)]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _strings(value: Any) -> dict[str, str]:
    return {k: v for k, v in value.items() if isinstance(v, str)} if isinstance(value, dict) else {}


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds of ``Retry-After``; a date is read against the answer's own ``Date``."""
    text = headers.get("retry-after", "").strip()
    if text.isascii() and text.isdigit():
        return float(text[:12])
    try:
        moment, now = parsedate_to_datetime(text), parsedate_to_datetime(headers.get("date", ""))
        return max(0.0, (moment - now).total_seconds())
    except (ValueError, TypeError, OverflowError):
        return None


def _seconds(delay: Any) -> float | None:
    digits = _text(delay).removesuffix("s")
    if not digits.replace(".", "", 1).isdecimal() or not digits.isascii() or len(digits) > 24:
        return None
    return float(digits)
