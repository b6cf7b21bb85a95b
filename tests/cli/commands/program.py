"""The real program as a process, and what it said."""

from __future__ import annotations

import contextlib
import fcntl
import io
import json
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from dragoman.cli.main import run_program

COMMAND = [sys.executable, "-m", "dragoman"]
PATIENCE = 30.0


class Done(NamedTuple):
    """A run that ended."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Standard output as the one document that it has to be."""
        return json.loads(self.out)

    @property
    def lines(self) -> list[Any]:
        """Standard output as JSON Lines."""
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def error(self) -> dict[str, Any]:
        """The error that JSON output reports."""
        return self.json["error"]

    def field(self, label: str) -> str:
        """The value of a field of a text record; of several, the first."""
        return next(line.partition(": ")[2] for line in self.out.splitlines() if line.startswith(f"{label}: "))


class Dragoman:
    """Runs ``dragoman`` in a folder of its own with a clean environment."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.home.mkdir(exist_ok=True)
        kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH", "VIRTUAL_ENV") if name in os.environ}
        self.environment = {**kept, "HOME": str(self.home), "LC_ALL": "C", "PYTHONDONTWRITEBYTECODE": "1"}

    def __call__(self, *arguments: str, stdin: bytes | None = None, env: Mapping[str, str] | None = None) -> Done:
        """Run to the end."""
        done = subprocess.run(
            [*COMMAND, *arguments],
            cwd=self.folder,
            env=self.environment | dict(env or {}),
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            timeout=PATIENCE,
        )
        return Done(done.returncode, done.stdout.decode(), done.stderr.decode())

    def inside(self, *arguments: str, stdin: bytes = b"", env: Mapping[str, str] | None = None) -> Done:
        """Run within this process, which is quicker: for tables of cases whose real processes other tests start."""
        out, err = io.TextIOWrapper(io.BytesIO()), io.TextIOWrapper(io.BytesIO())
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(self.folder)
            patch.setattr(os, "environ", self.environment | dict(env or {}))
            patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
            patch.setattr(sys, "stdout", out)
            patch.setattr(sys, "stderr", err)
            status = run_program(arguments)
        return Done(status, out.buffer.getvalue().decode(), err.buffer.getvalue().decode())

    def start(self, *arguments: str, env: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
        """Start, with pipes."""
        return subprocess.Popen(
            [*COMMAND, *arguments],
            cwd=self.folder,
            env=self.environment | dict(env or {}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def files(self) -> set[str]:
        """Every file there is in the folder and the home."""
        return {str(path.relative_to(self.folder)) for path in self.folder.rglob("*")}


def read_until(process: subprocess.Popen[bytes], wanted: bytes) -> bytes:
    """What comes on standard error until it holds something."""
    assert process.stderr is not None
    found, end = b"", time.monotonic() + PATIENCE
    while wanted not in found:
        ready, _, _ = select.select([process.stderr], [], [], max(0.0, end - time.monotonic()))
        data = os.read(process.stderr.fileno(), 4096) if ready else b""
        assert data, found
        found += data
    return found


def finish(process: subprocess.Popen[bytes], before: bytes = b"") -> Done:
    """Wait for the end."""
    out, err = process.communicate(timeout=PATIENCE)
    return Done(process.returncode, out.decode(), (before + err).decode())


def interrupt(process: subprocess.Popen[bytes], number: signal.Signals = signal.SIGINT) -> Done:
    """Wait until the id of the task is told, then send a signal."""
    before = read_until(process, b"Context: ")
    process.send_signal(number)
    return finish(process, before)


class Terminal(NamedTuple):
    """What a run on a pseudo terminal left: everything that was written, and standard output alone, if it was apart."""

    status: int
    screen: str
    out: str


def on_terminal(program: Dragoman, *arguments: str, out_apart: bool = False, columns: int = 100) -> Terminal:
    """Run with a terminal for all three streams, or with one for standard output alone (``out_apart``)."""
    main, side = pty.openpty()
    fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", 30, columns, 0, 0))
    process = subprocess.Popen(
        [*COMMAND, *arguments],
        cwd=program.folder,
        env=program.environment | {"TERM": "xterm-256color"},
        stdin=side,
        stdout=side,
        stderr=subprocess.DEVNULL if out_apart else side,
        start_new_session=True,
    )
    os.close(side)
    written = b""
    with contextlib.suppress(OSError):
        while data := os.read(main, 65536):
            written += data
    os.close(main)
    text = written.decode().replace("\r\n", "\n")
    return Terminal(process.wait(PATIENCE), text, text if out_apart else "")
