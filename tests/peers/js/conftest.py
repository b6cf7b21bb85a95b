"""The SDK for JavaScript: its packages, and its programs as processes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.peers.calling import SdkProcess
from tests.peers.processes import needed, serving_agent
from tools.peers import JS_SDK, Node, node

PROGRAMS = Path(__file__).parent


@pytest.fixture(scope="session")
def js() -> Node:
    """Node.js with the SDK; skips where it cannot be installed, but fails in CI."""
    return needed(node, JS_SDK)


@pytest.fixture(scope="module")
def js_client(js: Node) -> Iterator[SdkProcess]:
    """The SDK's client, waiting for commands."""
    process = SdkProcess(js.program, PROGRAMS / "client.mjs", {"PEER_MODULES": str(js.modules)})
    yield process
    process.stop()


@pytest.fixture(scope="module")
def js_server(js: Node) -> Iterator[str]:
    """The address of the agent that is written with the SDK."""
    command = [str(js.program), str(PROGRAMS / "agent.mjs")]
    with serving_agent(command, {"PEER_MODULES": str(js.modules)}) as url:
        yield url
