"""What goes wrong between a client and an agent on AgentCore, as exceptions.

The agent's own errors are those of the protocol (:mod:`dragoman.errors`), as everywhere. What the service answers in
the agent's place is one of these. All derive from :class:`~dragoman.errors.ClientError`, and those that every agent
behind a gateway can meet (401, 403, 429, 5xx) from the protocol's classes, too.

``origin`` of each, and of every error of the protocol that came over this way, says what was seen on the wire: HTTP
status, JSON-RPC code, body, headers, session, address, number of attempts.

Spec: sections 3.2 and 6.6 of the register; AC-C-43, AC-C-45.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import msgspec

from dragoman.auth import AuthorizationServer, Discovery
from dragoman.errors import (
    A2AError,
    ClientError,
    ConfigurationError,
    ErrorOrigin,
    PermissionDeniedError,
    RateLimitedError,
    UnauthenticatedError,
    UnavailableError,
)


class AgentCoreError(ClientError):
    """The service, not the agent, answered. ``retryable``: whether the same call may succeed when it is made again."""

    default_retryable: ClassVar[bool] = False

    def __init__(self, message: str, *, origin: ErrorOrigin, retryable: bool | None = None) -> None:
        ClientError.__init__(self, message, url=origin.url, origin=origin)
        self.message = message
        self.retryable = self.default_retryable if retryable is None else retryable

    @property
    def session_id(self) -> str:
        """The session that the call was made in."""
        return _origin_of(self).session_id

    @property
    def attempts(self) -> int:
        """How often the call was made."""
        return _origin_of(self).attempts

    @property
    def data(self) -> Any:
        """The ``data`` of the JSON-RPC error, None when there is none."""
        return _read_data(_origin_of(self).body)


class _ProtocolsToo(AgentCoreError):
    """A class of the protocol as well. Its constructor is run last: it sets what it is not told to nothing."""

    def __init__(
        self,
        message: str,
        *,
        origin: ErrorOrigin,
        retryable: bool | None = None,
        retry_after: float | None = None,
        metadata: dict[str, str] | None = None,
    ) -> None:
        assert isinstance(self, A2AError)
        AgentCoreError.__init__(self, message, origin=origin, retryable=retryable)
        A2AError.__init__(self, message, origin=origin, retry_after=retry_after, metadata=metadata)


class AuthenticationRequired(_ProtocolsToo, UnauthenticatedError):
    """HTTP 401: a bearer token is missing or was refused. ``discovery`` says where one is to be had. Spec: AC-C-94."""

    def __init__(self, message: str, *, origin: ErrorOrigin, discovery: Discovery) -> None:
        challenge = origin.headers.get("www-authenticate", "")
        super().__init__(message, origin=origin, metadata={"challenge": challenge} if challenge else None)
        self.discovery = discovery

    @property
    def metadata_url(self) -> str:
        """Where the metadata of the protected resource is, or empty."""
        return self.discovery.metadata_url

    @property
    def servers(self) -> Sequence[AuthorizationServer]:
        """The authorization servers that showed their metadata."""
        return self.discovery.servers

    @property
    def scopes(self) -> Sequence[str]:
        """The scopes to ask for."""
        return self.discovery.scopes

    @property
    def error(self) -> str:
        """The ``error`` of the challenge, or empty."""
        return self.discovery.error

    @property
    def description(self) -> str:
        """The ``error_description`` of the challenge, or empty."""
        return self.discovery.error_description


class AccessDenied(_ProtocolsToo, PermissionDeniedError):
    """HTTP 403: wrong kind of credentials, a bad signature or token, a missing permission. The message is the
    service's text. Spec: AC-C-97."""


class RuntimeNotFound(AgentCoreError):
    """-32051, HTTP 404: there is no such runtime or endpoint."""


class RequestRejected(AgentCoreError):
    """-32052, HTTP 400: the service finds the request invalid."""


class Throttled(_ProtocolsToo, RateLimitedError):
    """-32053, HTTP 429 or 402: a rate or a quota is used up."""

    default_retryable = True


class SessionBusy(AgentCoreError):
    """-32054 with the text that asks for a retry: the session is being set up or taken down. Spec: AC-C-50."""

    default_retryable = True


class SessionConflict(AgentCoreError):
    """-32054 with any other text, HTTP 409."""


class AgentFailed(AgentCoreError):
    """-32055, HTTP 424: the agent's process failed, or answered with an HTTP error of its own."""


class ServiceError(_ProtocolsToo, UnavailableError):
    """HTTP 5xx: a failure of the service."""


class SharedSessionError(ConfigurationError):
    """A session was to be used with the credentials of somebody else. Spec: AC-C-14."""


class CredentialsNotFoundError(ConfigurationError):
    """No AWS credentials were found. Spec: AC-C-80."""


def _origin_of(error: ClientError) -> ErrorOrigin:
    assert error.origin is not None
    return error.origin


class _Error(msgspec.Struct):
    data: Any = None


class _Body(msgspec.Struct):
    error: _Error | None = None


def _read_data(body: bytes) -> Any:
    try:
        error = msgspec.json.decode(body, type=_Body).error
    except (msgspec.DecodeError, RecursionError):
        return None
    return None if error is None else error.data
