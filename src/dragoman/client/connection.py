"""Connect to an agent: from what names it to a client that is ready.

Spec: §8.2, §8.3.2, CARD-03, CARD-09 to CARD-12, TEN-02, VER-10, VER-11, AMB-74, B127, B135, B137.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from importlib.util import find_spec
from types import TracebackType

import msgspec

from dragoman.bindings import jsonrpc, rest
from dragoman.bindings.codec import ClientCodec
from dragoman.bindings.grpc.settings import GrpcClientSettings
from dragoman.client.calls import Calls
from dragoman.client.card_cache import CardCache, FetchedCard
from dragoman.client.cards import BINDINGS, GRPC, HTTP_JSON, JSON_RPC, check_interface, select_interfaces
from dragoman.client.client import Client
from dragoman.client.http_transport import HttpTransport
from dragoman.client.in_process import InProcess
from dragoman.client.interfaces import InterfaceChain
from dragoman.client.reconnect import Reconnect
from dragoman.client.running import Poll
from dragoman.client.settings import ClientSettings, Interceptor
from dragoman.client.targets import HttpSettings, Target, as_local, read_target
from dragoman.errors import ConfigurationError, MissingExtraError
from dragoman.http.client import CONNECT_TIMEOUT, HttpClient, HttpxClient
from dragoman.model import AgentCard, AgentInterface, Operation
from dragoman.ports.binding import Binding, ClientEdge
from dragoman.ports.clock import Clock, SystemClock
from dragoman.ports.operations import (
    CURRENT_VERSION,
    CallContext,
    EventStream,
    HasLocalAgent,
    LocalAgent,
    Operations,
)


class _RestWithoutTenantPath:
    """HTTP+JSON with the tenant in query and body only. Spec: AMB-89."""

    encode_request = staticmethod(functools.partial(rest.encode_request, tenant_in_path=False))
    decode_result = staticmethod(rest.decode_result)
    decode_event = staticmethod(rest.decode_event)


_CODECS: dict[str, ClientCodec] = {JSON_RPC: jsonrpc, HTTP_JSON: rest}
_LOCAL = AgentInterface(url="", protocol_binding="", protocol_version=CURRENT_VERSION)


def connect(
    target: Target,
    *,
    bindings: Sequence[str | Binding] = BINDINGS,
    interface: AgentInterface | None = None,
    headers: Mapping[str, str] | None = None,
    card_headers: Mapping[str, str] | None = None,
    extensions: Sequence[str] = (),
    timeout: float | None = 60.0,
    idle_timeout: float | None = 300.0,
    connect_timeout: float = CONNECT_TIMEOUT,
    http: HttpxClient | None = None,
    allow_private: bool = True,
    interceptors: Sequence[Interceptor] = (),
    cache: CardCache | None = None,
    reconnect: Reconnect | None = None,
    poll: Poll | None = None,
    check_capabilities: bool = True,
    subscribe_verb: str | None = None,
    tenant_in_path: bool = True,
    grpc: GrpcClientSettings | None = None,
    clock: Clock | None = None,
) -> Connection:
    """Connect to an agent: ``async with connect("https://agent.example") as client``.

    ``target`` is one of

    * an address: of the card itself, or of the agent (its card is then looked for below the path and at the root of the
      host, also under the name that old servers use);
    * a file with a card (path or ``file:`` address), a card as a dict or AgentCard;
    * an AgentInterface: no card, call exactly this (what the agent offers is then not checked);
    * an agent of this process, such as :class:`dragoman.Agent`: no socket is used. It is started, and stopped at
      the end; a LocalAgent is started, and stopped by whoever made it.

    ``bindings`` are those to be spoken, custom ones (:class:`~dragoman.ports.binding.Binding`) as objects; the card's
    order decides among them (Spec: CARD-09). ``interface`` is used
    instead of those the card names. ``headers`` and ``extensions`` go with every call, ``card_headers`` with
    requests for the card only.

    ``timeout`` (seconds, None: no limit) bounds a unary call as a whole, but a ``send`` that waits for the task has
    no limit unless it names one; ``idle_timeout`` is how long a stream may be silent; ``connect_timeout`` bounds
    the making of a connection.

    ``http`` is an httpx2 client to use and not to close: for proxies, TLS, authentication. ``allow_private=False``
    calls public addresses only and reads no files, for targets that are not trusted (Spec: AMB-71). ``interceptors``
    wrap the client's Operations, the first one outermost. ``cache`` keeps cards between connections. ``reconnect``
    and ``poll`` say how tasks are followed. ``subscribe_verb`` fixes the verb of ``:subscribe`` on HTTP+JSON (Spec:
    AMB-88), and ``tenant_in_path=False`` keeps a tenant out of its paths (Spec: AMB-89). ``grpc`` is for gRPC
    interfaces: TLS, limits (extra ``grpc``; without it they are passed over, unless nothing else is left). A quiet
    stream over gRPC is watched by the connection's own pings instead of ``idle_timeout``. ``clock`` makes message
    ids.

    Entering raises CardError, UnauthenticatedError or PermissionDeniedError (the card needs credentials),
    OutboundUrlError, ConnectError, RequestTimeoutError, ConnectionLostError; ConfigurationError for a binding that
    is not known.
    """
    settings = ClientSettings(
        timeout=timeout,
        idle_timeout=idle_timeout,
        headers=dict(headers or {}),
        extensions=tuple(extensions),
        reconnect=reconnect or Reconnect(),
        poll=poll or Poll(),
        check_capabilities=check_capabilities and not isinstance(target, AgentInterface),
        clock=clock or SystemClock(),
    )
    http_settings = HttpSettings(
        client=http,
        bindings=_known(bindings),
        custom={binding.uri: binding for binding in bindings if not isinstance(binding, str)},
        interface=interface,
        card_headers=dict(card_headers or {}),
        cache=cache,
        connect_timeout=connect_timeout,
        allow_private=allow_private,
        subscribe_verb=subscribe_verb,
        tenant_in_path=tenant_in_path,
        grpc=grpc or GrpcClientSettings(),
    )
    return Connection(target, settings, http_settings, tuple(interceptors))


def _known(bindings: Sequence[str | Binding]) -> tuple[str, ...]:
    """The names of bindings, those of custom ones being their URIs."""
    unknown = [binding for binding in bindings if isinstance(binding, str) and binding not in BINDINGS]
    if unknown or not bindings:
        allowed = f"{', '.join(BINDINGS)}, and custom bindings as objects"
        raise ConfigurationError(f"bindings: {', '.join(unknown) or 'none'}; allowed are {allowed}")
    return tuple(binding if isinstance(binding, str) else binding.uri for binding in bindings)


def _installed(interfaces: list[AgentInterface]) -> list[AgentInterface]:
    """The interfaces whose library is there. Raises MissingExtraError when none is left."""
    if all(entry.protocol_binding != GRPC for entry in interfaces) or _has_grpc():
        return interfaces
    left = [entry for entry in interfaces if entry.protocol_binding != GRPC]
    if not left:
        raise MissingExtraError("gRPC, the only binding that is left for this agent,", "grpc")
    return left


def _has_grpc() -> bool:
    try:
        return find_spec("grpc") is not None and find_spec("google.protobuf") is not None
    except ModuleNotFoundError:
        return False


class _Later:
    """Operations that are made when they are first needed: an interface that stands by loads no library."""

    def __init__(self, make: Callable[[], Operations]) -> None:
        self._operations = functools.cache(make)

    async def call(self, op: Operation, request: msgspec.Struct, context: CallContext) -> msgspec.Struct:
        """See :class:`~dragoman.ports.operations.Operations`."""
        return await self._operations().call(op, request, context)

    async def stream(self, op: Operation, request: msgspec.Struct, context: CallContext) -> EventStream:
        """See :class:`~dragoman.ports.operations.Operations`."""
        return await self._operations().stream(op, request, context)


class Connection:
    """A connection to be opened: by ``async with``, or by :meth:`open`. Made by :func:`connect`; opens once."""

    def __init__(
        self, target: Target, settings: ClientSettings, http: HttpSettings, interceptors: tuple[Interceptor, ...]
    ) -> None:
        self._target = target
        self._settings = settings
        self._http = http
        self._interceptors = interceptors
        self._stack = AsyncExitStack()

    async def open(self) -> Client:
        """Open it. The caller owes an :meth:`aclose`."""
        return await self.__aenter__()

    async def aclose(self) -> None:
        """Close it, and the streams that are open. Safe to call twice."""
        await self._stack.aclose()

    async def __aenter__(self) -> Client:
        async with AsyncExitStack() as stack:
            client = await self._open(stack)
            self._stack = stack.pop_all()
        return client

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    async def _open(self, stack: AsyncExitStack) -> Client:
        local = as_local(self._target)
        if local is not None:
            return await self._open_local(local, stack)
        http = HttpClient(
            self._http.client,
            connect_timeout=self._http.connect_timeout,
            allow_private=self._http.allow_private,
        )
        stack.push_async_callback(http.aclose)
        fetched = await read_target(self._target, http, self._http)
        transports = await stack.enter_async_context(AsyncExitStack())  # of its own, since some come later
        chain = self._chain(http, fetched, transports)
        return self._client(chain, fetched.card, stack, lambda: chain.interface)

    async def _open_local(self, local: LocalAgent, stack: AsyncExitStack) -> Client:
        if isinstance(self._target, HasLocalAgent):
            stack.push_async_callback(local.stop)
        card = await local.start()
        interface = card.supported_interfaces[0] if card.supported_interfaces else _LOCAL
        return self._client(InProcess(local.operations), card, stack, lambda: interface)

    def _client(
        self, operations: Operations, card: AgentCard, stack: AsyncExitStack, interface: Callable[[], AgentInterface]
    ) -> Client:
        for intercept in reversed(self._interceptors):
            operations = intercept(operations)
        calls = Calls(operations, card, self._settings)
        stack.push_async_callback(calls.aclose)
        return Client(calls, interface)

    def _chain(self, http: HttpClient, fetched: FetchedCard, stack: AsyncExitStack) -> InterfaceChain:
        first, *others = _installed(self._interfaces(fetched))
        chain: list[tuple[AgentInterface, Operations]] = [(first, self._transport(http, first, stack))]
        for entry in others:
            chain.append((entry, _Later(functools.partial(self._transport, http, entry, stack))))
        return InterfaceChain(chain)

    def _transport(self, http: HttpClient, interface: AgentInterface, stack: AsyncExitStack) -> Operations:
        if interface.protocol_binding == GRPC:
            return self._grpc_transport(interface, stack)
        if interface.protocol_binding in self._http.custom:
            return self._custom_transport(interface, stack)
        codec = _CODECS[interface.protocol_binding]
        if codec is rest and not self._http.tenant_in_path:
            codec = _RestWithoutTenantPath()
        verb = self._http.subscribe_verb
        return HttpTransport(http, codec, interface, idle=self._settings.idle_timeout, subscribe_verb=verb)

    def _custom_transport(self, interface: AgentInterface, stack: AsyncExitStack) -> Operations:
        edge = ClientEdge(
            headers=self._settings.headers,
            connect_timeout=self._http.connect_timeout,
            idle_timeout=self._settings.idle_timeout,
            allow_private=self._http.allow_private,
        )
        transport = self._http.custom[interface.protocol_binding].client(interface, edge)
        stack.push_async_callback(transport.aclose)
        return transport

    def _grpc_transport(self, interface: AgentInterface, stack: AsyncExitStack) -> Operations:
        from dragoman.client.grpc_transport import GrpcTransport

        transport = GrpcTransport(
            interface,
            self._http.grpc,
            connect_timeout=self._http.connect_timeout,
            allow_private=self._http.allow_private,
        )
        stack.push_async_callback(transport.aclose)
        return transport

    def _interfaces(self, fetched: FetchedCard) -> list[AgentInterface]:
        chosen = self._http.interface
        if chosen is None:
            return select_interfaces(fetched.card, self._http.bindings, card_url=fetched.url)
        if chosen.protocol_binding not in self._http.custom:
            _known([chosen.protocol_binding])
        check_interface(chosen, card_url=chosen.url)
        return [chosen]
