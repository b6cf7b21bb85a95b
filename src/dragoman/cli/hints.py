"""What can be done about a failure: best a command that can be pasted. Pure.

Spec: A2ACLI_INTERACT_002, A2ACLI_OUT_004; section 11.3 of the register of the command line.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from dragoman.cli import classify as codes
from dragoman.cli.references import well_known_below
from dragoman.cli.resume import Words, quoted


def hint_for(code: str, words: Words, *, reference: str = "", task_id: str = "", sending: bool = False) -> str:
    """The hint for a code; ``task_id`` is that of the task concerned, ``sending`` whether a message was sent to it."""
    if sending and task_id and not code.startswith("A2ACLI_"):
        return f"the agent refused task {task_id}; --debug shows what was said: {words.get(task_id)} --debug"
    maker = _MAKERS.get(code)
    return maker(words, reference, task_id) if maker is not None else ""


def _card_not_found(words: Words, reference: str, task_id: str) -> str:
    below = well_known_below(reference) if reference else ""
    return quoted(["dragoman", "card", "get", below]) if below else ""


def _unreachable(words: Words, reference: str, task_id: str) -> str:
    url = reference or (words.where[1] if len(words.where) > 1 else "")
    parts = urlsplit(url if "://" in url else f"//{url}")
    host = parts.netloc.rpartition("@")[2] or url
    return f"is something listening at {host}?"


def _task_not_found(words: Words, reference: str, task_id: str) -> str:
    return words.list()


def _look_at_task(words: Words, reference: str, task_id: str) -> str:
    return words.get(task_id) if task_id else ""


def _version(words: Words, reference: str, task_id: str) -> str:
    return "--a2a-version 0.3 calls an agent of A2A 0.3"


def _auth_failed(words: Words, reference: str, task_id: str) -> str:
    return "export A2ACLI_BEARER=... or A2ACLI_API_KEY=... with a credential that is valid now"


def _extension(words: Words, reference: str, task_id: str) -> str:
    return "declare it with --extension URI"


_MAKERS = {
    codes.CARD_NOT_FOUND: _card_not_found,
    codes.UNREACHABLE: _unreachable,
    codes.AUTH_FAILED: _auth_failed,
    codes.CREDENTIALS_MISSING: _auth_failed,
    "TaskNotFoundError": _task_not_found,
    "TaskNotCancelableError": _look_at_task,
    "UnsupportedOperationError": _look_at_task,
    "VersionNotSupportedError": _version,
    "ExtensionSupportRequiredError": _extension,
}
