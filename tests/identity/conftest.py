"""Doors to an agent."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from typing import Any

import pytest

import dragoman
from dragoman import Agent, App, Client, Limits
from dragoman.bindings.websocket import WebSocketBinding
from tests.conformance.quick_server import quick_serving
from tests.identity.parts import DOORS, ProviderProcess, provider_process

Enter = Callable[..., Awaitable[Client]]


@pytest.fixture(params=DOORS)
def door(request: pytest.FixtureRequest) -> str:
    """How the client reaches the agent."""
    return str(request.param)


@pytest.fixture
async def enter(door: str) -> AsyncIterator[Enter]:
    """``client = await enter(agent, headers={...}, **app_settings)``; the same agent again is the same app."""
    async with AsyncExitStack() as stack:
        served: dict[int, tuple[App, str]] = {}

        async def enter(agent: Agent, headers: dict[str, str] | None = None, **settings: Any) -> Client:
            version, binding = ("0.3", door[4:]) if door.startswith("0.3 ") else ("1.0", door)
            if id(agent) not in served:
                given = {"limits": Limits(shutdown_grace=0.2, lease=2, cancel_wait=2), **settings}
                app = App(agent, bindings=[WebSocketBinding()] if door == "WebSocket" else (), **given)
                url = ""
                if door != "in process":
                    url = await stack.enter_async_context(quick_serving(app, grpc=binding == "GRPC"))
                else:
                    await stack.enter_async_context(app)
                served[id(agent)] = app, url
            app, url = served[id(agent)]
            if door == "in process":
                return await stack.enter_async_context(
                    dragoman.connect(app, headers=headers or {}, check_capabilities=False)
                )
            spoken = (WebSocketBinding() if door == "WebSocket" else binding,)
            connecting = dragoman.connect(
                url, bindings=spoken, versions=(version,), headers=headers or {}, check_capabilities=False
            )
            return await stack.enter_async_context(connecting)

        yield enter


@pytest.fixture(scope="session")
def provider_of_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProviderProcess]:
    with provider_process(tmp_path_factory.mktemp("provider")) as provider:
        yield provider


@pytest.fixture
def provider(provider_of_session: ProviderProcess) -> Iterator[ProviderProcess]:
    """A provider that behaves, at first."""
    provider_of_session.order(mode="")
    yield provider_of_session
    provider_of_session.order(mode="")
