"""Certificates and keys in PEM, given as bytes or as files."""

from __future__ import annotations

import os
from pathlib import Path

from dragoman.errors import ConfigurationError

Pem = bytes | str | os.PathLike[str]
"""Certificates or a key in PEM: the bytes themselves, or the file that holds them."""


def read_pem(source: Pem, what: str) -> bytes:
    """The bytes of a certificate or key. Raises ConfigurationError when the file cannot be read, or is none in PEM."""
    if isinstance(source, bytes):
        data = source
    else:
        try:
            data = Path(source).expanduser().read_bytes()
        except OSError as error:
            raise ConfigurationError(f"{what}: {os.fspath(source)} cannot be read: {error.strerror}") from error
    if b"-----BEGIN " not in data:
        raise ConfigurationError(f"{what} must be in PEM")
    return data
