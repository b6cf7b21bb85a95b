"""Several agents at one server: each with its own card, its own tasks and its own code, over one store.

Theory. By path, everything of an agent is below its name: ``/billing/``, ``/billing/tasks``,
``/billing/.well-known/agent-card.json``. By tenant, all agents share the addresses of the server, and a request says in
``tenant`` which one it is for; only the cards are below the names. gRPC has no paths, so there the tenant says it
either way. Below an agent's name its own tenants begin: ``billing/acme``.

Spec: TEN-01 to TEN-06, CARD-01, CARD-06, AMB-89, AUTH-10.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Literal
from urllib.parse import quote

import msgspec
from msgspec.structs import replace

from dragoman.bindings.exchange import Exchange
from dragoman.bindings.settings import EndpointSettings
from dragoman.errors import ConfigurationError, FieldViolation, InvalidParamsError, MethodNotFoundError
from dragoman.http.asgi import Receive, Scope, Send, relative_path
from dragoman.model import AgentCard, AgentInterface, Operation
from dragoman.ports.operations import CallContext, EventStream, Operations
from dragoman.ports.store import TaskStore
from dragoman.protocol.versions import check_version
from dragoman.server.app import App, Application, Served
from dragoman.server.dialects import VERSIONS
from dragoman.stores import open_store

By = Literal["path", "tenant"]

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._~-]{0,63}", re.ASCII)
_TAKEN = frozenset({"tasks", "v1", "health", "extendedAgentCard", "ws"})
"""What paths of an agent begin with by themselves."""


class AgentGroup(Application, Mapping[str, App]):
    """An ASGI application that serves several agents: ``AgentGroup({"billing": billing, "travel": travel})``.

    * ``agents``: by name, which is part of their addresses (letters, digits, ``.``, ``_``, ``~``, ``-``), and their
      name in the store;
    * ``by``: ``"path"`` (default) or ``"tenant"``. By tenant only version 1.0 is served, since 0.3 has no tenants, and
      who calls is found out before it is known which agent is meant: security is then that of the group;
    * ``store``: one for all; no agent sees, or takes over, tasks of another. Default in memory;
    * ``public_url``: the address of the group;
    * ``settings``: what else :class:`App` takes, for each of them.

    ``group["billing"]`` is the App of an agent. Raises ConfigurationError for no agents, a name that cannot be, and
    what App raises.
    """

    def __init__(
        self,
        agents: Mapping[str, Served],
        *,
        by: By = "path",
        store: TaskStore | str | None = None,
        public_url: str | None = None,
        **settings: Any,
    ) -> None:
        _check(agents, by, settings)
        self.by = by
        self._store = open_store(store) if store is None or isinstance(store, str) else store
        self._root = public_url.rstrip("/") if public_url else None
        self._own_security = [name for name, agent in agents.items() if getattr(agent, "security", None) is not None]
        shared = settings.get("security") is not None
        if self._own_security and by == "tenant" and not shared:
            raise ConfigurationError(
                f"the agent {self._own_security[0]!r} has its own security; agents by tenant share one: set security "
                "of the group, or serve them by path"
            )
        if shared:
            self._own_security = []
        self._apps = {name: self._make_app(name, agent, settings) for name, agent in agents.items()}
        self._entries: dict[int, list[tuple[App, AgentInterface]]] = {}
        first = next(iter(self._apps.values())).settings
        super().__init__(
            ByTenant({name: app.operations for name, app in self._apps.items()}),
            EndpointSettings(
                public_url=public_url,
                identify=first.identify if not self._own_security else None,
                check_version=partial(check_version, infer=bool(settings.get("infer_version"))),
                healthy=lambda: not any(app.runtime.is_stopping for app in self._apps.values()),
                max_body_bytes=first.max_body_bytes,
                heartbeat=first.heartbeat,
                stall_timeout=first.stall_timeout,
                card_max_age=first.card_max_age,
                cors=first.cors,
                credential_headers=first.credential_headers,
                methods={key: op for app in self._apps.values() for key, op in app.settings.methods.items()},
                documents=first.documents if by == "tenant" else {},
            ),
        )

    def _make_app(self, name: str, agent: Served, settings: Mapping[str, Any]) -> App:
        url = f"{self._root}/{name}" if self._root else None
        given: dict[str, Any] = {"store": self._store, "public_url": url, "namespace": name, **settings}
        if self.by == "tenant":
            app: App = TenantApp(agent, name, **{**given, "versions": ("1.0",)})
        else:
            app = App(agent, **given)
        app.runtime.owns_store = False
        return app

    # As a mapping.

    def __getitem__(self, name: str) -> App:
        return self._apps[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._apps)

    def __len__(self) -> int:
        return len(self._apps)

    # As an application.

    @property
    def shutdown_grace(self) -> float:
        """Seconds that running handlers have when the end was asked for."""
        return max(app.shutdown_grace for app in self._apps.values())

    @property
    def scopes(self) -> frozenset[str]:
        """The types of ASGI scope that calls come by."""
        return frozenset().union(*(app.scopes for app in self._apps.values()))

    def card(self, base_url: str) -> AgentCard:
        """The card of the first agent; each has its own, below its name."""
        name, app = next(iter(self._apps.items()))
        return app.card(f"{base_url.rstrip('/')}/{name}")

    def check_grpc(self) -> None:
        """Raise ConfigurationError when the agents cannot be served over gRPC: it is one address for all."""
        if self._own_security:
            raise ConfigurationError(
                f"the agent {self._own_security[0]!r} has its own security; over gRPC the agents of a group share one: "
                "set security of the group"
            )

    def add_interface(self, interface: AgentInterface) -> None:
        """Name an interface that serves all agents on the card of each, with the agent as its tenant."""
        self.check_grpc()
        entries = self._entries[id(interface)] = []
        for name, app in self._apps.items():
            entries.append((app, replace(interface, tenant=name)))
            app.add_interface(entries[-1][1])

    def remove_interface(self, interface: AgentInterface) -> None:
        """Take an interface off the cards. No error when it is not there."""
        for app, entry in self._entries.pop(id(interface), ()):
            app.remove_interface(entry)

    async def _open(self) -> None:
        await self._store.open()
        started: list[App] = []
        try:
            for app in self._apps.values():
                await app.start()
                started.append(app)
        except BaseException:
            for app in started:
                await app.stop()
            await self._store.close()
            raise

    def begin_stop(self) -> None:
        """Refuse new work from now on, for every agent."""
        for app in self._apps.values():
            app.begin_stop()
        super().begin_stop()

    async def _close(self) -> None:
        try:
            await asyncio.gather(*(app.stop() for app in self._apps.values()))
        finally:
            await self._store.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection scope: hand it to the agent that its path names."""
        if scope["type"] == "lifespan":
            await super().__call__(scope, receive, send)
            return
        if not self._started:
            await self.start()
        path = relative_path(scope)
        name, slash, rest = path.removeprefix("/").partition("/")
        app = self._apps.get(name)
        if app is not None and (self.by == "path" or (slash and rest.startswith(".well-known/"))):
            await app({**scope, "root_path": f"{scope.get('root_path', '').rstrip('/')}/{name}"}, receive, send)
        elif scope["type"] == "http" and path not in self.card_paths and (self.by == "tenant" or path == "/health"):
            await self._endpoint(scope, receive, send)
        elif scope["type"] == "http":
            await Exchange(scope, receive, send, ()).refuse(MethodNotFoundError("There is no agent of this name here"))
        else:
            await send({"type": "websocket.close", "code": 1000})


