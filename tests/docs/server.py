"""A server that a page starts, as a child process."""

from __future__ import annotations

import re
import signal
import subprocess
import threading
from collections.abc import Mapping
from pathlib import Path

READY = re.compile(r"ctrl.c|Agent card:", re.IGNORECASE)
TIMEOUT = 30.0


class Server:
    """A command that serves until it is told to end; it serves once it has said how to end it, or where its card is."""

    def __init__(self, words: list[str], *, folder: Path, environment: Mapping[str, str]) -> None:
        self.command = " ".join(words)
        self.output = ""
        self._ready = threading.Event()
        self._process = subprocess.Popen(
            words,
            cwd=folder,
            env=dict(environment),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self._wait()

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                self.output += line
                if READY.search(line):
                    self._ready.set()
        self._ready.set()

    def _wait(self) -> None:
        if not self._ready.wait(TIMEOUT) or self._process.poll() is not None:
            self.end(signal.SIGKILL)
            raise AssertionError(f"{self.command} does not serve:\n{self.output}")

    def end(self, how: signal.Signals) -> None:
        """Send a signal and wait for the end. Safe to call twice."""
        if self._process.poll() is None:
            self._process.send_signal(how)
        self._process.wait(TIMEOUT)
        self._reader.join(TIMEOUT)
