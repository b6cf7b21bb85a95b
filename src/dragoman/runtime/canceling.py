"""Canceling tasks.

Spec: CANCEL-01 to CANCEL-05, AMB-12, AMB-13, B085, B087.
"""

from __future__ import annotations

import asyncio
from typing import cast

from dragoman.model import CancelTaskRequest, Task, TaskState
from dragoman.ports.operations import CallContext
from dragoman.protocol.lifecycle import TERMINAL, Command, check_command
from dragoman.runtime.limits import Limits
from dragoman.runtime.live import LiveTask
from dragoman.runtime.registry import Registry
from dragoman.runtime.runs import Runs


class Canceling:
    """Interrupts runs, and ends tasks that have none."""

    def __init__(self, registry: Registry, runs: Runs, limits: Limits) -> None:
        self._registry = registry
        self._runs = runs
        self._limits = limits

    async def cancel_task(self, request: CancelTaskRequest, context: CallContext) -> Task:
        """Cancel, wait for the handler for a while, and return the task as it then is."""
        live = await self._registry.hold(request.id, context.scope)
        try:
            check_command(Command.CANCEL, live.state, live.task_id)
            if live.state is not TaskState.CANCELED:
                await self._registry.lease(live)
                check_command(Command.CANCEL, live.state, live.task_id)
            return await self._cancel(live)
        finally:
            live.unhold()

    async def _cancel(self, live: LiveTask) -> Task:
        if live.state is not TaskState.CANCELED:
            self._interrupt(live)
        task = await self._wait_for_end(live)
        if task is None:
            return await live.wait(1)
        if task.status.state is not TaskState.CANCELED:
            check_command(Command.CANCEL, cast(TaskState, task.status.state), live.task_id)
        return task

    def _interrupt(self, live: LiveTask) -> None:
        live.canceling = True
        if live.run is None:
            self._runs.dequeue(live)
            live.move(TaskState.CANCELED)
        elif not live.run.canceled:  # a repeat would break into what the first one made the handler do (CANCEL-04)
            live.run.canceled = True
            self._runs.cancel(live.run)

    async def _wait_for_end(self, live: LiveTask) -> Task | None:
        ended = live.wait(1, TERMINAL)
        try:
            done, _ = await asyncio.wait({ended}, timeout=self._limits.cancel_wait)
            return ended.result() if done else None
        finally:
            ended.cancel()
