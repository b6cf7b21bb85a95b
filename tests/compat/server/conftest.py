"""The stores that the server is tested on."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.compat.server.speaking import Old, serving


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The store's setting."""
    return "memory" if request.param == "memory" else f"sqlite:///{tmp_path}/tasks.db"


@pytest.fixture
async def old(store: str) -> AsyncIterator[Old]:
    """A caller of 0.3 of the echo agent, on each store."""
    async with serving(store=store) as caller:
        yield caller
