"""Connect to an agent: from what names it to a client that is ready.

Spec: §8.2, §8.3.2, CARD-03, CARD-09 to CARD-12, TEN-02, VER-10, VER-11, AMB-74, B127, B135, B137.
"""

from __future__ import annotations

import functools
import ssl
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from importlib.util import find_spec
from types import TracebackType

import msgspec
from msgspec.structs import replace

from dragoman.auth.client_certificates import tls_context
from dragoman.auth.credentials import Credentials
from dragoman.bindings import jsonrpc, rest
from dragoman.bindings.client_dialect import ClientDialect
from dragoman.bindings.codec import ClientCodec
from dragoman.bindings.grpc.settings import GrpcClientSettings
from dragoman.card import SignaturePolicy, SignatureReport
from dragoman.card.trust import Mode, checked_policy
from dragoman.client import dialects
from dragoman.client.authorizing import Authorizing, certificate_of, read_credentials
from dragoman.client.calls import Calls
from dragoman.client.card_cache import CardCache, FetchedCard
from dragoman.client.cards import (
    BINDINGS,
    GRPC,
    HTTP_JSON,
    JSON_RPC,
    OLD,
    VERSIONS,
    check_interface,
    generation_of,
    offers,
    older_interfaces,
    select_interfaces,
)
from dragoman.client.client import Client
from dragoman.client.dialects import V03Settings
from dragoman.client.http_transport import HttpTransport
from dragoman.client.in_process import InProcess
from dragoman.client.interfaces import Entry, InterfaceChain
from dragoman.client.older import OlderAgent
from dragoman.client.reconnect import Reconnect
from dragoman.client.running import Poll
from dragoman.client.settings import ClientSettings, Interceptor
from dragoman.client.signatures import check_again, verify_fetched
from dragoman.client.targets import HttpSettings, Target, as_local, read_target
from dragoman.errors import ConfigurationError, MissingExtraError
from dragoman.extensions import ClientExtension, asked_uris, over_client
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
    versions: Sequence[str] = VERSIONS,
    fallback: bool = False,
    interface: AgentInterface | None = None,
    headers: Mapping[str, str] | None = None,
    card_headers: Mapping[str, str] | None = None,
    extensions: Sequence[str | ClientExtension] = (),
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
    v03: V03Settings | None = None,
    clock: Clock | None = None,
    signatures: SignaturePolicy | Mode | None = None,
    credentials: Credentials | None = None,
    trusted: Sequence[str] = (),
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
    order decides among them (Spec: CARD-09), and of one address the highest version is used. ``versions`` are those of
    the protocol to be spoken: ``("1.0",)`` for no agents of 0.3. An agent that refuses 1.0, though its card says
    otherwise, is an error, unless ``fallback`` allows to go on with an interface of 0.3 that the card names (Spec:
    VER-11). ``v03`` is for agents of 0.3: their habits, where they differ. ``interface`` is used
    instead of those the card names. ``headers`` and ``extensions`` (URIs, or
    :class:`~dragoman.extensions.ClientExtension` for those with code) go with every call, ``card_headers`` with
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
    ids. ``signatures`` says what is made of those on the card: ``"if-present"`` (default), ``"required"``, ``"off"``,
    or a SignaturePolicy with the keys that are known; of a card that was verified nothing is used but what was signed
    (Spec: AMB-81, AMB-87). An agent of this process is not asked for any.

    ``credentials`` show who calls, by the schemes of the card: a bearer token (text, function, or a source such as
    :class:`~dragoman.auth.ClientCredentials`), an :class:`~dragoman.auth.ApiKey`, :class:`~dragoman.auth.Basic`, a
    :class:`~dragoman.auth.ClientCertificate`; several in a list, or in a dict by the names of the schemes. They go with
    every call, on every binding; a call that is refused for its token is made once more with a new one. They, and
    headers that are credentials, go to the origin of ``target`` only, and to those of the addresses in ``trusted``: an
    interface that the card names elsewhere is passed over (Spec: AUTH-04).

    Entering raises CardError (CardSignatureError for signatures that do not hold), UnauthenticatedError or
    PermissionDeniedError (the card needs credentials),
    OutboundUrlError, ConnectError, RequestTimeoutError, ConnectionLostError; CredentialsMissingError when the card
    wants other credentials than those given, CredentialOriginError when all its interfaces are where they must not go;
    ConfigurationError for a binding or a version that is not known.
    """
    settings = ClientSettings(
        timeout=timeout,
        idle_timeout=idle_timeout,
        headers=dict(headers or {}),
        extensions=asked_uris(extensions),
        extension_code=tuple(entry for entry in extensions if isinstance(entry, ClientExtension)),
        reconnect=reconnect or Reconnect(),
        poll=poll or Poll(),
        check_capabilities=check_capabilities and not isinstance(target, AgentInterface),
        clock=clock or SystemClock(),
    )
    http_settings = HttpSettings(
        client=http,
        bindings=_known(bindings),
        versions=_known_versions(versions),
        fallback=fallback,
        v03=v03 or V03Settings(),
        custom={binding.uri: binding for binding in bindings if not isinstance(binding, str)},
        interface=interface,
        card_headers=dict(card_headers or {}),
        cache=cache,
        connect_timeout=connect_timeout,
        allow_private=allow_private,
        subscribe_verb=subscribe_verb,
        tenant_in_path=tenant_in_path,
        grpc=grpc or GrpcClientSettings(),
        signatures=checked_policy(signatures),
        credentials=read_credentials(credentials, http),
        trusted=tuple(trusted),
    )
    return Connection(target, settings, http_settings, tuple(interceptors))


def _known(bindings: Sequence[str | Binding]) -> tuple[str, ...]:
    """The names of bindings, those of custom ones being their URIs."""
    unknown = [binding for binding in bindings if isinstance(binding, str) and binding not in BINDINGS]
    if unknown or not bindings:
        allowed = f"{', '.join(BINDINGS)}, and custom bindings as objects"
        raise ConfigurationError(f"bindings: {', '.join(unknown) or 'none'}; allowed are {allowed}")
    return tuple(binding if isinstance(binding, str) else binding.uri for binding in bindings)


def _known_versions(versions: Sequence[str]) -> tuple[str, ...]:
    """The versions, without patch parts."""
    found = tuple(generation_of(version) if version.strip() else None for version in versions)
    if not found or None in found or isinstance(versions, str):
        raise ConfigurationError(f"versions: {versions!r}; allowed are some of {VERSIONS}")
    return tuple(version for version in VERSIONS if version in found)


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
        self._shown: ssl.SSLContext | None = None

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
            authenticator=self._http.authenticator,
            tls=self._tls(),
        )
        stack.push_async_callback(http.aclose)
        fetched, report = await verify_fetched(await self._find_card(http), self._http)
        transports = await stack.enter_async_context(AsyncExitStack())  # of its own, since some come later
        authorizing = Authorizing(fetched.card, fetched.url, self._settings.headers, self._http)
        transports.push_async_callback(authorizing.aclose)
        self._authorizing = authorizing
        chain = self._chain(http, fetched, transports)
        client = self._client(chain, fetched.card, stack, lambda: chain.interface, report)
        client.check_further_card = functools.partial(check_again, settings=self._http, url=fetched.url)
        return client

    async def _find_card(self, http: HttpClient) -> FetchedCard:
        return await read_target(self._target, http, self._http)

    async def _open_local(self, local: LocalAgent, stack: AsyncExitStack) -> Client:
        if isinstance(self._target, HasLocalAgent):
            stack.push_async_callback(local.stop)
        card = await local.start()
        interface = card.supported_interfaces[0] if card.supported_interfaces else _LOCAL
        authorizing = Authorizing(card, "", self._settings.headers, self._http)
        stack.push_async_callback(authorizing.aclose)
        operations = InProcess(local.operations, getattr(local, "identify", None))
        bare = replace(interface, url="")  # no line, and none to be warned of
        return self._client(authorizing.wrap(bare, operations), card, stack, lambda: interface)

    def _client(
        self,
        operations: Operations,
        card: AgentCard,
        stack: AsyncExitStack,
        interface: Callable[[], AgentInterface],
        report: SignatureReport | None = None,
    ) -> Client:
        operations = over_client(operations, self._settings.extension_code, lambda: calls.declared)
        for intercept in reversed(self._interceptors):
            operations = intercept(operations)
        calls = Calls(operations, card, self._settings, report)
        stack.push_async_callback(calls.aclose)
        return self._client_of(calls, interface)

    def _client_of(self, calls: Calls, interface: Callable[[], AgentInterface]) -> Client:
        return Client(calls, interface)

    def _chain(self, http: HttpClient, fetched: FetchedCard, stack: AsyncExitStack) -> InterfaceChain:
        first, *others = self._authorizing.admit(_installed(self._interfaces(fetched)))
        chain: list[Entry] = [(first, self._authorized(http, first, stack))]
        chain += [self._standing_by(http, entry, stack) for entry in others]
        fallbacks = self._older(fetched)
        admitted = self._authorizing.admit(fallbacks) if fallbacks else []
        older = [self._standing_by(http, entry, stack) for entry in admitted]
        return InterfaceChain(chain, older=older, offered=offers(fetched.card))

    def _standing_by(self, http: HttpClient, entry: AgentInterface, stack: AsyncExitStack) -> Entry:
        return entry, _Later(functools.partial(self._authorized, http, entry, stack))

    def _authorized(self, http: HttpClient, interface: AgentInterface, stack: AsyncExitStack) -> Operations:
        address = self._authorizing.address(interface)
        return self._authorizing.wrap(interface, self._transport(http, address, stack))

    def _tls(self) -> ssl.SSLContext | None:
        """The TLS of a client that shows a certificate; None for the usual one."""
        if self._shown is None:
            shown = certificate_of(self._http.credentials)
            self._shown = tls_context(shown) if shown is not None else None
        return self._shown

    def _transport(self, http: HttpClient, interface: AgentInterface, stack: AsyncExitStack) -> Operations:
        if generation_of(interface.protocol_version) == OLD:
            return self._older_transport(http, interface, stack)
        if interface.protocol_binding == GRPC:
            return self._grpc_transport(interface, stack)
        if interface.protocol_binding in self._http.custom:
            return self._custom_transport(interface, stack)
        codec = _CODECS[interface.protocol_binding]
        if codec is rest and not self._http.tenant_in_path:
            codec = _RestWithoutTenantPath()
        return self._http_transport(http, codec, interface)

    def _http_transport(
        self, http: HttpClient, codec: ClientCodec | ClientDialect, interface: AgentInterface
    ) -> HttpTransport:
        return HttpTransport(
            http,
            codec,
            interface,
            idle=self._settings.idle_timeout,
            subscribe_verb=self._http.subscribe_verb,
            repeater=self._http.repeater,
            max_answer_bytes=self._http.max_answer_bytes,
        )

    def _older_transport(self, http: HttpClient, interface: AgentInterface, stack: AsyncExitStack) -> Operations:
        settings, interface = self._http.v03, replace(interface, tenant="")
        operations: Operations
        if interface.protocol_binding == GRPC:
            transport = dialects.grpc_transport(
                interface,
                self._authorizing.grpc(self._http.grpc),
                settings,
                connect_timeout=self._http.connect_timeout,
                allow_private=self._http.allow_private,
            )
            stack.push_async_callback(transport.aclose)
            operations = transport
        else:
            codec = dialects.http_codec(interface.protocol_binding, settings)
            operations = self._http_transport(http, codec, interface)
        return OlderAgent(operations, poll=self._settings.poll if settings.poll_unsettled else None)

    def _custom_transport(self, interface: AgentInterface, stack: AsyncExitStack) -> Operations:
        edge = ClientEdge(
            headers=self._settings.headers,
            connect_timeout=self._http.connect_timeout,
            idle_timeout=self._settings.idle_timeout,
            allow_private=self._http.allow_private,
            credentials=self._authorizing.names,
            tls=self._tls(),
        )
        transport = self._http.custom[interface.protocol_binding].client(interface, edge)
        stack.push_async_callback(transport.aclose)
        return transport

    def _grpc_transport(self, interface: AgentInterface, stack: AsyncExitStack) -> Operations:
        from dragoman.client.grpc_transport import GrpcTransport

        transport = GrpcTransport(
            interface,
            self._authorizing.grpc(self._http.grpc),
            connect_timeout=self._http.connect_timeout,
            allow_private=self._http.allow_private,
        )
        stack.push_async_callback(transport.aclose)
        return transport

    def _interfaces(self, fetched: FetchedCard) -> list[AgentInterface]:
        chosen = self._http.interface
        if chosen is None:
            return select_interfaces(
                fetched.card, self._http.bindings, card_url=fetched.url, versions=self._http.versions
            )
        if chosen.protocol_binding not in self._http.custom:
            _known([chosen.protocol_binding])
        check_interface(chosen, card_url=chosen.url)
        return [chosen]

    def _older(self, fetched: FetchedCard) -> list[AgentInterface]:
        """The interfaces to fall back to, where that is allowed. Without the library for it, gRPC is none of them."""
        if not self._http.fallback or self._http.interface is not None:
            return []
        found = older_interfaces(fetched.card, self._http.bindings, self._http.versions, card_url=fetched.url)
        return [entry for entry in found if entry.protocol_binding != GRPC or _has_grpc()]
