"""The user's ping handler: asked at each ping, within a time limit, never twice at the same time.

Theory. A plain function is called in a thread, a coroutine function in the agent's loop. One that raises, takes too
long or says nonsense leaves the automatic status in force; that is logged once a minute at most. One that hangs is not
asked again before it has returned, so that pings leave no heap of threads behind.

Spec: AC-S-65.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import threading
from collections.abc import Awaitable, Callable
from typing import Any

from dragoman.agentcore.health import Health, read_status
from dragoman.agentcore.ping import Status
from dragoman.agentcore.worker import Worker

logger = logging.getLogger("dragoman.agentcore")

PingHandler = Callable[[], Status | str | Awaitable[Status | str]]

TIME_LIMIT = 0.9
"""Seconds for the handler: the platform calls a ping slow that takes a second."""

_QUIET = 60.0


class Asking:
    """Asks a handler and tells the health what it said."""

    def __init__(
        self, handler: PingHandler, health: Health, worker: Worker, monotonic: Callable[[], float], limit: float
    ) -> None:
        self._handler = handler
        self._health = health
        self._worker = worker
        self._monotonic = monotonic
        self._limit = limit
        self._asked: asyncio.Task[Any] | None = None
        self._logged: float | None = None

    async def ask(self) -> None:
        """Ask, and wait for the answer no longer than the limit."""
        if self._asked is None or self._asked.done():
            self._asked = asyncio.ensure_future(self._call())
        done, _ = await asyncio.wait({self._asked}, timeout=self._limit)
        if not done:
            self._complain("takes too long")
        self._health.hear(self._read(self._asked) if done else None)

    def _read(self, asked: asyncio.Task[Any]) -> Status | None:
        if asked.cancelled():
            self._complain("was interrupted")
            return None
        error = asked.exception()
        if error is not None:
            self._complain("raised", error)
            return None
        status = read_status(asked.result())
        if status is None:
            self._complain("gave no status")
        return status

    def _complain(self, what: str, error: BaseException | None = None) -> None:
        now = self._monotonic()
        if self._logged is None or now - self._logged >= _QUIET:
            self._logged = now
            logger.error("The ping handler %s; the automatic status is reported", what, exc_info=error)

    async def _call(self) -> Any:
        if inspect.iscoroutinefunction(self._handler):
            return await self._worker.run(self._handler())
        found = await call_in_daemon(self._handler)
        return await self._worker.run(_awaited(found)) if inspect.isawaitable(found) else found

    def stop(self) -> None:
        """Ask no more."""
        if self._asked is not None:
            self._asked.cancel()


async def _awaited(found: Awaitable[Any]) -> Any:
    return await found


async def call_in_daemon(function: Callable[[], Any]) -> Any:
    """Call a function in a thread that does not keep the process from ending."""
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[Any] = loop.create_future()

    def settle(found: Any, error: BaseException | None) -> None:
        if outcome.done():
            return
        if error is None:
            outcome.set_result(found)
        else:
            outcome.set_exception(error)

    def work() -> None:
        found, failure = None, None
        try:
            found = function()
        except Exception as error:
            failure = error
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, found, failure)

    threading.Thread(target=work, name="dragoman-call", daemon=True).start()
    return await outcome
