"""Tables as text for the terminal, and as Markdown."""

from __future__ import annotations

from collections.abc import Sequence

NO_NUMBER = ("", "-")


def as_text(
    headings: Sequence[str], rows: Sequence[Sequence[str]], *, widths: Sequence[int] = (), left: int = 1
) -> list[str]:
    """Aligned columns, the first ones (``left``) to the left. ``widths`` is for rows that come one by one."""
    wide = widths or [max(len(row[column]) for row in [headings, *rows]) for column in range(len(headings))]
    return [_line(row, wide, left) for row in [headings, *rows]]


def _line(row: Sequence[str], widths: Sequence[int], left: int) -> str:
    pairs = enumerate(zip(row, widths, strict=True))
    cells = [f"{cell:<{width}}" if number < left else f"{cell:>{width}}" for number, (cell, width) in pairs]
    return "  ".join(cells).rstrip()


def as_markdown(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A table with numbers to the right."""
    columns = [[row[column] for row in rows] for column in range(len(headings))]
    rule = ["---:" if all(cell in NO_NUMBER or _is_number(cell) for cell in column) else "---" for column in columns]
    return [f"| {' | '.join(row)} |" for row in [headings, rule, *rows]]


def _is_number(cell: str) -> bool:
    return cell.rstrip("!").replace(",", "").replace(".", "", 1).isdecimal()
