"""The error tree, and the one table of codes.

Two families under one root. :class:`A2AError` is what the protocol can say: every binding maps its class
variables (JSON-RPC code, gRPC status, HTTP status, reason) and its instance's message and details to its own
form, and the client raises the same classes from what it reads. :class:`ClientError` is what only this side
knows: a connection that failed, a stream that was cut, an answer that cannot be understood.

Spec: §3.3.2, §5.4, ERR-14, ERR-18, ERR-19, ERR-24.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

ERROR_DOMAIN = "a2a-protocol.org"
ERROR_INFO = "type.googleapis.com/google.rpc.ErrorInfo"
BAD_REQUEST = "type.googleapis.com/google.rpc.BadRequest"


class DragomanError(Exception):
    """Root of every error this package raises on purpose."""


class FieldViolation:
    """One field that failed validation.

    ``field`` is its path in wire spelling (``message.parts[0].text``), ``description`` says what is wrong and
    what is allowed. Spec: ERR-08, ERR-16.
    """

    __slots__ = ("description", "field")

    def __init__(self, field: str, description: str) -> None:
        self.field = field
        self.description = description

    def __repr__(self) -> str:
        return f"FieldViolation({self.field!r}, {self.description!r})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FieldViolation):
            return NotImplemented
        return (self.field, self.description) == (other.field, other.description)

    def __hash__(self) -> int:
        return hash((self.field, self.description))


class A2AError(DragomanError):
    """An error of the protocol: what a peer is told, or told us.

    Class variables are the row of the code table. On an instance:

    * ``message``: text for people; never the text of an unknown exception;
    * ``metadata``: strings for ``ErrorInfo.metadata``;
    * ``violations``: fields that failed validation (``google.rpc.BadRequest``);
    * ``extra_details``: further detail objects, each with ``@type``;
    * ``retry_after``: seconds after which a repeat makes sense, or None;
    * ``origin``: on the client, where the error came from, else None.
    """

    code: ClassVar[int] = -32603
    http_status: ClassVar[int] = 500
    grpc_status: ClassVar[str] = "INTERNAL"
    reason: ClassVar[str] = ""
    default_message: ClassVar[str] = "Internal error"

    def __init__(
        self,
        message: str = "",
        *,
        metadata: Mapping[str, str] | None = None,
        violations: Iterable[FieldViolation] = (),
        extra_details: Sequence[Mapping[str, Any]] = (),
        retry_after: float | None = None,
        origin: ErrorOrigin | None = None,
    ) -> None:
        self.message = message or self.default_message
        super().__init__(self.message)
        self.metadata: dict[str, str] = dict(metadata or {})
        self.violations: tuple[FieldViolation, ...] = tuple(violations)
        self.extra_details: tuple[Mapping[str, Any], ...] = tuple(extra_details)
        self.retry_after = retry_after
        self.origin = origin

    def __str__(self) -> str:
        if not self.violations:
            return self.message
        fields = "; ".join(f"{v.field}: {v.description}" for v in self.violations)
        return f"{self.message} ({fields})"

    @property
    def details(self) -> list[dict[str, Any]]:
        """Detail objects in ProtoJSON, each with ``@type``. Spec: ERR-15, ERR-16, ERR-20 to ERR-22."""
        found: list[dict[str, Any]] = []
        if self.reason:
            info: dict[str, Any] = {"@type": ERROR_INFO, "reason": self.reason, "domain": ERROR_DOMAIN}
            if self.metadata:
                info["metadata"] = self.metadata
            found.append(info)
        if self.violations:
            fields = [{"field": v.field, "description": v.description} for v in self.violations]
            found.append({"@type": BAD_REQUEST, "fieldViolations": fields})
        found.extend(dict(detail) for detail in self.extra_details)
        return found


class ErrorOrigin:
    """What the client saw on the wire when it read an error. ``body`` is cut to a bounded size.

    ``headers`` are those of the answer, names in lower case, without what may hold a secret; ``attempts`` how often the
    call was made, and ``session_id`` the session of a hosting service that it was made in, where there is one.
    """

    __slots__ = ("attempts", "body", "code", "details", "headers", "reason", "session_id", "status", "url")

    def __init__(
        self,
        *,
        url: str = "",
        status: int | None = None,
        code: int | None = None,
        reason: str = "",
        details: Sequence[Any] = (),
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
        attempts: int = 1,
        session_id: str = "",
    ) -> None:
        self.url = url
        self.status = status
        self.code = code
        self.reason = reason
        self.details = tuple(details)
        self.body = body
        self.headers = dict(headers or {})
        self.attempts = attempts
        self.session_id = session_id


# The nine errors of the specification (§5.4).


class TaskNotFoundError(A2AError):
    """The task is unknown, expired, purged, or not the caller's. Spec: ERR-09, ERR-10, SEND-07, GET-03."""

    code, http_status, grpc_status = -32001, 404, "NOT_FOUND"
    reason, default_message = "TASK_NOT_FOUND", "Task not found"


