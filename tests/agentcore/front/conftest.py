"""A container by script for each test."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.agentcore.front.parts import Container, ManualClock


@pytest.fixture
async def container() -> AsyncIterator[Container]:
    """Answers as it is told."""
    async with Container() as running:
        yield running


@pytest.fixture
def clock() -> ManualClock:
    """Moved by hand."""
    return ManualClock()
