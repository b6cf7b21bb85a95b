"""``--reload``: the server in a child process, started anew when a Python file changes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

CHILD = "DRAGOMAN_RELOAD_CHILD"
PERIOD = 0.3
SKIPPED = frozenset({".git", ".venv", "venv", "__pycache__", "node_modules", "build", "dist"})


def restart_on_change(folder: Path | None = None) -> bool:
    """In the parent: run the same command as a child, again after each change below ``folder``, until a signal; True.

    In the child: False at once.
    """
    if os.environ.get(CHILD):
        return False
    folder = folder or Path.cwd()
    signal.signal(signal.SIGTERM, _raise_interrupt)
    child = _start()
    seen = _modified(folder)
    try:
        while True:
            time.sleep(PERIOD)
            now = _modified(folder)
            if now != seen:
                seen = now
                print("dragoman: a file changed, starting again", file=sys.stderr, flush=True)
                _stop(child)
                child = _start()
    except KeyboardInterrupt:
        _stop(child)
    return True


def _raise_interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def _start() -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-m", "dragoman", *sys.argv[1:]], env={**os.environ, CHILD: "1"})


def _stop(child: subprocess.Popen[bytes]) -> None:
    if child.poll() is None:
        child.terminate()
    try:
        child.wait(30)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


def _modified(folder: Path) -> dict[str, int]:
    """Python files below a folder and when each was changed last."""
    found = {}
    for root, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name not in SKIPPED]
        for name in files:
            if name.endswith(".py"):
                path = os.path.join(root, name)
                try:
                    found[path] = os.stat(path).st_mtime_ns
                except FileNotFoundError:
                    continue
    return found
