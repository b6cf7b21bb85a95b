"""The secrets that a notification has to come with: token and credentials. Pure, and in constant time.

Of secrets only digests are kept, so that no dump and no ``repr`` shows them.

Spec: PUSH-14, PUSH-17, AMB-66, AMB-69.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable

from dragoman.model import AuthenticationInfo


def digest(secret: str) -> str:
    """A text that stands for a secret."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


class Secrets:
    """Texts of which a notification has to bring one; several while they are being changed."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._digests = [digest(text) for text in texts]

    def __bool__(self) -> bool:
        return bool(self._digests)

    def __repr__(self) -> str:
        return f"Secrets({len(self._digests)})"

    def hold(self, given: str) -> bool:
        """Whether the text is one of them; takes the same time for every text."""
        found = digest(given)
        return sum([hmac.compare_digest(found, known) for known in self._digests]) > 0


def written(info: AuthenticationInfo) -> str:
    """The ``Authorization`` header that the sender makes of an authentication, in the form that is compared."""
    return authorization(f"{info.scheme} {info.credentials}")


def authorization(header: str) -> str:
    """An ``Authorization`` header to be compared: the case of its scheme does not matter. Spec: RFC 9110 §11.1."""
    scheme, _, credentials = header.strip().partition(" ")
    return f"{scheme.lower()} {credentials.strip()}"
