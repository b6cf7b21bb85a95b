"""The commands that take an interaction up again, to be pasted into any shell. Pure.

They repeat how the agent was named, and never a credential. Spec: A2ACLI_INTERACT_004, section 9.6.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from dragoman.cli.config import Configuration
from dragoman.cli.settings import BY_KEY
from dragoman.model import Task, TaskState
from dragoman.protocol.lifecycle import INTERRUPTED, is_terminal

Hint = tuple[str, str]
PROGRAM = "dragoman"


class Words(msgspec.Struct, frozen=True):
    """Makes command lines that reach the same agent in the same way."""

    where: tuple[str, ...] = ()

    def reply(self, task_id: str) -> str:
        """Send the next message of a task."""
        return self._send(*_option("--task-id", task_id), placeholder="<reply>")

    def go_on(self, context_id: str) -> str:
        """Begin another task in a context."""
        return self._send(*_option("--context-id", context_id), placeholder="<text>")

    def wait(self, task_id: str, *more: str) -> str:
        """Wait for a task."""
        return self._about("get", task_id, "--wait", *more)

    def get(self, task_id: str) -> str:
        """Look at a task."""
        return self._about("get", task_id)

    def cancel(self, task_id: str) -> str:
        """Cancel a task."""
        return self._about("cancel", task_id)

    def list(self) -> str:
        """List the tasks."""
        return quoted([PROGRAM, "task", "list", *self.where])

    def _send(self, *options: str, placeholder: str) -> str:
        return f'{quoted([PROGRAM, "send", *self.where, *options])} "{placeholder}"'

    def _about(self, verb: str, task_id: str, *more: str) -> str:
        return quoted([PROGRAM, "task", verb, *_positional(task_id), *self.where, *more])


def _positional(value: str) -> tuple[str, ...]:
    """A value as an argument, also when it looks like an option."""
    return ("--task-id=" + value,) if value.startswith("-") else (value,)


def _option(flag: str, value: str) -> tuple[str, ...]:
    return (f"{flag}={value}",) if value.startswith("-") else (flag, value)


def quoted(words: Sequence[str]) -> str:
    """A command line for the shell of this platform."""
    return subprocess.list2cmdline(words) if sys.platform == "win32" else shlex.join(words)


def words_of(configuration: Configuration, reference: str) -> Words:
    """How the agent of this run was named. ``reference`` is the card's, or empty for an endpoint."""
    where = ["-a", _portable(reference)] if reference else ["-e", str(configuration["endpoint"])]
    for binding in configuration["transport"]:
        where += ["--transport", binding]
    for uri in configuration["extension"]:
        where += ["--extension", uri]
    for key in ("a2a_version", "config", "tenant", "scheme", "api_key_header", "ca_cert", "client_cert", "client_key"):
        if configuration[key]:
            where += [f"--{BY_KEY[key].name}", str(configuration[key])]
    if configuration["insecure"]:
        where.append("--insecure")
    return Words(tuple(where))


def _portable(reference: str) -> str:
    """A file by its whole path, since the next shell may be elsewhere."""
    return str(Path(reference).absolute()) if Path(reference).is_file() else reference


def next_steps(task: Task, words: Words) -> list[Hint]:
    """What can be done with a task as it is."""
    state = task.status.state
    if state in INTERRUPTED:
        steps = [("Resume", words.reply(task.id))]
        if state is TaskState.AUTH_REQUIRED:
            steps.append(("Follow", words.wait(task.id, "--until", "terminal")))
        return steps
    if is_terminal(state):
        return [("Continue", words.go_on(task.context_id))] if task.context_id else []
    return [("Resume", words.wait(task.id))]
