"""Serving an agent in this process, with a look at what the runtime still holds when it should hold nothing."""

from __future__ import annotations

import asyncio
import gc
import logging
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

import dragoman
from dragoman import Agent, App, Client, Limits, TaskState, TaskStatus, TaskStatusUpdateEvent
from dragoman.errors import StoreError
from dragoman.model import Task
from dragoman.ports.store import Append, Record
from dragoman.stores import open_store

S = TaskState
PATIENCE = 5.0
LIMITS: dict[str, Any] = {"shutdown_grace": 0.1, "lease": 0.3, "cancel_wait": 1.0}


def limits(**changes: Any) -> Limits:
    """Limits with short times."""
    return Limits(**{**LIMITS, **changes})


class FaultyStore:
    """A real store whose writes and reads can be held, or made to fail.

    ``fail_append(n)``: the n-th write from now on fails, once, or for good with ``forever``. ``hold()``: writes wait
    until ``release()``. ``written``: called with each batch once it is stored.
    """

    def __init__(self, url: str = "memory") -> None:
        self.inner = open_store(url)
        self.durable = self.inner.durable
        self.appends = 0
        self.batches: list[list[Append]] = []
        self.failing_reads = False
        self.failing_memos = False
        self._fail_at: int | None = None
        self._forever = False
        self._after_write = False
        self._open = asyncio.Event()
        self._open.set()
        self.held = asyncio.Event()

    def fail_append(self, number: int = 1, *, forever: bool = False, after_write: bool = False) -> None:
        self._fail_at = self.appends + number
        self._forever = forever
        self._after_write = after_write

    def heal(self) -> None:
        self._fail_at = None
        self.failing_reads = self.failing_memos = False

    def hold(self) -> None:
        self._open.clear()
        self.held.clear()

    def release(self) -> None:
        self._open.set()

    async def append(self, batch: Sequence[Append]) -> Sequence[StoreError | None]:
        self.appends += 1
        number = self.appends
        if not self._open.is_set():
            self.held.set()
            await self._open.wait()
        failing = self._fail_at is not None and (number >= self._fail_at if self._forever else number == self._fail_at)
        if failing and not self._after_write:
            raise StoreError("the disk is full")
        outcomes = await self.inner.append(batch)
        self.batches.append(list(batch))
        if failing:
            raise StoreError("the disk vanished")
        return outcomes

    async def _read(self, read: Awaitable[Any]) -> Any:
        if self.failing_reads:
            read.close()  # type: ignore[attr-defined]
            raise StoreError("the disk cannot be read")
        return await read

    async def task(self, *args: Any) -> Any:
        return await self._read(self.inner.task(*args))

    async def records(self, task_id: str, after: int, limit: int) -> list[Record]:
        found: list[Record] = await self._read(self.inner.records(task_id, after, limit))
        return found

    async def page(self, query: Any) -> Any:
        return await self._read(self.inner.page(query))

    async def remember(self, *args: Any) -> bytes:
        if self.failing_memos:
            raise StoreError("the memo cannot be kept")
        return await self.inner.remember(*args)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    async def open(self) -> None:
        await self.inner.open()

    async def close(self) -> None:
        await self.inner.close()

    async def memo(self, task_id: str, key: str) -> bytes | None:
        return await self.inner.memo(task_id, key)

    async def heartbeat(self, worker: str, until_ms: int) -> None:
        await self.inner.heartbeat(worker, until_ms)

    async def retire(self, worker: str) -> None:
        await self.inner.retire(worker)

    async def orphans(self, now_ms: int, limit: int, agent: str = "") -> list[str]:
        return await self.inner.orphans(now_ms, limit, agent)

    async def claim(self, task_id: str, worker: str, now_ms: int) -> Any:
        return await self.inner.claim(task_id, worker, now_ms)

    async def purge(self, before_ms: int, limit: int, agent: str = "") -> int:
        return await self.inner.purge(before_ms, limit, agent)

    async def secret(self, name: str) -> bytes:
        return await self.inner.secret(name)


