"""A Dockerfile as data: its rules, and its steps as commands, as there is no container engine in a test."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent.parent
STEP_TIMEOUT = 240.0


class Step:
    """One instruction: its word, its text, and its words where it is in exec form."""

    def __init__(self, word: str, text: str) -> None:
        self.word = word
        self.text = text
        found = re.search(r"\[.*\]$", text)
        self.words: list[str] | None = json.loads(found[0]) if found else None


def read_steps(dockerfile: str) -> list[Step]:
    """The instructions of a Dockerfile."""
    lines = "\n".join(line for line in dockerfile.splitlines() if not line.startswith("#"))
    joined = re.sub(r"\\\n\s*", "", lines)
    return [Step(*line.split(" ", 1)) for line in joined.splitlines() if line.strip()]


def lint(steps: list[Step]) -> Iterator[str]:
    """What is wrong with a recipe."""
    words = [step.word for step in steps]
    base = next(step for step in steps if step.word == "FROM").text
    if not re.fullmatch(r"--platform=linux/arm64 python:\d+\.\d+\.\d+-slim-[a-z]+", base):
        yield f"the base is not a slim Python for ARM64 at one exact version: {base}"
    if words.count("USER") != 1 or words.index("USER") > words.index("CMD"):
        yield "there is not one USER before CMD"
    if not re.fullmatch(r"[1-9]\d*:[1-9]\d*", next(step.text for step in steps if step.word == "USER")):
        yield "the user is root, or has to be looked up"
    if "RUN" in words[words.index("USER") :] or "COPY" in words[words.index("USER") :]:
        yield "the user could write what it runs"
    for step in steps:
        if step.word in ("CMD", "HEALTHCHECK") and (step.words is None or step.words[0] != "python"):
            yield f"{step.word} is not in exec form, or does not exec Python"
        if step.word in ("ADD", "ARG", "VOLUME"):
            yield f"{step.word} is not needed"
        if step.word == "RUN" and re.search(r"apt-get|curl|wget|sudo|https?://|--(extra-)?index-url", step.text):
            yield f"a step fetches what is not pinned: {step.text}"
        if step.word == "RUN" and "pip install" in step.text and "--only-binary :all:" not in step.text:
            yield "something may be compiled"
    if "HEALTHCHECK" not in words or "CMD" not in words or "ENTRYPOINT" in words:
        yield "HEALTHCHECK or CMD is missing"


class Built:
    """What the steps of a Dockerfile made: a folder in place of the image, and the environment of its processes."""

    def __init__(self, folder: Path, environment: dict[str, str], command: list[str], health: list[str]) -> None:
        self.folder = folder
        self.environment = environment
        self.command = command
        self.health = health


def build(context: Path, place: Path) -> Built:
    """Do what ``context/Dockerfile`` says: ``place`` is the file system, a new virtual environment its Python."""
    steps = read_steps((context / "Dockerfile").read_text(encoding="utf-8"))
    venv = place / "python"
    subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True, timeout=STEP_TIMEOUT)
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    environment = {**kept, "PATH": f"{venv / 'bin'}:{kept['PATH']}"}
    here = place / "root"
    command: list[str] = []
    health: list[str] = []
    for step in steps:
        if step.word == "ENV":
            environment |= dict(pair.split("=", 1) for pair in shlex.split(step.text))
        elif step.word == "WORKDIR":
            here = place / "root" / step.text.lstrip("/")
            here.mkdir(parents=True)
        elif step.word == "COPY":
            _copy(context, here, step.text.split())
        elif step.word == "RUN":
            done = subprocess.run(
                ["sh", "-c", step.text],
                cwd=here,
                env=environment,
                capture_output=True,
                text=True,
                timeout=STEP_TIMEOUT,
                check=False,
            )
            assert done.returncode == 0, done.stdout + done.stderr
        elif step.word == "CMD":
            command = step.words or []
        elif step.word == "HEALTHCHECK":
            health = step.words or []
    return Built(here, environment, command, health)


def _copy(context: Path, here: Path, words: list[str]) -> None:
    *sources, target = words
    for source in sources:
        if (context / source).is_dir():
            shutil.copytree(context / source, here / target, dirs_exist_ok=True)
        else:
            shutil.copy(context / source, here / target)


def build_wheel(into: Path, work: Path) -> None:
    """A wheel of dragoman, made of a copy, so that the working tree stays as it is."""
    copy = work / "source"
    copy.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy / name)
    shutil.copytree(ROOT / "src", copy / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-cache-dir", "--wheel-dir", str(into)]
    done = subprocess.run([*command, str(copy)], capture_output=True, text=True, timeout=STEP_TIMEOUT, check=False)
    assert done.returncode == 0, done.stderr
