"""Statistics of a table's columns, as plain data."""

from __future__ import annotations

import random
import statistics
from collections import Counter
from collections.abc import Iterator
from itertools import combinations
from typing import Any

from .table import Column, Table

SLICE = 25  # resamples in one go; between two slices other work and a cancellation get their turn


def describe(column: Column) -> dict[str, Any]:
    """What can be said about a column at once."""
    known = {"name": column.name, "count": len(column.values), "missing": column.missing}
    return known | (_of_numbers(column.numbers) if column.is_numeric else _of_words(column))


def _of_numbers(numbers: list[float]) -> dict[str, Any]:
    quartiles = statistics.quantiles(numbers, n=4) if len(numbers) > 1 else [numbers[0]] * 3
    return {
        "kind": "number",
        "min": min(numbers),
        "max": max(numbers),
        "mean": _short(statistics.fmean(numbers)),
        "stdev": _short(statistics.stdev(numbers)) if len(numbers) > 1 else 0.0,
        "quartiles": [_short(value) for value in quartiles],
    }


def _of_words(column: Column) -> dict[str, Any]:
    counts = Counter(map(str, column.values))
    top = [{"value": value, "count": count} for value, count in counts.most_common(5)]
    return {"kind": "text", "distinct": len(counts), "top": top}


class Bootstrap:
    """A 95 % confidence interval of the mean, by resampling; seeded, so that a second run finds the same."""

    def __init__(self, column: Column, resamples: int) -> None:
        self._numbers = column.numbers
        self._rng = random.Random(column.name)
        self._means: list[float] = []
        self.resamples = resamples

    def slices(self) -> Iterator[int]:
        """How many resamples to draw, again and again, until there are enough."""
        while (left := self.resamples - len(self._means)) > 0:
            yield min(left, SLICE)

    def draw(self, count: int) -> None:
        """Draw some resamples. Takes about a millisecond for each few thousand numbers."""
        size = len(self._numbers)
        for _ in range(count):
            self._means.append(statistics.fmean(self._rng.choices(self._numbers, k=size)))

    def interval(self) -> list[float]:
        """Lower and upper end."""
        means = sorted(self._means)
        return [_short(means[int(len(means) * 0.025)]), _short(means[int(len(means) * 0.975)])]


def correlations(table: Table) -> list[dict[str, Any]]:
    """Pearson's r of each two numeric columns, over the rows that have both, strongest first."""
    found = []
    for first, second in combinations(table.cells, 2):
        pairs = [pair for pair in zip(table.cells[first], table.cells[second], strict=True) if None not in pair]
        if (r := _correlation(pairs)) is not None:
            found.append({"columns": [first, second], "r": round(r, 3)})
    return sorted(found, key=lambda item: -abs(item["r"]))


def _correlation(pairs: list[Any]) -> float | None:
    try:
        return statistics.correlation(*zip(*pairs, strict=True))
    except (TypeError, statistics.StatisticsError):  # fewer than two rows, or a column that never changes
        return None


def _short(value: float) -> float:
    return float(f"{value:.6g}")
