"""Environments of other implementations: ``python -m tools.peers`` makes all.

A peer lives in an environment of its own (a virtual environment, or a folder of packages for Node.js), so that nothing
that it needs can be mistaken for something that we need. An environment is made when it is first asked for, and made
again when its requirements, or Python or Node.js, have changed.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / ".venv-peers"
SDK = "a2a-sdk-1"
"""The official SDK, for version 1.0 of the protocol."""

SDK_03 = "a2a-sdk-0.3"
"""The official SDK, of the line that speaks version 0.3."""

FASTA2A = "fasta2a-2"
"""An independent server, whose card says 1.0."""

FASTA2A_03 = "fasta2a-0.6"
"""The same, of the line whose card says 0.3."""

STRANDS = "strands-1"
"""A framework for agents, whose server speaks version 0.3."""

JS_SDK = "a2a-js-1"
"""The SDK for JavaScript, for version 1.0."""

JS_SDK_03 = "a2a-js-0.3"
"""The SDK for JavaScript, of the line that speaks version 0.3."""

REQUIREMENTS = ROOT / "tests/peers"
PEERS = {
    SDK: REQUIREMENTS / "requirements-a2a-sdk.txt",
    SDK_03: REQUIREMENTS / "requirements-a2a-sdk-0.3.txt",
    FASTA2A: REQUIREMENTS / "requirements-fasta2a.txt",
    FASTA2A_03: REQUIREMENTS / "requirements-fasta2a-0.3.txt",
    STRANDS: REQUIREMENTS / "requirements-strands.txt",
}
NODE_PEERS = {JS_SDK: REQUIREMENTS / "js/package.json", JS_SDK_03: REQUIREMENTS / "js_v03/package.json"}
LEAST_NODE = 20
INSTALL_SECONDS = 420.0
AT_A_TIME = 3


class PeerUnavailable(Exception):
    """The environment of a peer could not be made; the text says why."""


def interpreter(peer: str) -> Path:
    """The Python of a peer's environment, which is made if need be: half a minute, once. Raises PeerUnavailable.

    Processes that ask at the same time wait for the one that makes it, and fail with it.
    """
    return _python(_environment(peer, PEERS[peer], sys.version, _make_python))


class Node(NamedTuple):
    """Node.js with the packages of a peer: ``modules`` is the folder whose packages its programs load."""

    program: Path
    modules: Path


def node(peer: str) -> Node:
    """Node.js for a peer's programs, whose packages are installed if need be. Raises PeerUnavailable like
    :func:`interpreter`."""
    program, npm = shutil.which("node"), shutil.which("npm")
    if program is None or npm is None:
        raise PeerUnavailable(f"{peer} needs Node.js {LEAST_NODE} or newer with npm, which is not here")
    version = _run([program, "--version"]).strip()
    if int(version.removeprefix("v").partition(".")[0]) < LEAST_NODE:
        raise PeerUnavailable(f"{peer} needs Node.js {LEAST_NODE} or newer; here is {version}")
    return Node(Path(program), _environment(peer, NODE_PEERS[peer], version, _make_node))


Maker = Callable[[Path, Path], None]
"""Makes an environment in a folder that does not exist, by a file of requirements."""


def _environment(peer: str, requirements: Path, version: str, make: Maker) -> Path:
    began = time.time()
    FOLDER.mkdir(exist_ok=True)
    folder = FOLDER / peer
    wanted = f"{version}\n{requirements.read_text(encoding='utf-8')}"
    with _locked(FOLDER / f"{peer}.lock"):
        ready = folder / ".ready"
        if not ready.exists() or ready.read_text(encoding="utf-8") != wanted:
            _make(peer, folder, requirements, make, since=began)
            ready.write_text(wanted, encoding="utf-8")
    return folder


def _python(folder: Path) -> Path:
    return folder / "bin" / "python"


@contextlib.contextmanager
def _locked(file: Path) -> Iterator[None]:
    with file.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _make(peer: str, folder: Path, requirements: Path, make: Maker, *, since: float) -> None:
    failure = FOLDER / f"{peer}.failed"
    if failure.exists() and failure.stat().st_mtime >= since:
        raise PeerUnavailable(failure.read_text(encoding="utf-8"))
    shutil.rmtree(folder, ignore_errors=True)
    try:
        make(folder, requirements)
    except PeerUnavailable as error:
        failure.write_text(f"{peer} could not be installed: {error}", encoding="utf-8")
        raise PeerUnavailable(failure.read_text(encoding="utf-8")) from error


def _make_python(folder: Path, requirements: Path) -> None:
    _run([sys.executable, "-m", "venv", str(folder)])
    _run([str(_python(folder)), "-m", "pip", "install", "--quiet", "--requirement", str(requirements)])


def _make_node(folder: Path, requirements: Path) -> None:
    folder.mkdir()
    shutil.copy(requirements, folder / "package.json")
    quiet = [
        "--no-package-lock",
        "--no-audit",
        "--no-fund",
        "--no-update-notifier",
        "--ignore-scripts",
        "--loglevel=error",
    ]
    _run(["npm", "install", *quiet, "--prefix", str(folder)])


def _run(command: list[str]) -> str:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=INSTALL_SECONDS)
    except subprocess.TimeoutExpired as error:
        raise PeerUnavailable(f"it took more than {INSTALL_SECONDS:.0f} s") from error
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise PeerUnavailable(said[-1] if said else f"{Path(command[0]).name} ended with {done.returncode}")
    return done.stdout


def main() -> None:
    """Make the environments of all peers, some at a time."""
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        for peer, folder in pool.map(_made, (*PEERS, *NODE_PEERS)):
            print(f"{peer}: {folder.relative_to(ROOT)}")


def _made(peer: str) -> tuple[str, Path]:
    return peer, interpreter(peer) if peer in PEERS else node(peer).modules


if __name__ == "__main__":
    main()
