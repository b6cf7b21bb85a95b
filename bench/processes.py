"""The servers that are measured, each a process of its own."""

from __future__ import annotations

import asyncio
import contextlib
import resource
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import psutil

from bench.load import WARM_UP, Load
from tools.peers import SDK, PeerUnavailable, interpreter

PROGRAMS = Path(__file__).parent / "programs"
STOP_SECONDS = 30.0


class Server:
    """A running server process."""

    def __init__(self, port: int, process: subprocess.Popen[str]) -> None:
        self.port = port
        self._process = process
        self._watched = psutil.Process(process.pid)

    def cpu(self) -> float:
        """Seconds of processor time that it has spent."""
        times = self._watched.cpu_times()
        return float(times.user + times.system)

    def memory(self) -> float:
        """Resident megabytes."""
        return float(self._watched.memory_info().rss / 1e6)

    def stop(self) -> None:
        """Ask it to end, and wait."""
        self._process.terminate()
        self._process.wait(STOP_SECONDS)


class Measured(msgspec.Struct, frozen=True):
    """What one server did: answers a second, microseconds of processor time for an answer, megabytes after it.

    ``answer`` is the last one, in the very pieces that it was sent in under load.
    """

    rate: float
    cpu: float
    memory: float
    answer: bytes = b""


def sdk_python() -> Path | None:
    """The interpreter of a2a-sdk; None, with a note on the terminal, when it cannot be installed."""
    try:
        return interpreter(SDK)
    except PeerUnavailable as error:
        print(f"note: without a2a-sdk, since {error}", file=sys.stderr)
        return None


def command_for(kind: str, python: Path | None = None) -> list[str]:
    """The command that starts a server: ``dragoman``, ``bare``, or ``a2a-sdk`` by its own interpreter."""
    if kind == "a2a-sdk":
        assert python is not None
        return [str(python), str(PROGRAMS / "a2a_sdk_serving.py")]
    return [sys.executable, "-m", "bench.serving", kind]


@contextlib.contextmanager
def serving(command: Sequence[str], *arguments: str) -> Iterator[Server]:
    """A server process, that takes connections; killed at the end."""
    process = subprocess.Popen([*command, *arguments], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        if not line:
            raise SystemExit(f"a server did not start: {' '.join(command)}")
        yield Server(int(line), process)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


async def measure(server: Server, request: bytes, proof: bytes, *, seconds: float, connections: int) -> Measured:
    """Ask for some seconds, after a short time of warming up. Raises WrongAnswer."""
    load = Load(request, proof)
    await load.connect(server.port, connections)
    try:
        await load.run(seconds=min(WARM_UP, seconds))
        before = server.cpu()
        answers, took = await load.run(seconds=seconds)
        spent = server.cpu() - before
    finally:
        load.close()
    return Measured(rate=answers / took, cpu=spent / answers * 1e6, memory=server.memory(), answer=load.last)


async def wait_until_up(port: int) -> None:
    """Wait until connections are taken, and the application has begun."""
    for _ in range(400):
        with contextlib.suppress(OSError):
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.close()
            return
        await asyncio.sleep(0.05)
    raise SystemExit(f"nothing listens on port {port}")


def allow_many_files() -> None:
    """A thousand connections are more than some shells allow."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 8_192 if hard == resource.RLIM_INFINITY else min(8_192, hard)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
