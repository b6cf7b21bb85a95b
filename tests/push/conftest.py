"""Fixtures of the tests of push notifications."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.push.hooks import Hooks, hooks_serving


@pytest.fixture
async def hooks() -> AsyncIterator[Hooks]:
    """A webhook server on this machine."""
    async with hooks_serving() as serving:
        yield serving


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The store's setting."""
    return "memory" if request.param == "memory" else f"sqlite:///{tmp_path}/tasks.db"
