"""TLS of the HTTP server, and the certificates that its clients show.

uvicorn does not tell an application of certificates. Here the protocol takes them from the connection and puts them
into the state that is copied into each scope, from where they are moved to ``extensions["tls"]``, as ASGI's extension
for TLS has them.

Spec: AUTH-01, AUTH-02, SEC-01, SEC-02.
"""

from __future__ import annotations

import asyncio
import ssl
import tempfile
from pathlib import Path
from typing import Any

from dragoman.bindings.grpc.settings import ServerTls
from dragoman.errors import ConfigurationError
from dragoman.http.asgi import Receive, Scope, Send
from dragoman.http.pem import read_pem

_STATE = "dragoman.client_certificate"


def make_context(tls: ServerTls) -> ssl.SSLContext:
    """What a server needs to speak TLS 1.2 and 1.3. Raises ConfigurationError for certificates that are no good."""
    certificate, key = read_pem(tls.certificate, "the certificate"), read_pem(tls.key, "the key")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    try:
        with tempfile.TemporaryDirectory(prefix="dragoman-") as folder:  # which only its owner can read
            chain, private = Path(folder, "chain.pem"), Path(folder, "key.pem")
            chain.write_bytes(certificate)
            private.touch(mode=0o600)
            private.write_bytes(key)
            context.load_cert_chain(chain, private, password=_no_password)
        if tls.client_roots is not None:
            context.load_verify_locations(cadata=read_pem(tls.client_roots, "the roots of clients").decode("ascii"))
            context.verify_mode = ssl.CERT_REQUIRED if tls.require_client else ssl.CERT_OPTIONAL
    except (ssl.SSLError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"TLS: the certificate, its key or the clients' roots are no good: {error}") from error
    return context


def _no_password() -> str:
    raise ConfigurationError("TLS: the key is encrypted; give it without a password")


def with_certificates(protocol: type[asyncio.Protocol]) -> type[asyncio.Protocol]:
    """An HTTP protocol of uvicorn that puts the certificate of its client into the state of the scopes."""

    class Certified(protocol):  # type: ignore[valid-type, misc]
        app_state: dict[str, Any]

        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            super().connection_made(transport)
            found = transport.get_extra_info("ssl_object")
            shown = found.getpeercert(binary_form=True) if found is not None else None
            if shown:
                self.app_state = {**self.app_state, _STATE: ssl.DER_cert_to_PEM_cert(shown)}

    return Certified


class TlsExtension:
    """An ASGI application whose scopes tell of TLS."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection scope."""
        if scope["type"] in ("http", "websocket"):
            pem = scope.get("state", {}).pop(_STATE, None)
            chain = [pem] if pem else []
            scope["extensions"] = {**(scope.get("extensions") or {}), "tls": {"client_cert_chain": chain}}
        await self._app(scope, receive, send)
