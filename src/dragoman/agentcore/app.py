"""The AgentCore profile: an agent as the ASGI application that AgentCore Runtime expects in a container.

Theory. Two loops. The server's loop, the acceptor, answers pings, cards, and requests from before the start and after
the end. Everything else crosses to the loop of the agent, where an ordinary App serves it; so pings are answered while
code of the author blocks. The app's operations are wrapped by what the profile adds to calls, its runtime tells the
health of turns, and each answer to JSON-RPC has status 200.

Life: :meth:`AgentCoreApp.start` opens the agent and returns; start-up hooks go on after it, since a server takes no
connection before, and pings have to say that the agent is not ready. The identity in the store is renewed with the
first call, and after a restore: what was made before a snapshot is in every copy of it.

Spec: section 4 of the register; AC-S-08.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from typing import Any

from dragoman.agentcore.answers import PlainAnswers, answer_json
from dragoman.agentcore.asking import Asking
from dragoman.agentcore.cards import left_out
from dragoman.agentcore.current import enter, leave
from dragoman.agentcore.headers import REQUEST_ID
from dragoman.agentcore.health import Health
from dragoman.agentcore.hooks import Hooks, HooksFailedError
from dragoman.agentcore.hosted import HostedApp
from dragoman.agentcore.ping import Report
from dragoman.agentcore.pinging import PingResource, quiet_access_log
from dragoman.agentcore.profile import Profile
from dragoman.agentcore.worker import SameLoop, Worker, WorkerThread
from dragoman.bindings.settings import EndpointSettings
from dragoman.bindings.wellknown import CARD_PATH
from dragoman.http.asgi import Receive, Scope, Send, relative_path, serve_lifespan
from dragoman.http.client import forget_connections
from dragoman.model import AgentCard
from dragoman.server.app import IN_PROCESS_URL, Served
from dragoman.stores import MemoryStore

logger = logging.getLogger("dragoman.agentcore")

PING_PATH = "/ping"
OLD_CARD_PATH = "/.well-known/agent.json"
FAILED = 1
"""Exit status of a process that could not start."""

_STOP_MARGIN = 1.0
"""Seconds beyond grace and interruption after which an agent that blocks its loop is given up."""

_PATIENCE = 1.0
"""Seconds that open connections, and then the agent's thread, have to end when all work has."""

_STARTING = "The agent is still starting"
_STOPPED = "The agent has been stopped"
_MEMORY_ONLY = (
    "Tasks live in memory and vanish with the microVM, also when its session comes back; a durable store keeps them: "
    "store='sqlite:///PATH' on a mounted volume"
)


def app(agent: Served, **settings: Any) -> AgentCoreApp:
    """The ASGI application of an agent for AgentCore Runtime: ``agentcore.app(agent, store="sqlite:////mnt/tasks.db")``.

    ``settings`` are those of :class:`~dragoman.agentcore.Profile`. Raises ConfigurationError for what cannot be.
    """
    return AgentCoreApp(agent, Profile(**settings))


