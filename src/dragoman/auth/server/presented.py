"""What came with a call and may tell who calls, the same for every binding. Pure.

A header that came twice with two values is refused: what stands before this server may have looked at the other one.

Spec: AUTH-04, AUTH-05.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from urllib.parse import parse_qsl

from dragoman.errors import ConfigurationError
from dragoman.http.asgi import Scope

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class RefusedError(Exception):
    """Credentials were shown and are not good.

    ``reason`` is a word for the log; ``told`` a sentence for the caller, which quotes nothing; ``error`` the code of
    RFC 6750 where the credential is a token.
    """

    def __init__(self, reason: str, told: str, *, error: str = "invalid_token") -> None:
        super().__init__(reason)
        self.reason = reason
        self.told = told
        self.error = error


def read_networks(texts: Sequence[str], what: str) -> tuple[Network, ...]:
    """Addresses and networks, such as ``10.0.0.5`` and ``10.1.0.0/16``. Raises ConfigurationError."""
    if isinstance(texts, str):
        raise ConfigurationError(f"{what} must be a tuple of addresses, not a string")
    try:
        return tuple(ipaddress.ip_network(text) for text in texts)
    except ValueError as error:
        raise ConfigurationError(f"{what}: {error}") from None


class Presented:
    """A call's headers (or metadata), query, cookies, certificate and address, out of its ASGI scope.

    ``proxies`` are networks whose forwarding headers are believed.
    """

    __slots__ = ("_proxies", "_scope", "from_proxy")

    def __init__(self, scope: Scope, proxies: Sequence[Network] = ()) -> None:
        self._scope = scope
        self._proxies = proxies
        self.from_proxy = bool(proxies) and _is_within(self._peer, proxies)

    def header(self, name: str) -> str:
        """A header, ``""`` when absent. ``name`` in lower case. Raises RefusedError when two differ."""
        wanted = name.encode("latin-1")
        found = {value for key, value in self._scope["headers"] if key.lower() == wanted}
        if len(found) > 1:
            raise RefusedError("repeated", f"The header {name} came more than once", error="invalid_request")
        value: bytes = found.pop() if found else b""
        return value.decode("latin-1").strip()

    def authorization(self, scheme: str) -> str:
        """What ``Authorization`` holds after the name of a scheme (in lower case), ``""`` for none and for others."""
        word, _, rest = self.header("authorization").partition(" ")
        return rest.strip() if word.lower() == scheme else ""

    def query(self, name: str) -> str:
        """A parameter of the query, ``""`` when absent. Raises RefusedError when two differ."""
        query = self._scope.get("query_string", b"")
        if not query:
            return ""
        pairs = parse_qsl(query.decode("latin-1"), keep_blank_values=True)
        found = {value for key, value in pairs if key == name}
        if len(found) > 1:
            raise RefusedError("repeated", "The key came more than once", error="invalid_request")
        return found.pop() if found else ""

    def cookie(self, name: str) -> str:
        """A cookie, ``""`` when absent. Raises RefusedError when two differ."""
        lines = [value.decode("latin-1") for key, value in self._scope["headers"] if key.lower() == b"cookie"]
        pairs = (pair.strip().partition("=") for line in lines for pair in line.split(";"))
        found = {value.strip('"') for key, _, value in pairs if key == name}
        if len(found) > 1:
            raise RefusedError("repeated", "The cookie came more than once", error="invalid_request")
        return found.pop() if found else ""

    @property
    def is_foreign_page(self) -> bool:
        """Whether a browser says that a page of another origin makes this call."""
        if self.header("sec-fetch-site") in ("cross-site", "same-site"):
            return True
        origin = self.header("origin")
        place = origin.partition("://")[2]
        return bool(origin) and (not place or place != self.header("host"))

    @property
    def certificate(self) -> str:
        """The certificate that the client showed in the TLS handshake, verified there, as PEM; ``""`` for none."""
        tls = (self._scope.get("extensions") or {}).get("tls") or {}
        chain = tls.get("client_cert_chain") or ()
        return str(chain[0]) if chain and not tls.get("client_cert_error") else ""

    @property
    def _peer(self) -> str:
        client = self._scope.get("client")
        return str(client[0]) if client else ""

    @property
    def address(self) -> str:
        """The address of who calls; behind proxies that are believed, the last one that is none of them."""
        if not self.from_proxy:
            return self._peer
        lines = [value.decode("latin-1") for key, value in self._scope["headers"] if key.lower() == b"x-forwarded-for"]
        hops: list[str] = [_without_port(part.strip()) for line in lines for part in line.split(",")]
        for hop in reversed(hops):
            if not _is_within(hop, self._proxies):
                return hop[:64]
        return self._peer

    @property
    def where(self) -> str:
        """Binding and path, for the log: on one line, whatever the path holds."""
        path = str(self._scope.get("path", ""))[:200]
        return f"{self._scope['type']} {path if path.isascii() and path.isprintable() else ascii(path)}"


def _without_port(hop: str) -> str:
    """An address as some proxies write it, with brackets or the port, which another connection would change."""
    if hop.startswith("["):
        return hop[1:].partition("]")[0]
    address, _, port = hop.rpartition(":")
    return address if port.isdecimal() and "." in address and ":" not in address else hop


def _is_within(address: str, networks: Sequence[Network]) -> bool:
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return False
    mapped = getattr(found, "ipv4_mapped", None)
    return any((mapped or found) in network for network in networks)
