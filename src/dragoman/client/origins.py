"""Where credentials may go: to the origin that they were meant for, and never after a card to another one. Pure.

Credentials are meant for the address that the user named. An interface of the card may have them when it is of the same
origin, when it is the same host over https instead of http, or when the user named its origin as trusted. gRPC, and a
custom binding that is not of the web, have a port of their own by nature: there it is the host that counts. The names
of this machine are one host. A card that the user gave, and an interface that the user chose, are the user's own word.

Spec: AUTH-04, SEC-05, SEC-06, AMB-71; section 12.3 of the register of the command line.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from urllib.parse import urlsplit

import msgspec

from dragoman.bindings.grpc.addresses import parse_address
from dragoman.bindings.websocket.parameters import CREDENTIALS
from dragoman.client.cards import GRPC
from dragoman.errors import ClientError, ConfigurationError, DragomanError
from dragoman.http.guard import is_loopback_host, parse_target, shown
from dragoman.model import AgentCard, AgentInterface, Operation
from dragoman.ports.operations import CallContext, EventStream, Operations

logger = logging.getLogger("dragoman.client")

Origin = tuple[str, str, int]

NAMES = CREDENTIALS
"""Headers that hold credentials, whatever a card says; names in lower case."""


class CredentialOriginError(ClientError):
    """A credential would go to an origin that it was not meant for."""


class Trust:
    """What may have credentials.

    * ``place``: the address that the card was read from, empty when the user gave the card;
    * ``trusted``: further origins, as addresses. Raises ConfigurationError for what is none.
    """

    def __init__(self, place: str, trusted: Sequence[str] = ()) -> None:
        self._place = place
        try:
            self._origins = [origin_of(url) for url in trusted]
        except DragomanError as error:
            raise ConfigurationError(f"trusted: {error}") from None
        self._own = origin_of(place) if place else None

    def covers(self, interface: AgentInterface) -> bool:
        """Whether an interface may have them."""
        if self._own is None:
            return True
        known = [self._own, *self._origins]
        try:
            if interface.protocol_binding == GRPC:
                return _covers_grpc(interface.url, known)
            if not interface.url.lower().startswith(_OF_THE_WEB):
                return _host_of(interface.url) in [host for _, host, _ in known]
            return any(_is_at(origin_of(interface.url), one) for one in known)
        except DragomanError:
            return False

    def refusal(self, interfaces: Iterable[AgentInterface]) -> CredentialOriginError:
        """The error for interfaces that may not have them."""
        places = ", ".join(shown(one.url) for one in interfaces)
        text = (
            f"The card of {shown(self._place)} names {places}, which is another origin: credentials do not go there "
            "(trusted= allows it)"
        )
        return CredentialOriginError(text, url=shown(self._place))


def origin_of(url: str) -> Origin:
    """The origin of an address; that of a WebSocket is the one of its handshake. Raises OutboundUrlError."""
    target = parse_target(f"http{url[2:]}" if url[:2].lower() == "ws" else url)
    return target.scheme, _host(target.host), target.port


def _is_at(origin: Origin, known: Origin) -> bool:
    if origin == known:
        return True
    upgraded = (known[0], origin[0]) == ("http", "https") and (known[2], origin[2]) == (80, 443)
    return upgraded and origin[1] == known[1]


def _covers_grpc(url: str, known: Sequence[Origin]) -> bool:
    """The host decides; what was meant for an encrypted address does not go over an open line."""
    address = parse_address(url)
    host, encrypted = _host(address.host), address.with_tls(None)
    return any(host == one[1] and (encrypted or one[0] == "http" or host == "localhost") for one in known)


_OF_THE_WEB = ("http:", "https:", "ws:", "wss:")


def _host_of(url: str) -> str:
    """The host of an address of a custom binding, empty when there is none."""
    try:
        return _host(urlsplit(url).hostname or "")
    except ValueError:
        return ""


def _host(host: str) -> str:
    return "localhost" if is_loopback_host(host.lower()) else host.lower()


def secret_names(card: AgentCard) -> frozenset[str]:
    """The headers that hold credentials for the agent of this card."""
    keys = (scheme.api_key_security_scheme for scheme in card.security_schemes.values())
    return NAMES | {key.name.lower() for key in keys if key is not None and key.location == "header"}


def holds_secrets(headers: Mapping[str, str], names: frozenset[str]) -> bool:
    """Whether one of these headers is a credential."""
    return any(name.lower() in names for name in headers)


def warn_of_open_line(interface: AgentInterface) -> None:
    """Say that credentials go over a line that everybody on the way can read. Spec: AUTH-01."""
    try:
        if interface.protocol_binding == GRPC:
            address = parse_address(interface.url)
            is_open, host = not address.with_tls(None), address.host
        else:
            scheme, host, _ = origin_of(interface.url)
            is_open = scheme == "http"
    except DragomanError:
        return
    if is_open and not is_loopback_host(host.lower()):
        logger.warning("credentials go to %s without encryption", shown(interface.url))


class Withholding:
    """Operations of an interface that may have no credentials: a call that carries one is not made."""

    def __init__(self, operations: Operations, names: frozenset[str], refuse: Callable[[], DragomanError]) -> None:
        self._operations = operations
        self._names = names
        self._refuse = refuse

    async def call(self, op: Operation, request: msgspec.Struct, context: CallContext) -> msgspec.Struct:
        """See :class:`~dragoman.ports.operations.Operations`. Raises CredentialOriginError."""
        self._check(context)
        return await self._operations.call(op, request, context)

    async def stream(self, op: Operation, request: msgspec.Struct, context: CallContext) -> EventStream:
        """See :class:`~dragoman.ports.operations.Operations`. Raises CredentialOriginError."""
        self._check(context)
        return await self._operations.stream(op, request, context)

    def _check(self, context: CallContext) -> None:
        if holds_secrets(context.parameters, self._names):
            raise self._refuse()