class AgentCoreApp:
    """An agent in the AgentCore profile; mountable under any path.

    ``health`` is what pings are answered with: overrides and holds. It starts with its server's lifespan or, where that
    does not reach it, with its first request; then ``async with`` or ``await app.stop()`` ends it in order.
    """

    def __init__(self, agent: Served, profile: Profile) -> None:
        self.profile = profile
        self.health = Health(
            turn_age=profile.turn_age,
            linger=profile.linger,
            wall=profile.wall,
            monotonic=profile.monotonic,
            restamp=profile.restamp,
        )
        self._path = profile.path.rstrip("/")
        self._inner = inner = HostedApp(agent, profile, self.health)
        self._front = inner.refusing(self._why_not)
        self._worker: Worker = WorkerThread() if profile.own_thread else SameLoop()
        self._hooks = Hooks(profile.on_start, profile.on_restore, self._worker, profile.start_limit)
        self._asking = self._make_asking()
        self._ping = PingResource(self._report)
        self._starting: asyncio.Task[None] | None = None
        self._preparing: asyncio.Task[None] | None = None
        self._restoring: asyncio.Task[None] | None = None
        self._renewing: asyncio.Task[None] | None = None
        self._stopping: asyncio.Task[None] | None = None
        self._is_ready = False
        self._is_over = False

    def _make_asking(self) -> Asking | None:
        profile = self.profile
        if profile.ping_handler is None:
            return None
        return Asking(profile.ping_handler, self.health, self._worker, profile.monotonic, profile.ping_limit)

    # As something that is served; see dragoman.server.serving.

    @property
    def settings(self) -> EndpointSettings:
        """Settings of the endpoint."""
        return self._inner.settings

    @property
    def shutdown_grace(self) -> float:
        """Seconds that running work has when the end was asked for."""
        return self._inner.shutdown_grace

    @property
    def scopes(self) -> frozenset[str]:
        """The types of ASGI scope that calls come by."""
        return self._inner.scopes

    def card(self, base_url: str) -> AgentCard:
        """The card, for a server at this address. Spec: AC-S-30."""
        return self._inner.card(base_url)

    async def start(self) -> None:
        """Open what is needed; start-up hooks go on after that. Safe to call twice."""
        if self._starting is None:
            self._starting = asyncio.create_task(self._begin())
        try:
            await asyncio.shield(self._starting)
        except Exception:
            self._starting = None
            raise

    async def _begin(self) -> None:
        quiet_access_log()
        self._log_facts()
        await self._worker.start()
        try:
            await self._worker.run(self._inner.start())
        except BaseException:
            await self._worker.stop(_PATIENCE)
            raise
        enter(self.health)
        self.health.observe_clocks()
        if self._hooks.has_start:
            self._preparing = asyncio.create_task(self._prepare())
        else:
            self._become_ready()

    def _log_facts(self) -> None:
        if self.profile.store is None or isinstance(self.profile.store, MemoryStore) or self.profile.store == "memory":
            logger.warning(_MEMORY_ONLY)
        kept = left_out(self._inner.whole_card(IN_PROCESS_URL))
        if kept:
            logger.info("Only JSON-RPC passes the front of AgentCore; the card leaves out %s", ", ".join(kept))

    async def _prepare(self) -> None:
        try:
            await self._hooks.start()
        except HooksFailedError as error:
            logger.critical("The agent cannot start: %s", error)
            asyncio.get_running_loop().call_soon(_exit)
            return
        self._become_ready()

    def _become_ready(self) -> None:
        if self._stopping is None:
            self._is_ready = True
            self.health.ready()

    def begin_stop(self) -> None:
        """Refuse new work from now on. The first act on SIGTERM."""
        self._worker.post(self._inner.begin_stop)

    async def stop(self) -> None:
        """Give running work its grace, then close what is open. Safe to call twice."""
        if self._starting is not None:
            if self._stopping is None:
                self._stopping = asyncio.create_task(self._end())
            await asyncio.shield(self._stopping)

    async def _end(self) -> None:
        for task in (self._preparing, self._restoring):
            if task is not None:
                task.cancel()
        if self._asking is not None:
            self._asking.stop()
        limits = self.profile.limits
        interrupt_wait = max(limits.shutdown_grace, 5.0) if limits.interrupt_wait is None else limits.interrupt_wait
        patience = _PATIENCE
        try:
            async with asyncio.timeout(limits.shutdown_grace + interrupt_wait + self._inner.push_wait + _STOP_MARGIN):
                await self._worker.run(self._inner.stop())
        except TimeoutError:
            logger.error("The agent blocks its loop; what it works on is recorded by the next process")
            patience = 0.0
        finally:
            self._is_over = True
            self.health.unready()
            leave(self.health)
            await self._worker.stop(patience)

    def _why_not(self) -> str:
        return _STOPPED if self._is_over else _STARTING

    async def __aenter__(self) -> AgentCoreApp:
        await self.start()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.stop()

    # As an ASGI application.

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection scope."""
        if scope["type"] == "lifespan":
            await serve_lifespan(receive, send, self.start, self.stop, logger)
            return
        path = self._enter(scope)
        if path == PING_PATH and scope["type"] == "http":
            if self._starting is None:
                self._starting = asyncio.create_task(self._begin())
            await self._ping(scope, send)
            return
        if not (self._is_ready or self._is_over):
            await self.start()
        if path == OLD_CARD_PATH and not self.profile.old_card_path:
            await answer_json(scope, send, 404, b'{"reason":"not found"}')
        elif path in (CARD_PATH, OLD_CARD_PATH):
            await self._front(scope, receive, send)
        else:
            await self._serve(scope, receive, send, is_rpc=path in ("", "/") and scope.get("method") == "POST")

    def _enter(self, scope: Scope) -> str:
        """The path below the mount; a mount path of the profile's becomes part of ``root_path``."""
        path = relative_path(scope)
        if self._path and (path == self._path or path.startswith(f"{self._path}/")):
            scope["root_path"] = scope.get("root_path", "").rstrip("/") + self._path
            path = path[len(self._path) :]
        return path

    async def _serve(self, scope: Scope, receive: Receive, send: Send, *, is_rpc: bool) -> None:
        answers = PlainAnswers(receive, send) if is_rpc else None
        if answers is not None:
            receive, send = answers.receive, answers.send
        _name_request(scope)
        if not self._is_ready or self._is_over:
            await self._front(scope, receive, send)
            return
        await self._renew()
        try:
            await self._worker.serve(self._inner, scope, receive, send)
        except ConnectionAbortedError:
            if answers is None or answers.has_begun:
                raise
            await answers.refuse(_STOPPED)

    async def _renew(self) -> None:
        """Before the first call, and the first after a restore: be somebody else than other copies of this process."""
        self._observe_clocks()
        if self._renewing is None:
            self._renewing = asyncio.create_task(self._worker.run(self._inner.runtime.renew()))
        if self._renewing.done():
            return
        try:
            await asyncio.shield(self._renewing)
        except Exception:
            logger.exception("The store knows this process by its old name still; the next call tries again")
            self._renewing = None

    def _observe_clocks(self) -> None:
        """Look for a restore, and see to what is to be done after one."""
        if self.health.observe_clocks():
            self._renewing = None
            forget_connections()
            self._restoring = asyncio.create_task(self._hooks.restored())

    async def _report(self) -> Report | None:
        if self._is_ready:
            self._observe_clocks()
            if self._asking is not None:
                await self._asking.ask()
        return self.health.report


def _name_request(scope: Scope) -> None:
    """A request without an id of AgentCore's gets a fresh one. Spec: AC-S-41."""
    name = REQUEST_ID.encode()
    if not any(key == name for key, _ in scope["headers"]):
        scope["headers"] = [*scope["headers"], (name, str(uuid.uuid4()).encode())]


def _exit() -> None:
    raise SystemExit(FAILED)
