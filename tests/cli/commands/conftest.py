"""One echo agent for all of these tests, one that is scripted, and the program in a folder of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from examples.process import DRAGOMAN, AgentProcess
from tests.cli.commands import peer as peers
from tests.cli.commands.program import Dragoman

BINDINGS = ("JSONRPC", "HTTP+JSON", "GRPC")


@pytest.fixture(scope="session")
def echo_url() -> Iterator[str]:
    """The address of ``dragoman server --echo``."""
    with AgentProcess([DRAGOMAN, "server", "--echo", "--quiet", "--grpc-port", "0"]) as process:
        yield process.url


@pytest.fixture(params=BINDINGS)
def at(request: pytest.FixtureRequest, echo_url: str) -> tuple[str, ...]:
    """Options that lead to the echo agent, over each binding."""
    return ("-a", echo_url, "--transport", request.param)


@pytest.fixture
def here(echo_url: str) -> tuple[str, ...]:
    """Options that lead to the echo agent by whatever its card prefers."""
    return ("-a", echo_url)


@pytest.fixture
def dragoman(tmp_path: Path) -> Dragoman:
    """The program."""
    return Dragoman(tmp_path)


@pytest.fixture(scope="session")
def _peer() -> Iterator[peers.Peer]:
    with peers.serving() as peer:
        yield peer


@pytest.fixture
def peer(_peer: peers.Peer) -> peers.Peer:
    """The scripted agent, which streams unless a test says otherwise."""
    _peer.reset(streaming=True)
    return _peer
