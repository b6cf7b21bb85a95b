"""The server half: ``a2a.v1.A2AService``, as a form for the service that carries it.

Spec: v0.3 §4, §7.1, §7.11, §8.1, V03-01, V03-06, V03-08, V03-P01, V03-P10.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from dragoman.bindings.dialect import Answer, GuestCall
from dragoman.bindings.grpc.form import EventSource, ServerForm
from dragoman.bindings.grpc.messages import Messages
from dragoman.bindings.grpc.metadata import OLD_EXTENSIONS, VERSION
from dragoman.bindings.grpc.status import EncodedStatus, encode_status
from dragoman.compat.v03 import types as v03
from dragoman.compat.v03.cards import down_card
from dragoman.compat.v03.failures import grpc_status
from dragoman.compat.v03.grpc.messages import RAW, TEXT
from dragoman.compat.v03.grpc.schema import SERVICE
from dragoman.compat.v03.server_calls import (
    AboutTask,
    DeletePush,
    ExtendedCard,
    Form,
    GetPush,
    ListPush,
    Resubscribe,
    Send,
    SetPush,
    Stream,
)
from dragoman.compat.v03.upward import (
    up_cancel,
    up_create_push,
    up_delete_push,
    up_get,
    up_get_push,
    up_list_push,
    up_send,
    up_subscribe,
)
from dragoman.errors import (
    A2AError,
    ExtendedAgentCardNotConfiguredError,
    UnsupportedOperationError,
    VersionNotSupportedError,
)
from dragoman.http.sse import SseFraming
from dragoman.model import CANCEL_TASK, GET_TASK, AgentCard, WireMessage
from dragoman.ports.operations import CURRENT_VERSION, CallContext, EventStream, Operations
from dragoman.protocol.versions import parse_version

WIRE: Final = "0.3"

_HEAD: Final = ((VERSION, WIRE),)
"""Native clients do not look at it; ours see by it that a stream is open."""


class V03ServerForm(ServerForm):
    """What protocol 0.3 says over gRPC. ``raw_bytes``: write the content of files as it is, and read it so, instead of
    as base64 text."""

    def __init__(self, *, raw_bytes: bool = False) -> None:
        super().__init__(SERVICE, {name: name in _STREAMS for name in _METHODS})
        self._messages = RAW if raw_bytes else TEXT
        self._writing = _Writing(self._messages, "grpc-raw" if raw_bytes else "grpc")

    def adopt(self, context: CallContext) -> None:
        """See :class:`~dragoman.bindings.grpc.form.ServerForm`. Spec: §8.1."""
        _check_version(context.version)
        context.version, context.wire = CURRENT_VERSION, WIRE
        context.last_event_id = None  # its events are numbered by nobody

    def answers_to(self, path: str) -> bool:
        """See :class:`~dragoman.bindings.grpc.form.ServerForm`."""
        return path.startswith(f"/{SERVICE}/")

    async def call(self, method: str, data: bytes, operations: Operations, context: CallContext) -> bytes:
        """See :class:`~dragoman.bindings.grpc.form.ServerForm`."""
        _, answer = await self._read(method, data).run(operations, context)
        return answer

    async def stream(self, method: str, data: bytes, operations: Operations, context: CallContext) -> EventSource:
        """See :class:`~dragoman.bindings.grpc.form.ServerForm`."""
        return _Events(await self._read(method, data).open(operations, context))

    def head(self, context: CallContext) -> tuple[tuple[str, str], ...]:
        """See :class:`~dragoman.bindings.grpc.form.ServerForm`. Spec: §4.4, §7.10."""
        return (*_HEAD, (OLD_EXTENSIONS, ", ".join(context.activated))) if context.activated else _HEAD

    def status(self, error: A2AError) -> EncodedStatus:
        """See :class:`~dragoman.bindings.grpc.form.ServerForm`. Spec: §4.5."""
        code, text = grpc_status(error)
        return encode_status(error, code_name=code, text=text)

    def _read(self, method: str, data: bytes) -> GuestCall:
        kind, make = _METHODS[method]
        return make(self._writing, self._messages.decode_whole(kind, data))


def _check_version(version: str) -> None:
    """The service's path says which generation this is; a version that says otherwise contradicts it."""
    if not version.strip() or parse_version(version) == parse_version(WIRE):
        return
    shown = version if len(version) <= 32 and version.isprintable() else "that"
    raise VersionNotSupportedError(
        f"A2A version {shown} is not that of the service {SERVICE}, which is {WIRE}",
        metadata={"supportedVersions": WIRE},
    )


