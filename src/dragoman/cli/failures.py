"""What can go wrong on this side, with its code, its exit status and a hint.

Spec: A2ACLI_OUT_004, A2ACLI_EXIT_001, section 11.2 of the register of the command line.
"""

from __future__ import annotations

from typing import ClassVar

from dragoman.errors import DragomanError


class CommandError(DragomanError):
    """A failure that the command line itself finds. ``hint`` is best a command that can be pasted.

    ``a2a_code`` is the code that the transport gave, if there was one.
    """

    code: ClassVar[str] = "A2ACLI_ERR_INTERNAL"
    exit_status: ClassVar[int] = 1

    def __init__(self, message: str, *, hint: str = "", a2a_code: int | str | None = None) -> None:
        super().__init__(message)
        self.hint = hint
        self.a2a_code = a2a_code


class UsageError(CommandError):
    """Arguments, options, or their combination."""

    code, exit_status = "A2ACLI_ERR_USAGE", 2


class CredentialsMissingError(CommandError):
    """The card wants credentials that were not given."""

    code, exit_status = "A2ACLI_ERR_CREDENTIALS_MISSING", 4


class TimeLimitError(CommandError):
    """``--timeout`` ran out."""

    code, exit_status = "A2ACLI_ERR_TIMEOUT", 5


class NoTransportError(CommandError):
    """The agent and this program have no binding in common."""

    code = "DRAGOMAN_ERR_NO_TRANSPORT"


class FileError(CommandError):
    """A file of the user cannot be read or written."""

    code = "DRAGOMAN_ERR_FILE"


class OriginError(CommandError):
    """A stored credential would go to an origin that it was not issued for."""

    code, exit_status = "DRAGOMAN_ERR_ORIGIN", 4


class SignalError(CommandError):
    """A signal ended the program: ``number`` is SIGINT or SIGTERM."""

    code = "DRAGOMAN_ERR_INTERRUPTED"

    def __init__(self, number: int, message: str, *, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.number = number
