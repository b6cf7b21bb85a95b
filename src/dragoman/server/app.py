"""App: an agent, a store and an endpoint put together as one ASGI application. It composes and decides nothing."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Protocol

from dragoman.bindings.endpoint import Endpoint
from dragoman.bindings.settings import MIB, EndpointSettings
from dragoman.card import CardFacts, build_card, check_card
from dragoman.card.build import capabilities_of
from dragoman.http.asgi import Receive, Scope, Send
from dragoman.model import AgentCard
from dragoman.ports.agent import Handler
from dragoman.ports.clock import Clock
from dragoman.ports.operations import Caller, Operations
from dragoman.ports.store import TaskStore
from dragoman.protocol.validation import RequestRules
from dragoman.protocol.versions import check_version
from dragoman.runtime import Limits, Runtime
from dragoman.stores import check_store, open_store

logger = logging.getLogger("dragoman.server")

IN_PROCESS_URL = "http://in-process.invalid"
"""The address in the card of an agent that is served without a socket; nothing answers there."""

Interceptor = Callable[[Operations], Operations]


class Served(Protocol):
    """What an App needs of an agent."""

    @property
    def handler(self) -> Handler:
        """The code."""
        ...

    @property
    def facts(self) -> CardFacts:
        """What the card says."""
        ...


class App:
    """An ASGI application that serves one agent over JSON-RPC and HTTP+JSON; mountable under any path.

    * ``store``: a store, or what :func:`dragoman.open_store` takes; default in memory, gone with the process;
    * ``public_url``: the address that clients use, with any prefix. Default: the address that the request came to by
      its socket; Host and forwarding headers are never trusted (Spec: CARD-06). Below a path, the card's JSON-RPC
      address ends with a slash;
    * ``limits``: see :class:`~dragoman.Limits`; ``max_body_bytes``: default 10 MiB;
    * ``cors``: origins whose pages may call; ``heartbeat``: seconds between comments on a quiet stream, default 15;
    * ``identify``: authenticates a request, see :class:`~dragoman.bindings.settings.EndpointSettings`;
    * ``infer_version``: take a request without ``A2A-Version`` as 1.0 (Spec: AMB-17);
    * ``known_contexts_only``: refuse context ids that the caller made up (Spec: AMB-45);
    * ``interceptors``: wrap the operations, first is outermost.

    Starts with its server's lifespan or, where that does not reach it (a mounted app), with its first request; then
    ``async with app:`` or ``await app.stop()`` ends it in order. Raises ConfigurationError for a card that lacks
    something, or a store that is not one.
    """

    def __init__(
        self,
        agent: Served,
        *,
        store: TaskStore | str | None = None,
        public_url: str | None = None,
        limits: Limits | None = None,
        max_body_bytes: int = 10 * MIB,
        cors: Sequence[str] = (),
        heartbeat: float = 15.0,
        stall_timeout: float = 60.0,
        card_max_age: int = 300,
        identify: Callable[[Scope], Awaitable[Caller]] | None = None,
        infer_version: bool = False,
        known_contexts_only: bool = False,
        interceptors: Sequence[Interceptor] = (),
        clock: Clock | None = None,
    ) -> None:
        facts = agent.facts
        check_card(build_card(facts, public_url or IN_PROCESS_URL))
        self._facts = facts
        self.public_url = public_url
        limits = limits or Limits()
        self.runtime = Runtime(
            agent.handler,
            _store(store),
            agent=facts.name,
            capabilities=capabilities_of(facts),
            rules=_rules(facts, limits),
            limits=limits,
            clock=clock,
            infer_version=infer_version,
            known_contexts_only=known_contexts_only,
        )
        self._operations: Operations = self.runtime
        for interceptor in reversed(interceptors):
            self._operations = interceptor(self._operations)
        settings = EndpointSettings(
            public_url=public_url,
            identify=identify,
            check_version=partial(check_version, infer=infer_version),
            healthy=lambda: not self.runtime.is_stopping,
            max_body_bytes=max_body_bytes,
            heartbeat=heartbeat,
            stall_timeout=stall_timeout,
            card_max_age=card_max_age,
            cors=tuple(cors),
        )
        self._endpoint = Endpoint(self._operations, card=self.card, settings=settings)
        self._starting: asyncio.Task[None] | None = None
        self._started = False
        self._stopping: asyncio.Task[None] | None = None

    # As a local agent.

    @property
    def operations(self) -> Operations:
        """The agent's operations, interceptors included."""
        return self._operations

    def card(self, base_url: str) -> AgentCard:
        """A new card for the agent at this address."""
        return build_card(self._facts, base_url)

    async def start(self) -> AgentCard:
        """Open the store and begin to work; returns the card. Raises StoreError. Safe to call twice."""
        if not self._started:
            if self._starting is None:
                self._starting = asyncio.create_task(self.runtime.start())
            try:
                await asyncio.shield(self._starting)
            finally:
                if self._starting.done() and self._starting.exception() is not None:
                    self._starting = None
            self._started = True
        return self.card(self.public_url or IN_PROCESS_URL)

    def begin_stop(self) -> None:
        """Refuse new work from now on; streams of idle tasks end. The server's first act on SIGTERM."""
        self.runtime.begin_stop()

    async def stop(self) -> None:
        """Give handlers their grace, record the rest, close the store. Safe to call twice."""
        if self._started:
            if self._stopping is None:
                self._stopping = asyncio.create_task(self.runtime.stop())
            await asyncio.shield(self._stopping)

    async def __aenter__(self) -> App:
        await self.start()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.stop()

    # As an ASGI application.

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection scope."""
        if scope["type"] == "http":
            if not self._started:
                await self.start()
            await self._endpoint(scope, receive, send)
        elif scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1003})

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        try:
            await self.start()
        except Exception as error:
            logger.exception("The server could not start")
            await send({"type": "lifespan.startup.failed", "message": str(error)})
            return
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self.stop()
        await send({"type": "lifespan.shutdown.complete"})


app = App
"""The ASGI application of an agent: ``dragoman.app(agent, store="sqlite:///tasks.db")``."""


def _store(store: TaskStore | str | None) -> TaskStore:
    if store is None or isinstance(store, str):
        return open_store(store)
    check_store(store)
    return store


def _rules(facts: CardFacts, limits: Limits) -> RequestRules:
    modes = {*facts.input_modes, *(mode for skill in facts.skills for mode in skill.input_modes)}
    made = {*facts.output_modes, *(mode for skill in facts.skills for mode in skill.output_modes)}
    return RequestRules(
        input_modes=frozenset(modes), output_modes=frozenset(made), max_parts=limits.max_parts, push=False
    )
