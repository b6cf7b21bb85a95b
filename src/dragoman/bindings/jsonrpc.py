"""The JSON-RPC binding: a pure codec for both sides.

A request is one object with ``jsonrpc``, ``id``, ``method`` and ``params``. The envelope is read once with the
params left as bytes, which are then read as the method's request type. An ``id`` is kept as the bytes it came in
and written back so. Result and event JSON is spliced into the response, never encoded twice.

Spec: §9, JRPC-01 to JRPC-07, AMB-10, AMB-32, AMB-35, AMB-91, AMB-94 to AMB-96.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, Protocol, TypeVar

import msgspec
from msgspec import UNSET, Raw, UnsetType

from dragoman.bindings.codec import JSON, Call, HttpRequest
from dragoman.bindings.remote_error import Answer, bad_answer, bare_error, rpc_error
from dragoman.bindings.status import encode_rpc_error, rpc_http_status
from dragoman.errors import (
    A2AError,
    FieldViolation,
    InvalidParamsError,
    InvalidRequestError,
    JSONParseError,
    MethodNotFoundError,
)
from dragoman.http.sse import SseFraming, encode_sse
from dragoman.model import (
    OPERATIONS,
    Empty,
    Operation,
    StreamResponse,
    WireMessage,
    decode_json,
    encode_json,
)

M = TypeVar("M", bound=WireMessage)

CONTENT_TYPE = JSON
NULL = b"null"

_NO_PARAMS = Raw(b"{}")
_HEADERS: Mapping[str, str] = {"content-type": JSON, "accept": JSON}
_STREAM_HEADERS: Mapping[str, str] = {"content-type": JSON, "accept": f"text/event-stream, {JSON}"}


# The server half.


class Envelope(msgspec.Struct, frozen=True):
    """A request object whose params are not read yet. ``id`` is JSON text."""

    jsonrpc: Literal["2.0"]
    id: Raw
    method: str
    params: Raw = _NO_PARAMS


_ENVELOPES = msgspec.json.Decoder(Envelope)
_IDS = msgspec.json.Decoder(str | int | float | None)


def decode_call(body: bytes) -> Call:
    """Read a request.

    Raises JSONParseError, InvalidRequestError, MethodNotFoundError or InvalidParamsError; answer them with the
    id that :func:`read_id` finds.
    """
    return decode_params(decode_envelope(body))


def decode_envelope(body: bytes) -> Envelope:
    """Read the request object. Raises JSONParseError or InvalidRequestError."""
    try:
        envelope = _ENVELOPES.decode(body)
        if not _is_id(envelope.id):
            raise _broken("id", "must be a string, a whole number or null")
        return envelope
    except RecursionError:
        raise InvalidRequestError("The request is nested too deeply") from None
    except msgspec.DecodeError:
        raise _explain(body) from None


def decode_params(envelope: Envelope, more: Mapping[str, Operation] = OPERATIONS) -> Call:
    """Find the method, among the protocol's or ``more``, and read its params.

    Raises MethodNotFoundError or InvalidParamsError.
    """
    op = OPERATIONS.get(envelope.method) or more.get(envelope.method)
    if op is None:
        raise _unknown_method(envelope.method)
    params = bytes(envelope.params)
    if params == NULL:
        params = b"{}"
    elif params[:1] != b"{":
        raise InvalidParamsError(violations=[FieldViolation("params", "must be an object")])
    return Call(op, decode_json(op.request, params), bytes(envelope.id))


def read_id(body: bytes) -> bytes:
    """The request's id as JSON text, or ``null`` when there is none to be read. Spec: JRPC-07."""
    try:
        found = _LOOSE.decode(body).id
        return bytes(found) if not isinstance(found, UnsetType) and _is_id(found) else NULL
    except (msgspec.DecodeError, RecursionError):
        return NULL


def encode_result(call: Call, response: msgspec.Struct) -> bytes:
    """The response object for a result."""
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (call.id, encode_json(response))


