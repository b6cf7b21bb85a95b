"""A client, a proxy and an agent on real sockets: ``async with chained(agent, near="GRPC", far="JSONRPC")``."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from msgspec.structs import replace

import dragoman
from dragoman import RESUMABLE_STREAMS, Agent, App, Client, Context, Limits, ProxyApp
from dragoman.bindings.settings import EndpointSettings
from dragoman.card.build import interfaces_at
from dragoman.model import AgentCard, decode_value
from dragoman.server import Application
from tests.bindings.parts import RecordingOperations
from tests.client.words import card as card_value
from tests.conformance.quick_server import quick_serving

BINDINGS = ("JSONRPC", "HTTP+JSON", "GRPC")
BOUND = 5.0
"""Seconds that anything a test waits for may take."""

QUICK = Limits(shutdown_grace=0.2, lease=2, cancel_wait=2)
PATIENT = dragoman.Reconnect(attempts=20, first=0.02, longest=0.1)
HASTY = dragoman.Reconnect(attempts=2, first=0.01, longest=0.02)


class ScriptedApp(Application):
    """An agent whose answers a test writes, on real sockets. ``facts`` are members of its card.

    ``elsewhere`` is an address that its card names instead of its own.
    """

    def __init__(self, operations: RecordingOperations, card_max_age: int = 300, **facts: Any) -> None:
        self.script = operations
        self.facts = facts
        self.elsewhere = ""
        self.card_requests = 0
        super().__init__(operations, EndpointSettings(card_max_age=card_max_age))

    @property
    def shutdown_grace(self) -> float:
        return 0.1

    def card(self, base_url: str) -> AgentCard:
        self.card_requests += 1
        card = decode_value(AgentCard, card_value("http://unused/", **self.facts))
        return replace(card, supported_interfaces=[*interfaces_at(self.elsewhere or base_url), *self._interfaces])

    def change(self, elsewhere: str = "", **facts: Any) -> None:
        """Change the card while it is served."""
        self.elsewhere = elsewhere
        self.facts.update(facts)
        self._endpoint.forget_card()

    def begin_stop(self) -> None:
        pass

    async def _open(self) -> None:
        pass

    async def _close(self) -> None:
        pass


class Gate:
    """An agent whose streams are resumable, and which works until ``open`` is set; ``begun`` tells that it does."""

    def __init__(self) -> None:
        self.open = asyncio.Event()
        self.begun = asyncio.Event()
        self.agent = Agent("Gate", description="Waits", extensions=[RESUMABLE_STREAMS])

        @self.agent.task
        async def wait(ctx: Context) -> str:
            self.begun.set()
            await self.open.wait()
            return "open"


class Chain(msgspec.Struct):
    """``client`` goes through the proxy, ``direct`` straight to the agent."""

    client: Client
    direct: Client
    proxy: ProxyApp
    url: str
    upstream_url: str


@asynccontextmanager
async def chained(
    upstream: Agent | Application,
    *,
    near: str = "JSONRPC",
    far: str = "HTTP+JSON",
    through: Callable[[str], str] = lambda url: url,
    client: dict[str, Any] | None = None,
    **settings: Any,
) -> AsyncIterator[Chain]:
    """``near`` is the binding of the client, ``far`` that of the proxy; ``settings`` are those of ProxyApp."""
    app = App(upstream, limits=QUICK) if isinstance(upstream, Agent) else upstream
    settings = {"shutdown_grace": 0.2, "reconnect": PATIENT, "bindings": (far,), **settings}
    near_settings = {"bindings": (near,), "check_capabilities": False, "reconnect": PATIENT, **(client or {})}
    async with quick_serving(app, grpc=far == "GRPC") as upstream_url:
        proxy = ProxyApp(through(upstream_url), **settings)
        async with (
            quick_serving(proxy, grpc=near == "GRPC") as url,
            dragoman.connect(url, **near_settings) as through_proxy,
            dragoman.connect(upstream_url, bindings=(far,), check_capabilities=False) as direct,
        ):
            yield Chain(through_proxy, direct, proxy, url, upstream_url)
