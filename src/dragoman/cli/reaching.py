"""Reaching an agent: its card, the interface to use, the credential that goes with it, the connection.

Spec: A2ACLI_AUTH_001, A2ACLI_AUTH_003, A2ACLI_TX_001 to A2ACLI_TX_003; sections 12 and 13 of the register.
"""

from __future__ import annotations

import os
import stat
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from urllib.parse import urlencode

import msgspec
from msgspec.structs import replace

from dragoman.auth.choosing import Part
from dragoman.auth.client_certificates import pem_pair, tls_context
from dragoman.auth.credentials import ClientCertificate
from dragoman.auth.presenting import Presenter
from dragoman.bindings.grpc.addresses import parse_address
from dragoman.cli.credentials import Attachment, attach, attach_plainly
from dragoman.cli.failures import NoTransportError, UsageError
from dragoman.cli.interfaces import Choice, choose_interface
from dragoman.cli.redact import is_plain_parameter
from dragoman.cli.references import read_reference
from dragoman.cli.resume import words_of
from dragoman.cli.runtimes import reach_runtime, read_runtime_card, runtime_of
from dragoman.cli.session import Session
from dragoman.cli.signatures import take_signed
from dragoman.cli.stored import logins_for, source_of, written_origin
from dragoman.cli.watching import Watch
from dragoman.cli.wire import Dump
from dragoman.client import Client, ClientTls, Connection, GrpcClientSettings, Poll, Reconnect, Target, connect
from dragoman.client.authorized import Authorized
from dragoman.client.card_cache import FetchedCard
from dragoman.client.cards import BINDINGS, GRPC, PRESENT, VERSIONS, check_interface, generation_of
from dragoman.errors import ExtensionSupportRequiredError, VersionNotSupportedError
from dragoman.extensions import ClientExtension, IdempotentSends, ResumableStreams, TraceContext
from dragoman.http.client import HttpClient, HttpxClient
from dragoman.http.guard import is_loopback_host, parse_target, shown
from dragoman.http.tap import make_client
from dragoman.model import AgentCard, AgentInterface
from dragoman.ports.operations import Operations
from dragoman.proxy import UpstreamOptions

# Cuts are mended quickly or not at all: then the wait goes on by polling.
_RECONNECT = Reconnect(attempts=4, first=0.2, longest=5.0)


class Agent(msgspec.Struct):
    """An agent that was reached. ``choice`` is None for an endpoint without a card, ``ignored``: try what it lacks."""

    client: Client
    choice: Choice | None
    ignored: bool = False

    @property
    def interface(self) -> AgentInterface:
        """The interface in use."""
        return self.client.interface

    @property
    def streams(self) -> bool:
        """Whether the agent streams, as far as is known."""
        return self.choice is None or self.ignored or self.client.card.capabilities.streaming is True


@asynccontextmanager
async def reach(session: Session, given: str | None = None) -> AsyncIterator[Agent]:
    """Read the card, choose the interface, attach credentials, connect."""
    runtime = runtime_of(session, given)
    if runtime:
        async with _client(session) as client, _reach_runtime(session, runtime, client) as agent:
            yield agent
        return
    reference = session.reference(given)
    session.words = words_of(session.configuration, reference)
    async with _client(session) as client:
        fetched = await take_signed(session, await _fetch(session, reference, client), client) if reference else None
        connection, choice = _by_card(session, fetched, client) if fetched else _by_endpoint(session, client)
        async with connection as connected:
            agent = Agent(connected, choice, session["ignore_capabilities"])
            _tell_of_interface(session, agent)
            yield agent


@asynccontextmanager
async def _reach_runtime(session: Session, runtime: str, client: HttpxClient) -> AsyncIterator[Agent]:
    _warn_of_insecurity(session)
    interceptors = [lambda operations: _watch(session, operations)]
    async with reach_runtime(session, runtime, client, interceptors, _RECONNECT) as connected:
        agent = Agent(connected, Choice(connected.interface, True), session["ignore_capabilities"])
        agent.ignored = agent.ignored or not connected.card.name
        _tell_of_interface(session, agent)
        yield agent


