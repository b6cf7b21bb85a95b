"""A clock for front and agent."""

from __future__ import annotations

import pytest

from tests.agentcore.front.parts import ManualClock


@pytest.fixture
def clock() -> ManualClock:
    """Moved by hand."""
    return ManualClock()