def encode_error(request_id: bytes, error: A2AError) -> tuple[int, bytes]:
    """HTTP status and response object for an error. ``request_id`` is that of the call, or of :func:`read_id`.

    A text that is no JSON has no id that could be relied on. Spec: JRPC-07.
    """
    if isinstance(error, JSONParseError):
        request_id = NULL
    return rpc_http_status(error), encode_rpc_error(request_id, error)


def stream_framing(call: Call) -> SseFraming:
    """The framing of the events of a streaming call: each is a response object of its own. Spec: JRPC-05."""
    return SseFraming(b'{"jsonrpc":"2.0","id":%b,"result":' % call.id, b"}")


def encode_stream_error(call: Call, error: A2AError) -> bytes:
    """The last event of a stream that broke. Spec: AMB-10."""
    return encode_sse(encode_rpc_error(call.id, error))


def _is_id(raw: Raw) -> bool:
    value = _IDS.decode(raw)
    return not isinstance(value, float) or value.is_integer()


def _explain(body: bytes) -> A2AError:
    """Why a body is no request object. Spec: AMB-32, AMB-95."""
    try:
        value = msgspec.json.decode(body)
    except msgspec.ValidationError:
        return InvalidRequestError()
    except msgspec.DecodeError:
        return JSONParseError()
    except RecursionError:
        return InvalidRequestError("The request is nested too deeply")
    if isinstance(value, list):
        return InvalidRequestError("Batches are not supported: send one request object")
    if not isinstance(value, dict):
        return InvalidRequestError("The request must be a JSON object")
    if value.get("jsonrpc") != "2.0":
        return _broken("jsonrpc", 'must be "2.0"')
    if "id" not in value:
        return _broken("id", "is missing: notifications are not supported")
    if not isinstance(value.get("method"), str):
        return _broken("method", "must be a string")
    return _broken("id", "must be a string, a whole number or null")


def _broken(member: str, why: str) -> InvalidRequestError:
    return InvalidRequestError(violations=[FieldViolation(member, why)])


#: What people still call, by versions and drafts past. Spec: AMB-94.
_OLD_NAMES = {
    "message/send": "SendMessage",
    "message/stream": "SendStreamingMessage",
    "tasks/send": "SendMessage",
    "tasks/sendSubscribe": "SendStreamingMessage",
    "tasks/get": "GetTask",
    "tasks/list": "ListTasks",
    "tasks/cancel": "CancelTask",
    "tasks/resubscribe": "SubscribeToTask",
    "tasks/subscribe": "SubscribeToTask",
    "tasks/pushNotification/set": "CreateTaskPushNotificationConfig",
    "tasks/pushNotification/get": "GetTaskPushNotificationConfig",
    "tasks/pushNotificationConfig/set": "CreateTaskPushNotificationConfig",
    "tasks/pushNotificationConfig/get": "GetTaskPushNotificationConfig",
    "tasks/pushNotificationConfig/list": "ListTaskPushNotificationConfigs",
    "tasks/pushNotificationConfig/delete": "DeleteTaskPushNotificationConfig",
    "agent/getAuthenticatedExtendedCard": "GetExtendedAgentCard",
    "agent/authenticatedExtendedCard": "GetExtendedAgentCard",
}


def is_old_name(method: str) -> bool:
    """Whether a method is one of an earlier version."""
    return method in _OLD_NAMES


_NAMES_BY_LETTERS = {name.lower(): name for name in OPERATIONS}


def _unknown_method(method: str) -> MethodNotFoundError:
    meant = _OLD_NAMES.get(method) or _NAMES_BY_LETTERS.get(method.replace("_", "").lower())
    if meant is None:
        return MethodNotFoundError()
    return MethodNotFoundError(f"Method not found: in version 1.0 it is called {meant}")


# The client half.


