"""The loop that an agent's code runs on: one of its own, in a thread of its own.

Theory. Pings and cards are answered in the loop of the HTTP server, the acceptor. Code of an author may block its loop;
if that were the same one, the platform would find the container dead. So the agent has another loop, and connections
cross over (:mod:`dragoman.agentcore.crossing`). The thread is a daemon: code that never returns does not keep the
process from ending.

:class:`SameLoop` is the same without a thread, for those who switch this off.

Spec: AC-S-64.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from dragoman.agentcore.crossing import Crossing
from dragoman.http.asgi import Receive, Scope, Send

logger = logging.getLogger("dragoman.agentcore")

T = TypeVar("T")
AsgiApp = Callable[[Scope, Receive, Send], Coroutine[Any, Any, None]]


class Worker(ABC):
    """Where the agent runs, seen from the acceptor's loop."""

    @abstractmethod
    async def start(self) -> None:
        """Begin."""

    @abstractmethod
    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Await something over there; cancellation reaches it."""

    @abstractmethod
    def post(self, function: Callable[..., object], *args: Any) -> None:
        """Call something over there soon. No effect when it has ended. May be called in any thread."""

    @abstractmethod
    async def serve(self, app: AsgiApp, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection over there."""

    @abstractmethod
    async def stop(self, patience: float) -> None:
        """End; what does not end by itself within ``patience`` seconds is left behind."""


class SameLoop(Worker):
    """Over there is here."""

    async def start(self) -> None:
        """Nothing to do."""

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Await it."""
        return await work

    def post(self, function: Callable[..., object], *args: Any) -> None:
        """Call it at once: this may be a signal handler, whose loop sleeps."""
        function(*args)

    async def serve(self, app: AsgiApp, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve it."""
        await app(scope, receive, send)

    async def stop(self, patience: float) -> None:
        """Nothing to do."""


class WorkerThread(Worker):
    """A loop, of the kind that the acceptor has, in a thread."""

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._end: asyncio.Event | None = None
        self._crossings: set[Crossing] = set()
        self._quiet: asyncio.Event | None = None

    async def start(self) -> None:
        """Begin; returns when the loop runs."""
        here = asyncio.get_running_loop()
        running: asyncio.Future[None] = here.create_future()
        kind = type(here)

        def work() -> None:
            with asyncio.Runner(loop_factory=kind) as runner:
                runner.run(self._main(here, running))

        self._thread = threading.Thread(target=work, name="dragoman-agent", daemon=True)
        self._thread.start()
        await running

    async def _main(self, acceptor: asyncio.AbstractEventLoop, running: asyncio.Future[None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._end = asyncio.Event()
        acceptor.call_soon_threadsafe(running.set_result, None)
        await self._end.wait()

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Await something over there."""
        assert self._loop is not None
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    def post(self, function: Callable[..., object], *args: Any) -> None:
        """Call something over there soon."""
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # it has ended
                self._loop.call_soon_threadsafe(function, *args)

    async def serve(self, app: AsgiApp, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection over there."""
        assert self._loop is not None
        crossing = Crossing(app, scope, receive, send, self._loop)
        self._crossings.add(crossing)
        try:
            await crossing.run()
        finally:
            self._crossings.discard(crossing)
            if self._quiet is not None and not self._crossings:
                self._quiet.set()

    async def stop(self, patience: float) -> None:
        """Wait for open connections, cut off those that are left, and end the loop."""
        if self._thread is None:
            return
        await self._wait_quiet(patience)
        for crossing in self._crossings:
            crossing.cut()
        if self._end is not None:
            self.post(self._end.set)
        await asyncio.to_thread(self._thread.join, patience)
        if self._thread.is_alive():
            logger.error("The agent's code does not return; it is left behind")
        self._loop = None

    async def _wait_quiet(self, patience: float) -> None:
        if self._crossings:
            self._quiet = asyncio.Event()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(patience):
                    await self._quiet.wait()
