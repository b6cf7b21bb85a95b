"""Makes ``tests/requirements/register.tsv`` out of the requirement registers and the table of reports.

    python -m tools.register path/to/requirements-v1.md path/to/reports.md path/to/cli.md

Only facts are taken: id, strength, who is bound, section, topic. The sentences of the registers stay where
they are. Rows of the chapter on ambiguities get the strength ``TAKE``, rows of the reports the strength ``CASE``, and
those of the command line ``MUST``, with their tier in the topic.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

TARGET = Path(__file__).parent.parent / "tests" / "requirements" / "register.tsv"
COLUMNS = ("id", "strength", "who", "section", "topic")

TOPIC = re.compile(r"## (\d+)\. (.+)")
REQUIREMENT = re.compile(r"\| ([A-Z]+-\d+) \| ([A-Z ]+)(†?) \| ([a-z, ]+) \| .* \| ([^|]+) \|")
AMBIGUITY = re.compile(r"\*\*(AMB-\d+):")
REPORT = re.compile(r"\| (B\d+) \|.*\| ([^|]+) \|")
COMMAND_LINE = re.compile(r"\| *\d+ \| `(A2ACLI_[A-Z_]+_\d+)` \| (\d) \| .* \| ([^|]+) \| [^|]+ \|")
CHAPTER_OF_AMBIGUITIES = "28"


class Row(NamedTuple):
    """One line of the table, columns as in ``COLUMNS``."""

    id: str
    strength: str
    who: str
    section: str
    topic: str


def read_requirements(text: str) -> Iterator[Row]:
    """Rows of the topics, then the ambiguities, in the order of the register."""
    number, topic = "", ""
    for line in text.splitlines():
        if heading := TOPIC.match(line):
            number, topic = heading.groups()
        elif row := REQUIREMENT.match(line):
            id, strength, implied, who, section = row.groups()
            yield Row(id, strength + implied, who.replace(" ", ""), section.strip(), topic)
        elif number == CHAPTER_OF_AMBIGUITIES and (entry := AMBIGUITY.match(line)):
            yield Row(entry[1], "TAKE", "", "", "Ambiguities")


def read_reports(text: str) -> Iterator[Row]:
    """Rows of the reports, with their area as the topic."""
    for row in filter(None, map(REPORT.match, text.splitlines())):
        yield Row(row[1], "CASE", "", "", f"Reports: {row[2].strip()}")


def read_command_line(text: str) -> Iterator[Row]:
    """Rows of the register of the command line."""
    for row in filter(None, map(COMMAND_LINE.match, text.splitlines())):
        yield Row(row[1], "MUST", "cli", row[3].strip(), f"Command line, tier {row[2]}")


def write_table(rows: list[Row]) -> str:
    """The table as text. Raises ValueError when an id comes twice."""
    ids = [row.id for row in rows]
    if doubles := {id for id in ids if ids.count(id) > 1}:
        raise ValueError(f"ids that come twice: {sorted(doubles)}")
    return "".join("\t".join(fields) + "\n" for fields in (COLUMNS, *rows))


def main(arguments: list[str]) -> int:
    """Read the files, write the table, say what it holds."""
    if len(arguments) != 3:
        print(__doc__)
        return 2
    register, reports, command_line = (Path(name).read_text(encoding="utf-8") for name in arguments)
    rows = [*read_requirements(register), *read_reports(reports), *read_command_line(command_line)]
    TARGET.write_text(write_table(rows), encoding="utf-8")
    must = sum("MUST" in row.strength for row in rows)
    print(f"{TARGET.name}: {len(rows)} rows, {must} of them MUST or MUST NOT")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