class TaskNotCancelableError(A2AError):
    """The task's state no longer allows cancellation. Spec: CANCEL-02."""

    code, http_status, grpc_status = -32002, 400, "FAILED_PRECONDITION"
    reason, default_message = "TASK_NOT_CANCELABLE", "Task cannot be canceled"


class PushNotificationNotSupportedError(A2AError):
    """Push was used while the card does not declare it. Spec: PCFG-10."""

    code, http_status, grpc_status = -32003, 400, "FAILED_PRECONDITION"
    reason, default_message = "PUSH_NOTIFICATION_NOT_SUPPORTED", "Push notifications are not supported"


class UnsupportedOperationError(A2AError):
    """The operation, or this use of it, is not supported. Spec: SEND-06, STREAM-08, SUB-03, XCARD-03."""

    code, http_status, grpc_status = -32004, 400, "FAILED_PRECONDITION"
    reason, default_message = "UNSUPPORTED_OPERATION", "This operation is not supported"


class ContentTypeNotSupportedError(A2AError):
    """The agent does not take (or cannot make) this media type. Spec: SEND-05."""

    code, http_status, grpc_status = -32005, 400, "INVALID_ARGUMENT"
    reason, default_message = "CONTENT_TYPE_NOT_SUPPORTED", "Content type is not supported"


class InvalidAgentResponseError(A2AError):
    """The agent produced something that the specification forbids. Spec: AMB-37."""

    code, http_status, grpc_status = -32006, 500, "INTERNAL"
    reason, default_message = "INVALID_AGENT_RESPONSE", "The agent gave an invalid response"


class ExtendedAgentCardNotConfiguredError(A2AError):
    """An extended card is declared but none is configured. Spec: XCARD-04."""

    code, http_status, grpc_status = -32007, 400, "FAILED_PRECONDITION"
    reason, default_message = "EXTENDED_AGENT_CARD_NOT_CONFIGURED", "No extended agent card is configured"


class ExtensionSupportRequiredError(A2AError):
    """The card requires an extension that the client did not declare. Spec: EXT-03, AMB-24."""

    code, http_status, grpc_status = -32008, 400, "FAILED_PRECONDITION"
    reason, default_message = "EXTENSION_SUPPORT_REQUIRED", "A required extension was not declared"


class VersionNotSupportedError(A2AError):
    """The ``A2A-Version`` is not served on this interface. Spec: VER-07, AMB-17, AMB-19."""

    code, http_status, grpc_status = -32009, 400, "FAILED_PRECONDITION"
    reason, default_message = "VERSION_NOT_SUPPORTED", "This protocol version is not supported"


# The five of JSON-RPC and what they are elsewhere (§3.3.2, §9.5, AMB-32).


class JSONParseError(A2AError):
    """The payload is not JSON text in UTF-8."""

    code, http_status, grpc_status = -32700, 400, "INVALID_ARGUMENT"
    default_message = "Invalid JSON payload"


class InvalidRequestError(A2AError):
    """JSON, but no JSON-RPC 2.0 request object. Spec: AMB-95."""

    code, http_status, grpc_status = -32600, 400, "INVALID_ARGUMENT"
    default_message = "Request payload validation error"


class MethodNotFoundError(A2AError):
    """No such method, or no such route. Spec: AMB-39."""

    code, http_status, grpc_status = -32601, 404, "UNIMPLEMENTED"
    default_message = "Method not found"


class InvalidParamsError(A2AError):
    """Parameters failed validation; ``violations`` names the fields. Spec: ERR-07, ERR-08, AMB-32."""

    code, http_status, grpc_status = -32602, 400, "INVALID_ARGUMENT"
    default_message = "Invalid parameters"


class InternalError(A2AError):
    """A failure inside the server. The cause is in its log, not in the message."""

    code, http_status, grpc_status = -32603, 500, "INTERNAL"


# Categories without a code of their own (AMB-34, AMB-38, AMB-93).


class UnavailableError(A2AError):
    """A failure that is expected to pass: shutting down, store out of reach, no capacity. Spec: ERR-11."""

    code, http_status, grpc_status = -32603, 503, "UNAVAILABLE"
    default_message = "The server cannot take this request now"


