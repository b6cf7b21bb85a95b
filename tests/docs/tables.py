"""Reading the tables of a Markdown page."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
DOCS = ROOT / "docs"
Row = tuple[str, ...]

_BREAK = re.compile(r"^\|(?: ?-+ ?\|)+$")


def read_table(page: str, *header: str) -> list[Row]:
    """The rows of the one table of a page whose header begins with these cells; code marks are left out."""
    found = [table for table in _tables(page) if table[0][: len(header)] == header]
    assert len(found) == 1, f"{page} has {len(found)} tables that begin with {header}"
    return found[0][1:]


def _tables(page: str) -> list[list[Row]]:
    tables: list[list[Row]] = []
    before = ""
    for line in (DOCS / page).read_text(encoding="utf-8").splitlines():
        if line.startswith("|") and not before.startswith("|"):
            tables.append([])
        if line.startswith("|") and not _BREAK.match(line):
            tables[-1].append(tuple(cell.strip().replace("`", "") for cell in line.strip("|").split("|")))
        before = line
    return tables


def names_in(cell: str) -> list[str]:
    """The names in a cell such as ``task_id, context_id``."""
    return [name.strip() for name in cell.split(",")]
