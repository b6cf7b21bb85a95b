"""Makes ``tests/requirements/register.tsv`` out of the requirement registers and the table of reports.

    python -m tools.register requirements-v1.md reports.md cli.md agentcore.md v0_3.md

Only facts are taken: id, strength, who is bound, section, topic. The sentences of the registers stay where
they are. Rows of the chapter on ambiguities get the strength ``TAKE``, rows of the reports the strength ``CASE``, and
those of the command line ``MUST``, with their tier in the topic.

In the register of AgentCore, rows of the front, the ping vectors and the scenarios from end to end say no strength
and are ``MUST``. The checklist of protocol 0.3 is ``MUST``, its pitfalls are ``CASE``; both get ids by their position.
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

HEADING = re.compile(r"##+ (\d[\d.]*?)\.? (.+)")
AGENTCORE = re.compile(r"\*\*(AC-([SCF])-\d+)\*\* ?(MUST|SHOULD|MAY)?")
SCENARIO = re.compile(r"\| (E2E-\d+) \|")
PING = re.compile(r"\| (P\d+) \|")
BOUND_BY_AGENTCORE = {"S": "server", "C": "client", "F": "front"}
PITFALL = re.compile(r"\| (\d+) \|")
CHAPTER_OF_PITFALLS, CHAPTER_OF_ACCEPTANCE = "10", "11"


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


def _with_chapters(text: str) -> Iterator[tuple[str, str, str]]:
    """Each line that is no heading, with the number and the title of its chapter.

    The title is that of the section where the chapter is a register, and of the whole chapter elsewhere.
    """
    number, title, chapter = "", "", ""
    for line in text.splitlines():
        if heading := HEADING.match(line):
            number, title = heading[1], heading[2].partition(" — ")[0]
            chapter = title if line.startswith("## ") else chapter
        else:
            yield number, title if chapter.endswith("register") else chapter, line


def read_agentcore(text: str) -> Iterator[Row]:
    """Rows of the register of AgentCore, the ping vectors and the scenarios among them."""
    for number, title, line in _with_chapters(text):
        if row := AGENTCORE.match(line):
            who = BOUND_BY_AGENTCORE[row[2]]
            yield Row(row[1], row[3] or "MUST", who, number, f"AgentCore, {who}: {title}")
        elif row := SCENARIO.match(line):
            yield Row(row[1], "MUST", "server,client", number, "AgentCore, end to end")
        elif row := PING.match(line):
            yield Row(row[1], "MUST", "server", number, "AgentCore, ping vectors")


def read_protocol_0_3(text: str) -> Iterator[Row]:
    """The checklist of protocol 0.3, and what went wrong elsewhere."""
    bullets = 0
    for number, _, line in _with_chapters(text):
        if number == CHAPTER_OF_PITFALLS and (row := PITFALL.match(line)):
            yield Row(f"V03-P{int(row[1]):02}", "CASE", "", number, "Protocol 0.3: pitfalls")
        elif number == CHAPTER_OF_ACCEPTANCE and line.startswith("- "):
            bullets += 1
            yield Row(f"V03-{bullets:02}", "MUST", "server,client", number, "Protocol 0.3: acceptance")


def write_table(rows: list[Row]) -> str:
    """The table as text. Raises ValueError when an id comes twice."""
    ids = [row.id for row in rows]
    if doubles := {id for id in ids if ids.count(id) > 1}:
        raise ValueError(f"ids that come twice: {sorted(doubles)}")
    return "".join("\t".join(fields) + "\n" for fields in (COLUMNS, *rows))


READERS = (read_requirements, read_reports, read_command_line, read_agentcore, read_protocol_0_3)


def main(arguments: list[str]) -> int:
    """Read the files, write the table, say what it holds."""
    if len(arguments) != len(READERS):
        print(__doc__)
        return 2
    texts = (Path(name).read_text(encoding="utf-8") for name in arguments)
    rows = [row for read, text in zip(READERS, texts, strict=True) for row in read(text)]
    TARGET.write_text(write_table(rows), encoding="utf-8")
    must = sum("MUST" in row.strength for row in rows)
    print(f"{TARGET.name}: {len(rows)} rows, {must} of them MUST or MUST NOT")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
