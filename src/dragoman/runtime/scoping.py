"""Whose tasks a call is about.

Spec: AUTH-08 to AUTH-10, TEN-05, AMB-36.
"""

from __future__ import annotations

import inspect
from typing import Any

from dragoman.model import Operation
from dragoman.ports.operations import CallContext
from dragoman.ports.scoping import OWN, Authorize, Reach, Scope


class Scoping:
    """Gives every call its scope: the tenant that the edge or the request names, the caller, and how far it reaches.

    ``agent`` is the agent's name in the store; ``authorize`` lets callers reach further than what is their own.
    """

    def __init__(self, agent: str, authorize: Authorize | None = None) -> None:
        self._agent = agent
        self.authorize = authorize

    def narrow(self, request: Any, context: CallContext) -> Scope:
        """What is the caller's own."""
        return Scope(context.tenant or getattr(request, "tenant", ""), context.caller.id, self._agent)

    async def widen(self, op: Operation, own: Scope, context: CallContext) -> Scope:
        """The same, as far as the application lets it reach. Raises what ``authorize`` raises."""
        if self.authorize is None:
            return own
        given = self.authorize(context.caller, op.name, own.tenant)
        reach = await given if inspect.isawaitable(given) else given
        if reach is None or reach == OWN:
            return own
        if not isinstance(reach, Reach):
            raise TypeError(f"authorize returned {type(reach).__name__}, not a Reach")
        return Scope(own.tenant, own.owner, own.agent, frozenset(reach.owners) - {own.owner}, reach.everybody)
