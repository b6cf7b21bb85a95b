"""base64url without padding, strictly. Pure. Spec: RFC 7515 §2."""

from __future__ import annotations

import base64
import re

_ALPHABET = re.compile(r"[A-Za-z0-9_-]*")


def encode_base64url(data: bytes) -> str:
    """The text of some bytes."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decode_base64url(text: str) -> bytes:
    """The bytes of a text. Raises ValueError for padding, foreign characters, or a length that no bytes have."""
    if not _ALPHABET.fullmatch(text):
        raise ValueError("a character that base64url does not have")
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
