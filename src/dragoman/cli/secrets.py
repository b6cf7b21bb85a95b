"""Secrets of webhooks out of environment variables. Spec: A2ACLI_AUTH_004, PUSH-17."""

from __future__ import annotations

import os

from dragoman.cli.failures import UsageError
from dragoman.cli.options import Run
from dragoman.cli.session import Session
from dragoman.http.guard import parse_target, shown
from dragoman.model import AuthenticationInfo


def secret_of(option: str, variable: str | None, value: str | None = None) -> str:
    """The secret that an option gives, or names a variable of; empty when neither. Raises UsageError."""
    if variable and value:
        raise UsageError(f"{option} and {option}-env exclude each other")
    if not variable:
        return value or ""
    found = os.environ.get(variable, "")
    if not found:
        raise UsageError(f"{option}-env: there is no variable {variable}")
    return found


def authentication_of(scheme: str | None, credentials: str) -> AuthenticationInfo | None:
    """The authentication that options give. Raises UsageError for credentials that nothing says the use of."""
    if credentials and not scheme:
        raise UsageError("credentials of a webhook need --auth-scheme")
    return AuthenticationInfo(scheme=scheme, credentials=credentials) if scheme else None


def learn(session: Session, *secrets: str) -> None:
    """Keep secrets out of everything that is said."""
    session.redactor.learn(secrets)


def warn_of_plain(session: Session, url: str) -> None:
    """Say when a webhook is not encrypted. Raises OutboundUrlError for what is no address. Spec: PUSH-16."""
    if parse_target(url).scheme == "http":
        session.notes.warn(f"the webhook {shown(url)} is not https: whoever is on the way can read what is sent there")


def no_limit_unless_asked(run: Run) -> float | None:
    """``--timeout`` for a command that otherwise goes on for ever; the run itself is not limited any more."""
    chosen = run.configuration().find("timeout")
    limit = None if chosen.source == "built-in" else chosen.value
    run["timeout"] = None
    return float(limit) if limit else None
