"""A server in a process of its own, to be killed and started again.

Theory. The process is ``dragoman run`` on a port that is chosen here, so that it comes back at the same address. That
it serves is found out by asking for its health, not by reading what it prints; what it printed is kept for whoever has
to find out why it does not.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import random
import signal
import socket
import sys
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path

PROGRAM: tuple[str, ...] = (sys.executable, "-m", "dragoman", "run")
HOST = "127.0.0.1"
START_TIMEOUT = 30.0
STOP_TIMEOUT = 20.0
KEPT_LINES = 1_000

_POLL = 0.01
_ALIVE: set[int] = set()


class NotServingError(Exception):
    """The process ended before it served, or did not serve in time. The text has its exit code and its output."""


class ServerProcess:
    """``dragoman run AGENT OPTIONS`` as a child process: ``async with ServerProcess("module:agent", "--store", …)``.

    * ``agent``, ``options``: as on the command line, without host and port;
    * ``port``: 0 (default) takes a free one once, and keeps it over restarts;
    * ``program``: what is run, default this Python's ``dragoman run``;
    * ``cwd``, ``environment``: folder (default: the current one) and variables over those of this process.

    One of :meth:`kill`, :meth:`terminate`, :meth:`wait` and the end of the block reaps the process; when this process
    ends before, its children are killed.
    """

    def __init__(
        self,
        agent: str,
        *options: str,
        port: int = 0,
        program: Sequence[str] = PROGRAM,
        cwd: Path | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.port = port or free_port()
        self.output: deque[str] = deque(maxlen=KEPT_LINES)
        self.starts = 0
        self._command = [*program, agent, "--host", HOST, "--port", str(self.port), *options]
        self._cwd = cwd
        self._environment = {**os.environ, **(environment or {})}
        self._process: asyncio.subprocess.Process | None = None
        self._reading: asyncio.Task[None] | None = None

    @property
    def url(self) -> str:
        """The base address, also while the process is down."""
        return f"http://{HOST}:{self.port}"

    @property
    def pid(self) -> int:
        """Id of the running process. Raises NotServingError when there is none."""
        if self._process is None:
            raise NotServingError("the process is not running")
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """Whether there is a process that has not ended."""
        return self._process is not None and self._process.returncode is None

    async def start(self, timeout: float = START_TIMEOUT) -> str:
        """Start, wait until it serves, and return its address. ``timeout`` in seconds. Raises NotServingError."""
        process = await self.launch()
        try:
            async with asyncio.timeout(timeout):
                while process.returncode is None:
                    if await _is_healthy(self.port):
                        return self.url
                    await asyncio.sleep(_POLL)
            why = f"it ended with {await self._reap(STOP_TIMEOUT)}"
        except TimeoutError:
            await self.kill()
            why = f"it did not serve within {timeout:g} s"
        raise self._not_serving(why)

    async def launch(self) -> asyncio.subprocess.Process:
        """Start, and do not wait until it serves: for a process that is expected to fail. See :meth:`wait`."""
        if self._process is not None:
            raise RuntimeError("the process runs already")
        self.starts += 1
        process = await asyncio.create_subprocess_exec(
            *self._command,
            cwd=self._cwd,
            env=self._environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        _ALIVE.add(process.pid)
        self._process = process
        self._reading = asyncio.create_task(self._read(process))
        return process

    async def kill(self) -> int:
        """End it on the spot (SIGKILL), as a crash would, and reap it. Returns the exit status, -9."""
        return await self._end(signal.SIGKILL, STOP_TIMEOUT)

    async def terminate(self, timeout: float = STOP_TIMEOUT) -> int:
        """Ask it to end (SIGTERM) and wait. Returns its exit status.

        Raises the builtin TimeoutError after ``timeout`` seconds; the process is then killed.
        """
        return await self._end(signal.SIGTERM, timeout)

    async def wait(self, timeout: float = STOP_TIMEOUT) -> int:
        """Wait for it to end by itself. Returns its exit status; TimeoutError as for :meth:`terminate`."""
        return await self._reap(timeout)

    async def _end(self, how: signal.Signals, timeout: float) -> int:
        if self._process is not None and self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(how)
        return await self._reap(timeout)

    async def _reap(self, timeout: float) -> int:
        process, reading = self._process, self._reading
        if process is None or reading is None:
            raise NotServingError("the process is not running")
        try:
            async with asyncio.timeout(timeout):
                await process.wait()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
            await reading
            _ALIVE.discard(process.pid)
            self._process = self._reading = None
        assert process.returncode is not None
        return process.returncode

    async def _read(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        async for line in process.stdout:
            self.output.append(line.decode(errors="replace").rstrip("\n"))

    def _not_serving(self, why: str) -> NotServingError:
        printed = "\n".join(self.output)
        return NotServingError(f"{' '.join(self._command)}: {why}\n{printed}")

    async def __aenter__(self) -> ServerProcess:
        try:
            await self.start()
        except BaseException:
            await self._clean_up()
            raise
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._clean_up()

    async def _clean_up(self) -> None:
        if self._process is not None:
            await self.kill()


async def _is_healthy(port: int) -> bool:
    """Whether somebody answers ``GET /health`` with 200."""
    try:
        reader, writer = await asyncio.open_connection(HOST, port)
    except OSError:
        return False
    try:
        writer.write(b"GET /health HTTP/1.1\r\nHost: health\r\nConnection: close\r\n\r\n")
        async with asyncio.timeout(5):
            return (await reader.readline()).split(b" ")[1:2] == [b"200"]
    except (OSError, TimeoutError):
        return False
    finally:
        writer.close()


def free_port() -> int:
    """A port of this machine that nobody uses, below those that the system gives to outgoing connections.

    A client that tries again and again to reach a local port of that other range may be given this very port for its
    own end, is then connected to itself, and the server cannot come back.
    """
    for _ in range(1_000):
        port = random.SystemRandom().randrange(15_000, 32_000)
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            with contextlib.suppress(OSError):
                probe.bind((HOST, port))
                return port
    raise OSError("there is no free port")


@atexit.register
def _kill_what_is_left() -> None:
    for pid in _ALIVE:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
