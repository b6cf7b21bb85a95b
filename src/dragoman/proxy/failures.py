"""What the caller of a proxy is told when the call behind it fails.

What the agent answered goes on as it is. What only our client knows is told without addresses or causes, which are the
operator's business and in the log: that the agent could not be asked, and may be asked again; or that nobody knows
whether it took the request, so that a repeat may do the work twice.

Spec: ERR-11, ERR-13, ERR-18, AMB-35, AMB-37.
"""

from __future__ import annotations

import functools
import logging
from typing import cast

from dragoman.errors import (
    A2AError,
    ClientError,
    ConnectionLostError,
    DragomanError,
    InternalError,
    InvalidAgentResponseError,
    RemoteError,
    RequestTimeoutError,
    StreamInterruptedError,
    UnavailableError,
)
from dragoman.model import (
    CREATE_TASK_PUSH_NOTIFICATION_CONFIG,
    SEND_MESSAGE,
    SEND_STREAMING_MESSAGE,
    Operation,
)

UNREACHABLE = "The agent behind this server cannot be reached"
TOO_SLOW = "The agent behind this server did not answer in time"
STREAM_LOST = "The stream from the agent behind this server was lost; the task may go on"
UNKNOWN_OUTCOME = "The agent behind this server was lost before it answered; it may have taken the request"

AGAIN = 1.0
"""Seconds after which a repeat makes sense. In a stream over JSON-RPC it also tells what passes from what does not."""

_log = logging.getLogger("dragoman.proxy")

# What does something each time that it is asked for.
_UNREPEATABLE = (SEND_MESSAGE, SEND_STREAMING_MESSAGE, CREATE_TASK_PUSH_NOTIFICATION_CONFIG)


def told(error: DragomanError, op: Operation) -> A2AError:
    """The error to tell the caller; raise it from the one it stands for."""
    if isinstance(error, ClientError):
        _log.warning("%s: %s: %s", op.name, type(error).__name__, error)
        return _neutral(error, op)
    if isinstance(error, RemoteError):
        return _passed_on(error)
    if isinstance(error, InvalidAgentResponseError) and not _is_the_agents_own(error):
        _log.warning("%s: %s", op.name, error)
        return InvalidAgentResponseError()
    if isinstance(error, A2AError):
        return error
    _log.error("%s failed", op.name, exc_info=error)
    return InternalError()


def _neutral(error: ClientError, op: Operation) -> A2AError:
    if isinstance(error, StreamInterruptedError):
        return UnavailableError(STREAM_LOST, retry_after=AGAIN)
    if isinstance(error, ConnectionLostError | RequestTimeoutError) and op in _UNREPEATABLE:
        return InternalError(UNKNOWN_OUTCOME)
    return UnavailableError(TOO_SLOW if isinstance(error, RequestTimeoutError) else UNREACHABLE, retry_after=AGAIN)


def _is_the_agents_own(error: InvalidAgentResponseError) -> bool:
    """Whether the agent said so, rather than our client of what the agent said."""
    origin = error.origin
    return origin is not None and (origin.reason == error.reason or origin.code == error.code)


def _passed_on(error: RemoteError) -> A2AError:
    """An error without a class of ours, with the code or status that it came with. Spec: AMB-35."""
    code = status = None
    if error.origin is not None:
        code = error.origin.code if error.origin.code is not None and error.origin.code < 0 else None
        status = error.origin.status if error.origin.status is not None and 400 <= error.origin.status < 600 else None
    return _kind(code or RemoteError.code, status or RemoteError.http_status)(
        error.message,
        metadata=error.metadata,
        violations=error.violations,
        extra_details=error.extra_details,
        retry_after=error.retry_after,
        origin=error.origin,
    )


@functools.lru_cache(maxsize=256)
def _kind(code: int, status: int) -> type[RemoteError]:
    """RemoteError with another row of the table of codes, which is one of classes."""
    return cast(type[RemoteError], type("RemoteError", (RemoteError,), {"code": code, "http_status": status}))
