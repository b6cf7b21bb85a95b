"""The task that a command is about: as an argument, or as ``--task-id``. Spec: section 7.4 of the register."""

from __future__ import annotations

from dragoman.cli.failures import UsageError
from dragoman.cli.options import Run


def task_id_of(run: Run, argument: str | None) -> str:
    """The id. Raises UsageError when there is none, or two that differ."""
    chosen = run.configuration().find("task_id")
    if argument and chosen.source == "flag" and chosen.value != argument:
        raise UsageError(f"two tasks are named: {argument} and {chosen.value}")
    found = argument or chosen.value
    if not found:
        raise UsageError("no task is named")
    return str(found)
