"""How often a call is made.

A repeater makes attempts of one call, the same bytes each time. The usual one asks once more what changes nothing; one
that knows its host better can be put in its place.

Spec: GET-05, AC-C-50 to AC-C-56.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

from dragoman.errors import ConnectionLostError
from dragoman.model import (
    GET_EXTENDED_AGENT_CARD,
    GET_TASK,
    GET_TASK_PUSH_NOTIFICATION_CONFIG,
    LIST_TASK_PUSH_NOTIFICATION_CONFIGS,
    LIST_TASKS,
    Operation,
)
from dragoman.ports.operations import CallContext

T = TypeVar("T")
Attempt = Callable[[float | None], Awaitable[T]]
"""Makes a call once; takes the seconds it may last, None for no limit."""

# What changes nothing may be asked again when the connection broke (GET-05).
REPEATABLE = (
    GET_TASK,
    LIST_TASKS,
    GET_TASK_PUSH_NOTIFICATION_CONFIG,
    LIST_TASK_PUSH_NOTIFICATION_CONFIGS,
    GET_EXTENDED_AGENT_CARD,
)


class Repeater(Protocol):
    """Decides how often a call is made. Calls may run together without limit."""

    async def repeat(self, op: Operation, context: CallContext, attempt: Attempt[T]) -> T:
        """Make attempts until one succeeds or no other makes sense; raises the error of the last."""
        ...


class RepeatReads:
    """Asks once more for what changes nothing, when the connection broke. Spec: GET-05."""

    async def repeat(self, op: Operation, context: CallContext, attempt: Attempt[T]) -> T:
        """See :class:`Repeater`."""
        try:
            return await attempt(context.timeout)
        except ConnectionLostError:
            if op not in REPEATABLE:
                raise
        return await attempt(context.timeout)
