"""What stands behind the front: one server for all sessions, or a process for each.

Spec: AC-F-02.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from dragoman.http.client import HttpClient
from dragoman.testing.agentcore_front.asking import ask_ping
from dragoman.testing.agentcore_front.pings import Ping
from dragoman.testing.process import HOST, free_port

KEPT_LINES = 1_000
_POLL = 0.02
_SETTLING = 0.3
_CHUNK, _LONGEST_LINE = 64 * 1024, 1024 * 1024


class InstanceFailedError(Exception):
    """A container could not be started, or was not ready in time. The text says why, for the front's own record."""


class Instance(Protocol):
    """A running container."""

    url: str
    """Base address, without a slash at the end."""
    calls: int
    """Calls that began or ended since the last ping."""
    in_flight: int
    last_ping: Ping | None

    @property
    def is_running(self) -> bool:
        """Whether it has not ended by itself, as far as is known."""
        ...

    async def settle(self) -> None:
        """After a connection broke: wait a moment for the end of the process, if that is why."""
        ...

    async def stop(self, limit: float) -> int | None:
        """End it; killed after ``limit`` seconds. Returns its exit status, None for one that is not ours to end."""
        ...


class Upstream(Protocol):
    """Makes containers."""

    async def open(self, public_url: str, http: HttpClient, limit: float, output: Callable[[str], None]) -> Instance:
        """A container for a new session, ready within ``limit`` seconds. Raises InstanceFailedError.

        ``output`` is told each line that it writes.
        """
        ...


class SharedInstance:
    """The one server behind all sessions."""

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")
        self.calls = self.in_flight = 0
        self.last_ping: Ping | None = None

    @property
    def is_running(self) -> bool:
        """Always, as far as is known."""
        return True

    async def settle(self) -> None:
        """Nothing: nobody here knows."""

    async def stop(self, limit: float) -> int | None:
        """Nothing: it lives longer than a session."""
        return None


class Shared:
    """One running server at ``url`` for all sessions: fast, and blind to what ends with a session."""

    def __init__(self, url: str) -> None:
        self._instance = SharedInstance(url)

    async def open(self, public_url: str, http: HttpClient, limit: float, output: Callable[[str], None]) -> Instance:
        """See :class:`Upstream`."""
        return self._instance


class ProcessInstance:
    """A process, with the last lines that it wrote in ``lines``."""

    def __init__(self, process: asyncio.subprocess.Process, port: int, output: Callable[[str], None]) -> None:
        self.url = f"http://{HOST}:{port}"
        self.process = process
        self.calls = self.in_flight = 0
        self.last_ping: Ping | None = None
        self.lines: deque[str] = deque(maxlen=KEPT_LINES)
        self._output = output
        self._reading = asyncio.create_task(self._read())

    @property
    def is_running(self) -> bool:
        """Whether the process has not ended."""
        return self.process.returncode is None

    async def settle(self) -> None:
        """A process closes its connections before anybody can hear that it has ended."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_SETTLING):
                await self.process.wait()

    async def stop(self, limit: float) -> int | None:
        """SIGTERM, and SIGKILL after ``limit`` seconds. Safe to call twice."""
        self._signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(limit):
                await self.process.wait()
        except TimeoutError:
            pass
        finally:
            if self.process.returncode is None:
                self._signal(signal.SIGKILL)
                await self.process.wait()
            # What it has started may hold its output open for longer.
            await asyncio.wait({self._reading}, timeout=_SETTLING)
            self._reading.cancel()
        return self.process.returncode

    def _signal(self, number: signal.Signals) -> None:
        if self.process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                # Not by the process: that would look for its end first, and take it away from who waits for it.
                os.kill(self.process.pid, number)

    async def _read(self) -> None:
        assert self.process.stdout is not None
        rest = b""
        while data := await self.process.stdout.read(_CHUNK):
            *lines, rest = (rest + data).split(b"\n")
            if len(rest) > _LONGEST_LINE:
                lines, rest = [*lines, rest], b""
            for line in lines:
                self._take(line.decode(errors="replace"))
        if rest:
            self._take(rest.decode(errors="replace"))

    def _take(self, line: str) -> None:
        self.lines.append(line)
        self._output(line)


class PerSession:
    """A process for each session, as the platform has it.

    * ``command``: what is run; ``{port}`` in its words is replaced by a free port, which is in ``A2A_PORT`` as well,
      and the public address is in ``AGENTCORE_RUNTIME_URL``;
    * ``cwd``, ``environment``: its folder, and variables over those of this process.
    """

    def __init__(
        self, command: Sequence[str], *, cwd: Path | None = None, environment: Mapping[str, str] | None = None
    ) -> None:
        self._command = tuple(command)
        self._cwd = cwd
        self._environment = dict(environment or {})

    @classmethod
    def of_agent(cls, target: str, *options: str, cwd: Path | None = None) -> PerSession:
        """``dragoman run TARGET --agentcore OPTIONS``, on a port of this machine only."""
        command = [sys.executable, "-m", "dragoman", "run", target, "--agentcore", "--host", HOST, "--port", "{port}"]
        return cls([*command, *options], cwd=cwd)

    async def open(self, public_url: str, http: HttpClient, limit: float, output: Callable[[str], None]) -> Instance:
        """Start a process and wait for its first good ping. See :class:`Upstream`."""
        port = free_port()
        process = await self._start(port, public_url)
        instance = ProcessInstance(process, port, output)
        try:
            async with asyncio.timeout(limit):
                await _until_ready(instance, http)
        except BaseException as error:
            await instance.stop(0)
            if isinstance(error, TimeoutError):
                raise InstanceFailedError(f"no healthy ping within {limit:g} s") from error
            raise
        return instance

    async def _start(self, port: int, public_url: str) -> asyncio.subprocess.Process:
        own = {"A2A_PORT": str(port), "AGENTCORE_RUNTIME_URL": public_url}
        try:
            return await asyncio.create_subprocess_exec(
                *(word.replace("{port}", str(port)) for word in self._command),
                cwd=self._cwd,
                env={**os.environ, **own, **self._environment},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
            )
        except OSError as error:
            raise InstanceFailedError(f"{self._command[0]} cannot be started") from error


async def _until_ready(instance: ProcessInstance, http: HttpClient) -> None:
    while instance.is_running:
        if (await ask_ping(http, instance.url)).http == 200:
            return
        await asyncio.sleep(_POLL)
    said = "\n".join(list(instance.lines)[-20:])
    raise InstanceFailedError(f"it ended with {instance.process.returncode} before its first healthy ping\n{said}")
