"""HTTP+JSON of 0.3, the server's half: paths below ``/v1``, in the three kinds of JSON that peers write.

A is the JSON of the protobuf messages, B that of JSON-RPC in wrappers, C the same without wrappers. All are read. A
caller who writes unmistakably as in B is answered so, everybody else in A, unless the operator has chosen a form.

Spec: 0.3 register, sections 3.1 to 3.5; its decision 4.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import parse_qsl, unquote

import msgspec

from dragoman.bindings.codec import JSON
from dragoman.bindings.dialect import Answer, GuestRoute
from dragoman.compat.v03 import types as v03
from dragoman.compat.v03.cards import hybrid_card
from dragoman.compat.v03.failures import rest_error
from dragoman.compat.v03.kinds import write_kind
from dragoman.compat.v03.params import read_length, read_metadata, read_object, read_text, read_webhook
from dragoman.compat.v03.protojson import write_proto
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
from dragoman.errors import (
    A2AError,
    InvalidParamsError,
    MethodNotAllowedError,
    MethodNotFoundError,
    UnsupportedMediaTypeError,
    UnsupportedOperationError,
)
from dragoman.http.sse import SseFraming
from dragoman.model import (
    CANCEL_TASK,
    GET_TASK,
    AgentCard,
    CancelTaskRequest,
    GetTaskRequest,
    SendMessageRequest,
    WireMessage,
)

PREFIX = "/v1"

_MOST_PARAMETERS = 100
_FRAMING = SseFraming()
_encode = msgspec.json.Encoder().encode


class RestForm:
    """Bodies in the form ``"A"``, ``"B"`` or ``"C"``; ``raw_bytes``: in A, the content of files as base64 once."""

    framing = _FRAMING

    def __init__(self, form: str, *, raw_bytes: bool = False) -> None:
        self._form = form
        self._raw_bytes = raw_bytes
        # A bare object with kind is the result of JSON-RPC, too.
        self.key = "kind" if form == "C" else f"{form}{'-raw' if raw_bytes else ''}"

    def write(self, message: WireMessage) -> Answer:
        """See :class:`~dragoman.compat.v03.server_calls.Form`."""
        return 200, _encode(self._value(message))

    def write_nothing(self) -> Answer:
        """See :class:`~dragoman.compat.v03.server_calls.Form`."""
        return 204, b""

    def write_card(self, card: AgentCard) -> Answer:
        """The card in the one form that readers of all dialects take."""
        return 200, _encode(hybrid_card(card))

    def write_event(self, event: v03.StreamResponse) -> bytes:
        """See :class:`~dragoman.compat.v03.server_calls.Form`."""
        return _encode(self._value(event))

    def write_stream_error(self, error: A2AError) -> bytes:
        """An event that is called error, since some readers look at that, with the body that the error has."""
        return b"event: error\ndata: %b\n\n" % encode_error(error)[1]

    def _value(self, message: WireMessage) -> Any:
        if self._form == "A":
            value = write_proto(message, bytes_as_text=not self._raw_bytes)
            if isinstance(message, v03.ListTaskPushNotificationConfigResponse):
                value.setdefault("configs", [])
            return value
        value = write_kind(message)
        return _wrapped(message, value) if self._form == "B" else value


def _wrapped(message: WireMessage, value: Any) -> Any:
    """An answer or event under the name of the member of its oneof."""
    if isinstance(message, v03.SendMessageResponse):
        return {"task" if message.task is not None else "message": value}
    if isinstance(message, v03.StreamResponse):
        return {_member_of(message): value}
    return value


def _member_of(event: v03.StreamResponse) -> str:
    if event.task is not None:
        return "task"
    if event.msg is not None:
        return "message"
    return "statusUpdate" if event.status_update is not None else "artifactUpdate"


def encode_error(error: A2AError) -> Answer:
    """HTTP status and body for an error. Spec: 3.5."""
    status, value = rest_error(error)
    return status, _encode(value)


class Forms:
    """Which form an answer has; ``pinned`` is the operator's choice, or empty. ``raw_bytes``: as in RestForm."""

    def __init__(self, pinned: str = "", *, raw_bytes: bool = False) -> None:
        self.raw_bytes = raw_bytes
        self._forms = {form: RestForm(form, raw_bytes=raw_bytes) for form in ("A", "B", "C")}
        self._pinned = pinned

    def for_body(self, body: dict[str, Any]) -> RestForm:
        """The form for a request with this body, which may be empty."""
        return self._forms[self._pinned or ("B" if _is_kind_json(body) else "A")]

    @property
    def usual(self) -> RestForm:
        """The form for a request without a body."""
        return self._forms[self._pinned or "A"]


