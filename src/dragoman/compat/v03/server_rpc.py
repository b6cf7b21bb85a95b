"""JSON-RPC of 0.3, the server's half: params in, kind-JSON out.

Spec: 0.3 register, sections 2.1 to 2.6.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from dragoman.bindings.dialect import Answer
from dragoman.bindings.status import rpc_http_status
from dragoman.compat.v03 import types as v03
from dragoman.compat.v03.cards import hybrid_card
from dragoman.compat.v03.failures import rpc_error_object
from dragoman.compat.v03.kinds import write_kind
from dragoman.compat.v03.params import read_length, read_metadata, read_object, read_text, read_webhook, required_text
from dragoman.compat.v03.reading import read
from dragoman.compat.v03.server_calls import (
    AboutTask,
    DeletePush,
    ExtendedCard,
    GetPush,
    ListPush,
    Resubscribe,
    Send,
    SetPush,
    Stream,
    V03Call,
)
from dragoman.compat.v03.upward import up_send, up_webhook
from dragoman.errors import A2AError, JSONParseError, MethodNotFoundError
from dragoman.http.sse import SseFraming, encode_sse
from dragoman.model import CANCEL_TASK, GET_TASK, AgentCard, CancelTaskRequest, GetTaskRequest, WireMessage

NULL = b"null"

_encode = msgspec.json.Encoder().encode


class RpcForm:
    """Response objects with kind-JSON, for the request of this ``id`` (JSON text)."""

    key = "kind"

    def __init__(self, request_id: bytes) -> None:
        self._id = request_id
        self.framing = SseFraming(b'{"jsonrpc":"2.0","id":%b,"result":' % request_id, b"}")

    def write(self, message: WireMessage) -> Answer:
        """See :class:`~dragoman.compat.v03.server_calls.Form`."""
        return self._write_result(_encode(write_kind(message)))

    def write_nothing(self) -> Answer:
        """``"result": null``, which must be there. Spec: V03-P19."""
        return self._write_result(NULL)

    def write_card(self, card: AgentCard) -> Answer:
        """See :class:`~dragoman.compat.v03.server_calls.Form`."""
        return self._write_result(_encode(hybrid_card(card)))

    def write_event(self, event: v03.StreamResponse) -> bytes:
        """See :class:`~dragoman.compat.v03.server_calls.Form`."""
        return _encode(write_kind(event))

    def write_stream_error(self, error: A2AError) -> bytes:
        """See :class:`~dragoman.compat.v03.server_calls.Form`."""
        return encode_sse(encode_error(self._id, error)[1])

    def _write_result(self, result: bytes) -> Answer:
        return 200, b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (self._id, result)


def encode_error(request_id: bytes, error: A2AError) -> Answer:
    """HTTP status and response object for an error. A text that is no JSON has no id that could be relied on."""
    if isinstance(error, JSONParseError):
        request_id = NULL
    shown = _encode(rpc_error_object(error))
    return rpc_http_status(error), b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (request_id, shown)


def read_call(method: str, request_id: bytes, params: bytes) -> V03Call:
    """Find the method and read its params. Raises MethodNotFoundError or InvalidParamsError."""
    reader = _READERS.get(method)
    if reader is None:
        raise MethodNotFoundError(f"Method not found: {_ELSEWHERE[method]}" if method in _ELSEWHERE else "")
    return reader(RpcForm(request_id), read_object(params, "params"))


_ELSEWHERE = {
    "tasks/list": "version 0.3 has none that lists tasks; version 1.0 has ListTasks",
    "agent/authenticatedExtendedCard": "it is called agent/getAuthenticatedExtendedCard",
}


def _read_send(form: RpcForm, params: dict[str, Any]) -> V03Call:
    return Send(form, up_send(read(v03.SendMessageRequest, params), rpc=True))


def _read_stream(form: RpcForm, params: dict[str, Any]) -> V03Call:
    return Stream(form, up_send(read(v03.SendMessageRequest, params), rpc=True))


def _read_get(form: RpcForm, params: dict[str, Any]) -> V03Call:
    request = GetTaskRequest(id=required_text(params, "id"), history_length=read_length(params))
    return AboutTask(form, GET_TASK, request)


def _read_cancel(form: RpcForm, params: dict[str, Any]) -> V03Call:
    return AboutTask(
        form, CANCEL_TASK, CancelTaskRequest(id=required_text(params, "id"), metadata=read_metadata(params))
    )


def _read_resubscribe(form: RpcForm, params: dict[str, Any]) -> V03Call:
    return Resubscribe(form, required_text(params, "id"))


def _read_set_push(form: RpcForm, params: dict[str, Any]) -> V03Call:
    task_id = required_text(params, "taskId")
    webhook = read_webhook(params, "pushNotificationConfig")
    return SetPush(form, up_webhook(webhook, task_id=task_id, config_id=task_id))


def _read_get_push(form: RpcForm, params: dict[str, Any]) -> V03Call:
    config_id = read_text(params, "pushNotificationConfigId")
    return GetPush(form, required_text(params, "id"), "" if config_id == "None" else config_id)


def _read_list_push(form: RpcForm, params: dict[str, Any]) -> V03Call:
    return ListPush(form, required_text(params, "id"))


def _read_delete_push(form: RpcForm, params: dict[str, Any]) -> V03Call:
    task_id = required_text(params, "id")
    return DeletePush(form, task_id, read_text(params, "pushNotificationConfigId") or task_id)


def _read_extended_card(form: RpcForm, params: dict[str, Any]) -> V03Call:
    return ExtendedCard(form)


_READERS: Mapping[str, Callable[[RpcForm, dict[str, Any]], V03Call]] = {
    "message/send": _read_send,
    "message/stream": _read_stream,
    "tasks/get": _read_get,
    "tasks/cancel": _read_cancel,
    "tasks/resubscribe": _read_resubscribe,
    "tasks/pushNotificationConfig/set": _read_set_push,
    "tasks/pushNotificationConfig/get": _read_get_push,
    "tasks/pushNotificationConfig/list": _read_list_push,
    "tasks/pushNotificationConfig/delete": _read_delete_push,
    "agent/getAuthenticatedExtendedCard": _read_extended_card,
}

METHODS = frozenset(_READERS)
STREAMING = frozenset({"message/stream", "tasks/resubscribe"})
