"""The documentation is built, its links lead somewhere, and whoever reads it calls nobody else."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.tables import DOCS, ROOT

LOADED = re.compile(
    r"<(?:script|img|iframe|source|video|audio)\b[^>]*?\bsrc=[\"']?((?:https?:)?//[^\"' >]+)"
    r"|<link\b[^>]*?\bhref=[\"']?((?:https?:)?//[^\"' >]+)"
)
STYLES = re.compile(r"(?:url\(|@import)\s*[\"']?((?:https?:)?//[^\"')]+)")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built from a copy, so that nothing is left in the project."""
    folder = tmp_path_factory.mktemp("site")
    shutil.copy(ROOT / "zensical.toml", folder)
    shutil.copytree(DOCS, folder / "docs")
    zensical = Path(sys.executable).with_name("zensical")
    built = subprocess.run([zensical, "build", "--strict"], cwd=folder, capture_output=True, text=True, timeout=60)
    assert built.returncode == 0, built.stdout + built.stderr
    return folder / "site"


def test_every_page_is_built_and_can_be_reached(site: Path) -> None:
    names = {page.with_suffix(".html").name for page in DOCS.glob("*.md")}
    start = (site / "index.html").read_text(encoding="utf-8")

    assert names <= {page.name for page in site.glob("*.html")}
    assert [name for name in names if f'href="{name}"' not in start and name != "index.html"] == []


def test_links_within_the_pages_have_their_headings(site: Path) -> None:
    pages = {page.name: page.read_text(encoding="utf-8") for page in site.glob("*.html")}
    links = [
        (name, target or name, anchor)
        for name, text in pages.items()
        for target, anchor in re.findall(r'href="([\w.-]*\.html|)#([^"]+)"', text)
    ]

    assert len(links) > 50
    assert [link for link in links if f'id="{link[2]}"' not in pages[link[1]]] == []


def test_a_page_loads_nothing_from_elsewhere(site: Path) -> None:
    html = "".join(page.read_text(encoding="utf-8") for page in site.glob("*.html"))
    styles = "".join(page.read_text(encoding="utf-8") for page in site.rglob("*.css"))

    assert LOADED.findall(html) == []
    assert STYLES.findall(html + styles) == []


def test_the_readme_leads_to_the_documentation() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")

    assert {f"docs/{page.name}" for page in DOCS.glob("*.md")} <= set(re.findall(r"\((docs/\w+\.md)\)", readme))
