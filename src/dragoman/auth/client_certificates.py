"""Certificates of clients, in the forms that the libraries of TLS take. A door to the library ``cryptography``.

Spec: A2ACLI_AUTH_009; section 12.8 of the register of the command line.
"""

from __future__ import annotations

import os
import ssl
import tempfile
from pathlib import Path

from dragoman.auth.credentials import ClientCertificate
from dragoman.errors import ConfigurationError, MissingExtraError
from dragoman.http.pem import Pem, read_pem


def tls_context(
    shown: ClientCertificate | None = None, *, insecure: bool = False, roots: Pem | None = None
) -> ssl.SSLContext:
    """A context for calling servers, by a client that shows a certificate or none.

    ``roots``: the authorities to trust in place of the system's and those of the certificate; ``insecure`` verifies
    nothing. Raises ConfigurationError for what cannot be used.
    """
    trusted = roots if roots is not None else shown.roots if shown is not None else None
    context = ssl.create_default_context()
    if trusted is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        _load_roots(context, read_pem(trusted, "the certificates to trust"))
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if shown is not None:
        _load_pair(context, shown)
    return context


def pem_pair(shown: ClientCertificate) -> tuple[bytes, bytes]:
    """Certificate and key in PEM, the key without a password, for a library that takes no other.

    Raises ConfigurationError, and MissingExtraError for an encrypted key without the extra ``auth``.
    """
    certificate, key = read_pem(shown.certificate, "the client's certificate"), read_pem(shown.key, "the client's key")
    return certificate, _decrypted(key, shown.password) if b"ENCRYPTED" in key else key


def _decrypted(key: bytes, password: str) -> bytes:
    try:
        from cryptography.hazmat.primitives import serialization
    except ImportError as error:
        raise MissingExtraError("An encrypted key", "auth") from error
    if not password:
        raise ConfigurationError("the client's key is encrypted: its password is missing")
    try:
        found = serialization.load_pem_private_key(key, password.encode())
    except (ValueError, TypeError) as error:
        raise ConfigurationError("the client's key cannot be read, or its password is wrong") from error
    form = serialization.PrivateFormat.PKCS8
    return found.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())


def _load_roots(context: ssl.SSLContext, data: bytes) -> None:
    try:
        context.load_verify_locations(cadata=data.decode("ascii"))
    except (ssl.SSLError, UnicodeDecodeError, ValueError) as error:
        raise ConfigurationError("the certificates to trust cannot be used") from error


def _load_pair(context: ssl.SSLContext, shown: ClientCertificate) -> None:
    certificate, key = read_pem(shown.certificate, "the client's certificate"), read_pem(shown.key, "the client's key")
    if b"ENCRYPTED" in key and not shown.password:
        raise ConfigurationError("the client's key is encrypted: its password is missing")
    # The library takes files only; what was given as bytes is on disk for this moment, for nobody else to read.
    with tempfile.TemporaryDirectory() as folder:
        places = [Path(folder, name) for name in ("certificate.pem", "key.pem")]
        for place, data in zip(places, (certificate, key), strict=True):
            descriptor = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with open(descriptor, "wb") as file:
                file.write(data)
        try:
            context.load_cert_chain(places[0], places[1], password=lambda: shown.password)
        except (ssl.SSLError, OSError) as error:
            raise ConfigurationError("the client's certificate and key do not fit, or the password is wrong") from error
