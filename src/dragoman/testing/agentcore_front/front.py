"""The stand-in front itself: what a test holds in its hands, and its beginning and end.

Spec: agentcore 9.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from typing import Self

import msgspec

from dragoman.http.asgi import Receive, Scope, Send
from dragoman.ports.clock import Clock, SystemClock
from dragoman.testing.agentcore_front.answering import Answering
from dragoman.testing.agentcore_front.asking import loopback_http
from dragoman.testing.agentcore_front.contract import Contract
from dragoman.testing.agentcore_front.faults import AnyFault, Order
from dragoman.testing.agentcore_front.forwarding import Forwarding
from dragoman.testing.agentcore_front.incoming import Authorizer, Open
from dragoman.testing.agentcore_front.pings import Violation
from dragoman.testing.agentcore_front.recording import Recorded
from dragoman.testing.agentcore_front.routes import runtime_path
from dragoman.testing.agentcore_front.serving import Serving
from dragoman.testing.agentcore_front.sessions import Ending, Session, Sessions
from dragoman.testing.agentcore_front.settings import FrontSettings
from dragoman.testing.agentcore_front.upstreams import Upstream
from dragoman.testing.agentcore_front.watcher import Watcher


class Front:
    """A stand-in for the front of one runtime: ``async with Front(PerSession.of_agent("tides:agent")) as front``.

    * ``upstream``: what runs behind it, :class:`Shared` or :class:`PerSession`;
    * ``auth``: :class:`Open` (default, everybody), :class:`SigV4` or :class:`Jwt`;
    * ``settings``: see :class:`FrontSettings`; ``port``: 0 (default) takes a free one;
    * ``clock``: the time of signatures, tokens, idle sessions; default the machine's;
    * ``watch``: whether containers are pinged in the background; False: :meth:`look` does it once;
    * ``output``: told the session id and each line that its container writes.

    Raises ConfigurationError for an allow-list that the service refuses.
    """

    def __init__(
        self,
        upstream: Upstream,
        *,
        auth: Authorizer | None = None,
        settings: FrontSettings | None = None,
        port: int = 0,
        clock: Clock | None = None,
        watch: bool = True,
        output: Callable[[str, str], None] | None = None,
    ) -> None:
        self.settings = settings or FrontSettings()
        self.contract = Contract()
        self._clock = clock or SystemClock()
        self._answering = Answering(auth or Open(), self.settings, self._clock, self.now, self.contract)
        self._upstream = upstream
        self._output = output
        self._serving = Serving(self, port)
        self._watches = watch
        self._stack = AsyncExitStack()
        self._parts: _Parts | None = None

    def now(self) -> float:
        """The front's time, in seconds since the epoch."""
        return self._clock.now_ms() / 1_000

    @property
    def url(self) -> str:
        """The origin: what stands in for ``https://bedrock-agentcore.eu-west-1.amazonaws.com``."""
        return self._serving.url

    @property
    def arn(self) -> str:
        """The ARN of the runtime that it stands for."""
        return self.settings.arn

    @property
    def invocation_url(self) -> str:
        """Where JSON-RPC is posted to, with the slash at its end."""
        return f"{self.url}{runtime_path(self.arn)}/invocations/"

    def fail_next(
        self, fault: AnyFault, times: int = 1, *, method: str = "", session: str = "", path: str = ""
    ) -> None:
        """Answer the next calls with a fault.

        ``method``, ``session`` and ``path`` choose which: the JSON-RPC method, the session id, a part of the target.
        """
        self._answering.faults.add(Order(fault, times, method, session, path))

    @property
    def requests(self) -> deque[Recorded]:
        """The last 10,000 requests, oldest first."""
        return self._answering.requests

    @property
    def violations(self) -> list[Violation]:
        """What containers did that they must not do."""
        return list(self.contract.violations)

    @property
    def sessions(self) -> dict[str, Session]:
        """The sessions that there are, by id."""
        return self._running.sessions.known

    @property
    def ends(self) -> Sequence[Ending]:
        """The ends of sessions that were, oldest first."""
        return self._running.sessions.ends

    async def look(self) -> None:
        """Ping every container once, and end the sessions whose time has come, as the watcher does by itself."""
        await self._running.watcher.look()

    async def stop_session(self, session_id: str) -> None:
        """End a session as its owner would. Raises KeyError when there is none."""
        await self._running.sessions.end(self.sessions[session_id], "stopped")

    async def __aenter__(self) -> Self:
        http = await self._stack.enter_async_context(loopback_http())
        sessions = Sessions(self._upstream, self.settings, self.contract, http, self.now, self._output)
        watcher = Watcher(sessions, self.settings, self.contract, http, self.now)
        self._parts = _Parts(sessions, watcher, Forwarding(http, self.settings, self.contract))
        self._stack.push_async_callback(sessions.close)
        if self._watches:
            self._stack.push_async_callback(_cancel, asyncio.create_task(watcher.watch()))
        try:
            await self._serving.start()
        except BaseException:
            await self._stack.aclose()
            raise
        self._stack.push_async_callback(self._serving.stop)
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._stack.aclose()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, as an ASGI application."""
        if scope["type"] == "http":
            parts = self._running
            await self._answering.answer(scope, receive, send, parts.sessions, parts.forwarding)

    @property
    def _running(self) -> _Parts:
        assert self._parts is not None, "the front has not begun"
        return self._parts


class _Parts(msgspec.Struct, frozen=True):
    """What a front works with while it runs."""

    sessions: Sessions
    watcher: Watcher
    forwarding: Forwarding


async def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
