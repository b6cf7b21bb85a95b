"""From what a caller says to the request that goes out. Pure: ids are passed in, inputs are never changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypedDict

from msgspec.structs import replace

from dragoman.model import (
    Message,
    Part,
    Role,
    SendMessageConfiguration,
    SendMessageRequest,
    Task,
    TaskPushNotificationConfig,
)
from dragoman.protocol.lifecycle import is_terminal

Content = str | bytes | dict[str, Any] | Part | Message | Sequence[str | bytes | dict[str, Any] | Part]
"""What can be said: text, bytes (a file), a dict (JSON data), a Part, several of these, or a whole Message."""


class SendOptions(TypedDict, total=False):
    """How a message is sent: keyword arguments of ``send``, ``stream`` and ``run``.

    * ``task``: the task to go on with. One that is over takes no more messages: then a new task is asked for in the
      same context, with a reference to it (Spec: CTX-16, CTX-20, AMB-11);
    * ``task_id``, ``context_id``: the same by ids, taken as they are (Spec: CTX-13);
    * ``history_length``: how many messages of the history to get back, 0 for none (Spec: SEND-14);
    * ``accepted_output_modes``: media types that the caller can take (Spec: SEND-16);
    * ``metadata``: of the request; ``message_metadata``: of the message;
    * ``reference_task_ids``: related tasks (Spec: CTX-17);
    * ``push``: a webhook for the task; its ``task_id`` is left out (Spec: SEND-17);
    * ``message_id``: the id of the message; default a fresh one (Spec: AMB-14).
    """

    task: Task | None
    task_id: str
    context_id: str
    history_length: int | None
    accepted_output_modes: Sequence[str]
    metadata: Mapping[str, Any] | None
    message_metadata: Mapping[str, Any] | None
    reference_task_ids: Sequence[str]
    push: TaskPushNotificationConfig | None
    message_id: str


def to_parts(content: Content) -> list[Part]:
    """The parts for some content. Raises TypeError for what has no meaning as a part, ValueError when there is none."""
    if isinstance(content, Message):
        return list(content.parts)
    if isinstance(content, list | tuple):
        if not content:
            raise ValueError("a message needs at least one part")
        return [_to_part(item) for item in content]
    return [_to_part(content)]


def _to_part(item: object) -> Part:
    if isinstance(item, Part):
        return item
    if isinstance(item, str):
        return Part(text=item)
    if isinstance(item, bytes | bytearray | memoryview):
        return Part(raw=bytes(item), media_type="application/octet-stream")
    if isinstance(item, dict):
        return Part(data=item, media_type="application/json")
    raise TypeError(f"{type(item).__name__} is no content: give str, bytes, dict or Part (Part(data=…) for other JSON)")


def compose(
    content: Content, options: SendOptions, *, new_id: Callable[[], str], extensions: Sequence[str] = ()
) -> SendMessageRequest:
    """The request for a message, without configuration of waiting.

    A Message given as content keeps what it says; options that are set win over it. Never invents a context id
    (Spec: CTX-05). Raises TypeError or ValueError for bad content.
    """
    message = _compose_message(content, options, new_id)
    configuration = _compose_configuration(options)
    metadata = options.get("metadata")
    return SendMessageRequest(
        message=message, configuration=configuration, metadata=dict(metadata) if metadata is not None else None
    )


def _compose_message(content: Content, options: SendOptions, new_id: Callable[[], str]) -> Message:
    given = content if isinstance(content, Message) else Message(message_id="", role=Role.USER, parts=[])
    task_id, context_id, references = _where(options)
    metadata = options.get("message_metadata")
    return replace(
        given,
        message_id=options.get("message_id") or given.message_id or new_id(),
        parts=to_parts(content),
        task_id=task_id or given.task_id,
        context_id=context_id or given.context_id,
        reference_task_ids=list(dict.fromkeys([*given.reference_task_ids, *references])),
        extensions=list(given.extensions),
        metadata=dict(metadata) if metadata is not None else given.metadata,
    )


def _where(options: SendOptions) -> tuple[str, str, Sequence[str]]:
    """Task id, context id and references that the options stand for."""
    task_id, context_id = options.get("task_id", ""), options.get("context_id", "")
    references = options.get("reference_task_ids", ())
    task = options.get("task")
    if task is None:
        return task_id, context_id, references
    context_id = context_id or task.context_id
    if is_terminal(task.status.state):
        return task_id, context_id, [task.id, *references]
    return task_id or task.id, context_id, references


def _compose_configuration(options: SendOptions) -> SendMessageConfiguration | None:
    push = options.get("push")
    history_length = options.get("history_length")
    modes = options.get("accepted_output_modes", ())
    if push is None and history_length is None and not modes:
        return None
    return SendMessageConfiguration(
        accepted_output_modes=list(modes),
        task_push_notification_config=replace(push, task_id="") if push is not None else None,
        history_length=history_length,
    )


def without_waiting(request: SendMessageRequest) -> SendMessageRequest:
    """The same request, to be answered as soon as the task exists. Spec: SEND-10."""
    configuration = request.configuration or SendMessageConfiguration()
    return replace(request, configuration=replace(configuration, return_immediately=True))
