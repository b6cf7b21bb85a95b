"""An agent that runs in a process of its own, for the demonstration and the tests."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

ROOT = Path(__file__).parent.parent
DRAGOMAN = str(Path(sys.executable).with_name("dragoman"))
CARD_URL = re.compile(r"(https?://[\w.:\[\]-]+?\S*?)/\.well-known/agent-card\.json")


class NotServing(Exception):
    """The process ended, or said nothing of a card, in time; the text is what it printed."""


class AgentProcess:
    """``dragoman run`` as a child process; ``url`` is its address once started.

    ``stop`` asks it to end (SIGTERM), ``kill`` does not ask (SIGKILL); after either it can be started again, on the
    same port. Times are in seconds.
    """

    def __init__(
        self, command: list[str], *, cwd: Path = ROOT, port: int = 0, environment: Mapping[str, str] | None = None
    ) -> None:
        self._command = command
        self._cwd = cwd
        self._environment = {**os.environ, **(environment or {})}
        self._process: subprocess.Popen[str] | None = None
        self._reader: threading.Thread | None = None
        self._ready = threading.Event()
        self.port = port
        self.url = ""
        self.output: list[str] = []

    @classmethod
    def serving(
        cls, agent: str, *options: str, cwd: Path = ROOT, environment: Mapping[str, str] | None = None
    ) -> AgentProcess:
        """A process for ``module:agent`` with options of ``dragoman run``; started by ``with`` or ``start``."""
        return cls([DRAGOMAN, "run", agent, *options], cwd=cwd, environment=environment)

    def start(self, timeout: float = 30.0) -> str:
        """Start, wait until it serves, and return its address. Raises NotServing."""
        self.url = ""
        self._ready.clear()
        self._process = subprocess.Popen(
            [*self._command, "--port", str(self.port)],
            cwd=self._cwd,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._reader = threading.Thread(target=self._read, args=(self._process,), daemon=True)
        self._reader.start()
        if not self._ready.wait(timeout) or not self.url:
            self.kill()
            raise NotServing("".join(self.output))
        return self.url

    def _read(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        with process.stdout as lines:
            for line in lines:
                self.output.append(line)
                if found := CARD_URL.search(line):
                    self.url = found[1]
                    self.port = int(self.url.rsplit(":", 1)[1].split("/")[0])
                    self._ready.set()
        self._ready.set()

    def stop(self, timeout: float = 15.0) -> int:
        """Ask it to end and wait; returns its exit code."""
        return self._end(signal.SIGTERM, timeout)

    def kill(self) -> int:
        """End it on the spot, as a crash would."""
        return self._end(signal.SIGKILL, 15.0)

    def _end(self, how: signal.Signals, timeout: float) -> int:
        if self._process is None or self._reader is None:
            return 0
        self._process.send_signal(how)
        code = self._process.wait(timeout)
        self._reader.join(timeout)
        self._process = None
        return code

    def __enter__(self) -> AgentProcess:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        if self._process is not None and self._process.poll() is None:
            self.kill()
