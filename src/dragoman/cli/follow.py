"""Following what comes of a message, or a task, until it settles: by its stream, else by polling.

A message is sent once; only where the agent turns out not to stream is it sent again, with the same id. Once the id of
the task is known nothing is ever sent again: a stream that breaks is joined again, and when that fails, polled.

Spec: A2ACLI_SEND_002, A2ACLI_SEND_003, A2ACLI_TASK_POLL_001 to A2ACLI_TASK_POLL_004, P-06; section 10 of the register.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from dragoman.cli.reaching import Agent
from dragoman.cli.session import Session
from dragoman.cli.text import state_name
from dragoman.client import Assembly, ClientStream, MessageOptions, Reconnect, Result, StreamEvent
from dragoman.client.reconnect import PASSING
from dragoman.errors import (
    InvalidAgentResponseError,
    MethodNotFoundError,
    StreamInterruptedError,
    UnsupportedOperationError,
)
from dragoman.model import Message, Task, TaskState
from dragoman.protocol.lifecycle import INTERRUPTED, TERMINAL

OnEvent = Callable[[StreamEvent, Result], None]
"""Is told each event, and what there is after it."""

_PATIENCE = Reconnect(attempts=4, first=0.5, longest=30.0)
_FIRST_LOOK = 0.3
_NO_STREAM = (UnsupportedOperationError, MethodNotFoundError, InvalidAgentResponseError)


class Follower:
    """Follows one task. ``until`` is ``settled`` (default) or ``terminal``, which waits through interruptions too.

    ``history`` is how many messages of the history the result is to have (None: as it comes).
    """

    def __init__(
        self,
        session: Session,
        agent: Agent,
        on_event: OnEvent,
        *,
        until: str = "settled",
        history: int | None = None,
    ) -> None:
        self._session = session
        self._agent = agent
        self._client = agent.client
        self._on_event = on_event
        self._until = TERMINAL if until == "terminal" else TERMINAL | INTERRUPTED
        self._history = history
        self._assembly = Assembly()
        self._broke = False

    @property
    def settled(self) -> bool:
        """Whether there is nothing more to wait for."""
        result = self._assembly.result()
        return result.message is not None if result.task is None else result.state in self._until

    async def send(self, message: Message, options: MessageOptions) -> Result:
        """Send a message and follow what comes of it."""
        mode = self._session["wait_mode"]
        known = bool(message.task_id or options.get("task_id"))
        if mode == "stream" and self._agent.streams:
            if await self._read(self._client.stream(message, **options), known=known):
                return await self._finish()
            self._session.notes.debug("* the agent does not stream after all")
        # The immediate answer about a task that was there before may show its state before the message.
        wait = mode == "block" or known
        self.take(await self._client.send(message, wait=wait, **options))
        return await self._finish(pause=_FIRST_LOOK)

    async def send_only(self, message: Message, options: MessageOptions) -> Result:
        """Send a message and take the first answer."""
        self.take(await self._client.send(message, wait=False, **options))
        return self._assembly.result()

    async def look(self, task_id: str) -> Result:
        """Take a task as it is."""
        self.take(await self._client.get_task(task_id, history_length=self._history))
        return self._assembly.result()

    async def wait(self, task_id: str) -> Result:
        """Follow a task that exists."""
        await self.look(task_id)
        if not self.settled and self._agent.streams and self._session["wait_mode"] == "stream":
            await self._read(self._client.subscribe(task_id), known=False)
        return await self._finish()

    async def subscribe(self, task_id: str) -> Result:
        """Follow a task by its stream. Raises UnsupportedOperationError when it is over or there is no streaming."""
        await self._read(self._client.subscribe(task_id), known=False, must=True)
        return await self._finish()

    async def _read(self, stream: ClientStream, *, known: bool, must: bool = False) -> bool:
        """Read a stream to where this follower ends. False when the agent does not stream after all.

        With ``known`` the first event may be a snapshot of the time before our message, and ends nothing but an end.
        """
        seen = 0
        try:
            async with stream:
                async for event in stream:
                    seen += 1
                    if must and seen == 1:
                        self._refuse_instead()
                    self.take(event)
                    old = known and seen == 1 and isinstance(event, Task) and event.status.state not in TERMINAL
                    if self.settled and not old:
                        return True
        except _NO_STREAM:
            if seen or must:
                raise
            return False
        except StreamInterruptedError as error:
            if not stream.task_id:
                raise
            self._broke = True
            self._session.notes.note(f"{error}; asking for the task instead")
        return True

    def _refuse_instead(self) -> None:
        """The client shows a task that is over in place of the agent's refusal; here the refusal is the answer."""
        refusal = self._session.watch.refusal if self._session.watch is not None else None
        if refusal is not None:
            raise refusal

    def take(self, event: StreamEvent) -> None:
        """Take an event into account, and tell of it."""
        self._assembly.apply(event)
        result = self._assembly.result()
        if result.task is not None:
            self._session.learn_task(result.task)
        self._on_event(event, result)

    async def _finish(self, *, pause: float = 0.0) -> Result:
        if not self.settled and self._assembly.task_id:
            await asyncio.sleep(min(pause, self._session["poll_interval"]))
            await self._poll(self._assembly.task_id)
        elif (self._broke or self._history is not None) and self._assembly.task_id:
            task = await self._client.get_task(self._assembly.task_id, history_length=self._history)
            self._assembly.apply(task)
        return self._assembly.result()

    async def _poll(self, task_id: str) -> None:
        """Ask for the task until it is where it should be."""
        failures = 0
        while True:
            try:
                task = await self._client.get_task(task_id, history_length=self._history)
            except PASSING as error:
                patience = _PATIENCE.wait(failures, error)
                if patience is None:
                    raise
                failures, wait = failures + 1, patience
                self._session.notes.note(f"{error}; trying again")
            else:
                failures, wait = 0, self._session["poll_interval"]
                if task != self._assembly.result().task:
                    self.take(task)
                if self.settled:
                    return
            await asyncio.sleep(wait)


def outcome_warning(task: Task) -> str:
    """What to say of a task that did not come to success, or waits; empty for one that is well."""
    state = task.status.state
    if state in (TaskState.COMPLETED, TaskState.SUBMITTED, TaskState.WORKING):
        return ""
    return f"task {task.id} is {state_name(state)}"
