"""What callers must show that is known only when the operation is, and who is behind the limits and the log.

Spec: AUTH-05, AUTH-07, AUTH-10, CARD-16, AMB-40.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec
from msgspec.structs import replace

from dragoman.auth.server import RESOURCE_PATH, Guard, Security
from dragoman.card import CardFacts
from dragoman.card.build import capabilities_of
from dragoman.errors import ConfigurationError
from dragoman.http.asgi import Scope
from dragoman.model import GET_EXTENDED_AGENT_CARD, Operation, SendMessageRequest
from dragoman.ports.operations import ANONYMOUS, CallContext, Caller, EventStream, Operations
from dragoman.server.auditing import AuditedOperations
from dragoman.server.limiting import LimitedOperations, RateLimits

Identify = Callable[[Scope], Awaitable[Caller]]


def secure_facts(facts: CardFacts, security: Security | None) -> CardFacts:
    """What the card says, with what is demanded of callers. Raises ConfigurationError for what nobody would enforce."""
    if security is None:
        declared = next((skill.id for skill in facts.skills if skill.security_requirements), None)
        if declared is not None:
            raise ConfigurationError(
                f"the skill {declared!r} demands credentials, and nothing verifies them: set security"
            )
        return facts
    known = [skill.id for skill in facts.skills]
    for skill in facts.skills:
        if skill.security_requirements:
            raise ConfigurationError(
                f"the skill {skill.id!r} demands credentials by itself; say it as Security(skills=…)"
            )
    for id in security.skills:
        if id not in known:
            raise ConfigurationError(f"security: there is no skill {id!r}; there are {', '.join(known)}")
    if security.skills and security.skill_of is None and len(known) > 1:
        raise ConfigurationError("security: with several skills, skill_of has to tell which one a message is for")
    skills = tuple(
        replace(skill, security_requirements=security.declare_skill(skill.id)) if skill.id in security.skills else skill
        for skill in facts.skills
    )
    return replace(
        facts,
        skills=skills,
        security_schemes=security.declare_schemes(),
        security_requirements=tuple(security.declare_requirements()),
    )


def documents_of(guard: Guard | None) -> Mapping[str, Callable[[str], bytes]]:
    """The metadata of the protected resource by its path; none where no authorization server is known."""
    return {RESOURCE_PATH: guard.resource} if guard is not None and guard.has_resource else {}


def compose_identify(guard: Guard | None, further: Identify | None, *, address: bool) -> Identify | None:
    """How callers are identified: by the guard, and by what the author gave; None when everybody is anonymous.

    Where there are both, the author's says who it is that the guard let in; what was granted stays. ``address``: the
    address of callers is to be known.
    """
    if guard is not None:
        return guard.identify if further is None else _Both(guard.identify, further)
    return _Addressed(further) if address else further


def guarding_interceptors(
    facts: CardFacts, guard: Guard | None, rate_limit: RateLimits | None, *, audit: bool
) -> list[Callable[[Operations], Operations]]:
    """What stands before everything else of an app, the outermost first; nothing when nothing is asked for."""
    found: list[Callable[[Operations], Operations]] = [AuditedOperations] if audit else []
    if rate_limit is not None:
        found.append(partial(LimitedOperations, limits=rate_limit))
    if guard is not None:
        skills = [skill.id for skill in facts.skills]
        extended = capabilities_of(facts).extended_agent_card is True
        if not guard.security.skills and not extended:  # all that there is was seen to when the caller was identified
            return found
        found.append(partial(GuardedOperations, guard=guard, skills=skills, has_extended_card=extended))
    return found


class _Both:
    def __init__(self, guard: Identify, further: Identify) -> None:
        self._guard = guard
        self._further = further

    async def __call__(self, scope: Scope) -> Caller:
        shown = await self._guard(scope)
        named = await self._further(scope)
        return replace(
            named,
            scopes=shown.scopes | named.scopes,
            claims={**shown.claims, **named.claims},
            granted=shown.granted,
            expires_at=shown.expires_at if named.expires_at is None else named.expires_at,
            address=shown.address,
        )


class _Addressed:
    def __init__(self, identify: Identify | None) -> None:
        self._identify = identify

    async def __call__(self, scope: Scope) -> Caller:
        caller = ANONYMOUS if self._identify is None else await self._identify(scope)
        client: Any = scope.get("client")
        return replace(caller, address=str(client[0])) if client and not caller.address else caller


class GuardedOperations:
    """Operations behind a guard; implements :class:`~dragoman.ports.operations.Operations`.

    ``skills`` are the ids of the agent's skills, ``has_extended_card`` whether it declares an extended card.
    """

    def __init__(self, operations: Operations, *, guard: Guard, skills: Sequence[str], has_extended_card: bool) -> None:
        self._operations = operations
        self._guard = guard
        self._only = skills[0] if len(skills) == 1 else None
        self._has_extended_card = has_extended_card

    async def call(self, op: Operation, request: msgspec.Struct, context: CallContext) -> msgspec.Struct:
        """See :class:`~dragoman.ports.operations.Operations`."""
        if op is GET_EXTENDED_AGENT_CARD:
            if self._has_extended_card:
                self._guard.check_known(context.caller)
        else:
            self._check(request, context)
        return await self._operations.call(op, request, context)

    async def stream(self, op: Operation, request: msgspec.Struct, context: CallContext) -> EventStream:
        """See :class:`~dragoman.ports.operations.Operations`."""
        self._check(request, context)
        return await self._operations.stream(op, request, context)

    def _check(self, request: msgspec.Struct, context: CallContext) -> None:
        security = self._guard.security
        if security.skills and isinstance(request, SendMessageRequest):
            skill = self._only if security.skill_of is None else security.skill_of(request)
            if skill is not None:
                self._guard.check(context.caller, security.skills.get(skill, ()))
