"""Errors as native peers of 0.3 send them.

They are put into the form of 1.0 and read by the one reader of errors there is, :mod:`dragoman.bindings.remote_error`.

Spec: v0.3 §2.5, §3.5, §4.5, §7.9.
"""

from __future__ import annotations

from typing import Any

import msgspec

from dragoman.bindings.remote_error import Answer, grpc_error, rpc_error, status_error
from dragoman.bindings.status import RETRY_INFO
from dragoman.errors import (
    BAD_REQUEST,
    ERROR_DOMAIN,
    ERROR_INFO,
    ERRORS_BY_CODE,
    A2AError,
    ExtendedAgentCardNotConfiguredError,
    InternalError,
    TaskNotFoundError,
)
from dragoman.model import CANCEL_TASK, GET_EXTENDED_AGENT_CARD, SEND_MESSAGE, SEND_STREAMING_MESSAGE, Operation

OLD_NAMES: dict[type, str] = {ExtendedAgentCardNotConfiguredError: "AuthenticatedExtendedCardNotConfiguredError"}

_PRIVATE_CODES = {-31401: 401, -31403: 403}
"""Codes of the Go SDK, as HTTP statuses. Spec: v0.3 §2.5."""

_CODES_BY_NAME = {OLD_NAMES.get(kind, kind.__name__): code for code, kind in ERRORS_BY_CODE.items()} | {
    kind.__name__: code for code, kind in ERRORS_BY_CODE.items()
}
_CODES_BY_HTTP = {
    400: -32602,
    404: -32601,
    405: -32601,
    409: -32002,
    415: -32005,
    422: -32602,
    500: -32603,
    501: -32004,
}
_CODES_BY_GRPC = {"NOT_FOUND": -32001, "UNIMPLEMENTED": -32004, "INVALID_ARGUMENT": -32602, "INTERNAL": -32603}
_FINER = frozenset({"UNAVAILABLE", "RESOURCE_EXHAUSTED", "UNAUTHENTICATED", "PERMISSION_DENIED"})
"""Statuses of gRPC that say more than the name of an internal error in front of the text."""
_LIKE_1_0 = f"https://{ERROR_DOMAIN}/"

_encode = msgspec.json.Encoder().encode


def read_rpc_error(answer: Answer, error: Any) -> A2AError:
    """The typed error for the ``error`` member of a JSON-RPC response, whatever it holds.

    An object in ``data`` becomes the error's metadata, a list of validation records its violations, anything else is
    kept as JSON text in the metadata ``data``. An unknown code is a RemoteError. Spec: v0.3 §2.5, §7.9.
    """
    if not isinstance(error, dict):
        error = {"message": error}
    code = error.get("code")
    if not isinstance(code, int) or isinstance(code, bool):
        code = None
    if code in _PRIVATE_CODES:
        answer = msgspec.structs.replace(answer, status=_PRIVATE_CODES[code])
    return rpc_error(answer, {**error, "code": code, "data": _details(code, error.get("data"))})


def _details(code: int | None, data: Any) -> list[Any]:
    """The details of 1.0 for the ``data`` of 0.3."""
    if data is None:
        return _info(code, {})
    if isinstance(data, dict):
        return [data] if "@type" in data else _details_of_object(code, data)
    if not isinstance(data, list):
        return _info(code, {"data": data})
    if any(isinstance(item, dict) and "@type" in item for item in data):
        return data
    violations = [_violation(item) for item in data if isinstance(item, dict) and "msg" in item]
    return [_bad_request(violations)] if violations else _info(code, {"data": data})


def _details_of_object(code: int | None, data: dict[str, Any]) -> list[Any]:
    metadata = dict(data)
    found: list[Any] = []
    violations = metadata.pop("fieldViolations", None)
    if violations:
        found.append(_bad_request(violations))
    details = metadata.pop("details", None)
    if isinstance(details, list):
        found += details
    elif details is not None:
        metadata["details"] = details
    delay = metadata.pop("retryDelay", None)
    if delay is not None:
        found.append({"@type": RETRY_INFO, "retryDelay": delay})
    if metadata.get("reason") == _reason(code):
        del metadata["reason"]
    return [*_info(code, metadata), *found]


