"""Reading a table, from CSV or from JSON, with faults that name the line."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

MAX_ROWS = 200_000


class BadTable(Exception):
    """The table cannot be read; the text says where and why, for the person who sent it."""


@dataclass(frozen=True)
class Column:
    """One column: numbers, or words. Empty cells are counted, and left out of ``values``."""

    name: str
    values: list[float] | list[str]
    missing: int

    @property
    def is_numeric(self) -> bool:
        """True when every cell that is not empty is a number."""
        return bool(self.values) and isinstance(self.values[0], float)

    @property
    def numbers(self) -> list[float]:
        """The values of a numeric column."""
        return [value for value in self.values if isinstance(value, float)]


@dataclass(frozen=True)
class Table:
    """Columns of equal length. ``cells`` holds the numeric columns row by row, None where a cell is empty."""

    columns: list[Column]
    rows: int
    cells: dict[str, list[float | None]]


def read_csv(raw: bytes) -> Table:
    """A table from the bytes of a CSV file: UTF-8, a header line, ``,`` or ``;`` or tab between cells.

    Raises BadTable, which names the line.
    """
    text = _decode(raw)
    header = text.split("\n", 1)[0]
    delimiter = max(",;\t", key=header.count)
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    return _build(_numbered(lines), "line")


def read_data(data: Any) -> Table:
    """A table from JSON: a list of objects, or an object with ``columns`` and ``rows``.

    Raises BadTable, which names the row, counted from 1.
    """
    if isinstance(data, list) and data and all(isinstance(row, Mapping) for row in data):
        names = list(dict.fromkeys(name for row in data for name in row))
        rows: Iterable[Sequence[Any]] = ([row.get(name) for name in names] for row in data)
    elif isinstance(data, Mapping) and isinstance(data.get("columns"), list) and isinstance(data.get("rows"), list):
        names, rows = data["columns"], data["rows"]
    else:
        raise BadTable('The data must be a list of objects, or {"columns": [...], "rows": [[...], ...]}.')
    return _build(_of_json(names, rows), "row")


def _decode(raw: bytes) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise BadTable(f"line {line}: the file is not UTF-8 text.") from error


def _numbered(lines: Any) -> Iterator[tuple[int, list[str]]]:
    """Each record with the line that it starts on; quoted cells may span lines."""
    while True:
        start = lines.line_num + 1
        try:
            record = next(lines)
        except StopIteration:
            return
        except csv.Error as error:
            raise BadTable(f"line {start}: {error}.") from error
        if record:
            yield start, record


def _of_json(names: Sequence[Any], rows: Iterable[Any]) -> Iterator[tuple[int, list[str]]]:
    yield 0, [str(name) for name in names]
    for number, row in enumerate(rows, start=1):
        if not isinstance(row, list):
            raise BadTable(f"row {number}: not a list of cells.")
        yield number, ["" if cell is None else str(cell) for cell in row]


def _build(records: Iterator[tuple[int, list[str]]], unit: str) -> Table:
    names = _header(next(records, (1, []))[1])
    where: list[int] = []
    rows: list[list[str]] = []
    for number, record in records:
        if len(record) != len(names):
            raise BadTable(f"{unit} {number}: {len(record)} cells, but the header has {len(names)}.")
        if len(rows) == MAX_ROWS:
            raise BadTable(f"{unit} {number}: more than {MAX_ROWS:,} rows.")
        where.append(number)
        rows.append(record)
    if not rows:
        raise BadTable("There is no row below the header.")
    by_name = {name: [row[index].strip() for row in rows] for index, name in enumerate(names)}
    cells = {name: _numbers(name, column, where, unit) for name, column in by_name.items() if _is_number_like(column)}
    columns = [_column(name, by_name[name], cells.get(name)) for name in names]
    return Table(columns, len(rows), cells)


def _header(record: list[str]) -> list[str]:
    names = [name.strip() for name in record]
    if not names or not all(names):
        raise BadTable("line 1: the header must name every column.")
    if doubles := sorted({name for name in names if names.count(name) > 1}):
        raise BadTable(f"line 1: the header names {doubles[0]!r} twice.")
    return names


def _is_number_like(column: list[str]) -> bool:
    """The first cell that is not empty decides."""
    return _number(next(filter(None, column), "")) is not None


def _number(cell: str) -> float | None:
    try:
        value = float(cell)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _numbers(name: str, column: list[str], where: list[int], unit: str) -> list[float | None]:
    found: list[float | None] = []
    for number, cell in zip(where, column, strict=True):
        value = _number(cell) if cell else None
        if cell and value is None:
            raise BadTable(f"{unit} {number}: {cell[:40]!r} in column {name!r} is not a number.")
        found.append(value)
    return found


def _column(name: str, words: list[str], numbers: list[float | None] | None) -> Column:
    if numbers is not None:
        present = [number for number in numbers if number is not None]
        return Column(name, present, len(numbers) - len(present))
    filled = [word for word in words if word]
    return Column(name, filled, len(words) - len(filled))