class _Response(msgspec.Struct, frozen=True):
    """A response object as it may come. ``error`` null counts as absent."""

    jsonrpc: Any = UNSET
    id: Any = UNSET
    result: Raw | UnsetType = UNSET
    error: Any = None


class _Loose(msgspec.Struct, frozen=True):
    id: Raw | UnsetType = UNSET


_RESPONSES = msgspec.json.Decoder(_Response)
_LOOSE = msgspec.json.Decoder(_Loose)


def encode_request(
    op: Operation, request: msgspec.Struct, tenant: str = "", *, request_id: int | str = 1
) -> HttpRequest:
    """A request object, to be posted to the interface URL itself. Spec: JRPC-01 to JRPC-04, TEN-02."""
    if tenant:
        request = msgspec.structs.replace(request, tenant=tenant)
    body = b'{"jsonrpc":"2.0","id":%b,"method":"%b","params":%b}' % (
        msgspec.json.encode(request_id),
        op.name.encode(),
        encode_json(request),
    )
    headers = _STREAM_HEADERS if op.streaming else _HEADERS
    return HttpRequest(method="POST", headers=headers, body=body, request_id=request_id)


def decode_result(
    op: Operation,
    status: int,
    headers: Mapping[str, str],
    body: bytes,
    *,
    url: str = "",
    request_id: int | str | None = None,
) -> msgspec.Struct:
    """The result in a response. See :class:`~dragoman.bindings.codec.ClientCodec`. Spec: AMB-35, AMB-91."""
    answer = Answer(op=op, status=status, headers=headers, body=body, url=url)
    response = open_response(answer, request_id, _RESPONSES, rpc_error)
    if response.result is UNSET or bytes(response.result) == NULL:
        if op.response is Empty and response.jsonrpc is not UNSET:
            return Empty()
        raise bad_answer(answer, "it has neither a result nor an error")
    return _read_result(answer, op.response, response.result)


def decode_event(
    op: Operation, data: bytes, *, url: str = "", request_id: int | str | None = None
) -> StreamResponse | None:
    """One event of a stream. See :class:`~dragoman.bindings.codec.ClientCodec`. Spec: JRPC-05, AMB-10."""
    answer = Answer(op=op, body=data, url=url)
    if data.strip() in (b"{}", b""):
        return None
    response = open_response(answer, request_id, _RESPONSES, rpc_error)
    if response.result is UNSET:
        raise bad_answer(answer, "a stream event is no JSON-RPC response")
    if bytes(response.result) in (b"{}", NULL):
        return None
    return _read_result(answer, StreamResponse, response.result)


class ResponseObject(Protocol):
    """What every response object has, of whichever generation."""

    @property
    def jsonrpc(self) -> Any: ...

    @property
    def id(self) -> Any: ...

    @property
    def error(self) -> Any: ...


R = TypeVar("R", bound=ResponseObject)


def open_response(
    answer: Answer,
    request_id: int | str | None,
    responses: msgspec.json.Decoder[R],
    read_error: Callable[[Answer, Any], A2AError],
) -> R:
    """The response object; raises the error that it carries, whatever the HTTP status says."""
    try:
        response = responses.decode(answer.body)
    except (msgspec.DecodeError, RecursionError):
        if answer.status >= 400:
            raise bare_error(answer) from None
        raise bad_answer(answer, "it is no JSON-RPC response") from None
    if response.error is not None:
        raise read_error(answer, response.error)
    if answer.status >= 400:
        raise bare_error(answer)
    if request_id is not None and response.jsonrpc is not UNSET and not _same_id(response.id, request_id):
        raise bad_answer(answer, "it belongs to another request (its id differs)")
    return response


def _same_id(found: Any, sent: int | str) -> bool:
    return type(found) is type(sent) and found == sent


def _read_result(answer: Answer, kind: type[M], result: Raw) -> M:
    try:
        return decode_json(kind, bytes(result), lenient_required=True)
    except A2AError as error:
        raise bad_answer(answer, str(error)) from None
