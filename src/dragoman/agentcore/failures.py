"""From what was read off the wire to the exception that it is. Pure.

The HTTP status is looked at first, since a 401 of the service bears the code of *task not found*; then the code,
whatever the status; then the status alone. What came with 200 and a code of the protocol is the agent's own word and
stays as it is.

Spec: AC-C-40, AC-C-41, AC-C-43, AC-C-51, AC-C-60, AC-C-97; section 3.2 of the register.
"""

from __future__ import annotations

from typing import Any

import msgspec

from dragoman.agentcore.errors import (
    AccessDenied,
    AgentCoreError,
    AgentFailed,
    RequestRejected,
    RuntimeNotFound,
    ServiceError,
    SessionBusy,
    SessionConflict,
    Throttled,
)
from dragoman.errors import A2AError, ClientError, DragomanError, ErrorOrigin

BUSY_TEXT = "session operation in progress"
ERROR_TYPE = "x-amzn-errortype"
_KEPT_TEXT = 1000

_BY_CODE: dict[int, type[AgentCoreError]] = {
    -32051: RuntimeNotFound,
    -32052: RequestRejected,
    -32053: Throttled,
    -32054: SessionConflict,
    -32055: AgentFailed,
}
_BY_STATUS: dict[int, type[AgentCoreError]] = {
    400: RequestRejected,
    402: Throttled,
    404: RuntimeNotFound,
    409: SessionConflict,
    424: AgentFailed,
    429: Throttled,
}


def service_error(error: DragomanError, *, safe: bool) -> AgentCoreError | None:
    """The service's error that an error of the client stands for, None when it is none.

    ``safe``: whether the call has no side effects, so that it may be repeated after a failure. A 401 is not read here:
    it takes further questions (:class:`~dragoman.agentcore.errors.AuthenticationRequired`).
    """
    if isinstance(error, AgentCoreError) or not isinstance(error, A2AError) or error.origin is None:
        return None
    origin = error.origin
    kind = _kind(error, origin)
    if kind is None:
        return None
    return _make(kind, _text(error, origin), origin, error.retry_after, safe=safe)


def _kind(error: A2AError, origin: ErrorOrigin) -> type[AgentCoreError] | None:
    status = origin.status or 200
    if status == 403:
        return AccessDenied
    kind = _BY_CODE.get(origin.code or 0)
    if kind is None and status >= 400:
        kind = _BY_STATUS.get(status, ServiceError if status >= 500 else RequestRejected)
    if kind is SessionConflict and _is_busy(error, origin):
        return SessionBusy
    return kind


def _is_busy(error: A2AError, origin: ErrorOrigin) -> bool:
    """Whether a conflict passes by itself. The two differ by their text only. Spec: AC-C-51."""
    named = origin.headers.get(ERROR_TYPE, "").partition(":")[0].rpartition("#")[2]
    return error.message.lstrip().lower().startswith(BUSY_TEXT) or named == "RetryableConflictException"


def _make(
    kind: type[AgentCoreError], text: str, origin: ErrorOrigin, retry_after: float | None, *, safe: bool
) -> AgentCoreError:
    if kind is Throttled:
        return Throttled(text, origin=origin, retry_after=retry_after)
    if kind is ServiceError:
        return ServiceError(text, origin=origin, retry_after=retry_after, retryable=safe)
    if kind is AgentFailed:
        return AgentFailed(text, origin=origin, retryable=safe)
    return kind(text, origin=origin)


def _text(error: A2AError, origin: ErrorOrigin) -> str:
    """What the service said, in whatever form it said it."""
    text = body_text(origin.body) or error.message
    said = "".join(c if c.isprintable() else " " for c in text[:_KEPT_TEXT])
    return said.strip() or f"HTTP {origin.status}"


def body_text(body: bytes) -> str:
    """The message in a JSON body of the service: JSON-RPC's, or its own plain form; else empty."""
    value = _object(body)
    holders = [inner, value] if isinstance(inner := value.get("error"), dict) else [value]
    found = (holder.get(name) for holder in holders for name in ("message", "Message"))
    return next((text for text in found if isinstance(text, str) and text), "")


def body_code(body: bytes) -> int | None:
    """The JSON-RPC code in a body, if there is one."""
    error = _object(body).get("error")
    code = error.get("code") if isinstance(error, dict) else None
    return code if isinstance(code, int) else None


def _object(body: bytes) -> dict[str, Any]:
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def note(error: DragomanError, *, session_id: str, attempts: int) -> None:
    """Keep with an error in which session and how often the call was made. Spec: AC-C-43."""
    if not isinstance(error, A2AError | ClientError):
        return
    if error.origin is None:
        error.origin = ErrorOrigin(url=getattr(error, "url", ""))
    error.origin.session_id = session_id
    error.origin.attempts = attempts
