"""Custom bindings: further ways to speak the protocol, which an app serves and a client calls.

Theory. A binding is one object that both sides are given: ``App(bindings=[binding])`` and ``connect(target,
bindings=[…, binding])``. It registers by its URI, which is what the card names. On the server it becomes a
:class:`ServerHalf`, which takes the scopes of its endpoint below the app's address, or lives beside the app by its
hooks ``start``, ``begin_stop`` and ``stop``, or both. On the client it becomes a :class:`ClientTransport` for each
interface of the card that carries its URI. Both halves are Operations on their inner side, so a binding never writes
the list of operations, and whatever wraps Operations (limits, telemetry, proxies) works on it. The contract that it
has to keep is run by ``dragoman.testing.binding_contract``.

Spec: §5.8, §12, BIND-02, BIND-03, BIND-10, BIND-11.
"""

from __future__ import annotations

import ssl
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any, Protocol, runtime_checkable

import msgspec

from dragoman.model import AgentInterface, Operation
from dragoman.ports.operations import Caller, Operations

ScopeOfCall = MutableMapping[str, Any]
"""What is known of a connection, in the form of an ASGI scope."""

AsgiReceive = Callable[[], Awaitable[MutableMapping[str, Any]]]
AsgiSend = Callable[[MutableMapping[str, Any]], Awaitable[None]]


class ServerEdge(msgspec.Struct, frozen=True, kw_only=True):
    """What an app gives to the server half of a binding.

    * ``operations``: what to serve;
    * ``identify``: authenticates a connection or call by a scope in the form of ASGI. Raises UnauthenticatedError or
      PermissionDeniedError. None: every caller is anonymous (Spec: AUTH-05, BIND-09);
    * ``check_version``: is given the ``A2A-Version`` of a call before anything else of it is looked at (Spec:
      VER-07);
    * ``public_url``: the app's address as clients write it, None when it is that of the socket;
    * ``max_message_bytes``: largest request (Spec: SEC-03);
    * ``heartbeat``: seconds of quiet after which something is to be sent, 0: never; ``stall_timeout``: seconds that a
      client may leave what it was sent unread;
    * ``origins``: those whose pages may call, ``("*",)`` for all;
    * ``methods``: operations that extensions add, by their names, to be carried as the protocol's own (Spec: EXT-13).
    """

    operations: Operations
    identify: Callable[[ScopeOfCall], Awaitable[Caller]] | None = None
    check_version: Callable[[str], None] | None = None
    public_url: str | None = None
    max_message_bytes: int = 10 * 1024 * 1024
    heartbeat: float = 15.0
    stall_timeout: float = 60.0
    origins: tuple[str, ...] = ()
    methods: Mapping[str, Operation] = {}


class ServerHalf(Protocol):
    """A binding at work in one app. Everything but :meth:`interface` has a default that does nothing.

    * ``path``: the endpoint below the app's address, such as ``"/ws"``; empty for a binding that listens by itself;
    * ``scopes``: the types of ASGI scope that it takes there (``"http"``, ``"websocket"``).
    """

    path: str = ""
    scopes: frozenset[str] = frozenset()

    @abstractmethod
    def interface(self, base_url: str) -> AgentInterface | None:
        """The entry on the card of the app at this address: the binding's URI and the full URL of its endpoint, or
        None while it is not served. ``base_url`` has no final slash. Spec: BIND-10."""

    async def start(self) -> None:
        """The app has started; calls may come from now on. Raises ConfigurationError when it cannot be served."""

    def begin_stop(self) -> None:
        """The app refuses new work from now on; tell the peers. May be called from a signal handler."""

    async def stop(self) -> None:
        """The work behind the open calls has ended: end them and the connections. Safe to call twice."""

    async def __call__(self, scope: ScopeOfCall, receive: AsgiReceive, send: AsgiSend) -> None:
        """Serve one scope of the endpoint."""
        raise NotImplementedError


class ClientEdge(msgspec.Struct, frozen=True, kw_only=True):
    """What a connection gives to the client half of a binding.

    * ``headers``: what the client sends with every call; credentials that belong to the connection are among them.
      The same come with each call in :attr:`CallContext.parameters
      <dragoman.ports.operations.CallContext.parameters>`;
    * ``connect_timeout``: seconds for the making of a connection; ``idle_timeout``: seconds that a stream may bring
      nothing, not even a heartbeat, None for no limit;
    * ``allow_private``: False: only public addresses may be called (Spec: AMB-71);
    * ``credentials``: names of parameters, in lower case, that are credentials besides the usual ones;
    * ``tls``: how servers are verified and what the client shows of itself; None: as usual.
    """

    headers: Mapping[str, str] = {}
    connect_timeout: float = 10.0
    idle_timeout: float | None = 300.0
    allow_private: bool = True
    credentials: frozenset[str] = frozenset()
    tls: ssl.SSLContext | None = None


class ClientTransport(Operations, Protocol):
    """Operations of a remote agent.

    Raises :class:`~dragoman.errors.ConnectError` only when nothing was sent, since the client then tries the next
    interface (Spec: CARD-12). Made without I/O: the first call connects.
    """

    async def aclose(self) -> None:
        """Close the connections. Safe to call twice."""
        ...


@runtime_checkable
class Binding(Protocol):
    """A way to speak the protocol, known by its URI. Frozen: one object may serve many apps and clients at a time."""

    @property
    def uri(self) -> str:
        """Its name in ``protocolBinding``: an absolute URI, a new one for a breaking change (Spec: BIND-11,
        AMB-78)."""
        ...

    def server(self, edge: ServerEdge) -> ServerHalf:
        """Its server half for one app. Called once for each app, before it starts; does no I/O."""
        ...

    def client(self, interface: AgentInterface, edge: ClientEdge) -> ClientTransport:
        """A transport for one interface of a card. Raises CardError when it cannot be called, such as for its
        address."""
        ...
