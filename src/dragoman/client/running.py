"""Follow a task to where it settles, by whatever the agent offers: its stream, a new subscription, or polling.

Spec: SEND-11, STRM-11, SUB-07, AMB-02, AMB-03, AMB-13, AMB-79, B069.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import Protocol

import msgspec

from dragoman.client.assemble import Assembly
from dragoman.client.progress import StreamEvent
from dragoman.client.reconnect import PASSING, Reconnect, backoff
from dragoman.client.result import Result
from dragoman.client.streams import ClientStream
from dragoman.errors import StreamInterruptedError, UnsupportedOperationError
from dragoman.model import Message, Task, TaskPushNotificationConfig, TaskState
from dragoman.protocol.lifecycle import TERMINAL

OnEvent = Callable[[StreamEvent], object]
"""Called with each event; may return an awaitable, which is then awaited before the next one."""


class Poll(msgspec.Struct, frozen=True, kw_only=True):
    """How often to ask for a task that cannot be streamed: the ``first`` wait in seconds (default 0.5), then growing by
    half each time, up to the ``longest`` (10). A task that is told by push is asked for when there is news, and
    ``unheard`` seconds (60) after the last look at the latest: notifications may be lost."""

    first: float = 0.5
    longest: float = 10.0
    unheard: float = 60.0


class Pushed(Protocol):
    """Who is told of a task by push, such as :class:`dragoman.webhook.Expected`."""

    @property
    def config(self) -> TaskPushNotificationConfig:
        """The webhook that the agent is to tell."""
        ...

    def bind(self, task: Task | str, /) -> None:
        """Say which task it is."""
        ...

    async def news(self, within: float | None = None, /) -> bool:
        """Wait for news of the task; False when there was none within so many seconds."""
        ...


class Follower:
    """Follows one task until its state is one of ``until`` (all of them settled ones) or terminal."""

    def __init__(
        self,
        *,
        until: frozenset[TaskState],
        get_task: Callable[[str], Awaitable[Task]],
        poll: Poll,
        reconnect: Reconnect,
        on_event: OnEvent | None,
        pushed: Pushed | None = None,
    ) -> None:
        self._until = until | TERMINAL
        self._get_task = get_task
        self._poll = poll
        self._reconnect = reconnect
        self._on_event = on_event
        self._pushed = pushed
        self._assembly = Assembly()

    @property
    def task_id(self) -> str:
        """Id of the task, empty as long as none is known."""
        return self._assembly.task_id

    @property
    def is_pushed(self) -> bool:
        """Whether the task is told by push, so that no stream is needed."""
        return self._pushed is not None

    async def stream(self, stream: ClientStream) -> bool:
        """Read a stream that ends where this follower does. False when the agent does not stream after all.

        Raises what the stream raises, except for a cut of a task whose id is known.
        """
        try:
            async with stream:
                async for event in stream:
                    await self._take(event)
        except UnsupportedOperationError:
            if stream.state is not None:
                raise
            return False
        except StreamInterruptedError:
            if not stream.task_id:
                raise
            await self.poll(stream.task_id)
        return True

    async def take_answer(self, answer: Task | Message) -> None:
        """Take the answer of SendMessage."""
        await self._take(answer)

    async def finish(self) -> Result:
        """Poll if the task is not where it should be, and return what there is."""
        if self.task_id and self._assembly.state not in self._until:
            await self.poll(self.task_id)
        return self._assembly.result()

    async def poll(self, task_id: str) -> None:
        """Ask for the task until it is where it should be, by the clock or when there is news by push.

        Every changed status is an event. Spec: PUSH-21.
        """
        if self._pushed is not None:
            self._pushed.bind(task_id)
        failures = count = 0
        while True:
            try:
                task = await self._get_task(task_id)
            except PASSING as error:
                patience = self._reconnect.wait(failures, error)
                if patience is None:
                    raise
                failures += 1
                await asyncio.sleep(patience)
            else:
                if await self._take_snapshot(task):
                    return
                failures = 0
                await self._rest(count)
                count += 1

    async def _rest(self, count: int) -> None:
        """Wait until there is a reason to ask again."""
        if self._pushed is None:
            await asyncio.sleep(backoff(count, self._poll.first, self._poll.longest, 1.5))
        else:
            await self._pushed.news(self._poll.unheard)

    async def _take_snapshot(self, task: Task) -> bool:
        known = self._assembly.result().task
        if known is None or task.status != known.status:
            await self._take(task)
        return task.status.state in self._until

    async def _take(self, event: StreamEvent) -> None:
        self._assembly.apply(event)
        if self._on_event is not None:
            outcome = self._on_event(event)
            if inspect.isawaitable(outcome):
                await outcome
