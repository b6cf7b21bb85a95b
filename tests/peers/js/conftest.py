"""The SDK for JavaScript: its packages, and its programs as processes."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.peers.calling import SdkProcess
from tools.peers import JS_SDK, Node, PeerUnavailable, node

PROGRAMS = Path(__file__).parent


@pytest.fixture(scope="session")
def js() -> Node:
    """Node.js with the SDK; skips where it cannot be installed, but fails in CI."""
    try:
        return node(JS_SDK)
    except PeerUnavailable as error:
        if os.environ.get("CI") == "true":
            pytest.fail(str(error), pytrace=False)
        pytest.skip(str(error))


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
    environment = {**os.environ, "PEER_MODULES": str(js.modules)}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    assert process.stdout is not None
    yield process.stdout.readline().strip()
    process.kill()
    process.wait()
    process.stdout.close()
