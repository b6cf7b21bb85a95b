"""What a task's first request said beside its message: kept with the task, for runs after the first one.

Theory. A handler that is run again, after a restart or because it was parked, must find what its first run found. The
message is in the history; metadata, accepted output modes and active extensions of the request are not, so they are
kept with the task, as a value that stores do not look into. Most requests have none of them, and nothing is kept.
"""

from __future__ import annotations

from typing import Any

import msgspec

from dragoman.model import Message, SendMessageConfiguration, SendMessageRequest
from dragoman.ports.operations import CallContext


class _Beginning(msgspec.Struct, omit_defaults=True):
    metadata: dict[str, Any] | None = None
    accepted_output_modes: list[str] = []
    extensions: tuple[str, ...] = ()


_DECODER = msgspec.json.Decoder(_Beginning)
_NOTHING = _Beginning()


def encode_beginning(request: SendMessageRequest, call: CallContext) -> bytes:
    """What is to be kept of a request; empty for one that has nothing beside its message."""
    configuration = request.configuration
    modes = configuration.accepted_output_modes if configuration is not None else []
    if not (request.metadata or modes or call.activated):
        return b""
    return msgspec.json.encode(_Beginning(request.metadata, modes, call.activated))


def begin_again(kept: bytes, message: Message, call: CallContext) -> tuple[SendMessageRequest, CallContext]:
    """The first request of a task, and its call as far as it was kept; caller and parameters are those of ``call``."""
    beginning = _DECODER.decode(kept) if kept else _NOTHING
    modes = beginning.accepted_output_modes
    request = SendMessageRequest(
        message=message,
        metadata=beginning.metadata,
        configuration=SendMessageConfiguration(accepted_output_modes=modes) if modes else None,
    )
    return request, CallContext(
        version=call.version,
        extensions=call.extensions,
        tenant=call.tenant,
        caller=call.caller,
        parameters=call.parameters,
        activated=beginning.extensions,
    )
