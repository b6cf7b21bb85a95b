"""One behaviour on every binding and store: the fixtures that the conformance tests run through."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import httpx2
import pytest

import dragoman
from dragoman import Agent, App, Client, Limits
from dragoman.bindings.websocket import WebSocketBinding
from tests.conformance.quick_server import quick_serving
from tests.conformance.raw import RawCalls
from tests.push.hooks import Hooks, hooks_serving

BINDINGS = ("in process", "JSONRPC", "HTTP+JSON", "GRPC", "WebSocket")
JSON_BINDINGS = ("JSONRPC", "HTTP+JSON")
STORES = ("memory", "sqlite")
NOT_TOGETHER = {("WebSocket", "sqlite")}
"""What is not run: the store is behind all bindings alike, and a custom one is shown on the first."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is not run together."""
    dropped = [item for item in items if _pair(item) in NOT_TOGETHER]
    if dropped:
        config.hook.pytest_deselected(items=dropped)
        items[:] = [item for item in items if _pair(item) not in NOT_TOGETHER]


def _pair(item: pytest.Item) -> tuple[str, str]:
    given = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
    return str(given.get("binding", "")), str(given.get("store", ""))


@pytest.fixture(params=BINDINGS)
def binding(request: pytest.FixtureRequest) -> str:
    """How the client reaches the agent."""
    return str(request.param)


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The store's setting."""
    return "memory" if request.param == "memory" else f"sqlite:///{tmp_path}/tasks.db"


Connect = Callable[..., Awaitable[Client]]


@pytest.fixture
async def connect(binding: str, store: str) -> AsyncIterator[Connect]:
    """``client = await connect(agent, **app_settings)``: serve the agent and connect by the binding under test.

    ``client_settings={...}`` goes to dragoman.connect. Everything is shut down at the end of the test. Several
    clients of one app: ``await connect(app)`` with an App that an earlier call made (``connect.app``).
    """
    async with AsyncExitStack() as stack:
        urls: dict[int, str] = {}

        async def connect(
            agent: Agent | App, *, client_settings: dict[str, Any] | None = None, **settings: Any
        ) -> Client:
            settings.setdefault("limits", Limits(shutdown_grace=0.2, lease=2, cancel_wait=2))
            if binding == "WebSocket":
                settings.setdefault("bindings", [WebSocketBinding()])
            app = agent if isinstance(agent, App) else App(agent, store=store, **settings)
            given = client_settings or {}
            if binding == "in process":
                if id(app) not in urls:
                    urls[id(app)] = "started"
                    await stack.enter_async_context(app)
                client = await stack.enter_async_context(dragoman.connect(app, **given))
            else:
                if id(app) not in urls:
                    urls[id(app)] = await stack.enter_async_context(quick_serving(app, grpc=binding == "GRPC"))
                spoken = (WebSocketBinding() if binding == "WebSocket" else binding,)
                client = await stack.enter_async_context(dragoman.connect(urls[id(app)], bindings=spoken, **given))
            connect.app = app  # type: ignore[attr-defined]
            connect.url = urls[id(app)]  # type: ignore[attr-defined]
            return client

        yield connect


@pytest.fixture(params=JSON_BINDINGS)
async def wire(request: pytest.FixtureRequest) -> AsyncIterator[Callable[..., Awaitable[RawCalls]]]:
    """``raw = await wire(agent, **app_settings)``: serve the agent on a socket and call it by JSON of one's own."""
    async with AsyncExitStack() as stack:
        http = await stack.enter_async_context(httpx2.AsyncClient(timeout=10))

        async def serve(agent: Agent, **settings: Any) -> RawCalls:
            settings.setdefault("limits", Limits(shutdown_grace=0.2, lease=2, cancel_wait=2))
            url = await stack.enter_async_context(quick_serving(App(agent, **settings)))
            return RawCalls(str(request.param), url, http)

        yield serve


@pytest.fixture
async def hooks() -> AsyncIterator[Hooks]:
    """A webhook server on this machine."""
    async with hooks_serving() as serving:
        yield serving
