"""The HTTP+JSON binding of 0.3, the client's half: a pure codec from and to the Structs of 1.0.

Three dialects are in use (see :class:`dragoman.V03Settings`). One is written, all are read.

Spec: v0.3 §3; V03-01, V03-P02, V03-P08, V03-P09, V03-P26, V03-P27.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar
from urllib.parse import quote

import msgspec

from dragoman.bindings.client_dialect import ClientDialect, StreamDecoder
from dragoman.bindings.codec import EVENT_STREAM, JSON, HttpRequest
from dragoman.bindings.remote_error import Answer, bad_answer
from dragoman.compat.v03 import types as v03
from dragoman.compat.v03.client_requests import EXTENSIONS_HEADER, VERSION, Decoder, ResultReader, down_request
from dragoman.compat.v03.failures import read_rest_error
from dragoman.compat.v03.kinds import write_kind
from dragoman.compat.v03.protojson import write_proto
from dragoman.errors import A2AError, FieldViolation, InvalidParamsError, UnsupportedOperationError
from dragoman.model import (
    CANCEL_TASK,
    CREATE_TASK_PUSH_NOTIFICATION_CONFIG,
    DELETE_TASK_PUSH_NOTIFICATION_CONFIG,
    GET_EXTENDED_AGENT_CARD,
    GET_TASK,
    GET_TASK_PUSH_NOTIFICATION_CONFIG,
    LIST_TASK_PUSH_NOTIFICATION_CONFIGS,
    SEND_MESSAGE,
    SEND_STREAMING_MESSAGE,
    SUBSCRIBE_TO_TASK,
    Empty,
    Operation,
)
from dragoman.model.wire import WireMessage

_CONFIGS = "/v1/tasks/{task_id}/pushNotificationConfigs"
_ROUTES: dict[Operation, tuple[str, str]] = {
    SEND_MESSAGE: ("POST", "/v1/message:send"),
    SEND_STREAMING_MESSAGE: ("POST", "/v1/message:stream"),
    GET_TASK: ("GET", "/v1/tasks/{id}"),
    CANCEL_TASK: ("POST", "/v1/tasks/{id}:cancel"),
    SUBSCRIBE_TO_TASK: ("POST", "/v1/tasks/{id}:subscribe"),
    CREATE_TASK_PUSH_NOTIFICATION_CONFIG: ("POST", _CONFIGS),
    GET_TASK_PUSH_NOTIFICATION_CONFIG: ("GET", _CONFIGS + "/{id}"),
    LIST_TASK_PUSH_NOTIFICATION_CONFIGS: ("GET", _CONFIGS),
    DELETE_TASK_PUSH_NOTIFICATION_CONFIG: ("DELETE", _CONFIGS + "/{id}"),
    GET_EXTENDED_AGENT_CARD: ("GET", "/v1/card"),
}

#: What many servers of 0.3 do not have.
_OFTEN_MISSING = (LIST_TASK_PUSH_NOTIFICATION_CONFIGS, DELETE_TASK_PUSH_NOTIFICATION_CONFIG)

_EVENT_MEMBERS = frozenset(
    ("kind", "task", "msg", "status", "statusUpdate", "status_update", "artifactUpdate", "artifact_update", "artifact")
)


class RestDialect(ClientDialect):
    """The codec for one peer.

    ``dialect``: which JSON is written; ``raw_bytes``: content of files goes as it is in dialect A, not as base64 text.
    """

    version: ClassVar[str] = VERSION
    extensions_header: ClassVar[str] = EXTENSIONS_HEADER

    def __init__(self, dialect: str = "A", *, raw_bytes: bool = False) -> None:
        self._dialect = dialect
        self._raw_bytes = raw_bytes
        self._results = ResultReader(raw_bytes=raw_bytes)

    def encode_request(
        self, op: Operation, request: msgspec.Struct, tenant: str = "", *, request_id: int | str = 1
    ) -> HttpRequest:
        """A request for a route below the interface URL. There are no tenants: that of an interface is dropped.

        Raises UnsupportedOperationError for an operation that 0.3 does not have, InvalidParamsError when an id cannot
        be a path segment.
        """
        message = down_request(op, request)
        method, path = _ROUTES[op]
        headers = {"accept": f"{EVENT_STREAM}, {JSON}" if op.streaming else JSON}
        body = self._body(op, message) if method == "POST" else None
        if body is not None:
            headers["content-type"] = JSON
        return HttpRequest(
            method=method,
            path=_filled(path, request),
            query=_query(message),
            headers=headers,
            body=b"" if body is None else msgspec.json.encode(body),
        )

    def decode_result(
        self,
        op: Operation,
        status: int,
        headers: Mapping[str, str],
        body: bytes,
        *,
        url: str = "",
        request_id: int | str | None = None,
    ) -> msgspec.Struct:
        """See :class:`~dragoman.bindings.codec.ClientCodec`. Any 2xx is a success."""
        answer = Answer(op=op, status=status, headers=headers, body=body, url=url)
        if not 200 <= status < 300:
            raise _refusal(answer)
        if op.response is Empty:
            return Empty()
        return self._results.read(answer, _parsed(answer))

    def begin_stream(self, op: Operation, *, url: str = "", request_id: int | str | None = None) -> StreamDecoder:
        """See :class:`~dragoman.bindings.client_dialect.ClientDialect`."""
        return Decoder(op, lambda data, event: self._read_event(Answer(op=op, body=data, url=url), event))

    def _read_event(self, answer: Answer, event: bytes) -> v03.StreamResponse | None:
        if answer.body.strip() in (b"", b"{}"):
            return None
        value = _parsed(answer)
        if event == b"error" or _is_error(value):
            raise read_rest_error(msgspec.structs.replace(answer, status=500))
        return self._results.event(answer, value)

    def _body(self, op: Operation, message: WireMessage) -> Any:
        if isinstance(message, v03.CancelTaskRequest):
            message = v03.CancelTaskRequest(name=message.name)  # no member for its metadata here, and some are strict
        if self._dialect == "A":
            return write_proto(message, bytes_as_text=not self._raw_bytes)
        if isinstance(message, v03.CreateTaskPushNotificationConfigRequest):
            named = write_kind(message)
            return named["pushNotificationConfig"] if self._dialect == "C" else {"config": named}
        if op in (SEND_MESSAGE, SEND_STREAMING_MESSAGE):
            return write_kind(message)
        return write_proto(message) if self._dialect == "B" else None


def _filled(path: str, request: msgspec.Struct) -> str:
    for name in ("task_id", "id"):
        if "{" + name + "}" in path:
            path = path.replace("{" + name + "}", _segment(name, getattr(request, name)))
    return path


def _segment(name: str, value: str) -> str:
    if value in ("", ".", ".."):
        field = "taskId" if name == "task_id" else name
        raise InvalidParamsError(violations=[FieldViolation(field, "cannot be empty, nor '.' or '..'")])
    return quote(value, safe="")


def _query(message: WireMessage) -> str:
    length = message.history_length if isinstance(message, v03.GetTaskRequest) else 0
    return f"historyLength={length}" if length else ""


def _parsed(answer: Answer) -> Any:
    try:
        value = msgspec.json.decode(answer.body)
    except (msgspec.DecodeError, RecursionError):
        raise bad_answer(answer, "it is not JSON") from None
    if isinstance(value, dict) and "jsonrpc" in value:
        raise bad_answer(answer, "it is a JSON-RPC response, on the HTTP+JSON binding")
    return value


def _is_error(value: Any) -> bool:
    """Whether the data of an event is an error: Java sends it as if it were an event."""
    if not isinstance(value, dict) or _EVENT_MEMBERS & value.keys():
        return False
    return "error" in value or isinstance(value.get("code"), int) or isinstance(value.get("message"), str)


def _refusal(answer: Answer) -> A2AError:
    """The error for an error status. Some servers lack two operations, and say so in any way but the right one."""
    error = read_rest_error(answer)
    if answer.op in _OFTEN_MISSING and answer.status in (404, 405, 500, 501) and not _is_named(answer.body):
        text = f"The agent does not have {answer.op.name}: HTTP {answer.status}"
        return UnsupportedOperationError(text, metadata={"operation": answer.op.name}, origin=error.origin)
    return error


def _is_named(body: bytes) -> bool:
    """Whether an error body says more than a framework does: a code, a class, or at least that the task is missing."""
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        return False
    if not isinstance(value, dict):
        return False
    return bool({"code", "type", "error"} & value.keys()) or value.get("message") == "Task not found"
