"""What goes beside a call to the agent: headers, extensions, credentials. Pure.

A header of the caller goes on only when the operator named it, since it may be a credential, and one that the caller
meant for this server. Extensions that the caller asks for always go on.

Spec: PARAM-01, PARAM-07, EXT-02, EXT-09, AMB-25, SEC-09.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from dragoman.bindings.grpc.addresses import parse_address
from dragoman.client.cards import GRPC
from dragoman.errors import ConfigurationError, DragomanError
from dragoman.http.guard import is_loopback_host, parse_target
from dragoman.model import AgentInterface

# Of the connection or the message, not of the call; and those that the protocol sets itself.
_NEVER = frozenset(
    {
        *("accept", "accept-encoding", "content-encoding", "content-length", "content-type", "expect", "host"),
        *("connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"),
        *("a2a-version", "a2a-extensions", "x-a2a-extensions", "last-event-id"),
    }
)


class Beside:
    """What goes beside calls: ``headers`` and ``extensions`` with each, of the caller's headers those ``forwarded``.

    Raises ConfigurationError for a header that cannot be passed on.
    """

    def __init__(
        self, headers: Mapping[str, str], extensions: Sequence[str] = (), forwarded: Iterable[str] = ()
    ) -> None:
        lower = {name.lower(): value for name, value in headers.items()}
        written = lower.pop("a2a-extensions", "").split(",")
        lower.pop("a2a-version", None)
        self._headers = lower
        self._extensions = tuple(dict.fromkeys([*extensions, *(uri.strip() for uri in written if uri.strip())]))
        self._forwarded = tuple(dict.fromkeys(name.lower() for name in forwarded))
        for name in self._forwarded:
            if name in _NEVER or name.startswith((":", "grpc-", "proxy-")):
                raise ConfigurationError(f"forward_headers: {name} belongs to the connection and is never passed on")

    @property
    def forwards(self) -> bool:
        """Whether any header of callers is passed on."""
        return bool(self._forwarded)

    def headers(self, given: Mapping[str, str], *, trusted: bool) -> Mapping[str, str]:
        """The headers of a call, by those ``given`` to us; ``trusted``: whether the agent may have the caller's."""
        if not (trusted and self._forwarded):
            return self._headers
        passed = {name: given[name] for name in self._forwarded if name in given}
        return {**self._headers, **{name: value for name, value in passed.items() if value.isascii()}}

    def extensions(self, asked: Sequence[str], more: Sequence[str] = ()) -> tuple[str, ...]:
        """The extensions to ask the agent for."""
        if not (self._extensions or more):
            return tuple(asked)
        return tuple(dict.fromkeys([*asked, *self._extensions, *more]))


def activated(asked: Sequence[str], by_agent: Sequence[str]) -> tuple[str, ...]:
    """Of the extensions that the agent activated, those that the caller asked for."""
    return tuple(uri for uri in by_agent if uri in asked) if asked else ()


def may_have_headers(place: str, interfaces: Sequence[AgentInterface], trusted: Sequence[str]) -> bool:
    """Whether the headers of callers may go to these interfaces of an agent that was found at ``place``.

    They may if each has the origin of ``place``, or one that is ``trusted``. gRPC has no origin and a port of its own:
    there it is the host that counts.
    """
    origins = [_origin(url) for url in (place, *trusted)]
    return all(_fits(interface, origins) for interface in interfaces)


def check_origin(text: str) -> None:
    """Raise ConfigurationError for what is no http or https address."""
    try:
        _origin(text)
    except DragomanError as error:
        raise ConfigurationError(f"forward_origins: {error}") from error


Origin = tuple[str, str, int]


def _fits(interface: AgentInterface, origins: Sequence[Origin]) -> bool:
    try:
        if interface.protocol_binding == GRPC:
            host = _host(parse_address(interface.url).host)
            return any(host == known for _, known, _ in origins)
        return _origin(interface.url) in origins
    except DragomanError:
        return False


def _origin(url: str) -> Origin:
    """The origin of an address; that of a WebSocket is the one of its handshake."""
    target = parse_target(f"http{url[2:]}" if url[:2].lower() == "ws" else url)
    return target.scheme, _host(target.host), target.port


def _host(host: str) -> str:
    return "localhost" if is_loopback_host(host.lower()) else host.lower()
