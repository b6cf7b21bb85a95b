"""Authorizations that come out of band: handed in by the application, not by a message.

Spec: §7.6, INTASK-03, INTASK-04, INTASK-10, INTASK-11.
"""

from __future__ import annotations

from typing import Any

from dragoman.errors import UnsupportedOperationError
from dragoman.model import TaskState
from dragoman.ports.agent import Grant, Handler
from dragoman.ports.scoping import Scope
from dragoman.runtime.continuing import Continuing
from dragoman.runtime.live import LiveTask
from dragoman.runtime.registry import Registry
from dragoman.runtime.runs import Runs
from dragoman.runtime.turns import Turns


class Granting:
    """Hands in what tasks wait for in AUTH_REQUIRED."""

    def __init__(self, handler: Handler, registry: Registry, runs: Runs, turns: Turns, continuing: Continuing) -> None:
        self._handler = handler
        self._registry = registry
        self._runs = runs
        self._turns = turns
        self._continuing = continuing

    async def grant(self, task_id: str, value: Any, scope: Scope) -> None:
        """Hand in a value for the authorization that a task waits for; the task goes on.

        Raises TaskNotFoundError, UnsupportedOperationError when it waits for none, UnavailableError.
        """
        live = await self._registry.hold(task_id, scope)
        try:
            self._check(live)
            await self._continuing.take_lease(live)
            self._check(live)
            live.grant(Grant(value))
            if live.run is None:
                self._runs.start(self._turns.following(live), live)
        finally:
            live.unhold()

    def _check(self, live: LiveTask) -> None:
        """The task waits, and its run does so in ``authorize``, or would when it is run again."""
        run = live.run
        waits = live.authorizing or (self._handler.resident and (run is None or run.parked))
        if live.state is not TaskState.AUTH_REQUIRED or not waits:
            raise UnsupportedOperationError(
                "The task waits for no authorization", metadata={"taskId": live.task_id, "state": live.state.value}
            )
