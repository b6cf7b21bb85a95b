"""The bindings on both sides of a proxy."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.proxy.chain import BINDINGS
from tests.push.hooks import Hooks, hooks_serving


@pytest.fixture(params=BINDINGS)
def near(request: pytest.FixtureRequest) -> str:
    """The binding by which a client comes to the proxy."""
    return str(request.param)


@pytest.fixture(params=BINDINGS)
def far(request: pytest.FixtureRequest) -> str:
    """The binding by which the proxy goes to the agent."""
    return str(request.param)


@pytest.fixture
async def hooks() -> AsyncIterator[Hooks]:
    """A webhook server on this machine."""
    async with hooks_serving() as serving:
        yield serving
