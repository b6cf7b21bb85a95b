"""The end of a check that failed: the payload is there, and standard error and the exit status say it. Spec: 11.2."""

from __future__ import annotations

from dragoman.cli.failures import CommandError
from dragoman.cli.session import Session


def fail_check(session: Session, error: CommandError) -> int:
    """Say that a check failed, whose result was printed; the exit status."""
    session.notes.say("Error", error.code)
    session.notes.say("Message", str(error))
    return error.exit_status
