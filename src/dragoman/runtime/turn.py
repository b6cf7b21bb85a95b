"""LiveTurn: a turn over a live task."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from dragoman.errors import InvalidAgentResponseError
from dragoman.model import (
    Message,
    SendMessageRequest,
    StreamResponse,
    Task,
    TaskArtifactUpdateEvent,
    TaskStatusUpdateEvent,
    Timestamp,
)
from dragoman.ports.agent import Grant, Turn
from dragoman.ports.operations import CallContext
from dragoman.ports.store import TaskStore
from dragoman.runtime.live import LiveTask

if TYPE_CHECKING:
    from dragoman.runtime.runs import Run, Runs


Create = Callable[["LiveTurn"], Awaitable[LiveTask]]
"""Opens the task of a turn."""


class LiveTurn(Turn):
    """See :class:`~dragoman.ports.agent.Turn`."""

    run: Run | None = None
    runs: Runs

    def __init__(
        self,
        request: SendMessageRequest,
        call: CallContext,
        context_id: str,
        *,
        live: LiveTask | None,
        create: Create | None,
        store: TaskStore,
        now: Callable[[], Timestamp],
        new_id: Callable[[], str],
        most_unsaved: int,
        recovered: bool = False,
    ) -> None:
        self.request = request
        self.call = call
        self.context_id = context_id
        self.task_id = "" if live is None else live.task_id
        self.recovered = recovered
        self.answered = 0
        self.most_unsaved = most_unsaved
        self._live = live
        self._create = create
        self._store = store
        self._now = now
        self._new_id = new_id

    @property
    def live(self) -> LiveTask:
        """The task; InvalidAgentResponseError when the agent has not opened one."""
        if self._live is None:
            raise InvalidAgentResponseError("A direct reply has no task")
        return self._live

    def attach(self, live: LiveTask) -> None:
        """This is the task of the turn (called by the runtime)."""
        self._live = live
        self.task_id = live.task_id

    async def open(self) -> None:
        """Create the task, if there is none yet."""
        if self._live is not None:
            return
        if self._create is None:
            raise InvalidAgentResponseError("This agent answers with direct messages only and opens no task")
        await self._create(self)

    @property
    def task(self) -> Task:
        """A copy with everything published so far."""
        return self.live.staged_task()

    @property
    def answers(self) -> Sequence[Message]:
        """The user's messages after the first."""
        return self.live.user_messages[1:]

    def publish(self, event: TaskStatusUpdateEvent | TaskArtifactUpdateEvent) -> None:
        """Check the event and add it to the log."""
        if isinstance(event, TaskArtifactUpdateEvent):
            self.live.publish(StreamResponse(artifact_update=event))
        else:
            self.live.publish(StreamResponse(status_update=event))

    async def settle(self) -> None:
        """Wait for the store when too much is unsaved."""
        live = self.live
        if live.backlog > self.most_unsaved or live.is_heavy:
            await live.drain(self.most_unsaved // 2)

    async def answer(self, number: int, timeout: float | None = None) -> Message:
        """Wait for an answer, without holding a slot."""
        live = self.live
        if len(live.user_messages) <= number:
            live.grants.clear()  # what was handed in for something else is no answer, and is for nothing later
        await self._pause(lambda: len(live.user_messages) > number, timeout)
        return self._take_answer(number)

    async def authorization(self, number: int | None, *, fresh: bool, timeout: float | None = None) -> Message | Grant:
        """Wait for a grant or an answer, without holding a slot."""
        live = self.live
        before = len(live.grants) if fresh else 0
        live.authorizing = True
        try:
            await self._pause(
                lambda: len(live.grants) > before or (number is not None and len(live.user_messages) > number), timeout
            )
        finally:
            live.authorizing = False
        if len(live.grants) > before:
            return live.grants.pop(before)
        assert number is not None
        return self._take_answer(number)

    async def heard(self, number: int) -> Message:
        """Wait for an answer at work."""
        live = self.live
        await self._wait_until(lambda: len(live.user_messages) > number)
        return self._take_answer(number)

    def _take_answer(self, number: int) -> Message:
        self.answered = max(self.answered, number)
        return self.live.user_messages[number]

    async def _pause(self, came: Callable[[], bool], timeout: float | None) -> None:
        """Wait until something came, without holding a slot. Raises TimeoutError."""
        if came():
            return
        run = self.run
        if run is None:
            raise InvalidAgentResponseError("The handler has ended and can ask no more")
        self.runs.suspend(run)
        try:
            async with asyncio.timeout(timeout):
                await self._wait_until(came)
        except TimeoutError:
            if not came():  # else it came in the last moment, and was taken
                raise
        finally:
            self.runs.resume(run)

    async def _wait_until(self, came: Callable[[], bool]) -> None:
        live = self.live
        while not came():
            live.answer_waiter = asyncio.get_running_loop().create_future()
            try:
                await live.answer_waiter
            finally:
                live.answer_waiter = None

    async def memo(self, key: str) -> bytes | None:
        """Read a memo of the task."""
        return await self._store.memo(self.live.task_id, key)

    async def remember(self, key: str, value: bytes) -> bytes:
        """Write a memo, once the task itself is stored."""
        live = self.live
        await live.drain(0)
        return await self._store.remember(live.task_id, live.fence, key, value)

    def now(self) -> Timestamp:
        """The moment."""
        return self._now()

    def new_id(self) -> str:
        """A fresh id."""
        return self._new_id()
