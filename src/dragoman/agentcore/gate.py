"""One call first: the others of a new session wait until it has an answer.

A session that is being set up refuses every further call, so that of several at once all but the first would come back
busy.

Spec: AC-C-56.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

HOLD = 15.0
"""Seconds that a call waits for the first one at most."""

_REMEMBERED = 10_000


class Passage:
    """The way of one call through the gate. ``answered`` opens it for the others."""

    def __init__(self) -> None:
        self.answered = False


class Gate:
    """Holds calls of sessions that are not known to stand. ``hold`` in seconds; 0 turns it off."""

    def __init__(self, hold: float = HOLD) -> None:
        self._hold = hold
        self._standing: OrderedDict[str, None] = OrderedDict()
        self._first: dict[str, asyncio.Event] = {}

    def close(self, session_id: str) -> None:
        """Forget that a session stands: it was stopped."""
        self._standing.pop(session_id, None)

    @asynccontextmanager
    async def passing(self, session_id: str, limit: float | None = None) -> AsyncIterator[Passage]:
        """Let a call through, now or after the first one; it waits no longer than ``limit``."""
        passage = Passage()
        hold = self._hold if limit is None else min(self._hold, limit)
        first = await self._wait(session_id, hold)
        try:
            yield passage
        finally:
            if passage.answered:
                self._stand(session_id)
            if first is not None:
                del self._first[session_id]
                first.set()

    async def _wait(self, session_id: str, hold: float) -> asyncio.Event | None:
        """Wait for one's turn. The event to set afterwards, for the one that goes first."""
        try:
            async with asyncio.timeout(hold):
                while session_id not in self._standing and session_id in self._first:
                    await self._first[session_id].wait()
        except TimeoutError:
            return None
        if session_id in self._standing or self._hold <= 0 or session_id in self._first:
            return None
        return self._first.setdefault(session_id, asyncio.Event())

    def _stand(self, session_id: str) -> None:
        self._standing[session_id] = None
        self._standing.move_to_end(session_id)
        if len(self._standing) > _REMEMBERED:
            self._standing.popitem(last=False)
