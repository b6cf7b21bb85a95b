"""App: an agent, a store and an endpoint put together as one ASGI application. It composes and decides nothing."""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, Protocol, Self

from msgspec.structs import replace

from dragoman.auth.server import Guard, SecuritySetting, as_security
from dragoman.bindings.endpoint import Endpoint
from dragoman.bindings.settings import MIB, EndpointSettings
from dragoman.card import CardFacts, CardSigner, build_card, check_card, sign_card, sign_encoded
from dragoman.card.build import capabilities_of
from dragoman.card.signing import checked_signers
from dragoman.http.asgi import Receive, Scope, Send, serve_lifespan
from dragoman.model import AgentCard, AgentInterface
from dragoman.ports.agent import Handler
from dragoman.ports.binding import Binding
from dragoman.ports.clock import Clock
from dragoman.ports.observing import WorkObserver
from dragoman.ports.operations import Caller, Operations
from dragoman.ports.scoping import Authorize
from dragoman.ports.store import TaskStore
from dragoman.protocol.validation import RequestRules
from dragoman.protocol.versions import check_version
from dragoman.push import PushService, PushSettings
from dragoman.runtime import Limits, Runtime
from dragoman.server.dialects import (
    VERSIONS,
    V03ServerSettings,
    check_tenants,
    checked_versions,
    http_dialect,
    push_encoders,
    reserved_tenants,
)
from dragoman.server.extended_card import ExtendedCard
from dragoman.server.extending import extensions_of, methods_by_name
from dragoman.server.guarding import (
    Identify,
    compose_identify,
    documents_of,
    guarding_interceptors,
    secure_facts,
)
from dragoman.server.halves import ServerHalves
from dragoman.server.limiting import RateLimits
from dragoman.server.pushing import choose_push, published_keys
from dragoman.stores import check_store, open_store

logger = logging.getLogger("dragoman.server")

IN_PROCESS_URL = "http://in-process.invalid"
"""The address in the card of an agent that is served without a socket; nothing answers there."""

Interceptor = Callable[[Operations], Operations]


