"""The HTTP+JSON binding: a pure codec for both sides.

Fields of a request travel in the path, in the query (GET, DELETE) or in the body (POST). Where one field comes
in two places, the values have to be the same.

Spec: §11, HTTP-01 to HTTP-12, AMB-10, AMB-28, AMB-29, AMB-88 to AMB-93, AMB-99.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

import msgspec

from dragoman.bindings.codec import A2A_JSON, EVENT_STREAM, JSON, Call, HttpRequest
from dragoman.bindings.query import field_of, read_query
from dragoman.bindings.remote_error import Answer, bad_answer, bare_error, status_error
from dragoman.bindings.routes import Route, match_route
from dragoman.bindings.status import encode_status
from dragoman.errors import (
    A2AError,
    FieldViolation,
    InvalidParamsError,
    JSONParseError,
    UnsupportedMediaTypeError,
)
from dragoman.http.sse import SseFraming, encode_sse
from dragoman.model import (
    OPERATIONS,
    SUBSCRIBE_TO_TASK,
    Empty,
    OpenMessage,
    Operation,
    StreamResponse,
    WireMessage,
    decode_json,
    decode_value,
    encode_json,
)

M = TypeVar("M", bound=WireMessage)

_FRAMING = SseFraming()

_ROUTE_STARTS = frozenset(op.http_path.split("/")[1] for op in OPERATIONS.values())


# The server half.


def decode_call(method: str, path: str, query: str = "", content_type: str = "", body: bytes = b"") -> Call:
    """Read a request. ``path`` is percent-encoded and relative to the interface.

    Raises MethodNotFoundError, MethodNotAllowedError, UnsupportedMediaTypeError, JSONParseError or
    InvalidParamsError that names the field.
    """
    route = match_route(method, path)
    check_content_type(method, content_type)
    return decode_request(route, method, query, body)


def takes_body(op: Operation, method: str) -> bool:
    """Whether a body is read: of POST, and of subscriptions also with GET (Spec: AMB-88)."""
    return method == "POST" or op is SUBSCRIBE_TO_TASK


def check_content_type(method: str, value: str) -> None:
    """Raises UnsupportedMediaTypeError when a POST says that its body is anything but JSON. Spec: AMB-93."""
    if method == "POST" and value.partition(";")[0].strip().lower() not in ("", JSON, A2A_JSON):
        raise UnsupportedMediaTypeError(f"The Content-Type must be {A2A_JSON} or {JSON}")


def decode_request(route: Route, method: str, query: str, body: bytes) -> Call:
    """Put the request together. Raises JSONParseError or InvalidParamsError. Spec: AMB-89, AMB-90."""
    op, fields = route.op, route.fields
    if op.request is OpenMessage:
        return Call(op, _open_message(fields, body))
    if takes_body(op, method):
        return Call(op, _from_body(op, fields, query, body))
    if query:
        found = read_query(op.request, query)
        _merge(op, found, fields)
        return Call(op, decode_value(op.request, found))
    return Call(op, op.request(**fields))


def _open_message(fields: dict[str, str], body: bytes) -> OpenMessage:
    """The params of a method that an extension added; a tenant may be in the path."""
    found = _read_object(body)
    tenant = fields.get("tenant", "")
    if tenant and found.get("tenant", tenant) != tenant:
        raise _differs("tenant")
    return decode_value(OpenMessage, {**found, "tenant": tenant} if tenant else found)


def _from_body(op: Operation, fields: dict[str, str], query: str, body: bytes) -> msgspec.Struct:
    if query:
        tenant = read_query(op.request, query).get("tenant", "")
        fields = _with_tenant(fields, tenant) if tenant else fields
    if not fields:
        return decode_json(op.request, body or b"{}")
    found = _read_object(body)
    _merge(op, found, fields)
    return decode_value(op.request, found)


def _with_tenant(fields: dict[str, str], tenant: str) -> dict[str, str]:
    if fields.get("tenant", tenant) != tenant:
        raise _differs("tenant")
    return {**fields, "tenant": tenant}


def _read_object(body: bytes) -> dict[str, Any]:
    if not body:
        return {}
    try:
        value = msgspec.json.decode(body)
    except msgspec.ValidationError as error:
        raise InvalidParamsError(violations=[FieldViolation("body", str(error))]) from None
    except msgspec.DecodeError:
        raise JSONParseError() from None
    except RecursionError:
        raise InvalidParamsError("The request is nested too deeply") from None
    if not isinstance(value, dict):
        raise InvalidParamsError(violations=[FieldViolation("body", "must be a JSON object")])
    return value


def _merge(op: Operation, found: dict[str, Any], fields: Mapping[str, str]) -> None:
    """Put the path's fields into ``found``, which has its members under either spelling."""
    for name, value in fields.items():
        json_name = field_of(op.request, name).json_name
        for spelling in {name, json_name}:
            other = found.pop(spelling, None)
            if other not in (None, "", value):
                raise _differs(json_name)
        found[json_name] = value


def _differs(field: str) -> InvalidParamsError:
    why = "is given twice with different values (in the path and in the query or body)"
    return InvalidParamsError(violations=[FieldViolation(field, why)])


def encode_result(call: Call, response: msgspec.Struct) -> bytes:
    """The body for a result."""
    return encode_json(response)


def encode_error(error: A2AError) -> tuple[int, bytes]:
    """HTTP status and body for an error."""
    return error.http_status, encode_status(error)


def stream_framing(call: Call) -> SseFraming:
    """The framing of stream events: bare StreamResponses. Spec: HTTP-09."""
    return _FRAMING


