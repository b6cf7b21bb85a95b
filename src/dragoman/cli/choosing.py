"""To wait or not to wait: options against each other and against settings. Spec: A2ACLI_SEND_002, section 7.4."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.cli.config import Configuration
from dragoman.cli.failures import UsageError

_LEVELS = ("flag", "environment", "local", "global", "built-in")


def refuse_both(given: Mapping[str, Any], *, stream: bool) -> None:
    """Raise UsageError for options that exclude each other."""
    if given.get("async") and given.get("wait"):
        raise UsageError("--wait and --async exclude each other")
    if given.get("async") and stream:
        raise UsageError("--stream and --async exclude each other")


def is_async(configuration: Configuration) -> bool:
    """Whether not to wait: the higher level decides, and on one level waiting wins."""
    level = {key: _LEVELS.index(configuration.find(key).source) for key in ("async", "wait")}
    if not configuration["async"]:
        return False
    return not (configuration["wait"] and level["wait"] <= level["async"])