class UnauthenticatedError(A2AError):
    """Credentials are missing or bad. Spec: ERR-02, ERR-03, AMB-34."""

    code, http_status, grpc_status = -32000, 401, "UNAUTHENTICATED"
    default_message = "Authentication is required"


class PermissionDeniedError(A2AError):
    """The caller lacks a permission for the operation as a whole. Spec: ERR-04, AMB-36."""

    code, http_status, grpc_status = -32000, 403, "PERMISSION_DENIED"
    default_message = "Permission denied"


class RateLimitedError(A2AError):
    """A limit of rate or quota was hit; ``retry_after`` says when to come back. Spec: SEC-10, AMB-38."""

    code, http_status, grpc_status = -32000, 429, "RESOURCE_EXHAUSTED"
    default_message = "Too many requests"


class PayloadTooLargeError(A2AError):
    """The request is larger than this server takes. Spec: SEC-03."""

    code, http_status, grpc_status = -32600, 413, "RESOURCE_EXHAUSTED"
    default_message = "The request is too large"


class MethodNotAllowedError(A2AError):
    """The route exists, but not for this HTTP verb."""

    code, http_status, grpc_status = -32601, 405, "UNIMPLEMENTED"
    default_message = "HTTP method not allowed"


class UnsupportedMediaTypeError(A2AError):
    """The request's own ``Content-Type`` is not JSON (HTTP+JSON only). Spec: AMB-93."""

    code, http_status, grpc_status = -32600, 415, "INVALID_ARGUMENT"
    default_message = "The Content-Type of the request is not supported"


class RemoteError(A2AError):
    """An error of a peer that none of the classes above names; ``origin`` has what it said. Spec: AMB-35."""

    default_message = "The peer answered with an error"


# What only this side knows.


class ClientError(DragomanError):
    """A failure on the client's side of the wire.

    ``url`` is the address concerned, or empty; ``origin`` what was seen on the wire, or None.
    """

    def __init__(self, message: str, *, url: str = "", origin: ErrorOrigin | None = None) -> None:
        super().__init__(message)
        self.url = url
        self.origin = origin


class ConnectError(ClientError):
    """No connection could be made: refused, unreachable, name not found, TLS failed."""


class RequestTimeoutError(ClientError):
    """The call took longer than its timeout, in whatever phase."""


class ConnectionLostError(ClientError):
    """The connection broke before the answer was complete."""


class StreamInterruptedError(ClientError):
    """A stream ended before the task did, and could not be resumed. Spec: AMB-03, STREAM-10.

    ``task_id`` and ``last_event_id`` (None when the peer sends no numbers) say where to go on.
    """

    def __init__(self, message: str, *, url: str = "", task_id: str = "", last_event_id: str | None = None) -> None:
        super().__init__(message, url=url)
        self.task_id = task_id
        self.last_event_id = last_event_id


class CardError(ClientError):
    """The agent card could not be fetched or understood, or offers no interface that this client speaks."""


class CardSignatureError(CardError):
    """The signatures of a card do not hold, or one is required and none could be verified. Spec: SIGN-16, AMB-87."""


class OutboundUrlError(ClientError):
    """An address was refused by the outbound URL guard. Spec: SEC-15, AMB-71."""


# What only this process knows.


class StoreError(DragomanError):
    """The store failed; the cause is chained."""


class StaleLeaseError(StoreError):
    """A write came with an old fencing number: another worker holds the task now."""


class ConfigurationError(DragomanError):
    """Something was set up wrongly; the message names the setting and what is allowed."""


class MissingExtraError(ConfigurationError):
    """A feature needs an optional dependency; the message names the extra to install."""

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(f"{feature} needs an extra that is not installed: pip install 'dragoman[{extra}]'")
        self.extra = extra


A2A_ERRORS: tuple[type[A2AError], ...] = (
    TaskNotFoundError,
    TaskNotCancelableError,
    PushNotificationNotSupportedError,
    UnsupportedOperationError,
    ContentTypeNotSupportedError,
    InvalidAgentResponseError,
    ExtendedAgentCardNotConfiguredError,
    ExtensionSupportRequiredError,
    VersionNotSupportedError,
)

JSON_RPC_ERRORS: tuple[type[A2AError], ...] = (
    JSONParseError,
    InvalidRequestError,
    MethodNotFoundError,
    InvalidParamsError,
    InternalError,
)

ERRORS_BY_REASON: dict[str, type[A2AError]] = {error.reason: error for error in A2A_ERRORS}

ERRORS_BY_CODE: dict[int, type[A2AError]] = {error.code: error for error in (*A2A_ERRORS, *JSON_RPC_ERRORS)}
