"""What the README shows works as shown."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from examples.process import DRAGOMAN, AgentProcess
from tests.house.snippets import read_blocks, read_commands

ROOT = Path(__file__).parent.parent.parent
README = ROOT / "README.md"
SHOWN_URL = "http://127.0.0.1:8000"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that the README shows."""
    folder = tmp_path_factory.mktemp("readme")
    for block in read_blocks(README):
        if block.file:
            (folder / block.file).write_text(block.text, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def served(folder: Path) -> Iterator[str]:
    """The address of the first agent of the README, served by the first command of the README."""
    command = next(words for words in read_commands(README) if words[:2] == ["dragoman", "run"])
    with AgentProcess.serving(*command[2:], cwd=folder) as process:
        yield process.url


def run_python(program: str, folder: Path) -> str:
    environment = os.environ | {"PYTHONPATH": str(folder), "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=folder, env=environment, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_client_prints_what_the_readme_says(folder: Path, served: str) -> None:
    program = (folder / "call.py").read_text(encoding="utf-8").replace(SHOWN_URL, served)

    assert run_python(program, folder) == "You said: hello\n"


def test_programs_without_a_server_run_as_they_are(folder: Path) -> None:
    programs = [block.text for block in read_blocks(README) if block.language == "python" and not block.file]

    outputs = [run_python(program, folder) for program in programs]

    assert len(outputs) == 1
    assert "You said: hello" in outputs[0]


def test_the_shown_agent_asks_and_then_streams_its_plan(folder: Path) -> None:
    program = """
import asyncio, dragoman
from planner import agent

async def main():
    async with dragoman.connect(agent) as client:
        asked = await client.run("work")
        done = await client.run("2", task=asked.task)
        print(asked.state.name, done.state.name, repr(done.text))

asyncio.run(main())
"""
    assert run_python(program, folder).strip() == r"INPUT_REQUIRED COMPLETED '9:00 work\n10:00 work\n'"


def test_every_option_of_the_shown_server_is_accepted(folder: Path) -> None:
    *_, command = (words for words in read_commands(README) if words[:2] == ["dragoman", "run"])
    options = [word for word in command[3:] if word.startswith("--")]

    shown = subprocess.run([DRAGOMAN, "run", "--help"], capture_output=True, text=True, timeout=60)

    assert options
    assert [option for option in options if option not in shown.stdout] == []


def test_verbs_and_extras_of_the_readme_exist() -> None:
    text = README.read_text(encoding="utf-8")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]

    assert all(f"\n{verb}:" in makefile for verb in ("demo", "test", "run", "rows") if f"make {verb}" in text)
    assert "all" in extras


def test_every_file_that_the_architecture_names_exists() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    names = set(re.findall(r"`([\w./]+\.(?:py|proto)|tools/\w+)`", text))

    missing = [name for name in names if not (ROOT / name).exists() and not (ROOT / "src/dragoman" / name).exists()]

    assert names
    assert missing == []
