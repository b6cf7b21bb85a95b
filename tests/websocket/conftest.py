"""Agents that are served over WebSocket."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest

from dragoman import RESUMABLE_STREAMS, Agent, App, Context, Limits
from dragoman.bindings.websocket import WebSocketBinding
from tests.conformance.quick_server import quick_serving
from tests.websocket.raw import RawSocket, dialed


@pytest.fixture
def agent() -> Agent:
    """Repeats what it is told; ``wait`` works until it is cancelled, ``stream N`` streams N kilobytes."""
    agent = Agent("Echo", description="Repeats what you say", extensions=[RESUMABLE_STREAMS])

    @agent.task
    async def answer(ctx: Context) -> AsyncIterator[str]:
        word, _, count = ctx.text.partition(" ")
        if word == "wait":
            await asyncio.Event().wait()
        elif word == "stream":
            for number in range(int(count)):
                yield f"{number} ".ljust(1024)
        else:
            yield f"You said: {ctx.text}"

    return agent


Serve = Callable[..., Awaitable[str]]
Dial = Callable[..., Awaitable[RawSocket]]


@pytest.fixture
async def serve() -> AsyncIterator[Serve]:
    """``url = await serve(agent_or_app, binding=WebSocketBinding(…), **app_settings)``."""
    async with AsyncExitStack() as stack:

        async def serve(agent: Agent | App, *, binding: WebSocketBinding | None = None, **settings: Any) -> str:
            settings.setdefault("limits", Limits(shutdown_grace=0.2, lease=2, cancel_wait=2))
            app = agent if isinstance(agent, App) else App(agent, bindings=[binding or WebSocketBinding()], **settings)
            return await stack.enter_async_context(quick_serving(app))

        yield serve


@pytest.fixture
async def dial() -> AsyncIterator[Dial]:
    """``socket = await dial(url, **headers)``; closed at the end of the test."""
    async with AsyncExitStack() as stack:

        async def dial(url: str, **given: Any) -> RawSocket:
            return await stack.enter_async_context(dialed(url, **given))

        yield dial
