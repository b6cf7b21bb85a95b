"""Which credentials go to an agent: by what its card asks for. Pure.

``securityRequirements`` is a list of alternatives, each of which names schemes that must all be met. The first one that
the credentials at hand meet is used; one that uses a credential goes before one that needs none.

Spec: AUTH-04, XCARD-01; section 12.2 of the register of the command line.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from dragoman.auth.credentials import ApiKey, Basic, ClientCertificate, Held, Known
from dragoman.auth.schemes import SchemeUse
from dragoman.errors import ClientError
from dragoman.model import AgentCard, SecurityRequirement, SecurityScheme, StringList

LOCATIONS = ("header", "query", "cookie")


class CredentialsMissingError(ClientError):
    """None of the alternatives that the card gives can be met with the credentials at hand."""


class Part(msgspec.Struct, frozen=True):
    """A credential, and the scheme that it meets: None for one that the card did not ask for."""

    credential: Known
    use: SchemeUse | None = None


def choose(card: AgentCard, held: Sequence[Held], locations: Sequence[str] = LOCATIONS) -> tuple[Part, ...]:
    """What to show to the agent of this card.

    ``locations`` are the places for an API key that the binding has. Raises CredentialsMissingError.
    """
    alternatives = alternatives_of(card)
    if not alternatives:
        return tuple(Part(one.credential) for one in held if not one.scheme)
    met = [found for names in alternatives if (found := _meet(card, names, held, locations)) is not None]
    if not met:
        raise CredentialsMissingError(f"The agent wants other credentials than those given: {_wanted(card)}")
    return next(filter(None, met), ())


def alternatives_of(card: AgentCard) -> list[SecurityRequirement]:
    """The alternatives of a card. One that declares schemes without requiring any leaves the choice."""
    if card.security_requirements:
        return [r for r in card.security_requirements if r.schemes or card.security_schemes] or []
    single = [SecurityRequirement(schemes={name: StringList()}) for name in card.security_schemes]
    return [*single, SecurityRequirement()] if single else []


def _meet(
    card: AgentCard, wanted: SecurityRequirement, held: Sequence[Held], locations: Sequence[str]
) -> tuple[Part, ...] | None:
    parts = []
    for name, scopes in wanted.schemes.items():
        scheme = card.security_schemes.get(name)
        if scheme is None:
            return None
        found = next((one.credential for one in _by_name(held, name) if _fits(one, scheme, locations)), None)
        if found is None:
            return None
        parts.append(Part(found, SchemeUse(name, scheme, tuple(scopes.list))))
    # There is one Authorization header: two credentials for it cannot both be shown.
    several = {id(part.credential) for part in parts if not isinstance(part.credential, ApiKey | ClientCertificate)}
    return tuple(parts) if len(several) < 2 else None


def _by_name(held: Sequence[Held], name: str) -> list[Held]:
    """Those that were given for a scheme; without any, those for every scheme."""
    return [one for one in held if one.scheme == name] or [one for one in held if not one.scheme]


def _fits(one: Held, scheme: SecurityScheme, locations: Sequence[str]) -> bool:
    credential, key, http = one.credential, scheme.api_key_security_scheme, scheme.http_auth_security_scheme
    if isinstance(credential, ApiKey):
        return key is not None and key.location in locations
    if isinstance(credential, ClientCertificate):
        return scheme.mtls_security_scheme is not None
    if isinstance(credential, Basic):
        return http is not None and http.scheme.lower() == "basic"
    if http is not None:
        return http.scheme.lower() == "bearer"
    return scheme.oauth2_security_scheme is not None or scheme.open_id_connect_security_scheme is not None


def _wanted(card: AgentCard) -> str:
    return " or ".join(" and ".join(one.schemes) or "none" for one in alternatives_of(card))
