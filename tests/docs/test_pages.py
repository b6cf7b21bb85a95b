"""What the documentation shows works as shown: every block is run, and what it is said to print is compared."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.docs.reader import Reader
from tests.house.snippets import read_blocks

ROOT = Path(__file__).parent.parent.parent
PAGES = sorted((ROOT / "docs").glob("*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_reader_who_does_what_a_page_says_sees_what_it_says(page: Path, tmp_path: Path) -> None:
    if "curl " in page.read_text(encoding="utf-8") and shutil.which("curl") is None:
        pytest.skip("the page uses curl, which is not installed")

    with Reader(tmp_path) as reader:
        done = reader.follow(page)

    assert done or not read_blocks(page)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_no_block_of_a_page_escapes_the_reader(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    fences = re.findall(r"^\s*(?:```|~~~).*$", text, re.MULTILINE)

    assert len(fences) == 2 * len(read_blocks(page))
    assert {block.language for block in read_blocks(page)} <= {"python", "sh", "text", "csv", "http", "json", "yaml"}