class TenantApp(App):
    """An app whose card says that its agent is found at the group's address, as a tenant."""

    def __init__(self, agent: Served, tenant: str, **settings: Any) -> None:
        self._tenant = tenant
        super().__init__(agent, **settings)

    def _unsigned_card(self, base_url: str) -> AgentCard:
        root = base_url.rstrip("/").removesuffix(f"/{quote(self._tenant)}")
        card = super()._unsigned_card(root)
        card.supported_interfaces = [replace(entry, tenant=self._tenant) for entry in card.supported_interfaces]
        return card


class ByTenant:
    """Operations of several agents, by the first part of the tenant; implements Operations.

    The rest of the tenant is what the agent gets. Raises InvalidParamsError for a tenant that names no agent.
    """

    def __init__(self, agents: Mapping[str, Operations]) -> None:
        self._agents = agents

    def _route(self, request: Any, context: CallContext) -> tuple[Operations, msgspec.Struct]:
        name, _, inner = (context.tenant or request.tenant).partition("/")
        agent = self._agents.get(name)
        if agent is None:
            violation = FieldViolation("tenant", "must name an agent of this server, as its card does")
            raise InvalidParamsError("Invalid parameters", violations=[violation])
        context.tenant = inner
        return agent, replace(request, tenant=inner)

    async def call(self, op: Operation, request: msgspec.Struct, context: CallContext) -> msgspec.Struct:
        """See :class:`~dragoman.ports.operations.Operations`."""
        agent, routed = self._route(request, context)
        return await agent.call(op, routed, context)

    async def stream(self, op: Operation, request: msgspec.Struct, context: CallContext) -> EventStream:
        """See :class:`~dragoman.ports.operations.Operations`."""
        agent, routed = self._route(request, context)
        return await agent.stream(op, routed, context)


def _check(agents: Mapping[str, Served], by: str, settings: Mapping[str, Any]) -> None:
    if not agents:
        raise ConfigurationError("a group needs at least one agent")
    if by not in ("path", "tenant"):
        raise ConfigurationError(f"a group serves its agents by 'path' or by 'tenant', not by {by!r}")
    for name in agents:
        if not _NAME.fullmatch(name) or name in _TAKEN:
            raise ConfigurationError(f"an agent of a group cannot be called {name!r}: it is part of addresses")
    if by == "tenant" and tuple(settings.get("versions", ("1.0",))) != ("1.0",) and settings["versions"] != VERSIONS:
        raise ConfigurationError("by tenant only version 1.0 can be served, since 0.3 has no tenants")
    if by == "tenant" and settings.get("bindings"):
        raise ConfigurationError("custom bindings have endpoints of their own: serve the agents by path")
    if "namespace" in settings:
        raise ConfigurationError("the namespace of an agent in a group is its name")
