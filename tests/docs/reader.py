"""Somebody who does what a page of the documentation says, in a folder of their own.

* A block with the name of a file is saved under it.
* Any other Python block is typed into one console for the whole page, which knows ``await``.
* The lines of a shell block are run one after the other. A server is started beside the page, on a free port; one on
  the same port of the page ends before. ``pkill -KILL -f WORDS`` kills the server of the page with these words.
* A ``text`` block is what the block before it has printed to standard output. There ``…`` stands for anything in a
  line, and a line of it alone for any number of lines. Empty lines at the end do not count.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

from tests.docs.server import Server
from tests.house.snippets import Block, read_blocks

CONSOLE = Path(__file__).with_name("console.py")
PROGRAMS = Path(sys.executable).parent
SERVERS = (
    ["dragoman", "run"],
    ["dragoman", "server"],
    ["dragoman", "demo-server"],
    ["dragoman", "agentcore", "dev"],
    ["uvicorn"],
)
NOT_RUN = ("pip", "make", "git", "cd")
RUN = ("python", "sh")
USUAL_PORTS = {"run": "8000", "server": "8080", "demo-server": "8080", "agentcore": "9080"}
ADDRESS = re.compile(r"(?<=127\.0\.0\.1:)\d+")
TIMEOUT = 30.0


class Reader:
    """Follows one page at a time; leaves nothing running behind (``with``)."""

    def __init__(self, folder: Path) -> None:
        path = os.pathsep.join([str(PROGRAMS), os.environ["PATH"]])
        self._folder = folder
        self._environment = {
            **os.environ,
            "PATH": path,
            "PYTHONPATH": str(folder),
            "PYTHONIOENCODING": "utf-8",
            "HOME": str(folder),
        }
        self._servers: dict[str, Server] = {}
        self._ports: dict[str, str] = {}
        self._console: subprocess.Popen[str] | None = None

    def follow(self, page: Path) -> list[Block]:
        """Do what a page says; the blocks that were run. Raises AssertionError where it does not go as it says."""
        done, printed = [], ""
        for block in read_blocks(page):
            try:
                if block.language == "text":
                    self._compare(block.text, printed)
                elif block.file:
                    (self._folder / block.file).write_text(self._real(block.text), encoding="utf-8")
                elif block.language in RUN:
                    printed = self._type(block.text) if block.language == "python" else self._execute(block.text)
                    done.append(block)
            except AssertionError as error:
                raise AssertionError(f"{page.name}, at\n\n{block.text}\n{error}") from error
        return done

    # Python.

    def _type(self, source: str) -> str:
        console = self._console or self._start_console()
        assert console.stdin is not None
        assert console.stdout is not None
        console.stdin.write(json.dumps(self._real(source)) + "\n")
        console.stdin.flush()
        answer = json.loads(console.stdout.readline() or '{"printed": "", "error": "the console has ended"}')
        assert not answer["error"], answer["error"]
        return str(answer["printed"])

    def _start_console(self) -> subprocess.Popen[str]:
        self._console = subprocess.Popen(
            [sys.executable, str(CONSOLE)],
            cwd=self._folder,
            env=self._environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )
        return self._console

    # The shell.

    def _execute(self, text: str) -> str:
        return "".join(map(self._run, _commands(text)))

    def _run(self, line: str) -> str:
        words = shlex.split(line)
        if words[0] in NOT_RUN:
            return ""
        if words[:3] == ["pkill", "-KILL", "-f"]:
            self._kill(words[3])
            return ""
        if any(words[: len(server)] == server for server in SERVERS):
            return self._serve(words)
        done = subprocess.run(
            ["bash", "-c", self._real(line)],
            cwd=self._folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            timeout=TIMEOUT,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def _serve(self, words: list[str]) -> str:
        shown, words = _take_port(words)
        if shown in self._servers:
            self._servers[shown].end(signal.SIGTERM)
        words = [*map(self._real, words), "--port", self._port(shown)]
        server = Server(words, folder=self._folder, environment=self._environment)
        self._servers[shown] = server
        return server.output

    def _kill(self, words: str) -> None:
        found = [server for server in self._servers.values() if words in server.command]
        assert found, f"no server of this page has {words!r} in its command"
        for server in found:
            server.end(signal.SIGKILL)

    # Ports: those of the page, and those that are free here.

    def _port(self, shown: str) -> str:
        if shown not in self._ports:
            self._ports[shown] = _free_port()
        return self._ports[shown]

    def _real(self, text: str) -> str:
        return ADDRESS.sub(lambda shown: self._port(shown[0]), text)

    def _shown(self, text: str) -> str:
        shown = {real: shown for shown, real in self._ports.items()}
        return ADDRESS.sub(lambda real: shown.get(real[0], real[0]), text)

    def _compare(self, expected: str, printed: str) -> None:
        pattern = re.compile("".join(map(_line_pattern, expected.rstrip().splitlines())))
        seen = self._shown(printed.rstrip() + "\n")
        assert pattern.fullmatch(seen), f"was not printed, but\n\n{seen}"

    # The end.

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        for server in self._servers.values():
            server.end(signal.SIGKILL)
        if self._console is not None:
            self._console.communicate(timeout=TIMEOUT)


def _commands(text: str) -> Iterator[str]:
    """The commands of a shell block: a line each, or more where a line goes on or a quote is open."""
    command = ""
    for line in text.replace("\\\n", " ").splitlines():
        command = f"{command}\n{line}" if command else line
        with contextlib.suppress(ValueError):  # an open quote
            if shlex.split(command, comments=True):
                yield command
            command = ""
    assert not command, f"a quote is left open in {command}"


def _free_port() -> str:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return str(listening.getsockname()[1])


def _take_port(words: list[str]) -> tuple[str, list[str]]:
    """The port that a command names, or the usual one, and the command without it."""
    if "--port" not in words:
        return USUAL_PORTS[words[1]], words
    at = words.index("--port")
    return words[at + 1], [*words[:at], *words[at + 2 :]]


def _line_pattern(line: str) -> str:
    if line.strip() == "…":
        return r"(?:.*\n)*?"
    return ".*".join(map(re.escape, line.rstrip().split("…"))) + r"[ ]*\n"
