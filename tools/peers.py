"""Environments of other implementations: ``python -m tools.peers`` makes all.

A peer lives in a virtual environment of its own, so that nothing that it needs can be mistaken for something that we
need. An environment is made when it is first asked for, and made again when its requirements or Python have changed.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / ".venv-peers"
SDK = "a2a-sdk-1"
"""The official SDK, for version 1.0 of the protocol."""

PEERS = {SDK: ROOT / "tests/peers/requirements-a2a-sdk.txt"}
INSTALL_SECONDS = 420.0


class PeerUnavailable(Exception):
    """The environment of a peer could not be made; the text says why."""


def interpreter(peer: str) -> Path:
    """The Python of a peer's environment, which is made if need be: half a minute, once. Raises PeerUnavailable.

    Processes that ask at the same time wait for the one that makes it, and fail with it.
    """
    began = time.time()
    FOLDER.mkdir(exist_ok=True)
    folder = FOLDER / peer
    wanted = f"{sys.version}\n{PEERS[peer].read_text(encoding='utf-8')}"
    with _locked(FOLDER / f"{peer}.lock"):
        ready = folder / ".ready"
        if not ready.exists() or ready.read_text(encoding="utf-8") != wanted:
            _make(peer, folder, since=began)
            ready.write_text(wanted, encoding="utf-8")
    return _python(folder)


def _python(folder: Path) -> Path:
    return folder / "bin" / "python"


@contextlib.contextmanager
def _locked(file: Path) -> Iterator[None]:
    with file.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _make(peer: str, folder: Path, *, since: float) -> None:
    failure = FOLDER / f"{peer}.failed"
    if failure.exists() and failure.stat().st_mtime >= since:
        raise PeerUnavailable(failure.read_text(encoding="utf-8"))
    shutil.rmtree(folder, ignore_errors=True)
    try:
        _run([sys.executable, "-m", "venv", str(folder)])
        _run([str(_python(folder)), "-m", "pip", "install", "--quiet", "--requirement", str(PEERS[peer])])
    except PeerUnavailable as error:
        failure.write_text(f"{peer} could not be installed: {error}", encoding="utf-8")
        raise PeerUnavailable(failure.read_text(encoding="utf-8")) from error


def _run(command: list[str]) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=INSTALL_SECONDS)
    except subprocess.TimeoutExpired as error:
        raise PeerUnavailable(f"it took more than {INSTALL_SECONDS:.0f} s") from error
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise PeerUnavailable(said[-1] if said else f"pip ended with {done.returncode}")


def main() -> None:
    """Make the environments of all peers."""
    for peer in PEERS:
        print(f"{peer}: {interpreter(peer).relative_to(ROOT)}")


if __name__ == "__main__":
    main()
