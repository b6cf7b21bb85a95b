"""A plot as SVG, drawn by hand: a histogram for each numeric column."""

from __future__ import annotations

from html import escape

from .table import Column

WIDTH, HEIGHT, MARGIN = 360, 200, 34
BINS = 24
PER_ROW = 2
MOST = 8


def histogram(numbers: list[float]) -> list[int]:
    """How many numbers fall into each of ``BINS`` equal steps from the least to the greatest."""
    low, high = min(numbers), max(numbers)
    step = (high - low) / BINS or 1.0
    counts = [0] * BINS
    for number in numbers:
        counts[min(int((number - low) / step), BINS - 1)] += 1
    return counts


def draw_plot(columns: list[Column], title: str) -> bytes:
    """The numeric columns (the first ``MOST`` of them), as one picture in UTF-8."""
    shown = [column for column in columns if column.is_numeric][:MOST]
    rows = max(1, -(-len(shown) // PER_ROW))
    panels = [_panel(column, index % PER_ROW, index // PER_ROW) for index, column in enumerate(shown)]
    size = f'width="{WIDTH * PER_ROW}" height="{HEIGHT * rows + MARGIN}"'
    style = "<style>text{font:12px sans-serif;fill:#333}.bar{fill:#3a7ca5}.axis{stroke:#999}</style>"
    head = f'<text x="{MARGIN}" y="22" style="font-size:15px">{escape(title)}</text>'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}>{style}{head}{"".join(panels)}</svg>\n'.encode()


def _panel(column: Column, across: int, down: int) -> str:
    counts = histogram(column.numbers)
    inner, floor = WIDTH - 2 * MARGIN, HEIGHT - MARGIN
    scale, step = (HEIGHT - 2 * MARGIN) / max(counts), inner / BINS
    bars = "".join(
        f'<rect class="bar" x="{MARGIN + i * step:.1f}" y="{floor - count * scale:.1f}" '
        f'width="{step - 1:.1f}" height="{count * scale:.1f}"/>'
        for i, count in enumerate(counts)
    )
    axis = f'<line class="axis" x1="{MARGIN}" y1="{floor}" x2="{WIDTH - MARGIN}" y2="{floor}"/>'
    words = (
        f'<text x="{MARGIN}" y="{MARGIN - 10}">{escape(column.name)}</text>'
        f'<text x="{MARGIN}" y="{floor + 16}">{min(column.numbers):g}</text>'
        f'<text x="{WIDTH - MARGIN}" y="{floor + 16}" text-anchor="end">{max(column.numbers):g}</text>'
    )
    return f'<g transform="translate({across * WIDTH},{down * HEIGHT + MARGIN})">{words}{bars}{axis}</g>'