async def read_card(session: Session, given: str | None = None) -> FetchedCard:
    """Only read the card; once in a run. Raises UsageError for an endpoint, which has none."""
    runtime = runtime_of(session, given)
    if runtime:
        async with _client(session) as client:
            return await read_runtime_card(session, runtime, client)
    reference = session.reference(given)
    if not reference:
        raise UsageError("an endpoint has no card: name the agent with --agent-card")
    session.words = words_of(session.configuration, reference)
    async with _client(session) as client:
        return await _fetch(session, reference, client)


async def read_cards(session: Session, references: Sequence[str]) -> list[FetchedCard]:
    """The cards of several references, each read anew."""
    _warn_of_insecurity(session)
    async with open_client(session) as client:
        http = HttpClient(client, connect_timeout=session["connect_timeout"])
        return [await read_reference(each, http, dict(session["card_header"])) for each in references]


def open_client(session: Session) -> HttpxClient:
    """A client with the certificates that the user trusts. To be closed."""
    return _client(session)


async def arrange(session: Session, given: str | None = None) -> tuple[Target, UpstreamOptions]:
    """What it takes to call an agent for others: its card's place, and how it is called with the user's settings.

    The interface is left to the card, unless a transport is preferred or the credential belongs to an address.
    """
    if runtime_of(session, given):
        raise UsageError("an agent on AgentCore cannot be served again: its requests are signed one by one")
    fetched = await read_card(session, given)
    choice = _choose(session, fetched)
    options = UpstreamOptions(
        headers=_headers(session),
        card_headers=dict(session["card_header"]),
        extensions=session["extension"],
        timeout=session["request_timeout"],
        connect_timeout=session["connect_timeout"],
        http=(http := _client(session)),
        grpc=_grpc(session),
        versions=(generation_of(session["a2a_version"] or PRESENT) or PRESENT,),
    )
    if session.login is not None:
        options["credentials"] = source_of(session, session.login, http_url(choice.interface), http)
    if session["transport"] or session.attached.query or session.attached.any:
        options["interface"] = replace(choice.interface, url=_with_query(choice.interface, session))
    return fetched.url or session.card_reference, options


def _client(session: Session) -> HttpxClient:
    dump = Dump(session.screen, session.redactor, session.started) if session.notes.debugging else None
    shown = client_certificate(session)
    tls = tls_context(shown, insecure=session["insecure"], roots=session["ca_cert"] or None) if shown else None
    return make_client(insecure=session["insecure"], ca_file=session["ca_cert"] or "", tap=dump, tls=tls)


def client_certificate(session: Session) -> ClientCertificate | None:
    """The certificate to show in TLS. Raises UsageError for a key alone."""
    certificate, key = session["client_cert"], session["client_key"]
    if not certificate:
        if key:
            raise UsageError("--client-key needs --client-cert")
        return None
    passphrase = os.environ.get("DRAGOMAN_CLIENT_KEY_PASSPHRASE", "")
    session.redactor.learn([passphrase])
    _warn_of_open_key(session, key or certificate)
    return ClientCertificate(certificate=certificate, key=key or certificate, password=passphrase)


def _warn_of_open_key(session: Session, path: str) -> None:
    try:
        is_open = os.name == "posix" and stat.S_IMODE(os.stat(os.path.expanduser(path)).st_mode) & 0o077
    except OSError:
        return  # whoever reads it says so
    if is_open and path not in session.warned:
        session.warned.add(path)
        session.notes.warn(f"the key in {path} can be read by others (chmod 600 {path})")


