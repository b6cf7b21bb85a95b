"""How many rounds: few by default, more by ``DRAGOMAN_FAULT_ROUNDS``, and the count printed at the end of the run.

``DRAGOMAN_FAULT_ROUNDS=1000`` means a thousand rounds of each race and 50 kills; without it a race takes at least
``LEAST`` rounds and as many more as fit into its time.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

import pytest

PROPERTY = "rounds"
LEAST = 200
SECONDS = 4.0


def wanted() -> int | None:
    """The setting, None when there is none."""
    text = os.environ.get("DRAGOMAN_FAULT_ROUNDS", "")
    return int(text) if text else None


def scaled(default: int, share: int) -> int:
    """``default``, or with the setting one in ``share`` of it."""
    setting = wanted()
    return default if setting is None else max(1, setting // share)


def rounds(item: pytest.Item, *, least: int = LEAST, seconds: float = SECONDS) -> Iterator[int]:
    """The numbers of the rounds of a test; how many there were goes into its report."""
    setting = wanted()
    begun, number = time.monotonic(), 0
    while number < least or (setting is None and time.monotonic() < begun + seconds) or number < (setting or 0):
        yield number
        number += 1
    note(item, f"{number} rounds")


def note(item: pytest.Item, text: str) -> None:
    """Have a line printed at the end of the run, if the test passes or not."""
    item.user_properties.append((PROPERTY, text))


class Rounds:
    """Prints the notes; a plugin, since they come from the workers to where the summary is printed."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Collect the notes of a test."""
        if report.when == "call":
            name = report.nodeid.rpartition("::")[2]
            self._lines += [f"{name}: {text}" for key, text in report.user_properties if key == PROPERTY]

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print them."""
        if self._lines:
            terminalreporter.section("rounds")
            for line in sorted(self._lines):
                terminalreporter.write_line(line)
