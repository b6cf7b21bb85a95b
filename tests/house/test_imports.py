"""The core stays light: what importing it must not bring along."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = (
    "sqlalchemy",
    "alembic",
    "uvicorn",
    "uvloop",
    "grpc",
    "websockets",
    "starlette",
    "fastapi",
    "rich",
    "typer",
    "pydantic",
    "joserfc",
    "cryptography",
    "rfc8785",
)
PROGRAM = "import sys, {module}; print(*sorted(set(sys.modules) & set(sys.argv[1:])))"


@pytest.mark.parametrize("module", ["dragoman", "dragoman.client", "dragoman.server"])
def test_import_brings_no_heavy_library(module: str) -> None:
    command = [sys.executable, "-c", PROGRAM.format(module=module), *HEAVY]

    found = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)

    assert found.stdout.split() == []
