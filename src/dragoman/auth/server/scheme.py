"""A security scheme at work: what the card says of it, how its credential is found, and who it belongs to.

Spec: DATA-32, AUTH-04, AUTH-05.
"""

from __future__ import annotations

import hashlib
import secrets
from abc import ABC, abstractmethod
from collections.abc import Mapping

from dragoman.auth.server.presented import Presented
from dragoman.model import SecurityScheme
from dragoman.ports.operations import Caller

_PROCESS_KEY = secrets.token_bytes(32)


def fingerprint(text: str) -> bytes:
    """A secret as it is kept and compared: keyed by this process, so that its time tells nothing of the secret."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), key=_PROCESS_KEY, digest_size=32).digest()


class Scheme(ABC):
    """One way to authenticate. One object may serve several apps at a time.

    ``kind`` is its name on the card when nobody gives another; ``challenge`` the scheme of its ``WWW-Authenticate``;
    ``request_headers`` are headers that callers send it in, besides ``Authorization`` and ``Cookie``.
    """

    kind = ""
    challenge = ""
    request_headers: tuple[str, ...] = ()

    @abstractmethod
    def declare(self) -> SecurityScheme:
        """What the card says of it."""

    @abstractmethod
    def find(self, presented: Presented) -> str:
        """The credential for this scheme that came with a call, ``""`` for none. Raises RefusedError."""

    @abstractmethod
    async def verify(self, credential: str) -> Caller:
        """Whose credential it is. Raises RefusedError when it is not good, UnavailableError when that cannot be told
        now."""

    @property
    def challenge_parameters(self) -> Mapping[str, str]:
        """What its challenge says besides the realm."""
        return {}

    @property
    def issuers(self) -> tuple[str, ...]:
        """The authorization servers whose tokens it takes, as far as they are known (RFC 9728)."""
        return ()

    @property
    def scopes(self) -> tuple[str, ...]:
        """The scopes that it knows of."""
        return ()
