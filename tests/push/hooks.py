"""A webhook server that fails on purpose."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from dragoman import App
from dragoman.ports.push import DeadLetter
from dragoman.push import PushService

PATIENCE = 20.0

Step = int | float | str
"""What to do with a call: a status to answer with, seconds to wait before 204, ``"drop"`` or ``"hang"``, or
``"redirect"``."""


@dataclass
class Call:
    """A request that came."""

    path: str
    headers: dict[str, str]
    body: bytes
    at: float
    answered: Step = 0

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def id(self) -> str:
        return self.headers["x-a2a-notification-id"]

    @property
    def sequence(self) -> int:
        return int(self.headers["x-a2a-notification-sequence"])

    @property
    def kind(self) -> str:
        """The member of the StreamResponse, or the ``kind`` of 0.3."""
        value = self.json
        return str(value["kind"]) if "kind" in value else str(next(iter(value)))

    @property
    def state(self) -> str:
        """The state that it says, in the words of 1.0; empty when it says none."""
        holder = self.json.get("statusUpdate") or self.task
        state = str(holder.get("status", {}).get("state", ""))
        return state if not state or state.isupper() else f"TASK_STATE_{state.upper().replace('-', '_')}"

    @property
    def task(self) -> Any:
        """The whole task, in whatever form."""
        return self.json.get("task", self.json)


@dataclass
class Hooks:
    """The server. ``script[path]`` are the steps for the next calls of a path, after which ``always[path]`` (204)."""

    url: str = ""
    calls: list[Call] = field(default_factory=list)
    script: defaultdict[str, list[Step]] = field(default_factory=lambda: defaultdict(list))
    always: dict[str, Step] = field(default_factory=dict)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    open_now: int = 0
    most_open: int = 0

    def at(self, path: str) -> list[Call]:
        """The calls of a path so far."""
        return [call for call in self.calls if call.path == path]

    def taken(self, path: str) -> list[Call]:
        """Those that were answered with success."""
        return [call for call in self.at(path) if call.answered == 204]

    async def until(self, look: Callable[[], Any]) -> Any:
        """What ``look`` finds once it is true; looks whenever a call has come or was answered."""
        async with asyncio.timeout(PATIENCE):
            while not (found := look()):
                self.changed.clear()
                await self.changed.wait()
            return found

    async def ended(self, path: str) -> list[Call]:
        """All taken calls of a path, once one says that the task is over."""
        await self.until(lambda: any("COMPLETED" in call.state for call in self.taken(path)))
        return self.taken(path)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.open_now += 1
        self.most_open = max(self.most_open, self.open_now)
        try:
            with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
                while await self._answer(reader, writer):
                    pass
        finally:
            self.open_now -= 1
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        line, *rest = head.rstrip("\r\n").split("\r\n")
        pairs = (text.partition(":") for text in rest)
        headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        path = line.split(" ")[1]
        call = Call(path, headers, body, time.monotonic())
        self.calls.append(call)
        self.changed.set()
        step = self.script[path].pop(0) if self.script[path] else self.always.get(path, 204)
        if step == "drop":
            call.answered = step
            return False
        if step == "hang":
            await reader.read()
            return False
        if isinstance(step, float):
            await asyncio.sleep(step)
            step = 204
        more = ""
        if step == "redirect":
            step, more = 307, f"Location: {self.url}/elsewhere\r\n"
        writer.write(f"HTTP/1.1 {step} X\r\n{more}Content-Length: 0\r\n\r\n".encode())
        await writer.drain()
        call.answered = step
        self.changed.set()
        return headers.get("connection", "") != "close"


@asynccontextmanager
async def hooks_serving(port: int = 0) -> AsyncIterator[Hooks]:
    """A webhook server on this machine until the block ends."""
    hooks = Hooks()
    server = await asyncio.start_server(hooks.serve, "127.0.0.1", port)
    hooks.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield hooks
    finally:
        server.close()


async def eventually(look: Callable[[], Awaitable[Any]]) -> Any:
    """What the awaited answer of ``look`` is once it is true."""
    async with asyncio.timeout(PATIENCE):
        while True:
            if found := await look():
                return found
            await asyncio.sleep(0.02)


async def letters_of(app: App, *, last: int = 0) -> list[DeadLetter]:
    """The dead letters of an app, once there are any that reach to this record."""
    push = app.push
    assert push is not None
    return list(await eventually(lambda: _reaching(push, last)))


async def _reaching(push: PushService, last: int) -> list[DeadLetter]:
    found = await push.dead_letters()
    return found if found and found[-1].last >= last else []
