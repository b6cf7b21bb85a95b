"""One ASGI connection, from the loop of the server to the loop of the application and back.

Theory. *Home* is the loop where the server calls us, *there* the one where the application runs, in another thread.
What the client sends is fetched when the application asks for it, one message at a time, so nothing piles up; the
first message, which mostly is the whole request, goes along at once. What the application sends is put into a queue
that home empties at once; when more than ``HIGH`` bytes wait there, ``send`` waits over there, as it would on a full
socket. Each side touches its own half only, and the queues between them are deques, whose ends are atomic; the other
side is woken by ``call_soon_threadsafe``, once for any number of messages.

A cancellation at home cancels the application and is passed on when that has ended. A failed ``send`` at home becomes
the failure of the next one over there. What the application raises is raised at home.

Spec: AC-S-50, AC-S-64.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import copy_context
from typing import Any

from dragoman.http.asgi import Message, Receive, Scope, Send

HIGH = 256 * 1024
"""Bytes under way to the client beyond which the application waits; small messages count as ``LEAST``."""

LEAST = 512

_App = Callable[[Scope, Receive, Send], Coroutine[Any, Any, None]]


def _weight(message: Message) -> int:
    return max(LEAST, len(message.get("body") or message.get("bytes") or message.get("text") or b""))


class Crossing:
    """Carries one connection; run it once, at home."""

    def __init__(self, app: _App, scope: Scope, receive: Receive, send: Send, there: asyncio.AbstractEventLoop) -> None:
        self._app = app
        self._scope = scope
        self._receive = receive
        self._send = send
        self._there = there
        self._home = asyncio.get_running_loop()
        # Towards the application.
        self._arrived: deque[Message | BaseException] = deque()
        self._arrival: asyncio.Future[None] | None = None
        self._asked = False
        self._fetching: asyncio.Task[None] | None = None
        # Towards the client.
        self._leaving: deque[Message] = deque()
        self._queued = 0
        self._sent = 0
        self._is_full = False
        self._room: asyncio.Future[None] | None = None
        self._told = False
        self._news = asyncio.Event()
        self._broken: BaseException | None = None
        # The application.
        self._task: asyncio.Task[None] | None = None
        self._is_over = False
        self._failure: BaseException | None = None

    # At home.

    async def run(self) -> None:
        """Carry the connection to its end; raises what the application raises."""
        self._arrived.append(await self._receive())
        context = copy_context()
        self._there.call_soon_threadsafe(lambda: context.run(self._begin))
        try:
            await self._carry()
        except asyncio.CancelledError:
            self._cancel()
            await self._carry()
            raise
        finally:
            if self._fetching is not None:
                self._fetching.cancel()
        if self._failure is not None:
            raise self._failure

    def cut(self) -> None:
        """The loop over there ends and takes the application with it: carry no longer."""
        self._is_over = True
        self._failure = self._failure or ConnectionAbortedError("the agent has ended")
        self._news.set()

    def _cancel(self) -> None:
        with contextlib.suppress(RuntimeError):
            self._there.call_soon_threadsafe(self._cancel_there)

    async def _carry(self) -> None:
        while True:
            self._told = False
            was_over = self._is_over  # before the look at the queue: nothing is added after the end
            while self._leaving:
                await self._pass_on(self._leaving.popleft())
            if was_over:
                return
            await self._news.wait()
            self._news.clear()

    async def _pass_on(self, message: Message) -> None:
        try:
            if self._broken is None:
                await self._send(message)
        except Exception as error:
            self._broken = error
        self._sent += _weight(message)
        if self._is_full:
            self._post(self._make_room)

    def _fetch(self) -> None:
        self._fetching = asyncio.ensure_future(self._fetch_one())

    async def _fetch_one(self) -> None:
        try:
            found: Message | BaseException = await self._receive()
        except Exception as error:
            found = error
        self._post(self._arrive, found)

    def _post(self, function: Callable[..., None], *args: Any) -> None:
        with contextlib.suppress(RuntimeError):  # the loop over there has ended
            self._there.call_soon_threadsafe(function, *args)

    # Over there.

    def _begin(self) -> None:
        self._task = asyncio.ensure_future(self._app(self._scope, self._receive_there, self._send_there))
        self._task.add_done_callback(self._finish)

    def _cancel_there(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def _finish(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled():
            self._failure = task.exception()
        elif self._failure is None:
            self._failure = ConnectionAbortedError("the call was interrupted")
        self._is_over = True
        self._tell()

    def _tell(self) -> None:
        if not self._told:
            self._told = True
            self._home.call_soon_threadsafe(self._news.set)

    async def _receive_there(self) -> Message:
        while not self._arrived:
            if not self._asked:
                self._asked = True
                self._home.call_soon_threadsafe(self._fetch)
            self._arrival = asyncio.get_running_loop().create_future()
            try:
                await self._arrival
            finally:
                self._arrival = None
        found = self._arrived.popleft()
        if isinstance(found, BaseException):
            raise found
        return found

    def _arrive(self, found: Message | BaseException) -> None:
        self._asked = False
        self._arrived.append(found)
        if self._arrival is not None and not self._arrival.done():
            self._arrival.set_result(None)

    async def _send_there(self, message: Message) -> None:
        if self._broken is not None:
            raise self._broken
        self._queued += _weight(message)
        self._leaving.append(message)
        self._tell()
        while self._queued - self._sent > HIGH and self._broken is None:
            await self._wait_for_room()

    async def _wait_for_room(self) -> None:
        self._room = asyncio.get_running_loop().create_future()
        self._is_full = True
        try:
            if self._queued - self._sent > HIGH and self._broken is None:  # else it was made in between
                await self._room
        finally:
            self._is_full = False
            self._room = None

    def _make_room(self) -> None:
        if self._room is not None and not self._room.done():
            self._room.set_result(None)