def _is_kind_json(body: dict[str, Any]) -> bool:
    """Whether a body is unmistakably written with ``kind`` and lower-case words."""
    message = body.get("message")
    if not isinstance(message, dict):
        return _is_webhook_by_ids(body)
    if "content" in message or str(message.get("role")).startswith("ROLE_"):
        return False
    return message.get("kind") == "message" or message.get("role") in ("user", "agent")


def _is_webhook_by_ids(body: dict[str, Any]) -> bool:
    return isinstance(body.get("taskId"), str) and isinstance(body.get("pushNotificationConfig"), dict)


# Routes.

Read = Callable[[Forms, list[str], dict[str, Any], dict[str, Any]], V03Call]
"""Makes a call of the forms, the ids in the path, the query and the body."""


class _Route(GuestRoute):
    def __init__(self, read_request: Read, ids: list[str], forms: Forms, *, takes_body: bool) -> None:
        self._read = read_request
        self._ids = ids
        self._forms = forms
        self.takes_body = takes_body

    def read(self, query: str, body: bytes) -> V03Call:
        return self._read(self._forms, self._ids, _read_query(query), read_object(body, "body"))


def match_route(forms: Forms, method: str, path: str, content_type: str = "") -> GuestRoute:
    """See :meth:`~dragoman.bindings.dialect.Dialect.match_route`."""
    place, ids = _find(path)
    reads = _PLACES.get(place)
    if reads is None:
        raise MethodNotFoundError("There is no such path")
    found = reads.get(method)
    if found is None:
        raise MethodNotAllowedError(metadata={"allow": ", ".join(sorted({*reads, "OPTIONS"}))})
    if method == "POST":
        _check_content_type(content_type)
    return _Route(found, ids, forms, takes_body=method == "POST")


def _find(path: str) -> tuple[str, list[str]]:
    """The name of a place and the ids in its path. The name is empty when there is no such place."""
    segments = path.removeprefix(PREFIX).split("/")[1:]
    match segments:
        case ["tasks", task] if task:
            task_id, colon, verb = task.rpartition(":")
            if colon and task_id and verb in ("cancel", "subscribe"):
                return f"/tasks/*:{verb}", [unquote(task_id)]
            return "/tasks/*", [unquote(task)]
        case ["tasks", task, "pushNotificationConfigs"] if task:
            return "/tasks/*/configs", [unquote(task)]
        case ["tasks", task, "pushNotificationConfigs", config] if task and config:
            return "/tasks/*/configs/*", [unquote(task), unquote(config)]
        case [one] if one in ("message:send", "message:stream", "card", "tasks"):
            return f"/{one}", []
    return "", []


def _check_content_type(value: str) -> None:
    kind = value.partition(";")[0].strip().lower()
    if kind and kind != JSON and not kind.endswith(("+json", "/json")):
        raise UnsupportedMediaTypeError(f"The Content-Type must be {JSON}")


def _read_query(query: str) -> dict[str, Any]:
    try:
        return dict(parse_qsl(query, keep_blank_values=True, max_num_fields=_MOST_PARAMETERS)) if query else {}
    except ValueError:
        raise InvalidParamsError("The query has too many parameters") from None