class _Writing(Form):
    """Answers and events in protobuf. There are no HTTP statuses, and nothing is around an event."""

    framing = SseFraming()

    def __init__(self, messages: Messages, key: str) -> None:
        self._messages = messages
        self.key = key

    def write(self, message: WireMessage) -> Answer:
        return 0, self._messages.encode(message)

    def write_nothing(self) -> Answer:
        return 0, b""

    def write_card(self, card: AgentCard) -> Answer:
        found = down_card(card)
        if found is None:
            raise ExtendedAgentCardNotConfiguredError
        return self.write(found)

    def write_event(self, event: v03.StreamResponse) -> bytes:
        return self._messages.encode(event)

    def write_stream_error(self, error: A2AError) -> bytes:
        raise NotImplementedError("a gRPC stream ends with a status")


class _Events(EventSource):
    """The events of a stream, whose ``json`` is what the form wrote."""

    def __init__(self, stream: EventStream) -> None:
        self._stream = stream

    async def next_messages(self) -> list[bytes]:
        return [event.json for event in await self._stream.next_batch()]

    async def aclose(self) -> None:
        await self._stream.aclose()


# The methods: what each takes, and the call that it is.


def _get_push(form: Form, request: v03.GetTaskPushNotificationConfigRequest) -> GuestCall:
    wanted = up_get_push(request)
    return GetPush(form, wanted.task_id, wanted.id)


def _delete_push(form: Form, request: v03.DeleteTaskPushNotificationConfigRequest) -> GuestCall:
    unwanted = up_delete_push(request)
    return DeletePush(form, unwanted.task_id, unwanted.id)


def _list_tasks(form: Form, request: v03.ListTasksRequest) -> GuestCall:
    raise UnsupportedOperationError("Tasks cannot be listed in protocol 0.3", metadata={"operation": "ListTasks"})


_METHODS: Final[Mapping[str, tuple[type[WireMessage], Callable[[Form, Any], GuestCall]]]] = {
    "SendMessage": (v03.SendMessageRequest, lambda form, r: Send(form, up_send(r, rpc=False))),
    "SendStreamingMessage": (v03.SendMessageRequest, lambda form, r: Stream(form, up_send(r, rpc=False))),
    "GetTask": (v03.GetTaskRequest, lambda form, r: AboutTask(form, GET_TASK, up_get(r))),
    "ListTasks": (v03.ListTasksRequest, _list_tasks),
    "CancelTask": (v03.CancelTaskRequest, lambda form, r: AboutTask(form, CANCEL_TASK, up_cancel(r))),
    "TaskSubscription": (v03.TaskSubscriptionRequest, lambda form, r: Resubscribe(form, up_subscribe(r).id)),
    "CreateTaskPushNotificationConfig": (
        v03.CreateTaskPushNotificationConfigRequest,
        lambda form, r: SetPush(form, up_create_push(r)),
    ),
    "GetTaskPushNotificationConfig": (v03.GetTaskPushNotificationConfigRequest, _get_push),
    "ListTaskPushNotificationConfig": (
        v03.ListTaskPushNotificationConfigRequest,
        lambda form, r: ListPush(form, up_list_push(r).task_id),
    ),
    "GetAgentCard": (v03.GetAgentCardRequest, lambda form, r: ExtendedCard(form)),
    "DeleteTaskPushNotificationConfig": (v03.DeleteTaskPushNotificationConfigRequest, _delete_push),
}
_STREAMS: Final = frozenset({"SendStreamingMessage", "TaskSubscription"})
