"""No file of the project holds a path of somebody's machine, a registry host, or a secret."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
MADE_BY_TOOLS = {"build", "dist", "site", "__pycache__"}
BINARY = {".png", ".db", ".db-wal", ".db-shm", ".pyc", ".gz"}

# Folders at the root of a Linux system that may be named anywhere; homes of people are not among them.
_STANDARD = "bin boot dev etc lib lib32 lib64 libx32 media mnt proc run sbin srv sys tmp usr var"
STANDARD = frozenset(_STANDARD.split())


def _personal_folders() -> list[str]:
    here = {path.name for path in Path("/").iterdir() if path.is_dir()} - STANDARD
    return sorted(here | {"home", "root", "Users"})


FORBIDDEN = {
    "a path of somebody's machine": r"(?<![\w.}])/(?:%s)/\w" % "|".join(map(re.escape, _personal_folders())),  # noqa: UP031
    "a package index": r"https?://[^\s\"']+(?:\.whl|\.tar\.gz|\.tgz|\.deb|/simple\b)|--(?:extra-)?index-url",
    "a private key": r"-----BEGIN [A-Z ]*PRIVATE KEY-----",
    "a token": r"\b(?:AKIA[0-9A-Z]{16}|gh[pousr]_\w{36}|pypi-AgEI\w+|xox[abpr]-[\w-]{10,}|sk-[A-Za-z0-9]{32,})\b",
}


def _is_ours(path: Path) -> bool:
    parts = path.relative_to(ROOT).parts
    hidden = any(part.startswith(".") and part not in {".ci", ".gitignore"} for part in parts)
    made = any(part in MADE_BY_TOOLS or part.endswith(".egg-info") for part in parts)
    return not hidden and not made and path.suffix not in BINARY


def project_files() -> Iterator[Path]:
    for path in sorted(ROOT.rglob("*")):
        if _is_ours(path) and path.is_file():
            yield path


@pytest.mark.parametrize("what", FORBIDDEN)
def test_no_file_holds(what: str) -> None:
    pattern = re.compile(FORBIDDEN[what])

    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()[:120]}"
        for path in project_files()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if pattern.search(line)
    ]

    assert found == []


def test_no_lock_file_is_kept() -> None:
    names = {"uv.lock", "poetry.lock", "pdm.lock", "Pipfile.lock", "pylock.toml"}

    assert [path.name for path in project_files() if path.name in names] == []
