"""HTTP Basic. Spec: RFC 7617, DATA-32, AUTH-05, SEC-05."""

from __future__ import annotations

import base64
import binascii
import hmac
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence

from dragoman.auth.server.presented import Presented, RefusedError
from dragoman.auth.server.scheme import Scheme, fingerprint
from dragoman.errors import ConfigurationError
from dragoman.model import HTTPAuthSecurityScheme, SecurityScheme
from dragoman.ports.operations import Caller

Check = Callable[[str, str], Caller | bool | Awaitable[Caller | bool | None] | None]

MOST_LETTERS = 4096
_NOBODY = fingerprint("")


class Passwords(Scheme):
    """Names and passwords, by HTTP Basic.

    * ``passwords``: by name, which becomes the caller's id; or a function of name and password, for ones that are kept
      hashed elsewhere, which says a Caller, or whether they are right;
    * ``scopes``: what callers may do, by their names.

    Passwords are kept as keyed hashes. Raises ConfigurationError for an empty one.
    """

    kind = "basic"
    challenge = "Basic"

    def __init__(
        self,
        passwords: Mapping[str, str] | Check,
        *,
        scopes: Mapping[str, Sequence[str]] | None = None,
        description: str = "",
    ) -> None:
        self._check = passwords if callable(passwords) else None
        self._digests = {} if callable(passwords) else _digests(passwords)
        self._scopes = {name: frozenset(given) for name, given in (scopes or {}).items()}
        self._description = description

    def __repr__(self) -> str:
        return "Passwords(<hidden>)"

    def declare(self) -> SecurityScheme:
        """See :class:`Scheme`."""
        found = HTTPAuthSecurityScheme(description=self._description, scheme="Basic")
        return SecurityScheme(http_auth_security_scheme=found)

    @property
    def challenge_parameters(self) -> Mapping[str, str]:
        """See :class:`Scheme`."""
        return {"charset": "UTF-8"}

    @property
    def scopes(self) -> tuple[str, ...]:
        """See :class:`Scheme`."""
        return tuple(sorted(frozenset().union(*self._scopes.values())))

    def find(self, presented: Presented) -> str:
        """See :class:`Scheme`."""
        return presented.authorization("basic")

    async def verify(self, credential: str) -> Caller:
        """See :class:`Scheme`."""
        name, password = _read(credential)
        found = await self._known(name, password)
        if isinstance(found, Caller):
            return found
        if not found:
            raise RefusedError("wrong password", "The name or the password is wrong", error="")
        return Caller(id=name, scopes=self._scopes.get(name, frozenset()))

    async def _known(self, name: str, password: str) -> Caller | bool | None:
        if self._check is None:
            kept = self._digests.get(name, _NOBODY)  # which takes as long for a name that nobody has
            return hmac.compare_digest(kept, fingerprint(password)) and kept is not _NOBODY
        answer = self._check(name, password)
        return await answer if inspect.isawaitable(answer) else answer


def _read(credential: str) -> tuple[str, str]:
    try:
        if len(credential) > MOST_LETTERS:
            raise ValueError
        text = base64.b64decode(credential, validate=True).decode()
    except (ValueError, binascii.Error):
        raise RefusedError("malformed", "The credentials cannot be read", error="") from None
    name, colon, password = text.partition(":")
    if not name or not colon or not password or not text.isprintable():
        raise RefusedError("malformed", "The credentials cannot be read", error="")
    return name, password


def _digests(passwords: Mapping[str, str]) -> dict[str, bytes]:
    for name, password in passwords.items():
        if not name or ":" in name or not password:
            raise ConfigurationError("Passwords: no name or password may be empty, and no name may hold a colon")
    return {name: fingerprint(password) for name, password in passwords.items()}
