"""Addresses of gRPC interfaces, as cards write them. Pure, and needs no gRPC library.

The proto says ``hostname:port``; older revisions and many cards say ``https://hostname``. Both are read. Without a
scheme TLS is meant, but on this very machine, where nobody has certificates; ``http`` says that there is none.

Spec: AMB-77, CARD-06, SEC-02.
"""

from __future__ import annotations

from urllib.parse import urlsplit

import msgspec

from dragoman.errors import CardError
from dragoman.http.guard import is_loopback_host, shown

_TLS_OF_SCHEME = {"": None, "https": True, "grpcs": True, "http": False, "grpc": False}
_DEFAULT_PORTS = {True: 443, False: 80}


class GrpcAddress(msgspec.Struct, frozen=True):
    """Where an interface is. ``tls`` is None when the address does not say; ``host`` is without brackets."""

    host: str
    port: int | None = None
    tls: bool | None = None

    def with_tls(self, preferred: bool | None) -> bool:
        """Whether TLS is used: what the address says, else what is preferred, else unless it is this machine."""
        if self.tls is not None:
            return self.tls
        return preferred if preferred is not None else not is_loopback_host(self.host)

    def authority(self, tls: bool) -> str:
        """Host and port, with brackets where an IPv6 address needs them."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port if self.port is not None else _DEFAULT_PORTS[tls]}"


def parse_address(text: str) -> GrpcAddress:
    """Read an address. Raises CardError that says what is wrong with it."""
    if any(c <= " " or c in "\x7f\\" for c in text):
        raise _bad(text, "it holds blanks or control characters")
    scheme, mark, rest = text.partition("://")
    scheme, rest = (scheme.lower(), rest) if mark else ("", text)
    if scheme not in _TLS_OF_SCHEME:
        raise _bad(text, f"its scheme is {scheme}")
    try:
        parts = urlsplit(f"//{rest}")
        host, port = (parts.hostname or "").rstrip("."), parts.port
    except ValueError:
        raise _bad(text, "it is not well-formed") from None
    if not host or parts.username is not None or parts.password is not None:
        raise _bad(text, "it names no host, or a user")
    if parts.path.strip("/") or parts.query or parts.fragment:
        raise _bad(text, "gRPC has no paths")
    return GrpcAddress(host, port, _TLS_OF_SCHEME[scheme])


def format_address(host: str, port: int) -> str:
    """``hostname:port`` of what is served, as a card has it."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return GrpcAddress(host, port).authority(tls=True)


def _bad(text: str, why: str) -> CardError:
    return CardError(f"{shown(text)} is no gRPC address (hostname:port): {why}", url=shown(text))
