"""What an author wants done at the start, after a restore, and at the end.

Spec: AC-S-70, AC-S-71, AC-S-73, AC-S-74.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Sequence

from dragoman.agentcore.asking import call_in_daemon
from dragoman.agentcore.worker import Worker

logger = logging.getLogger("dragoman.agentcore")

Hook = Callable[[], Awaitable[object] | object]


class HooksFailedError(Exception):
    """Start-up hooks raised, or took too long. The text is for the log."""


class Hooks:
    """Runs hooks in their order; coroutine functions in the agent's loop, plain ones in a thread."""

    def __init__(self, start: Sequence[Hook], restore: Sequence[Hook], worker: Worker, limit: float) -> None:
        self._start = tuple(start)
        self._restore = tuple(restore)
        self._worker = worker
        self._limit = limit

    @property
    def has_start(self) -> bool:
        """Whether anything is to be done before the agent is ready."""
        return bool(self._start)

    async def start(self) -> None:
        """Run those of the start, within the limit. Raises HooksFailedError."""
        try:
            async with asyncio.timeout(self._limit):
                for hook in self._start:
                    await self._call(hook)
        except TimeoutError as error:
            raise HooksFailedError(f"the start-up hooks are not done after {self._limit:g} s") from error
        except Exception as error:
            logger.error("A start-up hook raised", exc_info=error)
            raise HooksFailedError("a start-up hook raised") from error

    async def restored(self) -> None:
        """Run those for a restore; one that raises does not keep the others from it."""
        for hook in self._restore:
            try:
                await self._call(hook)
            except Exception:
                logger.exception("A hook for the restore raised")

    async def _call(self, hook: Hook) -> None:
        if inspect.iscoroutinefunction(hook):
            await self._worker.run(hook())
            return
        found = await call_in_daemon(hook)
        if inspect.isawaitable(found):
            await self._worker.run(_awaited(found))


async def _awaited(found: Awaitable[object]) -> None:
    await found
