"""Fixtures of these tests."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.runtime.running import Server, database, serve


@pytest.fixture(params=["memory", "sqlite"])
async def arena(
    request: pytest.FixtureRequest, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> AsyncIterator[Server]:
    """An agent served in this process on either store. At the end it holds nothing, and asyncio did not complain."""
    url = "memory" if request.param == "memory" else database(tmp_path)
    async for server in serve(AsyncExitStack(), url, caplog):
        yield server


@pytest.fixture
async def server(caplog: pytest.LogCaptureFixture) -> AsyncIterator[Server]:
    """The same on a store in memory, or on one that the test brings."""
    async for server in serve(AsyncExitStack(), "memory", caplog):
        yield server


@pytest.fixture
async def durable(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> AsyncIterator[Server]:
    """The same on a SQLite file, which a second app opens again."""
    async for server in serve(AsyncExitStack(), database(tmp_path), caplog):
        yield server
