"""An agent in this process, on a store in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from tests.runtime.running import Server, serve


@pytest.fixture
async def server(caplog: pytest.LogCaptureFixture) -> AsyncIterator[Server]:
    """``client = await server(agent)``."""
    async for server in serve(AsyncExitStack(), "memory", caplog):
        yield server
