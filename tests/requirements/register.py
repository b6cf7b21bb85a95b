"""The requirement register as data, and what a run of the tests says about it.

``register.tsv`` is made by ``tools/register.py``; the three tables beside it are kept by hand: ``topics.tsv``
(what a whole topic comes with), ``exceptions.tsv`` (rows that come with something else than their topic), and
``not_applicable.tsv`` (rows that bind nobody who writes this package).
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parent
BOUND_BY_CODE = frozenset({"server", "client", "sdk", "card", "cli", "front"})
DUE_NOW = ""
WEAKER = ("SHOULD", "MAY")
WEAKER_IS_LISTED = "AgentCore"
"""Of the topics that begin so, rows that are less than MUST are listed, too: most have tests."""


class Row(NamedTuple):
    """One row of the register."""

    id: str
    strength: str
    who: str
    section: str
    topic: str

    @property
    def is_must(self) -> bool:
        """True for MUST and MUST NOT rows that bind a server, a client, a library, a card, a command line, a front."""
        return self.strength.startswith("MUST") and not BOUND_BY_CODE.isdisjoint(self.who.split(","))


class Gap(NamedTuple):
    """The rows of one topic that have no test, and what they come with (empty: they are due now)."""

    topic: str
    comes_with: str
    ids: list[str]


def _read_table(name: str) -> Iterator[tuple[str, ...]]:
    with (FOLDER / name).open(encoding="utf-8", newline="") as file:
        lines = csv.reader(file, delimiter="\t")
        next(lines)
        yield from map(tuple, lines)


def _read_pairs(name: str) -> dict[str, str]:
    return {line[0]: line[1] for line in _read_table(name)}


@cache
def rows() -> dict[str, Row]:
    """Every row of the register by its id, in the register's order."""
    return {fields[0]: Row(*fields) for fields in _read_table("register.tsv")}


@cache
def not_applicable() -> dict[str, str]:
    """Rows that no test of this package can prove, with the reason."""
    return _read_pairs("not_applicable.tsv")


@cache
def _arrivals() -> tuple[dict[str, str], dict[str, str]]:
    return _read_pairs("topics.tsv"), _read_pairs("exceptions.tsv")


def comes_with(row: Row) -> str:
    """What brings this row, or ``DUE_NOW``."""
    by_topic, by_id = _arrivals()
    return by_id.get(row.id, by_topic.get(row.topic, DUE_NOW))


def unknown_ids(ids: Iterable[object]) -> list[str]:
    """Those that the register does not have."""
    return sorted({str(id) for id in ids if id not in rows()})


def must_rows() -> list[Row]:
    """The rows that need a test: MUST, binding code, applicable."""
    return [row for row in rows().values() if row.is_must and row.id not in not_applicable()]


def gaps(named: set[str]) -> list[Gap]:
    """MUST rows without a test, one entry for each topic and arrival, those due now first."""
    found: dict[tuple[str, str], list[str]] = {}
    for row in must_rows():
        if row.id not in named:
            found.setdefault((row.topic, comes_with(row)), []).append(row.id)
    ordered = sorted(found.items(), key=lambda item: item[0][1] != DUE_NOW)
    return [Gap(topic, arrival, ids) for (topic, arrival), ids in ordered]


def weaker_gaps(named: set[str]) -> list[str]:
    """Lines on the rows without a test that are less than MUST, of the topics where such rows are listed."""
    found: dict[str, list[str]] = {strength: [] for strength in WEAKER}
    for row in rows().values():
        if row.topic.startswith(WEAKER_IS_LISTED) and row.strength in found and row.id not in named:
            found[row.strength].append(row.id)
    return [f"{WEAKER_IS_LISTED}, {strength}: {' '.join(ids)}" for strength, ids in found.items() if ids]


def summary(named: set[str], verb: str) -> list[str]:
    """The report as lines of text; ``verb`` says what was done to the rows (``proven by a passed test``)."""
    must = must_rows()
    covered = sum(row.id in named for row in must)
    lines = [f"{covered} of {len(must)} MUST rows are {verb}."]
    for strength, noun in (("TAKE", "ambiguities"), ("CASE", "reports")):
        ids = [row.id for row in rows().values() if row.strength == strength]
        lines.append(f"{len(named.intersection(ids))} of {len(ids)} {noun} are {verb}.")
    for gap in gaps(named):
        arrival = f"comes with {gap.comes_with}" if gap.comes_with else "due now"
        lines.append(f"{gap.topic} ({arrival}): {' '.join(gap.ids)}")
    lines.extend(weaker_gaps(named))
    lines.extend(f"not applicable: {id}, it {reason}" for id, reason in not_applicable().items())
    return lines