async def _fetch(session: Session, reference: str, client: HttpxClient) -> FetchedCard:
    """Read the card of a reference, with nothing but what ``--card-header`` says."""
    session.card_reference = reference
    if session.fetched is None:
        _warn_of_insecurity(session)
        http = HttpClient(client, connect_timeout=session["connect_timeout"])
        session.fetched = await read_reference(reference, http, dict(session["card_header"]))
    return session.fetched


def _by_card(session: Session, fetched: FetchedCard, client: HttpxClient) -> tuple[Connection, Choice]:
    choice = _choose(session, fetched)
    extensions = _extensions(session, fetched.card)
    return _connect(session, fetched.card, choice.interface, client, extensions), choice


def _choose(session: Session, fetched: FetchedCard) -> Choice:
    """The interface to use, with the credential that goes there."""
    choice = choose_interface(fetched.card, session["transport"], session["a2a_version"] or "")
    if not choice.preferred:
        wanted = ", ".join(session["transport"])
        session.notes.note(f"the agent does not offer {wanted}; {choice.interface.protocol_binding} is used")
    logins = logins_for(session, fetched)
    given = replace(session.credentials(), stored=frozenset(logins))
    place = http_url(choice.interface)
    attachment = attach(fetched.card, given, session.card_reference)
    _attach(session, attachment, place, fetched.url)
    session.login = logins.get(attachment.stored)
    return choice


def _by_endpoint(session: Session, client: HttpxClient) -> tuple[Connection, None]:
    interface = _endpoint(session)
    _warn_of_insecurity(session)
    _attach(session, attach_plainly(session.credentials()), http_url(interface), "")
    return _connect(session, None, interface, client, session["extension"]), None


def _endpoint(session: Session) -> AgentInterface:
    transports = session["transport"]
    if len(transports) != 1:
        raise UsageError("--endpoint needs exactly one --transport")
    if transports[0] not in BINDINGS:
        raise NoTransportError(f"{transports[0]} is not spoken here; {', '.join(BINDINGS)} are")
    version = session["a2a_version"] or PRESENT
    if generation_of(version) is None:
        raise VersionNotSupportedError(f"version {version} is not spoken here; {', '.join(VERSIONS)} are")
    url, tenant = session["endpoint"], session["tenant"] or ""
    interface = AgentInterface(url=url, protocol_binding=transports[0], protocol_version=version, tenant=tenant)
    check_interface(interface)
    return interface


def _connect(
    session: Session,
    card: AgentCard | None,
    interface: AgentInterface,
    client: HttpxClient,
    extensions: Sequence[str | ClientExtension],
) -> Connection:
    target = replace(interface, url=_with_query(interface, session))
    interval = session["poll_interval"]
    return connect(
        card or target,
        interface=target,
        headers=_headers(session),
        extensions=extensions,
        timeout=session["request_timeout"],
        idle_timeout=None,
        interceptors=[
            lambda operations: _watch(session, operations),
            lambda operations: _show_login(session, target, client, operations),
        ],
        connect_timeout=session["connect_timeout"],
        http=client,
        reconnect=_RECONNECT,
        poll=Poll(first=interval, longest=interval),
        check_capabilities=not session["ignore_capabilities"],
        grpc=_grpc(session),
        signatures="off",  # the card was verified when it was read
    )


def _headers(session: Session) -> dict[str, str]:
    """What goes with every request: service parameters, and the credential."""
    headers = dict(session["svc_param"]) | session.attached.headers
    if session.attached.cookies:
        headers["Cookie"] = "; ".join(f"{name}={value}" for name, value in session.attached.cookies.items())
    return headers


def _grpc(session: Session) -> GrpcClientSettings:
    shown, roots = client_certificate(session), session["ca_cert"] or None
    if shown is None:
        return GrpcClientSettings(tls=ClientTls(roots=roots) if roots else None)
    certificate, key = pem_pair(shown)
    return GrpcClientSettings(tls=ClientTls(roots=roots, certificate=certificate, key=key))


