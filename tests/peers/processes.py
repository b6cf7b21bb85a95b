"""Programs of peers as processes."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import pytest

from tools.peers import PeerUnavailable

PROGRAMS = Path(__file__).parent / "programs"
Made = TypeVar("Made")


def needed(make: Callable[[str], Made], peer: str) -> Made:
    """The environment of a peer; skips where it cannot be installed, but fails in CI."""
    try:
        return make(peer)
    except PeerUnavailable as error:
        if os.environ.get("CI") == "true":
            pytest.fail(str(error), pytrace=False)
        pytest.skip(str(error))


@contextmanager
def serving_agent(command: Sequence[str], environment: Mapping[str, str] | None = None) -> Iterator[str]:
    """The address of an agent whose program prints it, until the block ends."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, **(environment or {})})
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
