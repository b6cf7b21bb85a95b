"""The matrix at the end of a run: a row for each scenario, a column for each pair, with notes on deviations.

A test leaves its cell among the properties of its report, which come from the workers to where the summary is
printed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

import msgspec
import pytest

PROPERTY = "peers"
HEADINGS = {
    ("its client", "JSONRPC"): "a2a-sdk → dragoman, JSON-RPC",
    ("its client", "HTTP+JSON"): "a2a-sdk → dragoman, HTTP+JSON",
    ("its client", "GRPC"): "a2a-sdk → dragoman, gRPC",
    ("its server", "JSONRPC"): "dragoman → a2a-sdk, JSON-RPC",
    ("its server", "HTTP+JSON"): "dragoman → a2a-sdk, HTTP+JSON",
    ("its server", "GRPC"): "dragoman → a2a-sdk, gRPC",
    ("client of a2a-js", "JSONRPC"): "a2a-js → dragoman, JSON-RPC",
    ("client of a2a-js", "HTTP+JSON"): "a2a-js → dragoman, HTTP+JSON",
    ("client of a2a-js", "GRPC"): "a2a-js → dragoman, gRPC",
    ("server of a2a-js", "JSONRPC"): "dragoman → a2a-js, JSON-RPC",
    ("server of a2a-js", "HTTP+JSON"): "dragoman → a2a-js, HTTP+JSON",
    ("server of a2a-js", "GRPC"): "dragoman → a2a-js, gRPC",
}


class Cell(msgspec.Struct):
    """One scenario of one pair."""

    scenario: str
    who: str
    binding: str
    notes: list[str]
    works: bool = False


@contextlib.contextmanager
def record(item: pytest.Item, scenario: str, who: str, binding: str, notes: Sequence[str]) -> Iterator[None]:
    """Leave a cell with the report of this test: it works when the block ends without an error."""
    cell = Cell(scenario, who, binding, list(notes))
    try:
        yield
        cell.works = True
    finally:
        item.user_properties.append((PROPERTY, msgspec.json.encode(cell).decode()))


def as_markdown(cells: Sequence[Cell]) -> list[str]:
    """The lines of the table and of its notes."""
    notes: list[str] = []
    found = {(cell.scenario, cell.who, cell.binding): _mark(cell, notes) for cell in cells}
    names = list(dict.fromkeys(cell.scenario for cell in cells))
    pairs = [pair for pair in HEADINGS if any((cell.who, cell.binding) == pair for cell in cells)]
    rows = [[name, *(found.get((name, *pair), "") for pair in pairs)] for name in names]
    table = [["scenario", *(HEADINGS[pair] for pair in pairs)], ["---"] * (1 + len(pairs)), *rows]
    numbered = [f"[{number}] {note}" for number, note in enumerate(notes, start=1)]
    return [*(f"| {' | '.join(row)} |" for row in table), "", *numbered]


def _mark(cell: Cell, notes: list[str]) -> str:
    if not cell.works:
        return "FAILS"
    notes.extend(note for note in cell.notes if note not in notes)
    return " ".join(["yes" if not cell.notes else "but", *(f"[{notes.index(note) + 1}]" for note in cell.notes)])


class Matrix:
    """A pytest plugin that collects the cells and prints them."""

    def __init__(self) -> None:
        self.cells: list[Cell] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the cell of a test that ran."""
        if report.when == "call":
            found = (value for name, value in report.user_properties if name == PROPERTY)
            self.cells.extend(msgspec.json.decode(str(value), type=Cell) for value in found)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the matrix, if there is anything in it."""
        if self.cells:
            terminalreporter.section("peers")
            for line in as_markdown(sorted(self.cells, key=lambda cell: cell.scenario)):
                terminalreporter.write_line(line)
