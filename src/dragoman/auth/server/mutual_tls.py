"""Certificates of clients: from the handshake with this server, or from a proxy that made it.

Spec: DATA-32, AUTH-05; RFC 9440.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from dragoman.auth.server.certificates import Certificate, pem_of_header, read_certificate
from dragoman.auth.server.presented import Presented, RefusedError
from dragoman.auth.server.scheme import Scheme
from dragoman.errors import ConfigurationError
from dragoman.model import MutualTlsSecurityScheme, SecurityScheme
from dragoman.ports.operations import Caller


class MutualTls(Scheme):
    """Mutual TLS.

    The certificate is that of the TLS handshake with this server, which verifies it (``dragoman run --tls-client-ca``,
    ``ServerTls(client_roots=…)``). Behind a proxy that does so, ``header`` names the one in which the proxy sends it
    on, base64 between colons (RFC 9440) or percent-encoded PEM; it is believed of the ``proxies`` of the
    :class:`~dragoman.auth.Security` only, and never of anybody else. The proxy must drop that header of its clients.

    ``to_caller``: from a Certificate to the Caller. By default its id is the distinguished name of the subject or,
    where that is empty, the first URI or name of the certificate.
    """

    kind = "mutualTls"
    challenge = "MutualTLS"

    def __init__(
        self,
        *,
        to_caller: Callable[[Certificate], Caller] | None = None,
        header: str = "",
        description: str = "",
        now: Callable[[], float] = time.time,
    ) -> None:
        if not header.isascii() or not header.isprintable():
            raise ConfigurationError("MutualTls: header must be printable ASCII")
        self.header = header.lower()
        self._to_caller = to_caller or _caller
        self._description = description
        self._now = now

    def declare(self) -> SecurityScheme:
        """See :class:`Scheme`."""
        return SecurityScheme(mtls_security_scheme=MutualTlsSecurityScheme(description=self._description))

    def find(self, presented: Presented) -> str:
        """See :class:`Scheme`."""
        if self.header and presented.from_proxy:  # whose own certificate is nobody's
            value = presented.header(self.header)
            return pem_of_header(value) if value else ""
        return presented.certificate

    async def verify(self, credential: str) -> Caller:
        """See :class:`Scheme`."""
        found = read_certificate(credential)
        if self._now() >= found.expires_at:
            raise RefusedError("expired", "The certificate has expired", error="")
        return self._to_caller(found)


def _caller(found: Certificate) -> Caller:
    id = found.subject or next(iter((*found.uris, *found.dns_names)), "")
    if not id:
        raise RefusedError("no subject", "The certificate does not say whose it is", error="")
    claims = {
        "subject": found.subject,
        "issuer": found.issuer,
        "dns_names": list(found.dns_names),
        "uris": list(found.uris),
        "fingerprint": found.fingerprint,
    }
    return Caller(id=id, claims=claims, expires_at=found.expires_at)
