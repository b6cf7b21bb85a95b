"""A pytest plugin: which rows of the requirement register do the tests prove?

A test names its rows with ``@pytest.mark.req("SEND-08", "AMB-01")``. An id that the register does not have
fails the collection of its module. With ``--requirements`` the run ends with the MUST rows that no passed
test names.

Under xdist the workers put the ids into the reports of their tests (``user_properties``), and the controller
counts.
"""

from __future__ import annotations

from collections.abc import Generator

import pytest
from _pytest.reports import CollectErrorRepr

from tests.requirements import register

PROPERTY = "req"


def named_ids(item: pytest.Item) -> list[str]:
    """The ids on a test, its class and its module, in no special order, each once."""
    return sorted({str(id) for mark in item.iter_markers("req") for id in mark.args})


def _complaint(collected: list[pytest.Item | pytest.Collector]) -> str:
    tests = (node for node in collected if isinstance(node, pytest.Item))
    wrong = ((test.nodeid, register.unknown_ids(named_ids(test))) for test in tests)
    return "\n".join(f"{nodeid} names unknown rows: {', '.join(ids)}" for nodeid, ids in wrong if ids)


class Requirements:
    """Checks the ids, and remembers those that passed tests name."""

    def __init__(self) -> None:
        self.passed: set[str] = set()

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(
        self, collector: pytest.Collector
    ) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        """Turn the collection of a module or class with an unknown id into an error."""
        report = yield
        if report.passed and (complaint := _complaint(report.result)):
            report.outcome = "failed"
            report.longrepr = CollectErrorRepr(complaint)
            report.result = []
        return report

    def pytest_itemcollected(self, item: pytest.Item) -> None:
        """Send the ids along with the reports of the test."""
        item.user_properties.extend((PROPERTY, id) for id in named_ids(item))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count what a passed test names."""
        if report.when == "call" and report.passed:
            self.passed.update(str(id) for name, id in report.user_properties if name == PROPERTY)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the report, if it was asked for."""
        if terminalreporter.config.getoption("requirements"):
            terminalreporter.section("requirements")
            for line in register.summary(self.passed, "proven by a passed test"):
                terminalreporter.write_line(line)


def add_option(parser: pytest.Parser) -> None:
    """``--requirements``: end the run with the rows that have no test."""
    parser.addoption("--requirements", action="store_true", help="print the MUST rows without a passed test")
