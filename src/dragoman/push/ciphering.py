"""The door to cryptography: secrets of webhooks, encrypted where they are stored (AES-256-GCM).

Spec: PUSH-10, SEC-14.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from dragoman.errors import ConfigurationError, MissingExtraError, StoreError

try:
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM
except ImportError as error:
    raise MissingExtraError("Encrypted webhooks", "auth") from error

KEY_BYTES = 32
_NONCE_BYTES = 12


class Cipher:
    """Encrypts with the first of some keys, decrypts with any of them. Raises ConfigurationError for a bad key."""

    def __init__(self, keys: Sequence[bytes]) -> None:
        if not keys or any(len(key) != KEY_BYTES for key in keys):
            raise ConfigurationError(f"push: a key for secrets has {KEY_BYTES} bytes")
        self._keys = [AESGCM(key) for key in keys]

    def __repr__(self) -> str:
        return "Cipher(<hidden>)"

    def encrypt(self, text: bytes, about: bytes) -> bytes:
        """The text, readable with the key and for this purpose only."""
        nonce = os.urandom(_NONCE_BYTES)
        return nonce + self._keys[0].encrypt(nonce, text, about)

    def decrypt(self, data: bytes, about: bytes) -> bytes:
        """What :meth:`encrypt` was given. Raises StoreError when no key fits."""
        for key in self._keys:
            try:
                return key.decrypt(data[:_NONCE_BYTES], data[_NONCE_BYTES:], about)
            except (InvalidTag, ValueError):
                continue
        raise StoreError("The secrets of a stored webhook cannot be decrypted with the keys that are set")