def encode_stream_error(call: Call, error: A2AError) -> bytes:
    """The last event of a stream that broke. Spec: AMB-10."""
    return encode_sse(encode_status(error))


def response_type(accept: str) -> str:
    """The media type of an answer for an ``Accept`` header. Spec: HTTP-02, AMB-29."""
    if not accept or "*/*" in accept or "application/*" in accept:
        return A2A_JSON
    accept = accept.lower()
    return JSON if JSON in accept and A2A_JSON not in accept else A2A_JSON


# The client half.


def encode_request(
    op: Operation,
    request: msgspec.Struct,
    tenant: str = "",
    *,
    request_id: int | str = 1,
    method: str = "",
    tenant_in_path: bool = True,
) -> HttpRequest:
    """A request for a route below the interface URL.

    ``request_id`` is not used. ``method`` is the verb of SubscribeToTask, POST when empty (Spec: AMB-88).
    A tenant becomes the first path segment, and a member of POST bodies too; ``tenant_in_path=False`` puts it
    into query or body only (Spec: AMB-89). Raises InvalidParamsError when an id cannot be a path segment.
    """
    # "/tasks/tasks" would be the task of that name: literal routes win.
    tenant_in_path = tenant_in_path and tenant not in _ROUTE_STARTS
    method = method or ("POST" if op is SUBSCRIBE_TO_TASK else op.http_method)
    if tenant:
        request = msgspec.structs.replace(request, tenant=tenant)
    path = _path(op, request, tenant if tenant_in_path else "")
    if method == "POST":
        return HttpRequest(method=method, path=path, headers=_headers(op, body=True), body=_body(op, request))
    query = _query(op, request, without_tenant=bool(tenant) and tenant_in_path)
    return HttpRequest(method=method, path=path, query=query, headers=_headers(op, body=False))


def decode_result(
    op: Operation,
    status: int,
    headers: Mapping[str, str],
    body: bytes,
    *,
    url: str = "",
    request_id: int | str | None = None,
) -> msgspec.Struct:
    """The response in a body. See :class:`~dragoman.bindings.codec.ClientCodec`. Spec: AMB-91, AMB-92."""
    answer = Answer(op=op, status=status, headers=headers, body=body, url=url)
    if not 200 <= status < 300:
        raise bare_error(answer)
    if op.response is Empty:
        return Empty()
    return _read(answer, op.response)


def decode_event(
    op: Operation, data: bytes, *, url: str = "", request_id: int | str | None = None
) -> StreamResponse | None:
    """One event of a stream. See :class:`~dragoman.bindings.codec.ClientCodec`. Spec: HTTP-09, AMB-10."""
    if not data.strip():
        return None
    event = _read(Answer(op=op, body=data, url=url), StreamResponse)
    return None if event == _NOTHING else event


_NOTHING = StreamResponse()


class _Suspect(msgspec.Struct, frozen=True):
    """The members that tell an error, or the other binding, from an answer of this one."""

    error: Any = None
    jsonrpc: Any = None


_SUSPECTS = msgspec.json.Decoder(_Suspect)


def _read(answer: Answer, kind: type[M]) -> M:
    if b'"error"' in answer.body or b'"jsonrpc"' in answer.body:
        _raise_error(answer)
    try:
        return decode_json(kind, answer.body, lenient_required=True)
    except A2AError as error:
        raise bad_answer(answer, str(error)) from None


def _raise_error(answer: Answer) -> None:
    """Raises the error that the body is, if it is one: errors come before everything else in it."""
    try:
        suspect = _SUSPECTS.decode(answer.body)
    except (msgspec.DecodeError, RecursionError):
        return
    if suspect.jsonrpc is not None:
        raise bad_answer(answer, "it is a JSON-RPC response, on the HTTP+JSON binding")
    if suspect.error is not None:
        raise status_error(answer, {"error": suspect.error})


def _headers(op: Operation, *, body: bool) -> dict[str, str]:
    accept = f"{EVENT_STREAM}, {A2A_JSON}, {JSON}" if op.streaming else f"{A2A_JSON}, {JSON}"
    return {"accept": accept, "content-type": A2A_JSON} if body else {"accept": accept}


def _path(op: Operation, request: msgspec.Struct, tenant: str) -> str:
    path = op.http_path
    for name in op.path_fields:
        segment = _segment(op, name, getattr(request, name))
        path = path.replace("{" + name + "}", segment)
    return f"/{_segment(op, 'tenant', tenant)}{path}" if tenant else path


def _segment(op: Operation, name: str, value: str) -> str:
    if value in ("", ".", ".."):
        field = field_of(op.request, name).json_name
        raise InvalidParamsError(violations=[FieldViolation(field, "cannot be empty, nor '.' or '..'")])
    return quote(value, safe="")


def _body(op: Operation, request: msgspec.Struct) -> bytes:
    """Every field that is not in the path; a tenant stays (Spec: AMB-89)."""
    if not op.path_fields:
        return encode_json(request)
    return msgspec.json.encode(_members(op, request))


def _query(op: Operation, request: msgspec.Struct, *, without_tenant: bool) -> str:
    members = _members(op, request)
    if without_tenant:
        members.pop("tenant", None)
    pairs = [(name, _query_text(item)) for name, value in members.items() for item in _items(value)]
    return urlencode(pairs, quote_via=quote)


def _members(op: Operation, request: msgspec.Struct) -> dict[str, Any]:
    members: dict[str, Any] = msgspec.json.decode(encode_json(request))
    for name in op.path_fields:
        members.pop(field_of(op.request, name).json_name, None)
    return members


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _query_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else str(value)
