"""Reading the code blocks of a Markdown file, and running them as a reader would."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import NamedTuple

BLOCK = re.compile(r'^```(\w+)(?: title="([\w.]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)
FILE_NAME = re.compile(r"# (\w+\.py)\n")


class Block(NamedTuple):
    """A fenced block. ``file`` is the name in its title or its first line (``# echo.py``), or empty."""

    language: str
    text: str
    file: str


def read_blocks(markdown: Path) -> list[Block]:
    """All fenced blocks of a file, in order."""
    found = BLOCK.findall(markdown.read_text(encoding="utf-8"))
    return [Block(language, text, title or _file_name(text)) for language, title, text in found]


def read_commands(markdown: Path) -> list[list[str]]:
    """The lines of all shell blocks, split into words."""
    shell = (block.text for block in read_blocks(markdown) if block.language in {"sh", "console"})
    return [shlex.split(line.removeprefix("$ ")) for text in shell for line in text.splitlines() if line.strip()]


def _file_name(text: str) -> str:
    match = FILE_NAME.match(text)
    return match[1] if match else ""
