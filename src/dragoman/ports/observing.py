"""Who wants to know when an agent's code is at work: what a host's idea of "busy" is made of.

Theory. Work is any object that can be a key: a run of a handler, a task that waits for its slot, a call in a thread. It
begins once and ends once. Work that waits for an answer is paused, which ends it as far as being busy goes; when the
answer comes it begins anew. A thread cannot be interrupted, so a call in a thread is work of its own: it may outlive
the run that made it. Whoever starts such work finds the observer in :data:`OBSERVER`, a context variable, since it
does not know the runtime.

Methods are called in the loop of the runtime, and ``ended`` of a call in a thread in that thread; they must return at
once and raise nothing.

Spec: AC-S-63, AC-S-68.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Protocol


class WorkObserver(Protocol):
    """Is told of work."""

    def begun(self, work: object) -> None:
        """The work has been accepted, or goes on after a pause. No effect when it is at work already."""
        ...

    def paused(self, work: object) -> None:
        """The work waits for an answer of the caller."""
        ...

    def ended(self, work: object) -> None:
        """The code has really returned. No effect when it is not at work."""
        ...


OBSERVER: ContextVar[WorkObserver | None] = ContextVar("dragoman-work-observer", default=None)
"""The observer of the run that is being executed."""
