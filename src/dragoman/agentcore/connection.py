"""Connect to an agent on AgentCore.

Spec: section 6 of the register; AC-C-04 to AC-C-10, AC-C-14, AC-C-20, AC-C-23, AC-C-60 to AC-C-63.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any

from msgspec.structs import replace

from dragoman.agentcore.authenticating import RuntimeAuthenticator
from dragoman.agentcore.calling import CARD_TIMEOUT, Calling
from dragoman.agentcore.card_answers import check_card_answer
from dragoman.agentcore.credentials import BearerCredential, Credential, NoCredential, SigV4Credential, fingerprint
from dragoman.agentcore.errors import SharedSessionError
from dragoman.agentcore.gate import HOLD, Gate
from dragoman.agentcore.headers import USER_ID
from dragoman.agentcore.keys import KeySource
from dragoman.agentcore.repeating import RuntimeRepeater
from dragoman.agentcore.retrying import Retry
from dragoman.agentcore.routing import SessionRouting
from dragoman.agentcore.runtime_address import check_scheme, find_address
from dragoman.agentcore.runtime_client import RuntimeClient
from dragoman.agentcore.sessions import (
    Derivation,
    Owners,
    Sessions,
    SessionState,
    check_session_id,
    new_session_id,
)
from dragoman.agentcore.signing import Signer, default_credentials
from dragoman.agentcore.stopping import SessionStopper
from dragoman.agentcore.timing import Timing
from dragoman.auth import Bearer
from dragoman.client import CardCache, Connection, FetchedCard, Interceptor, Poll, Reconnect
from dragoman.client.calls import Calls
from dragoman.client.cards import JSON_RPC, VERSIONS
from dragoman.client.dialects import V03Settings
from dragoman.client.discovery import CardFetcher
from dragoman.client.settings import ClientSettings
from dragoman.client.targets import HttpSettings, Target
from dragoman.errors import CardError, DragomanError, OutboundUrlError
from dragoman.extensions import ClientExtension, asked_uris
from dragoman.http.client import CONNECT_TIMEOUT, HttpClient, HttpxClient
from dragoman.http.guard import parse_target, shown
from dragoman.model import AgentCard, AgentInterface
from dragoman.ports.clock import Clock, SystemClock
from dragoman.ports.operations import Operations

logger = logging.getLogger("dragoman.agentcore")

RESUMES = Reconnect(attempts=5)
"""How a cut stream is taken up again: five times without progress. Spec: AC-C-71."""

MAX_ANSWER_BYTES = 100_000_000
"""The service passes on no larger answers."""

_OWNERS = Owners()


def connect(
    target: str,
    *,
    region: str = "",
    account: str = "",
    qualifier: str = "",
    endpoint: str = "",
    fips: bool = False,
    dual_stack: bool = False,
    allow_http: bool = False,
    credentials: KeySource | None = None,
    profile: str | None = None,
    bearer: Bearer | None = None,
    anonymous: bool = False,
    session_id: str | None = None,
    state: SessionState | None = None,
    derivation: Derivation | None = None,
    identity: str = "",
    share_sessions: bool = False,
    stop_on_close: bool = False,
    user_id: str = "",
    card: bool | AgentCard | Mapping[str, Any] = True,
    version: str = "1.0",
    versions: Sequence[str] = VERSIONS,
    fallback: bool = False,
    trusted: Sequence[str] = (),
    own_address: bool = False,
    retry: Retry | None = None,
    hold: float = HOLD,
    timeout: float | None = 900.0,
    idle_timeout: float | None = 120.0,
    connect_timeout: float = CONNECT_TIMEOUT,
    card_timeout: float = CARD_TIMEOUT,
    max_request_bytes: int = 100_000_000,
    headers: Mapping[str, str] | None = None,
    extensions: Sequence[str | ClientExtension] = (),
    http: HttpxClient | None = None,
    interceptors: Sequence[Interceptor] = (),
    cache: CardCache | None = None,
    reconnect: Reconnect = RESUMES,
    poll: Poll | None = None,
    check_capabilities: bool = True,
    v03: V03Settings | None = None,
    clock: Clock | None = None,
    timing: Timing | None = None,
) -> RuntimeConnection:
    """Connect to an agent on AgentCore: ``async with agentcore.connect(arn) as client``.

    The client is a :class:`~dragoman.Client` that also knows its sessions. It speaks JSON-RPC only.

    *Where.* ``target`` is the ARN of the runtime (or of an endpoint of it), its URL or that of its card, or its bare id
    together with ``region`` and ``account``. ``qualifier`` names an endpoint of the runtime. ``region`` overrides that
    of the ARN, ``endpoint`` the host (VPC endpoint, stand-in), ``fips`` and ``dual_stack`` choose other hosts of the
    service. ``http://`` is for this machine only, unless ``allow_http``.

    *Who.* AWS credentials, which sign every request (extra ``agentcore``): ``credentials``
    (:class:`~dragoman.agentcore.AwsCredentials`, or an object of botocore), those of ``profile``, or by default the
    usual chain. Or ``bearer``: a token, a function that returns one (also an async one), or a
    :class:`~dragoman.auth.TokenSource` such as :class:`~dragoman.auth.ClientCredentials`. Never both; ``anonymous`` is
    for a stand-in on this machine that wants neither. They go to the
    runtime only; ``trusted`` are base addresses that a card may name besides. ``user_id`` says for whom is called, with
    AWS credentials only.

    *Sessions.* Everything new goes to one session: ``session_id``, by default a fresh one; ``""`` has the service
    allocate it. Calls about a task or a context go to the session it was made in. ``state`` is what
    :meth:`~dragoman.agentcore.RuntimeClient.export_sessions` of another process gave, ``derivation`` makes ids out of
    contexts. A session that is used under two identities is refused, unless ``share_sessions``; ``identity`` names one
    where the credentials do not tell. ``stop_on_close`` stops the session at the end. ``hold`` is how many seconds
    calls wait for the first one of a new session (0: not at all).

    *The card* is fetched within ``card_timeout`` seconds; a card may be given, and ``card=False`` does without one and
    speaks ``version``. A card that names another address than the runtime's is an error, unless ``own_address``: then
    the runtime's own is used, with a warning.

    *Limits.* ``timeout`` bounds unary calls in seconds, sends that wait included, ``idle_timeout`` the silence of
    streams, ``max_request_bytes`` requests. ``retry`` says when calls are made again. The other arguments are those of
    :func:`dragoman.connect`.

    Raises ConfigurationError for arguments that are wrong or contradict each other. Entering raises what
    :func:`dragoman.connect` raises, :class:`~dragoman.agentcore.AgentCoreError`, CredentialsNotFoundError,
    MissingExtraError without botocore, SharedSessionError.
    """
    calling = Calling(
        address=find_address(
            target,
            region=region,
            account=account,
            qualifier=qualifier,
            endpoint=endpoint,
            fips=fips,
            dual_stack=dual_stack,
            allow_http=allow_http,
        ),
        credentials=credentials,
        profile=profile,
        bearer=bearer,
        anonymous=anonymous,
        session_id=check_session_id(session_id) if session_id else session_id,
        state=state,
        derivation=derivation,
        identity=identity,
        share_sessions=share_sessions,
        stop_on_close=stop_on_close,
        user_id=user_id,
        card=card,
        version=version,
        trusted=tuple(check_scheme(base, allow_http=allow_http) for base in trusted),
        own_address=own_address,
        retry=retry or Retry(),
        hold=hold,
        unary_limit=timeout,
        card_timeout=card_timeout,
        max_request_bytes=max_request_bytes,
        timing=timing or Timing(),
    )
    settings = ClientSettings(
        timeout=timeout,
        idle_timeout=idle_timeout,
        headers=dict(headers or {}),
        extensions=asked_uris(extensions),
        extension_code=tuple(entry for entry in extensions if isinstance(entry, ClientExtension)),
        reconnect=reconnect,
        poll=poll or Poll(),
        check_capabilities=check_capabilities and card is not False,
        clock=clock or SystemClock(),
    )
    http_settings = HttpSettings(
        client=http,
        bindings=(JSON_RPC,),
        versions=tuple(versions),
        fallback=fallback,
        v03=v03 or V03Settings(),
        cache=cache,
        connect_timeout=connect_timeout,
        max_answer_bytes=MAX_ANSWER_BYTES,
    )
    return RuntimeConnection(calling, settings, http_settings, tuple(interceptors))


class RuntimeConnection(Connection):
    """A connection to be opened: by ``async with``, or by :meth:`open`. Made by :func:`connect`; opens once."""

    def __init__(
        self,
        calling: Calling,
        settings: ClientSettings,
        http: HttpSettings,
        interceptors: tuple[Interceptor, ...],
    ) -> None:
        self._calling = calling
        self._sessions = _sessions_of(calling)
        self._gate = Gate(calling.hold)
        self._repeater = RuntimeRepeater(
            self._sessions,
            retry=calling.retry,
            gate=self._gate,
            timing=calling.timing,
            unary_limit=calling.unary_limit,
        )
        self._stopper: SessionStopper | None = None
        self._connected: RuntimeClient | None = None
        self._fetched: FetchedCard | None = None
        super().__init__(_target_of(calling), settings, http, (*interceptors, self._route))

    @property
    def url(self) -> str:
        """Where calls go."""
        return self._calling.address.invocations

    @property
    def client(self) -> RuntimeClient:
        """The client, once it is open."""
        assert self._connected is not None
        return self._connected

    @property
    def fetched(self) -> FetchedCard:
        """The card as it was read, once it is open."""
        assert self._fetched is not None
        return self._fetched

    async def open(self) -> RuntimeClient:
        """Open it. The caller owes an :meth:`aclose`."""
        return await self.__aenter__()

    async def __aenter__(self) -> RuntimeClient:
        client = await super().__aenter__()
        assert isinstance(client, RuntimeClient)
        self._connected = client
        return client

    async def _open(self, stack: AsyncExitStack) -> RuntimeClient:
        credential = await self._credential()
        stack.push_async_callback(credential.aclose)
        self._claim(credential, stack)
        authenticator = RuntimeAuthenticator(
            credential,
            self._sessions,
            self._calling.address,
            is_trusted=self._is_trusted,
            headers={USER_ID: self._calling.user_id} if self._calling.user_id else {},
            max_bytes=self._calling.max_request_bytes,
            now=self._calling.timing.monotonic,
        )
        self._http = replace(self._http, authenticator=authenticator, repeater=self._repeater)
        client = await super()._open(stack)
        assert isinstance(client, RuntimeClient)
        if self._calling.stop_on_close:
            stack.push_async_callback(_stop, client)
        return client

    async def _find_card(self, http: HttpClient) -> FetchedCard:
        self._fetched = await self._read_card(http)
        return self._fetched

    async def _read_card(self, http: HttpClient) -> FetchedCard:
        self._stopper = SessionStopper(http, self._calling.address, self._repeater, self._sessions, self._gate)
        if self._calling.card is not True:
            return await super()._find_card(http)
        url = self._calling.address.card

        async def attempt(limit: float | None) -> FetchedCard:
            fetcher = CardFetcher(http, cache=self._http.cache, timeout=limit, check=check_card_answer)
            return await fetcher.fetch(url)

        session_id, limit = self._sessions.current, self._calling.card_timeout
        return await self._repeater.persist(attempt, session_id=session_id, limit=limit, safe=True)

    def _client_of(self, calls: Calls, interface: Callable[[], AgentInterface]) -> RuntimeClient:
        assert self._stopper is not None
        return RuntimeClient(calls, interface, self._sessions, self._stopper)

    def _interfaces(self, fetched: FetchedCard) -> list[AgentInterface]:
        found = super()._interfaces(fetched)
        pinned = [entry for entry in map(self._pinned, found) if entry is not None]
        if not pinned:
            there = ", ".join(shown(entry.url) for entry in found)
            raise CardError(
                f"The card names {there}, which is not where this client was told to call "
                "(trusted= allows an address, own_address=True goes on with the one that was called)",
                url=shown(self._calling.address.invocations),
            )
        return pinned

    def _older(self, fetched: FetchedCard) -> list[AgentInterface]:
        return [entry for entry in map(self._pinned, super()._older(fetched)) if entry is not None]

    def _pinned(self, entry: AgentInterface) -> AgentInterface | None:
        """An interface at an address that credentials may go to, None when it has none. Spec: AC-C-23, AC-C-62."""
        address = self._calling.address
        if address.is_named_by(entry.url):
            return replace(entry, url=address.invocations)
        if self._is_trusted(entry.url):
            return entry
        if not self._calling.own_address:
            return None
        logger.warning("the card names %s; %s is called all the same", shown(entry.url), shown(address.invocations))
        return replace(entry, url=address.invocations)

    def _is_trusted(self, url: str) -> bool:
        return any(is_below(url, base) for base in self._calling.trusted)

    def _route(self, operations: Operations) -> Operations:
        return SessionRouting(operations, self._sessions, self._settings.clock.new_id)

    async def _credential(self) -> Credential:
        calling = self._calling
        if calling.anonymous:
            return NoCredential()
        if calling.bearer is not None:
            return BearerCredential(calling.bearer, calling.timing.wall)
        keys = calling.credentials or await default_credentials(calling.profile)
        return SigV4Credential(Signer(keys, calling.address.region, calling.timing.wall), keys)

    def _claim(self, credential: Credential, stack: AsyncExitStack) -> None:
        """See that no session is used under two identities. Spec: AC-C-14."""
        calling, sessions = self._calling, self._sessions
        identity = fingerprint("named", calling.identity) if calling.identity else credential.identity
        sessions.identity = identity
        if calling.share_sessions or not identity:
            return
        if calling.state is not None and calling.state.identity not in ("", identity):
            raise _shared()
        for session_id in sessions.all():
            stack.callback(_OWNERS.claim(session_id, identity, _shared))


async def _stop(client: RuntimeClient) -> None:
    """Stop the session at the end; what was done in it is not made undone by a failure here."""
    try:
        await client.stop_session()
    except DragomanError as error:
        logger.warning("the session was not stopped: %s", error)


def is_below(url: str, base: str) -> bool:
    """Whether an address is the base or below it, of the same origin."""
    try:
        there, allowed = parse_target(url), parse_target(base)
    except OutboundUrlError:
        return False
    path = allowed.path.rstrip("/") + "/"
    return there.origin == allowed.origin and f"{there.path}/".startswith(path) and "/.." not in there.path


def _sessions_of(calling: Calling) -> Sessions:
    given = calling.session_id
    if given is None:
        given = calling.state.session_id if calling.state is not None else ""
        given = given or new_session_id()
    sessions = Sessions(given, derivation=calling.derivation)
    if calling.state is not None:
        sessions.load(calling.state)
    return sessions


def _target_of(calling: Calling) -> Target:
    """What the usual connection is told: a card, or the one interface when there is none. Spec: AC-C-61."""
    if isinstance(calling.card, AgentCard | Mapping):
        return calling.card
    return AgentInterface(url=calling.address.invocations, protocol_binding=JSON_RPC, protocol_version=calling.version)


def _shared() -> SharedSessionError:
    return SharedSessionError(
        "this session belongs to other credentials: one session is for one user (share_sessions=True allows it)"
    )
