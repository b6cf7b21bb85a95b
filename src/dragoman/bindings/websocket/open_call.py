"""A call that a client has open on a socket of the server. Spec: BIND-07."""

from __future__ import annotations

import asyncio


class OpenCall:
    """A call of a client: the task that serves it, and the bytes of events that may still be sent."""

    __slots__ = ("_more", "answered", "canceled", "credit", "id", "task")

    def __init__(self, call_id: int, credit: int) -> None:
        self.id = call_id
        self.credit = credit
        self.canceled = False
        self.answered = False
        self.task: asyncio.Task[None] | None = None
        self._more: asyncio.Future[None] | None = None

    def add(self, credit: int) -> None:
        """The client takes more."""
        self.credit += credit
        if self._more is not None and not self._more.done() and self.credit > 0:
            self._more.set_result(None)

    async def wait_for_credit(self) -> None:
        """Return when something may be sent."""
        while self.credit <= 0:
            self._more = asyncio.get_running_loop().create_future()
            await self._more

    def cancel(self) -> None:
        """The client does not want the answer."""
        if not self.canceled:
            self.canceled = True
            # Not at once: a task that is cancelled before its first step has no chance to say that it ended.
            asyncio.get_running_loop().call_soon(self._cancel_task)

    def _cancel_task(self) -> None:
        if self.task is not None and not self.answered:
            self.task.cancel()
