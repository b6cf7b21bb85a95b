"""Prints the MUST rows that no test names, without running a test: ``python -m tests.requirements.rows``."""

from __future__ import annotations

import sys

import pytest

from tests.requirements import register
from tests.requirements.plugin import named_ids

QUIET = ["--collect-only", "-p", "no:terminal", "-p", "no:xdist", "-o", "addopts=", "--import-mode=importlib"]


class Collected:
    """What a collection found."""

    def __init__(self) -> None:
        self.named: set[str] = set()
        self.errors: list[str] = []

    def pytest_itemcollected(self, item: pytest.Item) -> None:
        """Keep the ids of a test."""
        self.named.update(named_ids(item))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Keep a failure to collect."""
        if report.failed:
            self.errors.append(f"{report.nodeid}: {report.longreprtext}")


def main() -> int:
    """Collect the tests and print; 1 when a module could not be collected."""
    collected = Collected()
    pytest.main(QUIET, plugins=[collected])
    print("\n".join(register.summary(collected.named, "named by a test")))
    for error in collected.errors:
        print(error, file=sys.stderr)
    return 1 if collected.errors else 0


if __name__ == "__main__":
    sys.exit(main())
