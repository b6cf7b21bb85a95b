"""The guard of outbound addresses: which URLs this process may call.

Pure: it looks at texts and parsed addresses; names are resolved by a function that is passed in. Two levels:

* every URL is ``http`` or ``https``, has a host and no user information;
* with ``allow_private=False``, for addresses that a peer named, every address that the host stands for is public.
  The caller then connects to the addresses that were checked and to no others, and follows no redirect.

Spec: PUSH-08, SEC-15, AMB-71.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from urllib.parse import SplitResult, urlsplit

import idna
import msgspec

from dragoman.errors import OutboundUrlError

Address = IPv4Address | IPv6Address
Resolver = Callable[[str, int], Awaitable[Iterable[str]]]
"""From a host name and a port to the texts of its addresses; raises OSError when there are none."""

_DEFAULT_PORTS = {"http": 80, "https": 443}
_LOCAL_NAMES = ("localhost", "localhost.localdomain")
_NAT64 = ip_network("64:ff9b::/96")
_SHARED = ip_network("100.64.0.0/10")
_SITE_LOCAL = ip_network("fec0::/10")


class Target(msgspec.Struct, frozen=True):
    """An address that passed the first level. ``host`` is without brackets and in ASCII (IDNA), ``port`` always a
    number."""

    scheme: str
    host: str
    port: int
    path: str = ""
    query: str = ""

    @property
    def origin(self) -> tuple[str, str, int]:
        """Scheme, host and port, comparable."""
        return self.scheme, self.host, self.port

    @property
    def authority(self) -> str:
        """Host and port as a URL has them, the port only when it is not the scheme's own."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"


def shown(url: str) -> str:
    """A URL for messages and logs: without user information, query and fragment, and not longer than 200."""
    head = url.partition("?")[0].partition("#")[0]
    scheme, mark, rest = head.partition("://")
    authority, slash, path = rest.partition("/")
    text = f"{scheme}{mark}{authority.rpartition('@')[2]}{slash}{path}"
    clean = "".join(c if c.isprintable() else "?" for c in text[:201])
    return clean if len(clean) <= 200 else clean[:200] + "…"


def parse_target(url: str) -> Target:
    """Split a URL that may be called at all.

    Raises OutboundUrlError when it is not http or https, lacks a host, carries user information, or holds characters
    that no URL has.
    """
    if any(c <= " " or c == "\x7f" or c == "\\" for c in url):
        raise _refused(url, "it holds blanks or control characters")
    try:
        url.encode()  # lone surrogates are possible in text from JSON
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise _refused(url, "it is not a well-formed URL") from None
    scheme = parts.scheme.lower()
    if scheme not in _DEFAULT_PORTS:
        raise _refused(url, "only http and https are allowed")
    if parts.username is not None or parts.password is not None:
        raise _refused(url, "it must not contain a user name or password")
    return Target(scheme, _host(url, parts), port or _DEFAULT_PORTS[scheme], parts.path, parts.query)


def _host(url: str, parts: SplitResult) -> str:
    host = (parts.hostname or "").lower().rstrip(".")
    if not host:
        raise _refused(url, "it has no host")
    return host if host.isascii() else _in_ascii(url, host)


def _in_ascii(url: str, host: str) -> str:
    """A host as names of servers are: what is checked is then what is resolved, called and named in headers."""
    try:
        return idna.encode(host).decode("ascii").rstrip(".")
    except idna.IDNAError:
        raise _refused(url, "its host is not a name that there can be") from None


def _refused(url: str, reason: str) -> OutboundUrlError:
    return OutboundUrlError(f"The address {shown(url)} is refused: {reason}", url=shown(url))


def literal_address(host: str) -> Address | None:
    """The address that a host text is itself, or None for a name.

    Also the short and numeric spellings of IPv4 that system resolvers take (``127.1``, ``0x7f000001``, ``2130706433``).
    """
    try:
        return ip_address(host.partition("%")[0])
    except ValueError:
        return _numeric_ipv4(host)


def _numeric_ipv4(host: str) -> IPv4Address | None:
    texts = host.split(".")
    if len(texts) > 4:
        return None
    try:
        numbers = [_number(text) for text in texts]
        value = numbers[-1]
        if any(n > 255 for n in numbers[:-1]) or value >= 256 ** (5 - len(numbers)):
            return None
    except ValueError:
        return None
    for place, number in enumerate(numbers[:-1]):
        value += number << (8 * (3 - place))
    return IPv4Address(value)


def _number(text: str) -> int:
    if not text.isascii() or not text[:1].isdigit() or len(text) > 12:
        raise ValueError(text)
    if text[:2] in ("0x", "0X"):
        return int(text[2:] or "0", 16)
    return int(text, 8 if len(text) > 1 and text[0] == "0" else 10)


def is_public(address: Address) -> bool:
    """Whether an address is one of the open internet.

    Not public: loopback, private, link-local (with the metadata services of clouds), carrier-shared, unspecified,
    multicast and reserved ranges; IPv4 inside IPv6 (mapped, 6to4, Teredo, NAT64) counts as what it carries.
    """
    if isinstance(address, IPv6Address):
        inner = _embedded_ipv4(address)
        if inner is not None:
            return is_public(inner)
        if address in _SITE_LOCAL:
            return False
    elif address in _SHARED:
        return False
    return address.is_global and not (address.is_multicast or address.is_reserved or address.is_unspecified)


def _embedded_ipv4(address: IPv6Address) -> IPv4Address | None:
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    if address.teredo is not None:
        return address.teredo[1]
    return address.ipv4_mapped or address.sixtofour


def is_loopback_host(host: str) -> bool:
    """Whether a host text names this very machine, without asking a resolver."""
    address = literal_address(host)
    if address is None:
        return host in _LOCAL_NAMES or host.endswith(".localhost")
    return address.is_loopback


def check_literal(url: str, target: Target) -> Address | None:
    """Refuse a host that is a private address or a local name; return the address when the host is one.

    Raises OutboundUrlError.
    """
    address = literal_address(target.host)
    if address is None:
        if is_loopback_host(target.host):
            raise _refused(url, "it is a private address")
        return None
    if not is_public(address):
        raise _refused(url, "it is a private address")
    return address


async def vet(url: str, resolve: Resolver) -> tuple[Target, Address]:
    """Check a URL that a peer named, and every address its host has; return one to connect to.

    Raises OutboundUrlError when one of the addresses is not public (a name with one good and one bad address is a
    known way around), and OSError from ``resolve``.
    """
    target = parse_target(url)
    literal = check_literal(url, target)
    if literal is not None:
        return target, literal
    addresses = [ip_address(text.partition("%")[0]) for text in await resolve(target.host, target.port)]
    if not addresses or not all(map(is_public, addresses)):
        raise _refused(url, "its host has a private address")
    return target, addresses[0]
