"""ProxyApp: a remote agent as an ASGI application of ours. It composes and decides nothing.

Spec: CARD-06, CARD-18, XCARD-01.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from contextvars import ContextVar
from functools import partial
from typing import Unpack

from msgspec.structs import replace

from dragoman.bindings.settings import MIB, EndpointSettings
from dragoman.client import Reconnect, Target
from dragoman.errors import DragomanError
from dragoman.http.asgi import Receive, Scope, Send, relative_path, server_url
from dragoman.model import AgentCard
from dragoman.ports.binding import Binding
from dragoman.ports.operations import Caller
from dragoman.protocol.versions import check_version
from dragoman.proxy.card import CardChanges, derive_card
from dragoman.proxy.headers import Beside
from dragoman.proxy.link import Link, UpstreamOptions
from dragoman.proxy.open_work import OpenWork
from dragoman.proxy.operations import ProxyOperations, ProxySettings
from dragoman.server.app import IN_PROCESS_URL, Application, Interceptor
from dragoman.server.dialects import VERSIONS

logger = logging.getLogger("dragoman.proxy")

_BASE: ContextVar[str] = ContextVar("dragoman.proxy.base")
"""The address that the request in work came to, for cards that are answered to it."""


class ProxyApp(Application):
    """An ASGI application that serves an agent of somewhere else again, on every binding that is served here.

    Calls pass with their metadata, tenants, deadlines and extensions, and answers, events with their numbers, and
    errors as the agent gives them. Nothing is stored. The card is the agent's, less what does not come through: see
    :mod:`dragoman.proxy.card`; it is looked at again as its caching headers say.

    * ``target``: what :func:`dragoman.connect` takes, but for a bare AgentInterface, which has no card;
    * ``forward_headers``: names of the callers' headers that the agent is sent, such as ``authorization``. None by
      default. They go to interfaces of the target's own origin only, unless ``forward_origins`` names others; a card
      that names any other interface turns the forwarding off;
    * ``name``, ``description``: instead of the agent's own; ``push``: pass webhooks on, default True (the agent calls
      them itself);
    * ``shutdown_grace``: seconds that open calls and streams have at the end, default 10;
    * ``card_max_age``: seconds that callers may keep our card, default 60; ``now``: the clock, in seconds, by which the
      agent's card ages;
    * ``serve_bindings``: custom bindings to serve as well, as ``bindings`` of :class:`~dragoman.App`;
      ``serve_versions``: the generations of the protocol to serve, whatever the agent speaks, as its ``versions``;
    * ``upstream``: how the agent is called, arguments of :func:`dragoman.connect`. ``headers`` and ``extensions`` go
      with every call to it, and credentials of this server belong there;
    * the others are those of :class:`~dragoman.App`.

    A call that cannot be passed on is UnavailableError, or InternalError when the agent may have taken it; a stream
    that is cut is mended as the client does it. Who leaves a stream closes that to the agent, and no task.

    Starting raises what connecting raises (CardError, ConnectError, …); when it is left to the first request, callers
    are told UnavailableError until it succeeds. Raises ConfigurationError for settings that cannot be.
    """

    def __init__(
        self,
        target: Target,
        *,
        forward_headers: Sequence[str] = (),
        forward_origins: Sequence[str] = (),
        name: str | None = None,
        description: str | None = None,
        push: bool = True,
        public_url: str | None = None,
        max_body_bytes: int = 10 * MIB,
        cors: Sequence[str] = (),
        heartbeat: float = 15.0,
        stall_timeout: float = 60.0,
        card_max_age: int = 60,
        shutdown_grace: float = 10.0,
        identify: Callable[[Scope], Awaitable[Caller]] | None = None,
        infer_version: bool = False,
        interceptors: Sequence[Interceptor] = (),
        serve_bindings: Sequence[Binding] = (),
        serve_versions: Sequence[str] = VERSIONS,
        now: Callable[[], float] = time.monotonic,
        **upstream: Unpack[UpstreamOptions],
    ) -> None:
        self._link = Link(target, forwarding=forward_origins, now=now, **upstream)
        self._link.on_change = self._forget_card
        self._beside = Beside(upstream.get("headers", {}), upstream.get("extensions", ()), forward_headers)
        self._changes = CardChanges(name=name, description=description, push=push)
        self._work = OpenWork()
        self._base = ""
        self._grace = shutdown_grace
        settings = EndpointSettings(
            public_url=public_url,
            identify=identify,
            check_version=partial(check_version, infer=infer_version),
            healthy=lambda: not self._work.leaving,
            max_body_bytes=max_body_bytes,
            heartbeat=heartbeat,
            stall_timeout=stall_timeout,
            card_max_age=card_max_age,
            cors=tuple(cors),
        )
        passing = ProxySettings(
            timeout=upstream.get("timeout", 60.0),
            opening=upstream.get("idle_timeout", 300.0),
            reconnect=upstream.get("reconnect", Reconnect()),
            push=push,
            infer_version=infer_version,
        )
        operations = ProxyOperations(self._link, self._beside, passing, self._work, self._derive)
        super().__init__(operations, settings, interceptors, serve_bindings, serve_versions)

    @property
    def shutdown_grace(self) -> float:
        """Seconds that open calls and streams have when the end was asked for."""
        return self._grace

    def card(self, base_url: str) -> AgentCard:
        """A new card for the agent as it is served at this address. Raises UnavailableError before the start."""
        more = self.further_interfaces(base_url)
        return derive_card(self._link.current.card, base_url, more, self._changes, self.versions)

    def begin_stop(self) -> None:
        """Refuse new calls from now on."""
        self._work.leaving = True
        super().begin_stop()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection scope."""
        if scope["type"] == "http":
            if not self._started and not await self._can_start():
                await self._endpoint(scope, receive, send)
                return
            if relative_path(scope) in self.card_paths:
                await self._link.refresh()
            self._base = server_url(scope)
            _BASE.set(self._base)
        await super().__call__(scope, receive, send)

    async def _can_start(self) -> bool:
        """Start; callers are told by the operations, in the words of their binding, when that does not succeed."""
        try:
            await self.start()
        except DragomanError as error:
            logger.warning("the agent behind this server cannot be reached: %s", error)
            return False
        return True

    async def _open(self) -> None:
        await self._link.open()
        if self._beside.forwards and not self._link.current.trusted:
            logger.warning("no header of callers is passed on: the agent's card names an interface of another origin")

    async def _close(self) -> None:
        self._work.leaving = True
        await self._work.drain(self._grace)
        await self._link.aclose()

    def _derive(self, card: AgentCard) -> AgentCard:
        """A card that is answered to a call: with the address that the call came to, where that is known."""
        base = self.public_url or _BASE.get(self._base)
        at = base or IN_PROCESS_URL
        derived = derive_card(card, at, self.further_interfaces(at), self._changes, self.versions)
        if not base and self._interfaces:  # a call over gRPC, and nobody has come by HTTP yet
            return replace(derived, supported_interfaces=list(self._interfaces))
        return derived

    def _forget_card(self) -> None:
        self._endpoint.forget_card()


proxy_app = ProxyApp
"""The ASGI application of an agent of somewhere else: ``dragoman.proxy_app("https://agent.example")``."""