def _info(code: int | None, metadata: dict[str, Any]) -> list[Any]:
    reason = _reason(code)
    if not reason and not metadata:
        return []
    texts = {key: value if isinstance(value, str) else _encode(value).decode() for key, value in metadata.items()}
    return [{"@type": ERROR_INFO, "reason": reason, "domain": ERROR_DOMAIN, "metadata": texts}]


def _reason(code: int | None) -> str:
    known = ERRORS_BY_CODE.get(code) if code is not None else None
    return known.reason if known else ""


def _bad_request(violations: Any) -> dict[str, Any]:
    return {"@type": BAD_REQUEST, "fieldViolations": violations}


def _violation(record: dict[str, Any]) -> dict[str, Any]:
    """A validation record of Python: a list of steps, and a text."""
    place = record.get("loc")
    steps = [str(step) for step in place] if isinstance(place, list) else []
    return {"field": ".".join(steps), "description": record["msg"]}


def read_rest_error(answer: Answer) -> A2AError:
    """The typed error for an HTTP error status and its body.

    Looks for a code, then for the name of a class, then for a status object or problem details of 1.0; the rest is told
    by the HTTP status and whether the path names a task. Spec: v0.3 §3.5.
    """
    body = _parse(answer.body)
    if isinstance(body.get("error"), dict):
        inner = body["error"]
        return read_rpc_error(answer, inner) if _is_code(inner.get("code")) else status_error(answer, body)
    code = body.get("code") if _is_code(body.get("code")) else _code_named(body)
    if code is None and _text(body.get("type")).startswith(_LIKE_1_0):
        return status_error(answer, body)
    if code is None:
        code = _code_of_status(answer, _text(body.get("message")))
    found = {"message": _message(body), "data": _data_of(body)}
    return status_error(answer, found) if code is None else read_rpc_error(answer, {**found, "code": code})


_SENDS = (SEND_MESSAGE, SEND_STREAMING_MESSAGE)
"""Their path names no task, the message may. A missing route is a 404 of a framework, which has no ``message``."""


def _parse(text: bytes) -> dict[str, Any]:
    try:
        body = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}
    if isinstance(body, str):
        return {"message": body}
    return body if isinstance(body, dict) else {}


def _is_code(value: Any) -> bool:
    return isinstance(value, int) and value < 0


def _code_named(body: dict[str, Any]) -> int | None:
    for member in ("type", "error"):
        code = _CODES_BY_NAME.get(_text(body.get(member)).rpartition(".")[2])
        if code is not None:
            return code
    return None


def _code_of_status(answer: Answer, message: str) -> int | None:
    if answer.status == 404 and (answer.op.path_fields or (message and answer.op in _SENDS)):
        return TaskNotFoundError.code
    return _CODES_BY_HTTP.get(answer.status)


def _message(body: dict[str, Any]) -> str:
    texts = (_text(body.get(member)) for member in ("message", "detail", "title"))
    return next((text for text in texts if text), "")


def _data_of(body: dict[str, Any]) -> Any:
    detail = body.get("detail")
    return detail if isinstance(detail, list) else body.get("data")


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def read_grpc_error(answer: Answer, name: str, number: int, message: str, details: list[dict[str, Any]]) -> A2AError:
    """The typed error for a gRPC status and its details in ProtoJSON. ``answer`` has no HTTP status (0).

    Looks for ErrorInfo, then for the name of a class in front of the text, then at the status. Spec: v0.3 §4.5.
    """
    if any(detail.get("domain") == ERROR_DOMAIN for detail in details):
        _, text = _split(message)
        return grpc_error(answer, name, number, text, details)
    code, text = _split(message)
    if code == InternalError.code and name in _FINER:
        return grpc_error(answer, name, number, text, details)
    if code is None:
        code = _code_of_grpc(answer.op, name)
    if code is None:
        return grpc_error(answer, name, number, message, details)
    return read_rpc_error(answer, {"code": code, "message": text, "data": details or None})


def _split(message: str) -> tuple[int | None, str]:
    """The code for the name in front of a text, and the text without it."""
    name, colon, text = message.partition(": ")
    code = _CODES_BY_NAME.get(name)
    return (code, text) if colon and code is not None else (None, message)


def _code_of_grpc(op: Operation, name: str) -> int | None:
    if name == "FAILED_PRECONDITION":  # others use it, too, but not for these two operations
        return {CANCEL_TASK: -32002, GET_EXTENDED_AGENT_CARD: -32007}.get(op)
    return _CODES_BY_GRPC.get(name)