def _read_send(forms: Forms, ids: list[str], query: dict[str, Any], body: dict[str, Any]) -> V03Call:
    return Send(forms.for_body(body), _read_message(forms, body))


def _read_stream(forms: Forms, ids: list[str], query: dict[str, Any], body: dict[str, Any]) -> V03Call:
    return Stream(forms.for_body(body), _read_message(forms, body))


def _read_message(forms: Forms, body: dict[str, Any]) -> SendMessageRequest:
    return up_send(read(v03.SendMessageRequest, body, raw_bytes=forms.raw_bytes), rpc=False)


def _read_get(forms: Forms, ids: list[str], query: dict[str, Any], body: dict[str, Any]) -> V03Call:
    return AboutTask(forms.usual, GET_TASK, GetTaskRequest(id=ids[0], history_length=read_length(query)))


def _read_cancel(forms: Forms, ids: list[str], query: dict[str, Any], body: dict[str, Any]) -> V03Call:
    return AboutTask(forms.usual, CANCEL_TASK, CancelTaskRequest(id=ids[0], metadata=read_metadata(body)))


def _read_subscribe(forms: Forms, ids: list[str], query: dict[str, Any], body: dict[str, Any]) -> V03Call:
    return Resubscribe(forms.usual, ids[0])


def _read_set_push(forms: Forms, ids: list[str], query: dict[str, Any], body: dict[str, Any]) -> V03Call:
    """Five shapes of the body are in use; the task of the path always wins. Spec: 3.3."""
    config = body["config"] if isinstance(body.get("config"), dict) else body
    nested = next((name for name in ("pushNotificationConfig", "push_notification_config") if name in config), "")
    webhook = read_webhook(config, nested)
    config_id = read_text(body, "configId") or read_text(query, "configId") or _last_segment(config)
    return SetPush(forms.for_body(body), up_webhook(webhook, task_id=ids[0], config_id=config_id or ids[0]))


def _last_segment(config: dict[str, Any]) -> str:
    """The id at the end of a resource name, empty when there is none."""
    _, _, found = read_text(config, "name").partition("/pushNotificationConfigs/")
    return "" if found == "None" else found


def _read_get_push(forms: Forms, ids: list[str], query: dict[str, Any], body: dict[str, Any]) -> V03Call:
    return GetPush(forms.usual, ids[0], "" if ids[1] == "None" else ids[1])


def _read_list_push(forms: Forms, ids: list[str], query: dict[str, Any], body: dict[str, Any]) -> V03Call:
    return ListPush(forms.usual, ids[0])


def _read_delete_push(forms: Forms, ids: list[str], query: dict[str, Any], body: dict[str, Any]) -> V03Call:
    return DeletePush(forms.usual, ids[0], ids[0] if ids[1] == "None" else ids[1])


def _read_card(forms: Forms, ids: list[str], query: dict[str, Any], body: dict[str, Any]) -> V03Call:
    return ExtendedCard(forms.usual)


def _refuse_list(forms: Forms, ids: list[str], query: dict[str, Any], body: dict[str, Any]) -> V03Call:
    raise UnsupportedOperationError(
        "Version 0.3 has nothing that lists tasks; version 1.0 has: GET /tasks", metadata={"operation": "ListTasks"}
    )


def _readable(read_request: Read) -> dict[str, Read]:
    return {"GET": read_request, "HEAD": read_request}


_PLACES: Mapping[str, Mapping[str, Read]] = {
    "/message:send": {"POST": _read_send},
    "/message:stream": {"POST": _read_stream},
    "/card": _readable(_read_card),
    "/tasks": _readable(_refuse_list),
    "/tasks/*": _readable(_read_get),
    "/tasks/*:cancel": {"POST": _read_cancel},
    "/tasks/*:subscribe": {"GET": _read_subscribe, "POST": _read_subscribe},
    "/tasks/*/configs": {**_readable(_read_list_push), "POST": _read_set_push},
    "/tasks/*/configs/*": {**_readable(_read_get_push), "DELETE": _read_delete_push},
}