class Step:
    """A point that a handler reaches and waits at."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self._go = asyncio.Event()
        self.cancelled = False

    async def __call__(self) -> None:
        self.reached.set()
        try:
            await self._go.wait()
        except asyncio.CancelledError:
            self.cancelled = True
            raise

    def go(self) -> None:
        self._go.set()


async def within(awaited: Awaitable[Any], seconds: float = PATIENCE) -> Any:
    """Await with a bound."""
    async with asyncio.timeout(seconds):
        return await awaited


async def until(condition: Callable[[], Any], seconds: float = PATIENCE) -> None:
    """Wait for something that no event tells of, e.g. that memory was let go."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.005)


async def reaches(client: Client, task: Task | str, *states: TaskState, seconds: float = PATIENCE) -> Task:
    """The task once it is stored in one of these states."""
    async with asyncio.timeout(seconds):
        while (found := await client.get_task(task)).status.state not in states:  # noqa: ASYNC110
            await asyncio.sleep(0.005)
    return found


def held(app: App) -> dict[str, Any]:
    """What the runtime holds now; everything is 0 or empty when nobody works, waits or watches."""
    runs = app.runtime._runs
    registry = app.runtime._registry
    return {
        "running": runs._running,
        "active": len(runs._active),
        "waiting": len(runs._waiting),
        "suspended": len(runs._suspended),
        "live": app.runtime.live_tasks,
        "loading": len(registry._loading),
    }


NOTHING = {"running": 0, "active": 0, "waiting": 0, "suspended": 0, "live": 0, "loading": 0}


def texts(task: Task) -> list[str | None]:
    """The texts of all artifacts of a task."""
    return [part.text for artifact in task.artifacts for part in artifact.parts]


def said(task: Task) -> str:
    """The text of the status message."""
    return "" if task.status.message is None else task.status.message.parts[0].text or ""


def status(state: TaskState, **facts: Any) -> TaskStatusUpdateEvent:
    """A status event as an agent of events yields it: without ids."""
    return TaskStatusUpdateEvent(task_id="", context_id="", status=TaskStatus(state=state, **facts))


class Server:
    """``client = await server(agent, store=…, **limits)``; ``server.app`` is the last app; ``restart`` a new one."""

    def __init__(self, stack: AsyncExitStack, url: str) -> None:
        self._stack = stack
        self.url = url
        self.apps: list[App] = []

    @property
    def app(self) -> App:
        return self.apps[-1]

    async def __call__(
        self, agent: Agent, *, store: Any = None, settings: dict[str, Any] | None = None, **more: Any
    ) -> Client:
        app = App(agent, store=self.url if store is None else store, limits=limits(**more), **(settings or {}))
        self.apps.append(app)
        await app.start()
        return await self._stack.enter_async_context(dragoman.connect(app))

    async def stop(self) -> None:
        """Stop the last app in order."""
        await within(self.app.stop())

    async def crash(self) -> None:
        """End the last app as a killed process would end: nothing is recorded, its lease runs out."""
        runtime = self.app.runtime
        runtime._committer._task.cancel()
        runtime._janitor._task.cancel()
        runtime._runs.stopping = True
        await asyncio.gather(runtime._committer._task, runtime._janitor._task, return_exceptions=True)
        runtime._committer._task = None
        runtime._janitor._task = None
        runtime._runs._waiting.clear()
        for run in list(runtime._runs._active):
            run.task.cancel()
        await asyncio.sleep(0)
        await runtime._store.heartbeat(runtime._registry.worker, 1)
        await runtime._store.close()
        runtime._registry._live.clear()
        self.app._started = False


async def serve(stack: AsyncExitStack, url: str, caplog: pytest.LogCaptureFixture) -> AsyncIterator[Server]:
    """The fixture's body: at the end every app is stopped, holds nothing, and asyncio had nothing to complain of."""
    caplog.set_level(logging.INFO)
    server = Server(stack, url)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", RuntimeWarning)
        try:
            yield server
        finally:
            for app in server.apps:
                await within(app.stop(), 20)
            await stack.aclose()
        gc.collect()
    warned = [str(warning.message) for warning in caught if warning.category is RuntimeWarning]
    assert warned == [], warned
    for app in server.apps:
        left = held(app)
        left.pop("live")
        assert set(left.values()) == {0}, left
    noise = [record.getMessage() for record in caplog.records if record.name == "asyncio" and record.levelno >= 30]
    assert noise == [], noise


def database(folder: Path) -> str:
    """The URL of a new SQLite file."""
    return f"sqlite:///{folder}/tasks.db"
