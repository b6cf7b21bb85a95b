"""Contexts: which ``contextId`` a new task or reply gets.

Spec: CTX-01, CTX-03, CTX-04, AMB-33, AMB-45.
"""

from __future__ import annotations

from dragoman.errors import FieldViolation, InvalidParamsError
from dragoman.model import SendMessageRequest
from dragoman.ports.clock import Clock
from dragoman.ports.operations import CallContext
from dragoman.ports.store import TaskQuery, TaskStore
from dragoman.protocol.contexts import is_sealed_context, seal_context


def bad_context(text: str) -> InvalidParamsError:
    """The refusal of a ``contextId``."""
    return InvalidParamsError("Invalid parameters", violations=[FieldViolation("message.contextId", text)])


class Contexts:
    """Takes the client's context ids, or only those that this agent made (``known_only``)."""

    def __init__(self, store: TaskStore, clock: Clock, *, known_only: bool) -> None:
        self._store = store
        self._clock = clock
        self._known_only = known_only
        self._key = b""

    async def start(self) -> None:
        """Fetch the key with which own ids are recognized."""
        self._key = await self._store.secret("context")

    async def choose(self, request: SendMessageRequest, call: CallContext) -> str:
        """The context of a message that names no task. Raises InvalidParamsError for one that is not taken."""
        context_id = request.message.context_id
        if not self._known_only:
            return context_id or self._clock.new_id()
        scope = call.scope.own
        seal = {"agent": scope.agent, "tenant": scope.tenant, "owner": scope.owner}
        if not context_id:
            return seal_context(self._key, self._clock.new_id(), **seal)
        if not is_sealed_context(self._key, context_id, **seal):
            query = TaskQuery(scope=scope, context_id=context_id, page_size=1)
            if not (await self._store.page(query)).total:
                raise bad_context("is not known here; leave it out to begin a new context")
        return context_id
