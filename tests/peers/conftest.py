"""The peers: their environments, and their programs as processes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.peers.calling import SdkProcess
from tests.peers.processes import PROGRAMS, needed, serving_agent
from tools.peers import FASTA2A, FASTA2A_03, SDK, SDK_03, STRANDS, interpreter


@pytest.fixture(scope="session")
def sdk_python() -> Path:
    """The interpreter of the environment of a2a-sdk; skips where it cannot be installed, but fails in CI."""
    return needed(interpreter, SDK)


@pytest.fixture(scope="session")
def sdk_v03_python() -> Path:
    """The same of its 0.3 line."""
    return needed(interpreter, SDK_03)


@pytest.fixture(scope="module")
def sdk_client(sdk_python: Path) -> Iterator[SdkProcess]:
    """The SDK's client, waiting for commands."""
    process = SdkProcess(sdk_python, PROGRAMS / "sdk_client.py")
    yield process
    process.stop()


@pytest.fixture(scope="module")
def sdk_v03_client(sdk_v03_python: Path) -> Iterator[SdkProcess]:
    """The same of its 0.3 line."""
    process = SdkProcess(sdk_v03_python, PROGRAMS / "sdk_client_v03.py")
    yield process
    process.stop()


@pytest.fixture(scope="module")
def sdk_server(sdk_python: Path) -> Iterator[str]:
    """The address of the agent that is written with the SDK."""
    with serving_agent([str(sdk_python), str(PROGRAMS / "sdk_agent.py")]) as url:
        yield url


@pytest.fixture(scope="module")
def sdk_v03_server(sdk_v03_python: Path) -> Iterator[str]:
    """The same with its 0.3 line."""
    with serving_agent([str(sdk_v03_python), str(PROGRAMS / "sdk_agent_v03.py")]) as url:
        yield url


@pytest.fixture(scope="module")
def fasta2a_server() -> Iterator[str]:
    """The address of an agent that is written with fasta2a."""
    with serving_agent([str(needed(interpreter, FASTA2A)), str(PROGRAMS / "fasta2a_agent.py")]) as url:
        yield url


@pytest.fixture(scope="module")
def fasta2a_v03_server() -> Iterator[str]:
    """The same with its 0.6 line, whose card says 0.3."""
    with serving_agent([str(needed(interpreter, FASTA2A_03)), str(PROGRAMS / "fasta2a_agent.py")]) as url:
        yield url


@pytest.fixture(scope="module")
def strands_server() -> Iterator[str]:
    """The address of an agent that is written with strands-agents."""
    with serving_agent([str(needed(interpreter, STRANDS)), str(PROGRAMS / "strands_agent.py")]) as url:
        yield url
