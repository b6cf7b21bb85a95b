"""Following the task of another agent from within a handler: what that task asks for is asked of our own caller.

Theory. While the other task waits for an authorization, so does ours, with the same words. Nothing is granted by that,
and no credential passes through here: it goes to the other agent out of band, as its words say. A message that our
caller sends meanwhile is passed on to the other task. When that goes on, so does ours.

Spec: §7.6.2, INTASK-04 to INTASK-07, INTASK-10.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from dragoman.model import Message, Task, TaskState, TaskStatus
from dragoman.ports.agent import Turn
from dragoman.server.authorization import OtherAgent, status_of

Publish = Callable[[TaskState, Any], None]


class Following:
    """Follows one task of ``client``.

    ``publish`` sets the state of our own; ``asked`` is how many answers of our caller were taken.
    """

    def __init__(self, turn: Turn, client: OtherAgent, task: Task | str, publish: Publish, asked: int) -> None:
        self._turn = turn
        self._client = client
        self._task_id = task.id if isinstance(task, Task) else task
        self._publish = publish
        self._passing = False
        self._asks = asyncio.Event()
        self.asked = asked

    async def run(self) -> Any:
        """The client's result, when the other task is over or asks for input."""
        while self._turn.recovered and await self._turn.memo(self._key()) is not None:
            self.asked += 1  # an earlier run has passed that message on
        passing = asyncio.create_task(self._pass_messages_on())
        waiting = asyncio.ensure_future(self._wait())
        try:
            await asyncio.wait({waiting, passing}, return_when=asyncio.FIRST_COMPLETED)
            if not waiting.done():
                await passing  # it ends by a failure only
            return await waiting
        finally:
            for task in (passing, waiting):
                task.cancel()
            await asyncio.gather(passing, waiting, return_exceptions=True)
            if self._passing:
                self._go_on()

    def _wait(self) -> Awaitable[Any]:
        return self._client.wait(self._task_id, on_event=self._see)

    def _see(self, event: Any) -> None:
        status = status_of(event)
        if status is None:
            return
        if status.state is TaskState.AUTH_REQUIRED:
            self._ask(status)
        elif self._passing:
            self._go_on()

    def _ask(self, status: TaskStatus) -> None:
        self._passing = True
        self._asks.set()
        self._publish(TaskState.AUTH_REQUIRED, _words(status.message))

    def _go_on(self) -> None:
        self._passing = False
        self._asks.clear()
        if self._turn.task.status.state is TaskState.AUTH_REQUIRED:
            self._publish(TaskState.WORKING, None)

    async def _pass_messages_on(self) -> None:
        while True:
            await self._asks.wait()
            message = await self._turn.heard(self.asked + 1)
            if not self._passing:
                continue
            await self._turn.remember(self._key(), b"true")
            self.asked += 1
            await self._client.send(
                list(message.parts), task_id=self._task_id, message_id=message.message_id, wait=False
            )

    def _key(self) -> str:
        return f"dragoman.passed-on.{self.asked + 1}"


def _words(message: Message | None) -> Any:
    """What is asked for, by the other agent; something has to be said in any case (INTASK-02)."""
    return list(message.parts) if message is not None and message.parts else "Another agent needs an authorization"
