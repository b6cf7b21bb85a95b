"""The client half: calls of ``a2a.v1.A2AService``, as a form for the transport that carries them.

Spec: v0.3 §4, §7.1, §7.2, §7.6, §7.11, V03-01, V03-04, V03-08.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from dragoman.bindings.grpc.client_form import ClientForm, EventReader, Pairs
from dragoman.bindings.grpc.library import grpc
from dragoman.bindings.grpc.messages import Messages
from dragoman.bindings.grpc.metadata import OLD_EXTENSIONS, encode_context, read_activated
from dragoman.bindings.grpc.status import read_answer
from dragoman.compat.v03 import types as v03
from dragoman.compat.v03.cards import up_card
from dragoman.compat.v03.client_requests import Events
from dragoman.compat.v03.downward import (
    down_cancel,
    down_create_push,
    down_delete_push,
    down_get,
    down_get_push,
    down_list_push,
    down_send,
    down_subscribe,
)
from dragoman.compat.v03.failures import read_grpc_error
from dragoman.compat.v03.grpc.messages import RAW, TEXT
from dragoman.compat.v03.grpc.schema import SERVICE
from dragoman.compat.v03.upward import up_list_push_response, up_push_config, up_send_response, up_task
from dragoman.errors import A2AError, UnsupportedOperationError
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
    Operation,
    WireMessage,
)
from dragoman.ports.operations import CallContext, Event

WIRE: Final = "0.3"


class _Method(msgspec.Struct, frozen=True):
    """How an operation is said in 0.3: ``down`` makes the request, ``up`` takes the answer, of type ``response``."""

    name: str
    down: Callable[[Any], WireMessage]
    response: type[WireMessage]
    up: Callable[[Any], WireMessage]


class V03ClientForm(ClientForm):
    """What protocol 0.3 says over gRPC. ``raw_bytes``: the peer has the content of files as it is, not in base64."""

    def __init__(self, *, raw_bytes: bool = False) -> None:
        self._messages = RAW if raw_bytes else TEXT

    def path(self, op: Operation) -> str:
        """See :class:`~dragoman.bindings.grpc.client_form.ClientForm`."""
        return f"/{SERVICE}/{_method(op).name}"

    def encode(self, op: Operation, request: msgspec.Struct, tenant: str) -> bytes:
        """See :class:`~dragoman.bindings.grpc.client_form.ClientForm`. Raises UnsupportedOperationError for a tenant,
        InvalidParamsError for an id that a resource name cannot hold."""
        method = _method(op)
        if tenant or getattr(request, "tenant", ""):
            raise _unsupported(op, "a tenant cannot be named")
        return self._messages.encode(method.down(request))

    def decode(self, op: Operation, body: bytes) -> msgspec.Struct:
        """See :class:`~dragoman.bindings.grpc.client_form.ClientForm`."""
        method = _method(op)
        return method.up(self._messages.decode(method.response, body))

    def begin_stream(self, op: Operation) -> EventReader:
        """See :class:`~dragoman.bindings.grpc.client_form.ClientForm`."""
        return _Events(op, self._messages)

    def metadata(self, context: CallContext) -> Pairs:
        """See :class:`~dragoman.bindings.grpc.client_form.ClientForm`. Native servers do not look at the version."""
        spoken = msgspec.structs.replace(context, version=WIRE, last_event_id=None)
        return encode_context(spoken, extensions_key=OLD_EXTENSIONS)

    def activated(self, head: Any) -> tuple[str, ...]:
        """See :class:`~dragoman.bindings.grpc.client_form.ClientForm`."""
        return read_activated(head)

    def error(self, op: Operation, code: grpc.StatusCode, text: str, trailers: Pairs, url: str) -> A2AError:
        """See :class:`~dragoman.bindings.grpc.client_form.ClientForm`."""
        answer, message, details = read_answer(op, text, trailers, url=url)
        return read_grpc_error(answer, code.name, code.value[0], message, details)


class _Events(EventReader):
    """The events of one stream, which mean something only in their order."""

    def __init__(self, op: Operation, messages: Messages) -> None:
        self._messages = messages
        self._events = Events(op)

    def read(self, data: bytes) -> list[Event]:
        found = self._events.up(self._messages.decode(v03.StreamResponse, data))
        self.over = self._events.over
        return [Event(response) for response in found]


def _method(op: Operation) -> _Method:
    method = _METHODS.get(op)
    if method is None:
        raise _unsupported(op, "there is no such operation")
    return method


def _unsupported(op: Operation, why: str) -> UnsupportedOperationError:
    return UnsupportedOperationError(f"The agent speaks A2A 0.3, in which {why}", metadata={"operation": op.name})


def _nothing(message: WireMessage) -> WireMessage:
    return message


def _ask_for_card(request: WireMessage) -> WireMessage:
    return v03.GetAgentCardRequest()


_METHODS: Final[Mapping[Operation, _Method]] = {
    SEND_MESSAGE: _Method("SendMessage", down_send, v03.SendMessageResponse, up_send_response),
    SEND_STREAMING_MESSAGE: _Method("SendStreamingMessage", down_send, v03.StreamResponse, _nothing),
    GET_TASK: _Method("GetTask", down_get, v03.Task, up_task),
    CANCEL_TASK: _Method("CancelTask", down_cancel, v03.Task, up_task),
    SUBSCRIBE_TO_TASK: _Method("TaskSubscription", down_subscribe, v03.StreamResponse, _nothing),
    CREATE_TASK_PUSH_NOTIFICATION_CONFIG: _Method(
        "CreateTaskPushNotificationConfig", down_create_push, v03.TaskPushNotificationConfig, up_push_config
    ),
    GET_TASK_PUSH_NOTIFICATION_CONFIG: _Method(
        "GetTaskPushNotificationConfig", down_get_push, v03.TaskPushNotificationConfig, up_push_config
    ),
    LIST_TASK_PUSH_NOTIFICATION_CONFIGS: _Method(
        "ListTaskPushNotificationConfig",
        down_list_push,
        v03.ListTaskPushNotificationConfigResponse,
        up_list_push_response,
    ),
    DELETE_TASK_PUSH_NOTIFICATION_CONFIG: _Method(
        "DeleteTaskPushNotificationConfig", down_delete_push, v03.Empty, _nothing
    ),
    GET_EXTENDED_AGENT_CARD: _Method("GetAgentCard", _ask_for_card, v03.AgentCard, up_card),
}
