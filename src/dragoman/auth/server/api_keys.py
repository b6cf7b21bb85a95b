"""API keys in a header, the query or a cookie. Spec: DATA-32, AUTH-05, SEC-05, SEC-06."""

from __future__ import annotations

import hmac
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Literal

from dragoman.auth.server.presented import Presented, RefusedError
from dragoman.auth.server.scheme import Scheme, fingerprint
from dragoman.errors import ConfigurationError
from dragoman.model import APIKeySecurityScheme, SecurityScheme
from dragoman.ports.operations import Caller

Location = Literal["header", "query", "cookie"]
LookUp = Callable[[str], Caller | Awaitable[Caller | None] | None]

MOST_LETTERS = 4096


class ApiKeys(Scheme):
    """Keys that callers were given.

    * ``keys``: the key of each caller by the caller's id, or several of them while they are being changed; or a
      function from a key to its Caller, None for a key of nobody, which must look it up by a hash of it;
    * ``scopes``: what callers may do, by their ids; without an entry: nothing that needs a scope;
    * ``name``, ``location``: where the key is sent, default the header ``X-API-Key``. In the query it ends up in logs
      and histories, and there is no query over gRPC; in a cookie, pages of other origins are refused.

    Keys are kept as keyed hashes. Raises ConfigurationError for an empty key, or one of two callers.
    """

    kind = "apiKey"
    challenge = "ApiKey"

    def __init__(
        self,
        keys: Mapping[str, str | Sequence[str]] | LookUp,
        *,
        scopes: Mapping[str, Sequence[str]] | None = None,
        name: str = "X-API-Key",
        location: Location = "header",
        description: str = "",
    ) -> None:
        if location not in ("header", "query", "cookie"):
            raise ConfigurationError(f"ApiKeys: location is {location!r}; it may be header, query or cookie")
        if not name or not name.isascii() or not name.isprintable() or " " in name:
            raise ConfigurationError("ApiKeys: name must be printable ASCII without blanks")
        self._look_up = keys if callable(keys) else None
        self._owners = {} if callable(keys) else _owners(keys)
        self._scopes = {id: frozenset(given) for id, given in (scopes or {}).items()}
        self._name = name
        self._location: Location = location
        self._description = description
        if location == "header" and name.lower() != "authorization":
            self.request_headers = (name,)

    def __repr__(self) -> str:
        return f"ApiKeys({self._name!r} in {self._location}, <hidden>)"

    def declare(self) -> SecurityScheme:
        """See :class:`Scheme`."""
        found = APIKeySecurityScheme(description=self._description, location=self._location, name=self._name)
        return SecurityScheme(api_key_security_scheme=found)

    @property
    def challenge_parameters(self) -> Mapping[str, str]:
        """See :class:`Scheme`."""
        return {"in": self._location, "name": self._name}

    @property
    def scopes(self) -> tuple[str, ...]:
        """See :class:`Scheme`."""
        return tuple(sorted(frozenset().union(*self._scopes.values())))

    def find(self, presented: Presented) -> str:
        """See :class:`Scheme`."""
        if self._location == "header":
            return presented.header(self._name.lower())
        if self._location == "query":
            return presented.query(self._name)
        found = presented.cookie(self._name)
        if found and presented.is_foreign_page:
            raise RefusedError("foreign page", "A page of another origin may not use this cookie", error="")
        return found

    async def verify(self, credential: str) -> Caller:
        """See :class:`Scheme`."""
        if len(credential) <= MOST_LETTERS:
            if self._look_up is not None:
                answer = self._look_up(credential)
                known = await answer if inspect.isawaitable(answer) else answer
                if known is not None:
                    return known
            else:
                digest = fingerprint(credential)
                kept, owner = self._owners.get(digest, (b"", ""))
                if hmac.compare_digest(kept, digest):
                    return Caller(id=owner, scopes=self._scopes.get(owner, frozenset()))
        raise RefusedError("unknown key", "The key is not known", error="")


def _owners(keys: Mapping[str, str | Sequence[str]]) -> dict[bytes, tuple[bytes, str]]:
    """From the fingerprint of a key to itself and the key's owner."""
    found: dict[bytes, tuple[bytes, str]] = {}
    for owner, given in keys.items():
        for key in [given] if isinstance(given, str) else given:
            if not owner or not key:
                raise ConfigurationError("ApiKeys: neither the id of a caller nor its key may be empty")
            digest = fingerprint(key)
            if found.setdefault(digest, (digest, owner))[1] != owner:
                raise ConfigurationError(f"ApiKeys: {owner!r} has the same key as another caller")
    return found
