"""The credentials of one connection: which interfaces of a card may have them, and how each is shown them.

Spec: AUTH-04, XCARD-01, SEC-05, SEC-06, CARD-09; sections 12.2 and 12.3 of the register of the command line.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol
from urllib.parse import urlencode

from msgspec.structs import replace

from dragoman.auth.choosing import CredentialsMissingError, Part, choose
from dragoman.auth.client_certificates import pem_pair
from dragoman.auth.credentials import ApiKey, ClientCertificate, Credentials, Held, hold
from dragoman.auth.presenting import Presenter
from dragoman.bindings.grpc.settings import ClientTls, GrpcClientSettings
from dragoman.client.authorized import Authorized
from dragoman.client.cards import GRPC
from dragoman.client.origins import (
    Trust,
    Withholding,
    holds_secrets,
    secret_names,
    warn_of_open_line,
)
from dragoman.errors import ConfigurationError
from dragoman.http.client import HttpClient, HttpxClient, has_credentials
from dragoman.model import AgentCard, AgentInterface
from dragoman.ports.operations import Operations

_GRPC_LOCATIONS = ("header",)
_LOCATIONS = ("header", "query", "cookie")


class _Settings(Protocol):
    """What it takes of :class:`~dragoman.client.targets.HttpSettings`."""

    @property
    def client(self) -> HttpxClient | None: ...
    @property
    def interface(self) -> AgentInterface | None: ...
    @property
    def allow_private(self) -> bool: ...
    @property
    def credentials(self) -> tuple[Held, ...]: ...
    @property
    def trusted(self) -> Sequence[str]: ...


class Authorizing:
    """The credentials for the agent of one card. ``place`` is where the card was read, ``headers`` go with every call.

    Raises ConfigurationError for two credentials in one place.
    """

    def __init__(self, card: AgentCard, place: str, headers: Mapping[str, str], settings: _Settings) -> None:
        self._card = card
        self._place = place
        self._settings = settings
        self._headers = headers
        self._trust = Trust("" if settings.interface is not None else place, settings.trusted)
        self._presenters: dict[tuple[object, ...], Presenter] = {}
        keys = (one.credential.header.lower() for one in settings.credentials if isinstance(one.credential, ApiKey))
        self.names = secret_names(card) | {name for name in keys if name}
        brought = settings.client is not None and has_credentials(settings.client)
        self._any = bool(settings.credentials) or brought or holds_secrets(headers, self.names)

    def admit(self, interfaces: Sequence[AgentInterface]) -> list[AgentInterface]:
        """Those interfaces that can be used with the credentials at hand.

        Raises CredentialOriginError when all are elsewhere, CredentialsMissingError when all want something else.
        """
        if not self._any:
            return list(interfaces)
        at_home = [entry for entry in interfaces if self._trust.covers(entry)]
        if not at_home:
            raise self._trust.refusal(interfaces)
        found: list[AgentInterface] = []
        missing: CredentialsMissingError | None = None
        for entry in at_home if self._settings.credentials else ():
            try:
                self._parts(entry)
                found.append(entry)
            except CredentialsMissingError as error:
                missing = missing or error
        if missing is not None and not found:
            raise missing
        return found or at_home

    def address(self, interface: AgentInterface) -> AgentInterface:
        """The interface, with what goes into the query of every request."""
        query = self._presenter(interface).query if self._settings.credentials else {}
        if not query:
            return interface
        return replace(interface, url=f"{interface.url}{'&' if '?' in interface.url else '?'}{urlencode(query)}")

    def wrap(self, interface: AgentInterface, operations: Operations) -> Operations:
        """Operations that show credentials where they may, and withhold them where they must."""
        if not self._trust.covers(interface):
            return Withholding(operations, self.names, lambda: self._trust.refusal((interface,)))
        if self._any:
            warn_of_open_line(interface)
        if not self._settings.credentials:
            return operations
        presenter = self._presenter(interface)
        if not presenter.any:
            return operations
        self._check_headers(presenter)
        return Authorized(operations, presenter, self._challenged(interface), self._resources(interface))

    def grpc(self, settings: GrpcClientSettings) -> GrpcClientSettings:
        """The settings of gRPC, with the certificate of the client."""
        shown = certificate_of(self._settings.credentials)
        if shown is None or settings.tls is False:
            return settings
        before = settings.tls if isinstance(settings.tls, ClientTls) else ClientTls()
        if before.certificate is not None:
            raise ConfigurationError("two client certificates: one in credentials, one in grpc")
        certificate, key = pem_pair(shown)
        roots = before.roots if before.roots is not None else shown.roots
        tls = ClientTls(roots=roots, certificate=certificate, key=key, server_name=before.server_name)
        return replace(settings, tls=tls)

    async def aclose(self) -> None:
        """End what is under way."""
        for presenter in self._presenters.values():
            await presenter.aclose()

    def _parts(self, interface: AgentInterface) -> tuple[Part, ...]:
        locations = _GRPC_LOCATIONS if interface.protocol_binding == GRPC else _LOCATIONS
        return choose(self._card, self._settings.credentials, locations)

    def _presenter(self, interface: AgentInterface) -> Presenter:
        """The one for these credentials, whatever the interface: all share its token."""
        parts = self._parts(interface)
        key = tuple((id(part.credential), part.use.name if part.use else "") for part in parts)
        found = self._presenters.get(key)
        if found is None:
            found = self._presenters[key] = Presenter(
                parts, make_http=self._plain, allow_private=self._settings.allow_private
            )
        return found

    def _plain(self) -> HttpClient:
        """A client without credentials, for the metadata of authorization servers."""
        given = self._settings.client
        usable = given if given is not None and not has_credentials(given) else None
        return HttpClient(usable, allow_private=self._settings.allow_private)

    def _check_headers(self, presenter: Presenter) -> None:
        twice = presenter.names & {name.lower() for name in self._headers}
        if twice:
            raise ConfigurationError(f"{', '.join(sorted(twice))} is in headers, and comes from credentials as well")

    def _challenged(self, interface: AgentInterface) -> str:
        """An address whose origin may hold the metadata that a challenge points to."""
        if interface.protocol_binding == GRPC:
            return self._place or interface.url
        return f"http{interface.url[2:]}" if interface.url[:2].lower() == "ws" else interface.url

    def _resources(self, interface: AgentInterface) -> tuple[str, ...]:
        called = self._challenged(interface)
        if "://" not in called:
            return (called,)
        scheme, _, rest = called.partition("://")
        return called, f"{scheme}://{rest.partition('/')[0]}"


def certificate_of(held: Sequence[Held]) -> ClientCertificate | None:
    """The certificate among the credentials of a client."""
    return next((one.credential for one in held if isinstance(one.credential, ClientCertificate)), None)


def read_credentials(given: Credentials | None, client: HttpxClient | None) -> tuple[Held, ...]:
    """What a user gave. Raises ConfigurationError."""
    held = hold(given) if given is not None else ()
    if client is not None and certificate_of(held) is not None:
        raise ConfigurationError("a client certificate and http= exclude each other: that client has its own")
    return held
