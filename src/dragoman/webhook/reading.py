"""From the body of a notification to an event. Pure.

Senders of 0.3 do not say their version, so the body has to tell: one of ``task``, ``message``, ``statusUpdate`` and
``artifactUpdate`` is of 1.0; a ``kind``, or a bare task or event, of 0.3.

Spec: PUSH-01, AMB-68; 6 of the register of version 0.3.
"""

from __future__ import annotations

from typing import Any

import msgspec

from dragoman.errors import InvalidParamsError
from dragoman.model import StreamResponse, decode_value, decoder_for
from dragoman.ports.operations import CURRENT_VERSION
from dragoman.webhook.dialects import V03, read_older
from dragoman.webhook.notification import Event, unwrap
from dragoman.webhook.refusals import broken

_WRAPPED = frozenset({"task", "message", "statusUpdate", "artifactUpdate", "status_update", "artifact_update"})
_TYPES = frozenset({"application/a2a+json", "application/json"})


def is_json(content_type: str) -> bool:
    """Whether a notification may be of this Content-Type."""
    return content_type.partition(";")[0].strip().lower() in _TYPES


def read_event(body: bytes) -> tuple[Event, str]:
    """The event in a body, and the version that it is of. Raises Refusal."""
    try:
        event = unwrap(decoder_for(StreamResponse).decode(body))
        if event is not None:
            return event, CURRENT_VERSION
    except (msgspec.DecodeError, RecursionError):
        pass  # strict; the lenient way decides
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        raise broken("the body is no JSON") from None
    try:
        return _read(value)
    except (InvalidParamsError, RecursionError) as error:
        raise broken(f"the body is no event: {error}"[:500]) from None


def _read(value: Any) -> tuple[Event, str]:
    wrapped = isinstance(value, dict) and "kind" not in value and not _WRAPPED.isdisjoint(value)
    if wrapped and not _is_of_kind(value):
        return _one(decode_value(StreamResponse, value, lenient_required=True)), CURRENT_VERSION
    return _one(read_older(value)), V03


def _is_of_kind(value: dict[str, Any]) -> bool:
    """Whether what is wrapped is of 0.3 all the same: some senders put the one into the other."""
    return any(isinstance(value.get(name), dict) and "kind" in value[name] for name in _WRAPPED)


def _one(response: StreamResponse) -> Event:
    event = unwrap(response)
    if event is None:
        raise broken("the body does not hold exactly one event")
    return event
