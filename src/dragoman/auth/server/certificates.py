"""What a client's certificate says of it: a door to the library ``cryptography``."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable
from typing import Any
from urllib.parse import unquote

import msgspec

from dragoman.auth.server.presented import RefusedError
from dragoman.errors import MissingExtraError

MOST_LETTERS = 32 * 1024
_PEM = re.compile(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)


class Certificate(msgspec.Struct, frozen=True):
    """A certificate of a client. ``subject`` and ``issuer`` are distinguished names as RFC 4514 writes them;
    ``fingerprint`` is the SHA-256 of the whole, in hexadecimal; ``expires_at`` is in seconds since the epoch."""

    subject: str
    issuer: str
    dns_names: tuple[str, ...]
    uris: tuple[str, ...]
    fingerprint: str
    expires_at: float


def read_certificate(pem: str) -> Certificate:
    """Read the first certificate of a PEM text. Raises RefusedError, MissingExtraError."""
    try:
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes
    except ImportError as error:
        raise MissingExtraError("mutual TLS", "auth") from error
    try:
        found = x509.load_pem_x509_certificate(pem.encode())
        names: Any = _names(found, x509)
        return Certificate(
            subject=found.subject.rfc4514_string(),
            issuer=found.issuer.rfc4514_string(),
            dns_names=tuple(names.get_values_for_type(x509.DNSName)) if names else (),
            uris=tuple(names.get_values_for_type(x509.UniformResourceIdentifier)) if names else (),
            fingerprint=found.fingerprint(hashes.SHA256()).hex(),
            expires_at=found.not_valid_after_utc.timestamp(),
        )
    except ValueError:
        raise RefusedError("malformed", "The certificate cannot be read", error="") from None


def _names(certificate: Any, x509: Any) -> Iterable[Any] | None:
    try:
        value: Iterable[Any] = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return None
    return value


def pem_of_header(value: str) -> str:
    """The certificate that a proxy puts in a header, as PEM: base64 between colons (RFC 9440), or percent-encoded PEM.

    Raises RefusedError.
    """
    if len(value) > MOST_LETTERS:
        raise _unreadable()
    if value.startswith(":") and value.endswith(":"):
        try:
            base64.b64decode(value[1:-1], validate=True)
        except (ValueError, binascii.Error):
            raise _unreadable() from None
        return f"-----BEGIN CERTIFICATE-----\n{value[1:-1]}\n-----END CERTIFICATE-----\n"
    match = _PEM.search(unquote(value))
    if match is None:
        raise _unreadable()
    return f"{match[0]}\n"


def _unreadable() -> RefusedError:
    return RefusedError("malformed", "The certificate cannot be read", error="")
