"""The matrix at the end of a run: a row for each scenario, a column for each pair, with notes on deviations.

A test leaves its cell among the properties of its report, which come from the workers to where the summary is
printed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence

import msgspec
import pytest

PROPERTY = "peers"
BINDINGS = {"JSONRPC": "JSON-RPC", "HTTP+JSON": "HTTP+JSON", "GRPC": "gRPC"}
TABLES: dict[str, dict[str, str]] = {
    "Version 1.0": {
        "its client": "a2a-sdk → dragoman",
        "its server": "dragoman → a2a-sdk",
        "client of a2a-js": "a2a-js → dragoman",
        "server of a2a-js": "dragoman → a2a-js",
    },
    "Protocol 0.3": {
        "client of a2a-sdk 0.3": "a2a-sdk 0.3 → dragoman",
        "server of a2a-sdk 0.3": "dragoman → a2a-sdk 0.3",
        "client of a2a-js 0.3": "a2a-js 0.3 → dragoman",
        "server of a2a-js 0.3": "dragoman → a2a-js 0.3",
    },
    "Servers of frameworks": {
        "server of fasta2a 2": "dragoman → fasta2a 2.1 (1.0)",
        "server of fasta2a 0.6": "dragoman → fasta2a 0.6 (0.3)",
        "server of strands-agents": "dragoman → strands-agents (0.3)",
    },
}
"""The tables by their titles: whose cells are in it, and how the pair is called there."""


class Cell(msgspec.Struct):
    """One scenario of one pair."""

    scenario: str
    who: str
    binding: str
    notes: list[str]
    through: bool = True
    works: bool = False


@contextlib.contextmanager
def record(
    item: pytest.Item, scenario: str, who: str, binding: str, notes: Sequence[str], *, through: bool
) -> Iterator[None]:
    """Leave a cell with the report of this test: it works when the block ends without an error.

    ``notes`` are the reasons of its deviations, and ``through`` says whether it can be gone through in spite of them.
    """
    cell = Cell(scenario, who, binding, list(notes), through)
    try:
        yield
        cell.works = True
    finally:
        item.user_properties.append((PROPERTY, msgspec.json.encode(cell).decode()))


def as_markdown(cells: Sequence[Cell]) -> list[str]:
    """The lines of the tables and of their notes."""
    notes: list[str] = []
    tables = [line for title, pairs in TABLES.items() for line in _table(title, pairs, cells, notes)]
    return [*tables, *(f"[{number}] {note}" for number, note in enumerate(notes, start=1))]


def _table(title: str, pairs: Mapping[str, str], cells: Sequence[Cell], notes: list[str]) -> list[str]:
    mine = [cell for cell in cells if cell.who in pairs]
    if not mine:
        return []
    found = {(cell.scenario, cell.who, cell.binding): _mark(cell, notes) for cell in mine}
    here = {(cell.who, cell.binding) for cell in mine}
    columns = [(who, binding) for who in pairs for binding in BINDINGS if (who, binding) in here]
    head = ["scenario", *(f"{pairs[who]}, {BINDINGS[binding]}" for who, binding in columns)]
    names = dict.fromkeys(cell.scenario for cell in mine)
    rows = [[name, *(found.get((name, *column), "") for column in columns)] for name in names]
    table = [head, ["---"] * len(head), *rows]
    return [f"### {title}", "", *(f"| {' | '.join(row)} |" for row in table), ""]


def _mark(cell: Cell, notes: list[str]) -> str:
    if not cell.works:
        return "FAILS"
    notes.extend(note for note in cell.notes if note not in notes)
    word = ("yes" if not cell.notes else "but") if cell.through else "no"
    return " ".join([word, *(f"[{notes.index(note) + 1}]" for note in cell.notes)])


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
