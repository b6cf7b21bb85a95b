"""From any failure to the code, the text and the exit status that are reported; the same for all bindings. Pure.

A condition that the protocol names carries the protocol's name; what only this side knows is an ``A2ACLI_ERR_*``.

Spec: A2ACLI_OUT_004, A2ACLI_EXIT_001, P-18; sections 11.1 to 11.3 of the register of the command line.
"""

from __future__ import annotations

import msgspec

from dragoman.auth.choosing import CredentialsMissingError as NoFittingCredentialError
from dragoman.auth.metadata import MetadataError
from dragoman.auth.tokens import TokenError
from dragoman.cli.failures import CommandError
from dragoman.client.cards import OldCardError
from dragoman.client.discovery import CardNotFoundError
from dragoman.client.origins import CredentialOriginError
from dragoman.errors import (
    A2A_ERRORS,
    ERRORS_BY_CODE,
    JSON_RPC_ERRORS,
    A2AError,
    CardError,
    ClientError,
    ConfigurationError,
    DragomanError,
    MissingExtraError,
    OutboundUrlError,
    PermissionDeniedError,
    RateLimitedError,
    RemoteError,
    RequestTimeoutError,
    StreamInterruptedError,
    UnauthenticatedError,
)
from dragoman.model.writing import EncodingError

SERVICE = "DRAGOMAN_ERR_SERVICE"
USAGE, INTERNAL = "A2ACLI_ERR_USAGE", "A2ACLI_ERR_INTERNAL"
UNREACHABLE, TIMEOUT = "A2ACLI_ERR_UNREACHABLE", "A2ACLI_ERR_TIMEOUT"
CARD_NOT_FOUND, CARD_INVALID = "A2ACLI_ERR_CARD_NOT_FOUND", "A2ACLI_ERR_CARD_INVALID"
CREDENTIALS_MISSING, AUTH_FAILED = "A2ACLI_ERR_CREDENTIALS_MISSING", "A2ACLI_ERR_AUTH_FAILED"
ORIGIN = "DRAGOMAN_ERR_ORIGIN"

EXIT_STATUS = {
    USAGE: 2,
    UNREACHABLE: 3,
    CARD_NOT_FOUND: 3,
    CREDENTIALS_MISSING: 4,
    AUTH_FAILED: 4,
    ORIGIN: 4,
    TIMEOUT: 5,
}
"""Of codes that have one of their own; any other failure is 1."""


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """What is reported. ``hint`` is empty where nothing helps; ``a2a_code`` is the transport's own code."""

    code: str
    message: str
    hint: str = ""
    a2a_code: int | str | None = None
    exit_status: int = 1

    def envelope(self) -> dict[str, object]:
        """As JSON reports it."""
        return {
            "error": {
                "code": self.code,
                "message": self.message,
                "hint": self.hint or None,
                "a2aCode": self.a2a_code,
            }
        }


def classify(error: BaseException, *, with_credential: bool = False) -> Failure:
    """The failure that an error is. ``with_credential``: whether the request that failed carried one."""
    if isinstance(error, CommandError):
        return Failure(
            code=error.code,
            message=str(error),
            hint=error.hint,
            a2a_code=error.a2a_code,
            exit_status=error.exit_status,
        )
    code = _code(error, with_credential)
    return Failure(code=code, message=_text(error), a2a_code=_a2a_code(error), exit_status=EXIT_STATUS.get(code, 1))


def _code(error: BaseException, with_credential: bool) -> str:
    if isinstance(error, UnauthenticatedError | PermissionDeniedError):
        return AUTH_FAILED if with_credential else CREDENTIALS_MISSING
    if isinstance(error, A2AError):
        return _protocol_name(error)
    if isinstance(error, OldCardError):
        return "VersionNotSupportedError"
    if isinstance(error, ClientError) and error.origin is not None and error.origin.status:
        return SERVICE  # somebody answered, in the place of the agent
    if isinstance(error, StreamInterruptedError) and not isinstance(error.__cause__, ClientError):
        return "InvalidAgentResponseError"
    return next((code for kind, code in _LOCAL if isinstance(error, kind)), INTERNAL)


_LOCAL: tuple[tuple[type[BaseException], str], ...] = (
    (TokenError, AUTH_FAILED),
    (MetadataError, AUTH_FAILED),
    (NoFittingCredentialError, CREDENTIALS_MISSING),
    (CredentialOriginError, ORIGIN),
    (CardNotFoundError, CARD_NOT_FOUND),
    (CardError, CARD_INVALID),
    (RequestTimeoutError, TIMEOUT),
    (OutboundUrlError, USAGE),
    (ClientError, UNREACHABLE),
    (MissingExtraError, "DRAGOMAN_ERR_MISSING_EXTRA"),
    (ConfigurationError, USAGE),
    (EncodingError, USAGE),
)


def _protocol_name(error: A2AError) -> str:
    """The name of the protocol for an error, also where our class is finer than the protocol is."""
    if isinstance(error, (*A2A_ERRORS, *JSON_RPC_ERRORS)):
        return type(error).__name__
    said = error.origin is not None and error.origin.code is not None
    named = ERRORS_BY_CODE.get(type(error).code)
    # What a gateway answers by its status alone is no word of the agent's, except for a verb that a route lacks.
    if named is None or not (said or type(error).http_status == 405) or type(error) in _UNNAMED:
        return INTERNAL
    return named.__name__


_UNNAMED = (RateLimitedError, RemoteError)


def _a2a_code(error: BaseException) -> int | None:
    if isinstance(error, CardNotFoundError):
        return error.status
    origin = error.origin if isinstance(error, A2AError | ClientError) else None
    return None if origin is None else origin.code or origin.status


def _text(error: BaseException) -> str:
    if isinstance(error, DragomanError):
        return str(error)
    return f"unexpected {type(error).__name__}; --debug shows where"
