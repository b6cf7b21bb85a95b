"""Errors as gRPC statuses, both directions: code, message, and ``google.rpc.Status`` with its details.

The trailers of an answer have to fit into the 8 KiB that peers take of metadata, so texts are cut, and details that
would not fit are left out, the most useful first.

Spec: §10.6, GRPC-04, ERR-16, ERR-17, ERR-18, ERR-20, AMB-31, AMB-34, AMB-38, B037.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from dragoman.bindings.grpc.library import grpc
from dragoman.bindings.grpc.schema import DecodeError, message_class
from dragoman.bindings.grpc.values import read_struct, write_struct
from dragoman.bindings.remote_error import Answer, grpc_error
from dragoman.bindings.status import RETRY_INFO, encode_duration
from dragoman.errors import BAD_REQUEST, ERROR_DOMAIN, ERROR_INFO, A2AError, UnauthenticatedError
from dragoman.model import Operation

DETAILS_KEY = "grpc-status-details-bin"
CHALLENGE_KEY = "www-authenticate"

MOST_TEXT = 512
"""Characters of a message."""
MOST_CHALLENGE = 1500
"""Characters of a challenge, which may be several."""
MOST_DETAILS = 3600
"""Bytes of all details; a third more on the wire."""
_MOST_READ = 100

_STRUCT = "type.googleapis.com/google.protobuf.Struct"
_BASE64 = "base64"
"""The member under which a detail of a type that is not known here keeps its bytes."""

_Status = message_class("google.rpc.Status")
_ErrorInfo = message_class("google.rpc.ErrorInfo")
_BadRequest = message_class("google.rpc.BadRequest")
_RetryInfo = message_class("google.rpc.RetryInfo")
_Struct = message_class("google.protobuf.Struct")

Metadata = tuple[tuple[str, str | bytes], ...]


class EncodedStatus(msgspec.Struct, frozen=True):
    """An error, ready to end a call with."""

    code: grpc.StatusCode
    text: str
    trailers: Metadata


# Writing.


def encode_status(error: A2AError, *, code_name: str = "", text: str = "") -> EncodedStatus:
    """The status for an error; ``code_name`` and ``text`` are said instead of its own."""
    code = grpc.StatusCode[code_name or error.grpc_status]
    text = _cut(text or error.message, MOST_TEXT)
    status = _Status(code=code.value[0], message=text)
    left = MOST_DETAILS
    for url, value in _packed(error):
        left -= len(url) + len(value) + 8
        if left < 0:
            break
        status.details.add(type_url=url, value=value)
    trailers: list[tuple[str, str | bytes]] = [(DETAILS_KEY, status.SerializeToString())]
    if isinstance(error, UnauthenticatedError) or "challenge" in error.metadata:
        trailers.append((CHALLENGE_KEY, _ascii(error.metadata.get("challenge", "Bearer"), MOST_CHALLENGE)))
    return EncodedStatus(code, text, tuple(trailers))


def _packed(error: A2AError) -> Iterator[tuple[str, bytes]]:
    if error.reason:
        metadata = {_text(key): _cut(_text(value), MOST_TEXT) for key, value in error.metadata.items()}
        info = _ErrorInfo(reason=error.reason, domain=ERROR_DOMAIN, metadata=metadata)
        yield ERROR_INFO, info.SerializeToString()
    if error.retry_after is not None:
        yield RETRY_INFO, _retry_info(error.retry_after)
    if error.violations:
        yield BAD_REQUEST, _bad_request(error)
    for detail in error.extra_details:
        yield from _pack_foreign(detail)


def _retry_info(seconds: float) -> bytes:
    info = _RetryInfo()
    info.retry_delay.SetInParent()
    ms = max(0, round(seconds * 1000))
    info.retry_delay.seconds, rest = divmod(ms, 1000)
    info.retry_delay.nanos = rest * 1_000_000
    data: bytes = info.SerializeToString()
    return data


def _bad_request(error: A2AError) -> bytes:
    """As many violations as fit into half of what there is for details."""
    found = _BadRequest()
    left = MOST_DETAILS // 2
    for violation in error.violations:
        field, description = _cut(_text(violation.field), MOST_TEXT), _cut(_text(violation.description), MOST_TEXT)
        left -= len(field.encode()) + len(description.encode()) + 8
        if left < 0:
            break
        found.field_violations.add(field=field, description=description)
    data: bytes = found.SerializeToString()
    return data


def _pack_foreign(detail: Mapping[str, Any]) -> Iterator[tuple[str, bytes]]:
    """A detail of a type that is not known here: its own bytes where they were kept, else the object as a Struct."""
    kind, kept = detail.get("@type"), detail.get(_BASE64)
    if isinstance(kind, str) and isinstance(kept, str) and len(detail) == 2:
        yield kind, base64.b64decode(kept)
        return
    packed = _Struct()
    try:
        write_struct(detail, packed)
        yield _STRUCT, packed.SerializeToString()
    except (TypeError, ValueError, OverflowError, RecursionError):
        return  # what the author of the error put in has no form on any wire


def _text(value: str) -> str:
    """Text without lone surrogates."""
    return value.encode("utf-8", "replace").decode()


def _cut(text: str, most: int) -> str:
    text = _text(text)
    return text if len(text) <= most else text[: most - 1] + "…"


def _ascii(text: str, most: int) -> str:
    """Text as the value of a metadata entry, which has one line of printable ASCII."""
    return "".join(c if " " <= c <= "~" else "?" for c in text)[:most].strip()


# Reading.


def read_status(
    op: Operation, code: grpc.StatusCode, text: str, trailers: Iterable[tuple[str, str | bytes]], *, url: str
) -> A2AError:
    """The typed error for a status that a peer sent. Whatever is in the details, there is one."""
    answer, message, details = read_answer(op, text, trailers, url=url)
    return grpc_error(answer, code.name, code.value[0], message, details)


def read_answer(
    op: Operation, text: str, trailers: Iterable[tuple[str, str | bytes]], *, url: str
) -> tuple[Answer, str, list[dict[str, Any]]]:
    """A status that a peer sent, its message, and its details as ProtoJSON has them."""
    found = dict(trailers)
    body = found.get(DETAILS_KEY, b"")
    body = body if isinstance(body, bytes) else b""
    headers = {key: value for key, value in found.items() if isinstance(value, str)}
    status = _read_details(body)
    message = text or (status.message if status is not None else "")
    details = [] if status is None else [read_detail(item) for item in status.details[:_MOST_READ]]
    return Answer(op=op, status=0, headers=headers, body=body, url=url), message, details


def _read_details(body: bytes) -> Any:
    try:
        return _Status.FromString(body) if body else None
    except (DecodeError, RecursionError):
        return None


def read_detail(item: Any) -> dict[str, Any]:
    """A packed detail as ProtoJSON has it; one that is not known, or broken, as its bytes in base64."""
    read = _DETAILS.get(item.type_url.rpartition("/")[2])
    if read is not None:
        try:
            return read(item.value)
        except (DecodeError, ValueError, RecursionError):
            pass
    return {"@type": item.type_url, _BASE64: base64.b64encode(item.value).decode()}


def _read_error_info(data: bytes) -> dict[str, Any]:
    info = _ErrorInfo.FromString(data)
    found = {"@type": ERROR_INFO, "reason": info.reason, "domain": info.domain}
    return {**found, "metadata": dict(info.metadata)} if info.metadata else found


def _read_bad_request(data: bytes) -> dict[str, Any]:
    violations = [
        {"field": item.field, "description": item.description}
        for item in _BadRequest.FromString(data).field_violations[:_MOST_READ]
    ]
    return {"@type": BAD_REQUEST, "fieldViolations": violations}


def _read_retry_info(data: bytes) -> dict[str, Any]:
    delay = _RetryInfo.FromString(data).retry_delay
    return {"@type": RETRY_INFO, "retryDelay": encode_duration(delay.seconds + delay.nanos / 1e9)}


def _read_object(data: bytes) -> dict[str, Any]:
    found = read_struct(_Struct.FromString(data))
    return found if isinstance(found.get("@type"), str) else {"@type": _STRUCT, "value": found}


_DETAILS: dict[str, Callable[[bytes], dict[str, Any]]] = {
    "google.rpc.ErrorInfo": _read_error_info,
    "google.rpc.BadRequest": _read_bad_request,
    "google.rpc.RetryInfo": _read_retry_info,
    "google.protobuf.Struct": _read_object,
}