def _show_login(session: Session, interface: AgentInterface, client: HttpxClient, operations: Operations) -> Operations:
    """Operations that show the token of a stored login, and refresh it."""
    if session.login is None:
        return operations
    place = http_url(interface)
    session.presenter = Presenter([Part(source_of(session, session.login, place, client))])
    return Authorized(operations, session.presenter, place, (place, written_origin(place)))


def _watch(session: Session, operations: Operations) -> Operations:
    session.watch = Watch(operations, session.notes)
    return session.watch


def _attach(session: Session, attachment: Attachment, interface_url: str, card_url: str) -> None:
    session.attached = attachment
    session.redactor.learn(attachment.query.values(), attachment.headers)
    for warning in attachment.warnings:
        session.notes.warn(warning)
    if not attachment.any:
        return
    target = parse_target(interface_url)
    if card_url and not _same_origin(interface_url, card_url):
        session.notes.warn(f"the credential goes to {shown(interface_url)}, the card is from {shown(card_url)}")
    if target.scheme == "http" and not is_loopback_host(target.host):
        session.notes.warn(f"the credential goes to {shown(interface_url)} without encryption")


_KNOWN: Mapping[str, ClientExtension] = {
    extension.uri: extension for extension in (ResumableStreams(), IdempotentSends(), TraceContext())
}


def _extensions(session: Session, card: AgentCard) -> list[str | ClientExtension]:
    """The extensions to ask for. Raises ExtensionSupportRequiredError for a required one that is not known."""
    named: list[str] = list(session["extension"])
    for extension in card.capabilities.extensions:
        if extension.required and extension.uri not in named:
            if extension.uri not in _KNOWN:
                raise ExtensionSupportRequiredError(
                    f"the agent requires the extension {extension.uri}; --extension {extension.uri} declares it",
                    metadata={"extension": extension.uri},
                )
            named.append(extension.uri)
    return [_KNOWN.get(uri, uri) for uri in named]


def _warn_of_insecurity(session: Session) -> None:
    if not session["insecure"]:
        return
    risk = "; a credential is sent, and whoever is on the way can read it" if session.credentials().any else ""
    session.notes.warn(f"certificates are not verified (--insecure){risk}")


def _tell_of_interface(session: Session, agent: Agent) -> None:
    for entry, why in agent.choice.skipped if agent.choice else ():
        session.notes.debug(f"* not used: {entry.protocol_binding} {entry.protocol_version} {shown(entry.url)}: {why}")
    used = agent.interface
    session.notes.debug(f"* interface: {used.protocol_binding} {used.protocol_version} {shown(used.url)}")
    if session.verbose:
        where = f"{used.protocol_binding} {used.protocol_version} {shown(used.url)}"
        session.notes.say("Selected interface", where)
        for name, value in session["svc_param"]:
            session.notes.say("Service parameter", f"{name}: {value if is_plain_parameter(name) else '<redacted>'}")


def _with_query(interface: AgentInterface, session: Session) -> str:
    url, query = interface.url, session.attached.query
    if not query:
        return url
    if interface.protocol_binding == GRPC:
        session.notes.warn(f"gRPC has no query: {', '.join(query)} is not sent")
        return url
    return f"{url}{'&' if '?' in url else '?'}{urlencode(query)}"


def http_url(interface: AgentInterface) -> str:
    """The address of an interface in the form of HTTP, to be compared with others."""
    if interface.protocol_binding != GRPC:
        return interface.url
    address = parse_address(interface.url)
    tls = address.with_tls(None)
    return f"{'https' if tls else 'http'}://{address.authority(tls)}"


def _same_origin(one: str, other: str) -> bool:
    a, b = parse_target(one), parse_target(other)
    if is_loopback_host(a.host) and is_loopback_host(b.host):
        return (a.scheme, a.port) == (b.scheme, b.port)
    return a.origin == b.origin
