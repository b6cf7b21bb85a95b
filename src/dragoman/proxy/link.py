"""The way to the agent behind a proxy: one connection at a time, made anew when the agent's card has changed.

Theory. A card may be used as long as its caching headers say. After that the next call begins to look for a newer one
while it goes on with the old; who asks for our card waits for the look. A card that is unchanged costs one conditional
request. One that changed means a new connection, by what it says now; the old one is closed when nothing uses it any
more. An agent that cannot be looked at is kept as it was known, and looked at again a little later.

Spec: CARD-18, CARD-22 to CARD-24.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TypedDict, Unpack

from dragoman.auth import Credentials
from dragoman.bindings.grpc.settings import GrpcClientSettings
from dragoman.client import CardCache, Client, Connection, Reconnect, Target, V03Settings, connect
from dragoman.client.cards import BINDINGS
from dragoman.client.discovery import as_file, card_urls
from dragoman.client.line import LateCloser
from dragoman.errors import ConfigurationError, DragomanError, UnavailableError
from dragoman.http.client import HttpxClient
from dragoman.model import AgentCard, AgentInterface
from dragoman.ports.binding import Binding
from dragoman.ports.operations import Operations
from dragoman.protocol.extensions import RESUMABLE_STREAMS
from dragoman.proxy.failures import AGAIN, UNREACHABLE
from dragoman.proxy.headers import check_origin, may_have_headers

_log = logging.getLogger("dragoman.proxy")

_LEAST = 1.0
"""Seconds that a card is used at least, whatever its headers say."""
_AGAIN = 5.0
"""Seconds until the next look after one that failed."""
_PATIENCE = 5.0
"""Seconds that somebody who asks for our card waits for a look."""


class UpstreamOptions(TypedDict, total=False):
    """How the agent behind a proxy is called: arguments of :func:`dragoman.connect`, with its defaults."""

    bindings: Sequence[str | Binding]
    versions: Sequence[str]
    fallback: bool
    v03: V03Settings
    interface: AgentInterface
    headers: Mapping[str, str]
    card_headers: Mapping[str, str]
    extensions: Sequence[str]
    timeout: float | None
    idle_timeout: float | None
    connect_timeout: float
    http: HttpxClient
    allow_private: bool
    reconnect: Reconnect
    subscribe_verb: str
    tenant_in_path: bool
    grpc: GrpcClientSettings
    credentials: Credentials
    trusted: Sequence[str]


class Upstream:
    """One connection to the agent. A context manager for each use; it is closed when it is retired and unused.

    ``trusted``: whether headers of callers may go there; ``resumable``: whether its streams are.
    """

    def __init__(self, connection: Connection, client: Client, *, trusted: bool) -> None:
        self._connection = connection
        self._client = client
        self._uses = 0
        self._unused: asyncio.Event | None = None
        self.card = client.card
        self.operations: Operations = client.operations
        self.trusted = trusted
        self.later = LateCloser()
        self.resumable = any(entry.uri == RESUMABLE_STREAMS for entry in client.card.capabilities.extensions)

    def __enter__(self) -> Upstream:
        self._uses += 1
        return self

    def __exit__(self, *exc: object) -> None:
        self._uses -= 1
        if not self._uses and self._unused is not None:
            self._unused.set()

    async def retire(self) -> None:
        """Close it as soon as nothing uses it, or when this is cancelled."""
        self._unused = asyncio.Event()
        try:
            if self._uses:
                await self._unused.wait()
        finally:
            await self.aclose()

    async def aclose(self) -> None:
        """Close it now."""
        await self.later.aclose()
        await self._connection.aclose()


class Link:
    """The way to one agent. ``forwarding`` are further origins that may have the headers of callers.

    ``on_change`` is called when the card has changed. Raises ConfigurationError for a target without a card, or for an
    origin that is none.
    """

    def __init__(
        self,
        target: Target,
        *,
        forwarding: Sequence[str] = (),
        now: Callable[[], float] = time.monotonic,
        **options: Unpack[UpstreamOptions],
    ) -> None:
        if isinstance(target, AgentInterface):
            raise ConfigurationError("a proxy needs the agent's card: give that as target, and interface= besides")
        for origin in forwarding:
            check_origin(origin)
        self._target = target
        self._place = card_urls(target)[0] if isinstance(target, str) and as_file(target) is None else ""
        self._trusted = tuple(forwarding)
        self._options = options
        self._options["trusted"] = (*options.get("trusted", ()), *forwarding)
        self._now = now
        self._cache = CardCache(now=now)
        self._due = 0.0
        self._current: Upstream | None = None
        self._look: asyncio.Task[None] | None = None
        self._retiring: set[asyncio.Task[None]] = set()
        self.on_change: Callable[[], None] | None = None

    async def open(self) -> None:
        """Connect. Raises what :func:`dragoman.connect` raises on entering."""
        self._current = await self._connect()

    async def aclose(self) -> None:
        """Close everything, whether it is used or not."""
        current, self._current = self._current, None
        tasks = [*self._retiring, *((self._look,) if self._look is not None else ())]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if current is not None:
            await current.aclose()

    @property
    def current(self) -> Upstream:
        """The connection to use. Raises UnavailableError when there is none."""
        if self._current is None:
            raise UnavailableError(UNREACHABLE, retry_after=AGAIN)
        if self._place and self._now() >= self._due:
            self._begin_look()
        return self._current

    def doubt(self) -> None:
        """The agent was not where its card says: look for a newer one, unless that was done just now."""
        self._due = min(self._due, self._now() + _LEAST)

    async def refresh(self) -> None:
        """Look for a newer card, if it is time; wait for that, but not for long. Never raises for what it finds."""
        if self._current is None or not self._place:
            return
        if self._now() >= self._due:
            self._begin_look()
        if self._look is not None and not self._look.done():
            await asyncio.wait((self._look,), timeout=_PATIENCE)

    def _begin_look(self) -> None:
        if self._look is None or self._look.done():
            self._look = asyncio.create_task(self._look_again())

    async def _look_again(self) -> None:
        self._due = self._now() + _AGAIN
        try:
            found = await self._connect()
        except DragomanError as error:
            _log.warning("the card of the agent is used as it was known: %s", error)
            return
        if self._current is not None and found.card == self._current.card:
            await found.aclose()
            return
        old, self._current = self._current, found
        _log.info("the card of the agent has changed")
        if old is not None:
            retiring = asyncio.create_task(old.retire())
            self._retiring.add(retiring)
            retiring.add_done_callback(self._retiring.discard)
        if self.on_change is not None:
            self.on_change()

    async def _connect(self) -> Upstream:
        connection = connect(self._target, cache=self._cache, **self._options)
        client = await connection.open()
        self._due = self._now() + max(self._cache.seconds_left(client.card), _LEAST)
        return Upstream(connection, client, trusted=self._is_trusted(client.card))

    def _is_trusted(self, card: AgentCard) -> bool:
        """Addresses in a card that the operator gave are the operator's own choice."""
        if not self._place:
            return True
        chosen = self._options.get("interface")
        given = self._options.get("bindings", BINDINGS)
        spoken = [binding if isinstance(binding, str) else binding.uri for binding in given]
        used = [chosen] if chosen else [i for i in card.supported_interfaces if i.protocol_binding in spoken]
        return may_have_headers(self._place, used, self._trusted)
