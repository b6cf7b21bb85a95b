"""The JSON-RPC binding of 0.3, the client's half: a pure codec from and to the Structs of 1.0.

Requests are written in full, since strict peers refuse what lacks ``kind``, ``blocking`` or ``acceptedOutputModes``;
answers are read in whatever form they come: errors without an id, a delete without a result, objects without ``kind``.

Spec: v0.3 §2; V03-01, V03-P01, V03-P05, V03-P19, AC-C-42, AC-C-46.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import msgspec
from msgspec import UNSET

from dragoman.bindings.client_dialect import ClientDialect, StreamDecoder
from dragoman.bindings.codec import EVENT_STREAM, JSON, HttpRequest
from dragoman.bindings.jsonrpc import open_response
from dragoman.bindings.remote_error import Answer, bad_answer
from dragoman.compat.v03 import types as v03
from dragoman.compat.v03.client_requests import EXTENSIONS_HEADER, VERSION, Decoder, ResultReader, lacks
from dragoman.compat.v03.downward import down_send, down_webhook
from dragoman.compat.v03.failures import read_rpc_error
from dragoman.compat.v03.kinds import write_kind
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
    CancelTaskRequest,
    DeleteTaskPushNotificationConfigRequest,
    Empty,
    GetTaskPushNotificationConfigRequest,
    GetTaskRequest,
    ListTaskPushNotificationConfigsRequest,
    Operation,
    SendMessageRequest,
    SubscribeToTaskRequest,
    TaskPushNotificationConfig,
)

METHODS: dict[Operation, str] = {
    SEND_MESSAGE: "message/send",
    SEND_STREAMING_MESSAGE: "message/stream",
    GET_TASK: "tasks/get",
    CANCEL_TASK: "tasks/cancel",
    SUBSCRIBE_TO_TASK: "tasks/resubscribe",
    CREATE_TASK_PUSH_NOTIFICATION_CONFIG: "tasks/pushNotificationConfig/set",
    GET_TASK_PUSH_NOTIFICATION_CONFIG: "tasks/pushNotificationConfig/get",
    LIST_TASK_PUSH_NOTIFICATION_CONFIGS: "tasks/pushNotificationConfig/list",
    DELETE_TASK_PUSH_NOTIFICATION_CONFIG: "tasks/pushNotificationConfig/delete",
    GET_EXTENDED_AGENT_CARD: "agent/getAuthenticatedExtendedCard",
}

_HEADERS: Mapping[str, str] = {"content-type": JSON, "accept": JSON}
_STREAM_HEADERS: Mapping[str, str] = {"content-type": JSON, "accept": f"{EVENT_STREAM}, {JSON}"}


# Ids are written as they are: only resource names, which JSON-RPC does not have, cannot hold every id.


def _send(request: SendMessageRequest) -> Any:
    return write_kind(down_send(request))


def _get(request: GetTaskRequest) -> Any:
    length = request.history_length
    return {"id": request.id, "historyLength": length or 1} if length is not None else {"id": request.id}


def _cancel(request: CancelTaskRequest) -> Any:
    return {"id": request.id, "metadata": request.metadata} if request.metadata is not None else {"id": request.id}


def _set(config: TaskPushNotificationConfig) -> Any:
    webhook = down_webhook(config)
    webhook.id = webhook.id or config.task_id
    return {"taskId": config.task_id, "pushNotificationConfig": write_kind(webhook)}


def _of_webhook(request: GetTaskPushNotificationConfigRequest | DeleteTaskPushNotificationConfigRequest) -> Any:
    return {"id": request.task_id, "pushNotificationConfigId": request.id}


_PARAMS: dict[type[msgspec.Struct], Callable[[Any], Any]] = {
    SendMessageRequest: _send,
    GetTaskRequest: _get,
    CancelTaskRequest: _cancel,
    SubscribeToTaskRequest: lambda request: {"id": request.id},
    TaskPushNotificationConfig: _set,
    GetTaskPushNotificationConfigRequest: _of_webhook,
    ListTaskPushNotificationConfigsRequest: lambda request: {"id": request.task_id},
    DeleteTaskPushNotificationConfigRequest: _of_webhook,
}


class _Response(msgspec.Struct, frozen=True):
    """A response object as it may come. ``error`` null counts as absent."""

    jsonrpc: Any = UNSET
    id: Any = UNSET
    result: Any = UNSET
    error: Any = None


_RESPONSES = msgspec.json.Decoder(_Response)


class RpcDialect(ClientDialect):
    """The codec for one peer."""

    version: ClassVar[str] = VERSION
    extensions_header: ClassVar[str] = EXTENSIONS_HEADER

    def __init__(self) -> None:
        self._results = ResultReader()

    def encode_request(
        self, op: Operation, request: msgspec.Struct, tenant: str = "", *, request_id: int | str = 1
    ) -> HttpRequest:
        """A request object for the interface URL itself. There are no tenants: that of an interface is dropped.

        Raises UnsupportedOperationError for an operation that 0.3 does not have.
        """
        method = METHODS.get(op)
        if method is None:
            raise lacks(op)
        call: dict[str, Any] = {"jsonrpc": "2.0", "id": request_id, "method": method}
        if op is not GET_EXTENDED_AGENT_CARD:
            call["params"] = _PARAMS[type(request)](request)
        headers = _STREAM_HEADERS if op.streaming else _HEADERS
        return HttpRequest(method="POST", headers=headers, body=msgspec.json.encode(call), request_id=request_id)

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
        """See :class:`~dragoman.bindings.codec.ClientCodec`. A streaming call may have a lone result, too (AC-C-42)."""
        answer = Answer(op=op, status=status, headers=headers, body=body, url=url)
        response = open_response(answer, request_id, _RESPONSES, read_rpc_error)
        if response.result is UNSET or response.result is None:
            if op.response is Empty and response.jsonrpc is not UNSET:
                return Empty()
            raise bad_answer(answer, "it has neither a result nor an error")
        return self._results.read(answer, response.result)

    def begin_stream(self, op: Operation, *, url: str = "", request_id: int | str | None = None) -> StreamDecoder:
        """See :class:`~dragoman.bindings.client_dialect.ClientDialect`."""
        return Decoder(op, lambda data, event: self._read_event(Answer(op=op, body=data, url=url), request_id))

    def _read_event(self, answer: Answer, request_id: int | str | None) -> v03.StreamResponse | None:
        if answer.body.strip() in (b"", b"{}"):
            return None
        response = open_response(answer, request_id, _RESPONSES, read_rpc_error)
        if response.result is UNSET:
            raise bad_answer(answer, "a stream event is no JSON-RPC response")
        return self._results.event(answer, response.result) if response.result else None
