"""What an agent demands of its callers: schemes, which of them together, and which for which skill.

As in OpenAPI, the entries of ``require`` are alternatives, and the schemes inside one are needed together.

Spec: DATA-36, CARD-16, AUTH-04, AUTH-05, AUTH-07, AUTH-12.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from dragoman.auth.server.mutual_tls import MutualTls
from dragoman.auth.server.presented import read_networks
from dragoman.auth.server.scheme import Scheme
from dragoman.auth.server.throttle import Throttle
from dragoman.errors import ConfigurationError
from dragoman.model import SecurityRequirement, SecurityScheme, SendMessageRequest, StringList
from dragoman.ports.operations import Caller

Require = Sequence[str | Mapping[str, Sequence[str]]]
"""Alternatives: the name of a scheme, or names of schemes that are needed together, each with its scopes."""

SkillOf = Callable[[SendMessageRequest], str | None]


class Requirement(msgspec.Struct, frozen=True):
    """Schemes that are needed together, with the scopes that the credential of each must have."""

    schemes: Mapping[str, frozenset[str]]

    def is_met_by(self, granted: Mapping[str, frozenset[str]]) -> bool:
        """Whether credentials with these scopes, by scheme, will do."""
        return all(name in granted and scopes <= granted[name] for name, scopes in self.schemes.items())

    def lacks(self, granted: Mapping[str, frozenset[str]]) -> frozenset[str] | None:
        """The scopes that are lacking, None when not even the schemes are all there."""
        if not all(name in granted for name in self.schemes):
            return None
        return frozenset().union(*(scopes - granted[name] for name, scopes in self.schemes.items()))

    def declare(self) -> SecurityRequirement:
        """As the card has it."""
        return SecurityRequirement(
            schemes={name: StringList(list=sorted(scopes)) for name, scopes in self.schemes.items()}
        )


class Security:
    """What callers have to show, and who they are then.

    * ``schemes``: each by its name on the card;
    * ``require``: what every call needs: alternatives, each the name of a scheme, or a mapping from the schemes that
      are needed together to the scopes that each credential must have. An empty mapping lets callers come without any,
      and an empty list makes credentials a matter of skills and of the extended card. Default: any one of the schemes.
      Of schemes that are needed together, the first says who calls;
    * ``skills``: what messages for a skill need besides, by its id, in the same form; ``skill_of`` tells from a request
      which skill it is for, None for none. It may be left out when the agent has a single skill;
    * ``realm``: the name in challenges, default that of the agent;
    * ``throttle``: how failed attempts are slowed down, see :class:`Throttle`; None: not at all;
    * ``proxies``: addresses and networks of proxies whose ``X-Forwarded-For`` is believed, and the certificate header
      of :class:`MutualTls`.

    One object may serve several apps. Raises ConfigurationError.
    """

    def __init__(
        self,
        schemes: Mapping[str, Scheme],
        *,
        require: Require | None = None,
        skills: Mapping[str, Require] | None = None,
        skill_of: SkillOf | None = None,
        realm: str = "",
        throttle: Throttle | None = Throttle(),
        proxies: Sequence[str] = (),
    ) -> None:
        if not schemes:
            raise ConfigurationError("security: at least one scheme is needed")
        for name, scheme in schemes.items():
            if not isinstance(scheme, Scheme):
                raise ConfigurationError(f"security: {name!r} is no scheme, but {type(scheme).__name__}")
        self.schemes = dict(schemes)
        self.require = self._read("require", list(schemes) if require is None else require)
        self.skills = {skill: self._read(f"skills[{skill!r}]", given) for skill, given in (skills or {}).items()}
        self.skill_of = skill_of
        self.realm = realm
        self.throttle = throttle
        self.proxies = read_networks(proxies, "security: proxies")
        if not self.proxies and any(isinstance(each, MutualTls) and each.header for each in schemes.values()):
            raise ConfigurationError(
                "security: a certificate in a header is believed of named proxies only: set proxies"
            )

    def __repr__(self) -> str:
        return f"Security({', '.join(self.schemes)})"

    def _read(self, what: str, given: Require) -> tuple[Requirement, ...]:
        if isinstance(given, str):
            raise ConfigurationError(f"security: {what} must be a list of alternatives, not a string")
        found = tuple(_requirement(what, each) for each in given)
        for name in (name for requirement in found for name in requirement.schemes):
            if name not in self.schemes:
                known = ", ".join(self.schemes)
                raise ConfigurationError(f"security: {what} names the scheme {name!r}; there are {known}")
        return found

    # What the card says.

    def declare_schemes(self) -> dict[str, SecurityScheme]:
        """``securitySchemes``."""
        return {name: scheme.declare() for name, scheme in self.schemes.items()}

    def declare_requirements(self) -> list[SecurityRequirement]:
        """``securityRequirements``."""
        return [requirement.declare() for requirement in self.require]

    def declare_skill(self, skill: str) -> list[SecurityRequirement]:
        """``securityRequirements`` of a skill."""
        return [requirement.declare() for requirement in self.skills.get(skill, ())]

    @property
    def scopes(self) -> tuple[str, ...]:
        """All scopes that are demanded or known somewhere, in order."""
        required = (*self.require, *_flat(self.skills.values()))
        named = (scope for each in required for scopes in each.schemes.values() for scope in sorted(scopes))
        known = (scope for scheme in self.schemes.values() for scope in scheme.scopes)
        return tuple(dict.fromkeys((*named, *known)))

    @property
    def issuers(self) -> tuple[str, ...]:
        """The authorization servers whose tokens are taken, as far as they are known."""
        return tuple(dict.fromkeys(issuer for scheme in self.schemes.values() for issuer in scheme.issuers))

    @property
    def request_headers(self) -> tuple[str, ...]:
        """Headers that credentials come in, besides the usual ones."""
        return tuple(dict.fromkeys(name for scheme in self.schemes.values() for name in scheme.request_headers))

    # Who may.

    @property
    def lets_anonymous_in(self) -> bool:
        """Whether callers without credentials are let in, though not to everything."""
        return not self.require or any(not requirement.schemes for requirement in self.require)

    def permits(self, caller: Caller, skill: str) -> bool:
        """Whether a caller shows what a skill needs. For handlers that find out themselves what is asked of them."""
        required = self.skills.get(skill, ())
        return not required or any(requirement.is_met_by(caller.granted) for requirement in required)


def _requirement(what: str, given: str | Mapping[str, Sequence[str]]) -> Requirement:
    if isinstance(given, str):
        return Requirement({given: frozenset()})
    for name, scopes in given.items():
        if isinstance(scopes, str):
            raise ConfigurationError(f"security: the scopes of {name!r} in {what} must be a list, not a string")
    return Requirement({name: frozenset(scopes) for name, scopes in given.items()})


def _flat(groups: Iterable[Iterable[Requirement]]) -> Iterable[Requirement]:
    return (requirement for group in groups for requirement in group)


SecuritySetting = Security | Scheme | Sequence[Scheme]


def as_security(given: SecuritySetting | None) -> Security | None:
    """What ``security=`` of an agent or an app means: a Security, a scheme, or several that are alternatives.

    Raises ConfigurationError.
    """
    if given is None or isinstance(given, Security):
        return given
    listed = [given] if isinstance(given, Scheme) else given
    named: dict[str, Scheme] = {}
    for scheme in listed:
        if not isinstance(scheme, Scheme):
            raise ConfigurationError("security must be a scheme, several of them, or a Security")
        number = sum(1 for other in named.values() if other.kind == scheme.kind)
        named[f"{scheme.kind}{number + 1}" if number else scheme.kind] = scheme
    return Security(named)
