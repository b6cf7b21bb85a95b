"""The peers: their environment, and their programs as processes."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.peers.calling import SdkProcess
from tools.peers import SDK, PeerUnavailable, interpreter

PROGRAMS = Path(__file__).parent / "programs"


@pytest.fixture(scope="session")
def sdk_python() -> Path:
    """The interpreter of the environment of a2a-sdk; skips where it cannot be installed, but fails in CI."""
    try:
        return interpreter(SDK)
    except PeerUnavailable as error:
        if os.environ.get("CI") == "true":
            pytest.fail(str(error), pytrace=False)
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def sdk_client(sdk_python: Path) -> Iterator[SdkProcess]:
    """The SDK's client, waiting for commands."""
    process = SdkProcess(sdk_python, PROGRAMS / "sdk_client.py")
    yield process
    process.stop()


@pytest.fixture(scope="module")
def sdk_server(sdk_python: Path) -> Iterator[str]:
    """The address of the agent that is written with the SDK."""
    command = [str(sdk_python), str(PROGRAMS / "sdk_agent.py")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    yield process.stdout.readline().strip()
    process.kill()
    process.wait()
    process.stdout.close()
