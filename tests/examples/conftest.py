"""Each example runs in a process of its own, on SQLite, and is called over each binding."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

import dragoman
from dragoman.client import Client
from examples.process import AgentProcess


@pytest.fixture(scope="module")
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AgentProcess]:
    """The agent that the test module names as ``AGENT``, served."""
    store = tmp_path_factory.mktemp("store") / "tasks.db"
    with AgentProcess.serving(request.module.AGENT, "--store", str(store), "--grpc-port", "0") as process:
        yield process


@pytest.fixture(params=["JSONRPC", "HTTP+JSON", "GRPC"])
async def client(served: AgentProcess, request: pytest.FixtureRequest) -> AsyncIterator[Client]:
    """A client of the served agent, over one binding."""
    async with dragoman.connect(served.url, bindings=(request.param,)) as client:
        assert client.interface.protocol_binding == request.param
        yield client
