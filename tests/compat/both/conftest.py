"""Our client of version 0.3 and our server of version 0.3, over the three bindings."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest

import dragoman
from dragoman import Agent, App, Client, Limits
from tests.client.words import QUICK, QUICK_POLL
from tests.conformance.quick_server import quick_serving
from tests.http.peer import BOUND
from tests.push.hooks import Hooks, hooks_serving

BINDINGS = ("JSONRPC", "HTTP+JSON", "GRPC")

Meet = Callable[..., Awaitable[Client]]


@pytest.fixture(params=BINDINGS)
def binding(request: pytest.FixtureRequest) -> str:
    """How the client reaches the agent."""
    return str(request.param)


@pytest.fixture
async def meet(binding: str) -> AsyncIterator[Meet]:
    """``client = await meet(agent, **app_settings)``: serve the agent, and connect to it as a client of 0.3."""
    async with AsyncExitStack() as stack:

        async def meet(agent: Agent, *, client: dict[str, Any] | None = None, **settings: Any) -> Client:
            settings.setdefault("limits", Limits(shutdown_grace=0.2, lease=2, cancel_wait=2))
            url = await stack.enter_async_context(quick_serving(App(agent, **settings), grpc=binding == "GRPC"))
            given = {"reconnect": QUICK, "poll": QUICK_POLL, "timeout": BOUND, **(client or {})}
            made = dragoman.connect(url, versions=("0.3",), bindings=[binding], **given)
            return await stack.enter_async_context(made)

        yield meet


@pytest.fixture
async def hooks() -> AsyncIterator[Hooks]:
    """A webhook server on this machine."""
    async with hooks_serving() as serving:
        yield serving