class Application(ABC):
    """What is served over HTTP, whatever stands behind it: an endpoint over operations, with its beginning and its end.

    A kind of application says what its card is, what it opens and closes, and what it does when the end is near.
    ``versions`` are the generations of the protocol that it serves, the current one first; ``signers`` sign its card.
    """

    def __init__(
        self,
        operations: Operations,
        settings: EndpointSettings,
        interceptors: Sequence[Interceptor] = (),
        bindings: Sequence[Binding] = (),
        versions: Sequence[str] = ("1.0",),
        v03: V03ServerSettings | None = None,
        signers: Sequence[CardSigner] = (),
    ) -> None:
        self.versions = checked_versions(versions)
        self.signers = tuple(signers)
        self.v03 = v03 or V03ServerSettings()
        for interceptor in reversed(interceptors):
            operations = interceptor(operations)
        self._operations = operations
        self.settings = settings
        self.public_url = settings.public_url
        self._interfaces: tuple[AgentInterface, ...] = ()
        self._endpoint = self._make_endpoint(operations, settings)
        self.card_paths = self._endpoint.card_paths
        self._halves = ServerHalves(bindings, operations, settings)
        self._starting: asyncio.Task[None] | None = None
        self._started = False
        self._stopping: asyncio.Task[None] | None = None

    def _make_endpoint(self, operations: Operations, settings: EndpointSettings) -> Endpoint:
        dialect = http_dialect(self.versions, self.v03)
        seal = partial(sign_encoded, signers=self.signers) if self.signers else None
        return Endpoint(operations, card=self.card, settings=settings, dialect=dialect, seal=seal)

    @property
    def identify(self) -> Identify | None:
        """How callers are identified, by a scope like that of ASGI; None when everybody is anonymous."""
        return self.settings.identify

    @property
    @abstractmethod
    def shutdown_grace(self) -> float:
        """Seconds that running work has when the end was asked for."""

    @abstractmethod
    async def _open(self) -> None:
        """Open what is needed; called once, or again when it failed."""

    @abstractmethod
    async def _close(self) -> None:
        """Give running work its grace, then close what was opened; called once."""

    # As a local agent.

    @property
    def operations(self) -> Operations:
        """The agent's operations, interceptors included."""
        return self._operations

    @abstractmethod
    def card(self, base_url: str) -> AgentCard:
        """A new card for the agent at this address."""

    def further_interfaces(self, base_url: str) -> list[AgentInterface]:
        """The entries of the card for what is served besides HTTP: beside this app, and by custom bindings."""
        interfaces = [*self._interfaces, *self._halves.interfaces(base_url)]
        check_tenants(interfaces, self.versions)
        return interfaces

    @property
    def scopes(self) -> frozenset[str]:
        """The types of ASGI scope that calls come by."""
        return self._halves.scopes | {"http"}

    def add_interface(self, interface: AgentInterface) -> None:
        """Name an interface on the card that is served beside this app, after those of its version. Spec: CARD-06.

        Raises ConfigurationError for a tenant whose name paths of another version begin with.
        """
        check_tenants([interface], self.versions)
        self._interfaces = (*self._interfaces, interface)
        self._endpoint.forget_card()

    def remove_interface(self, interface: AgentInterface) -> None:
        """Take an interface off the card that is not served any more. No error when it is not there."""
        self._interfaces = tuple(entry for entry in self._interfaces if entry is not interface)
        self._endpoint.forget_card()

    async def start(self) -> AgentCard:
        """Open what is needed and begin to work; returns the card. Safe to call twice."""
        if not self._started:
            if self._starting is None:
                self._starting = asyncio.create_task(self._begin())
            try:
                await asyncio.shield(self._starting)
            finally:
                if self._starting.done() and self._starting.exception() is not None:
                    self._starting = None
            self._started = True
        return self.card(self.public_url or IN_PROCESS_URL)

    async def _begin(self) -> None:
        await self._open()
        try:
            await self._halves.start()
        except BaseException:
            await self._close()
            raise
        self._endpoint.forget_card()

    def begin_stop(self) -> None:
        """Refuse new work from now on. The server's first act on SIGTERM."""
        self._halves.begin_stop()

    async def stop(self) -> None:
        """Give running work its grace, then close what is open. Safe to call twice."""
        if self._started:
            if self._stopping is None:
                self._stopping = asyncio.create_task(self._end())
            await asyncio.shield(self._stopping)

    async def _end(self) -> None:
        self._halves.begin_stop()
        try:
            await self._close()
        finally:
            await self._halves.stop()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.stop()

    # As an ASGI application.

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection scope."""
        kind = scope["type"]
        if kind == "lifespan":
            await serve_lifespan(receive, send, self.start, self.stop, logger)
            return
        if not self._started:
            await self.start()
        half = self._halves.find(scope)
        if half is not None:
            await half(scope, receive, send)
        elif kind == "http":
            await self._endpoint(scope, receive, send)
        elif kind == "websocket":
            await send({"type": "websocket.close", "code": 1003})


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


class App(Application):
    """An ASGI application that serves one agent over JSON-RPC and HTTP+JSON; mountable under any path.

    gRPC is served beside it, on the same runtime: :func:`dragoman.server.serving.serve`.

    * ``store``: a store, or what :func:`dragoman.open_store` takes; default in memory, gone with the process;
    * ``public_url``: the address that clients use, with any prefix. Default: the address that the request came to by
      its socket; Host and forwarding headers are never trusted (Spec: CARD-06). Below a path, the card's JSON-RPC
      address ends with a slash;
    * ``limits``: see :class:`~dragoman.Limits`; ``max_body_bytes``: default 10 MiB;
    * ``cors``: origins whose pages may call; ``heartbeat``: seconds between comments on a quiet stream, default 15;
    * ``identify``: authenticates a request, see :class:`~dragoman.bindings.settings.EndpointSettings`; it is the same
      for all bindings;
    * ``versions``: generations of the protocol to serve, default 1.0 and 0.3, both at the same addresses and named on
      the card; ``("1.0",)`` leaves 0.3 out. ``v03``: how callers of 0.3 are answered, see
      :class:`~dragoman.server.V03ServerSettings`;
    * ``infer_version``: take a request without ``A2A-Version`` that can only be of 1.0 as such (Spec: AMB-17);
    * ``known_contexts_only``: refuse context ids that the caller made up (Spec: AMB-45);
    * ``security``: what callers have to show, see :class:`~dragoman.auth.Security`; default what the agent says.
      ``identify`` is then asked besides, and names who it is that was let in;
    * ``rate_limit``: how many calls each caller may make, see :class:`~dragoman.server.RateLimit`; default: any number;
    * ``audit``: log each call to ``dragoman.audit``; default: when there is ``security``;
    * ``authorize``: lets callers reach more than their own tasks, within their tenant: ``authorize(caller, operation,
      tenant)`` returns a :class:`~dragoman.Reach` (Spec: AUTH-09). Default: everybody sees what is theirs, and what is
      not does not exist;
    * ``namespace``: the agent's name in the store, default that on its card. Tasks under another name are not seen, so
      say the old one when an agent is renamed;
    * ``interceptors``: wrap the operations, first is outermost;
    * ``bindings``: custom bindings to serve as well, such as
      :class:`~dragoman.bindings.websocket.WebSocketBinding` (Spec: BIND-14); the card names them last of 1.0;
    * ``push``: tell tasks to webhooks: True, or settings (see :class:`~dragoman.push.PushSettings`); False: not.
      Default: what the agent says. ``app.push.dead_letters()`` lists what could not be delivered;
    * ``observer``: is told when the agent's code is at work, or a webhook is to be told of it;
    * ``card_signer``: signs the card, or several that do (Spec: SIGN-01, SIGN-20); default that of the agent.

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
        bindings: Sequence[Binding] = (),
        versions: Sequence[str] = VERSIONS,
        v03: V03ServerSettings | None = None,
        clock: Clock | None = None,
        observer: WorkObserver | None = None,
        card_signer: CardSigner | Sequence[CardSigner] | None = None,
        push: bool | PushSettings | None = None,
        security: SecuritySetting | None = None,
        rate_limit: RateLimits | None = None,
        audit: bool | None = None,
        authorize: Authorize | None = None,
        namespace: str | None = None,
    ) -> None:
        versions = checked_versions(versions)
        pushing = choose_push(agent, push)
        demands = as_security(security) or getattr(agent, "security", None)
        facts = secure_facts(replace(agent.facts, push=pushing is not None), demands)
        guard = None if demands is None else Guard(demands, name=facts.name, public_url=public_url)
        audit = guard is not None if audit is None else audit
        check_card(build_card(facts, public_url or IN_PROCESS_URL, versions=versions))
        self._facts = facts
        name = facts.name if namespace is None else namespace
        extensions = extensions_of(agent, replace(facts, name=name))
        limits = limits or Limits()
        tasks = _store(store)
        self.push: PushService | None = None
        if pushing is not None:
            encoders = push_encoders(versions)
            self.push = PushService(tasks, pushing, clock=clock, encoders=encoders, observer=observer, agent=name)
        self.runtime = Runtime(
            agent.handler,
            tasks,
            agent=name,
            capabilities=capabilities_of(facts),
            rules=_rules(facts, limits, reserved_tenants(versions)),
            limits=limits,
            clock=clock,
            infer_version=infer_version,
            known_contexts_only=known_contexts_only,
            observer=observer,
            push=self.push,
            extending=extensions,
            authorize=authorize,
            extended_card=self._extended_card(agent, facts),
        )
        signers = checked_signers(card_signer) or facts.signers
        settings = EndpointSettings(
            public_url=public_url,
            identify=compose_identify(guard, identify, address=audit or rate_limit is not None),
            check_version=partial(check_version, infer=infer_version),
            healthy=lambda: not self.runtime.is_stopping,
            max_body_bytes=max_body_bytes,
            heartbeat=heartbeat,
            stall_timeout=stall_timeout,
            card_max_age=card_max_age,
            cors=tuple(cors),
            documents={**published_keys(pushing, signers), **documents_of(guard)},
            credential_headers=() if demands is None else demands.request_headers,
            methods=methods_by_name(extensions),
        )
        ours = guarding_interceptors(facts, guard, rate_limit, audit=audit)
        super().__init__(self.runtime, settings, [*ours, *interceptors], bindings, versions, v03, signers)
        check_card(self._unsigned_card(public_url or IN_PROCESS_URL), offered=capabilities_of(facts))

    async def grant(self, task_id: str, value: Any = None, *, tenant: str = "") -> None:
        """Hand in, out of band, what a task waits for in ``ctx.authorize``; it goes on at once, without a message.

        For code of yours, such as the endpoint that a provider redirects to, over HTTPS (Spec: INTASK-08): it has to
        know whose task that is and that the value is for it, by a ``state`` that cannot be guessed. ``value`` is what
        ``ctx.authorize`` returns as its value; it is not kept. ``tenant`` is that of the task.

        Raises TaskNotFoundError, UnsupportedOperationError when the task waits for no authorization, UnavailableError.
        Spec: INTASK-03, INTASK-04.
        """
        await self.runtime.grant(task_id, value, tenant=tenant)

    def _extended_card(self, agent: Served, facts: CardFacts) -> ExtendedCard:
        return ExtendedCard(
            getattr(agent, "extend_card", None),
            public=lambda base_url: self._unsigned_card(base_url),
            address=lambda: self.public_url or IN_PROCESS_URL,
            sign=lambda card: sign_card(card, self.signers),
            offered=capabilities_of(facts),
        )

    @property
    def shutdown_grace(self) -> float:
        """Seconds that running handlers have when the end was asked for."""
        return self.runtime.limits.shutdown_grace

    def card(self, base_url: str) -> AgentCard:
        """A new card for the agent at this address, with its signatures."""
        return sign_card(self._unsigned_card(base_url), self.signers)

    def _unsigned_card(self, base_url: str) -> AgentCard:
        return build_card(self._facts, base_url, more=self.further_interfaces(base_url), versions=self.versions)

    def begin_stop(self) -> None:
        """Refuse new work from now on; streams of idle tasks end. The server's first act on SIGTERM."""
        self.runtime.begin_stop()
        super().begin_stop()

    async def _open(self) -> None:
        await self.runtime.start()

    async def _close(self) -> None:
        await self.runtime.stop()


app = App
"""The ASGI application of an agent: ``dragoman.app(agent, store="sqlite:///tasks.db")``."""


def _store(store: TaskStore | str | None) -> TaskStore:
    if store is None or isinstance(store, str):
        return open_store(store)
    check_store(store)
    return store


def _rules(facts: CardFacts, limits: Limits, reserved: frozenset[str]) -> RequestRules:
    modes = {*facts.input_modes, *(mode for skill in facts.skills for mode in skill.input_modes)}
    made = {*facts.output_modes, *(mode for skill in facts.skills for mode in skill.output_modes)}
    return RequestRules(
        input_modes=frozenset(modes),
        output_modes=frozenset(made),
        max_parts=limits.max_parts,
        push=facts.push,
        reserved_tenants=reserved,
    )
