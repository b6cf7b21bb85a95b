"""Style, types and rooms, so that plain pytest shows what ``make lint`` and ``make types`` show."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
SCRIPTS = Path(sys.executable).parent

CHECKS = {
    "ruff check": [sys.executable, "-m", "ruff", "check", "."],
    "ruff format": [sys.executable, "-m", "ruff", "format", "--check", "."],
    "mypy": [sys.executable, "-m", "mypy"],
    "import-linter": [str(SCRIPTS / "lint-imports"), "--no-logo", "--no-cache"],
}


@pytest.mark.timeout(600)
@pytest.mark.parametrize("command", CHECKS.values(), ids=CHECKS)
def test_check_finds_nothing(command: list[str]) -> None:
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=580)

    assert found.returncode == 0, f"{found.stdout}\n{found.stderr}"
