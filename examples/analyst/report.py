"""The summary in Markdown, a section at a time."""

from __future__ import annotations

from typing import Any


def opening(rows: int, columns: int) -> str:
    """Title and size."""
    return f"# What the table says\n\n{rows:,} rows in {columns} columns.\n"


def section(facts: dict[str, Any]) -> str:
    """One column."""
    body = _numbers(facts) if facts["kind"] == "number" else _words(facts)
    gaps = f" {facts['missing']:,} cells are empty." if facts["missing"] else ""
    return f"\n## {facts['name']}\n\n{body}{gaps}\n"


def closing(pairs: list[dict[str, Any]]) -> str:
    """The strongest connections between columns."""
    lines = [f"* {p['columns'][0]} and {p['columns'][1]}: r = {p['r']:.2f}" for p in pairs[:3]]
    return "\n## Connections\n\n" + ("\n".join(lines) or "No two columns of numbers to compare.") + "\n"


def _numbers(facts: dict[str, Any]) -> str:
    low, middle, high = facts["quartiles"]
    text = f"From {facts['min']:g} to {facts['max']:g}; half of all lie between {low:g} and {high:g}, "
    text += f"the median is {middle:g}."
    if interval := facts.get("mean_ci95"):
        text += f" The mean is {facts['mean']:g} (95 % sure: between {interval[0]:g} and {interval[1]:g})."
    return text


def _words(facts: dict[str, Any]) -> str:
    top = ", ".join(f"{entry['value']} ({entry['count']:,})" for entry in facts["top"])
    return f"{facts['distinct']:,} different values; most frequent: {top or 'none'}."
