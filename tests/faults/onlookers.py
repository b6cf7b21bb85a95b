"""Everybody who may see how a task ends, and the check that all of them saw the same."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Sequence

from dragoman import App
from dragoman.errors import UnsupportedOperationError
from dragoman.model import (
    GET_TASK,
    SEND_MESSAGE,
    SEND_STREAMING_MESSAGE,
    SUBSCRIBE_TO_TASK,
    GetTaskRequest,
    Message,
    Part,
    Role,
    SendMessageConfiguration,
    SendMessageRequest,
    SendMessageResponse,
    SubscribeToTaskRequest,
    Task,
    TaskState,
)
from dragoman.ports.operations import CallContext, Event, EventStream
from dragoman.protocol.lifecycle import TERMINAL
from dragoman.testing.witness import check_log, read_log

PATIENCE = 10.0


async def turns(count: int) -> None:
    """Let everybody else have so many turns of the loop."""
    for _ in range(count):
        await asyncio.sleep(0)


class Ids:
    """Where an agent says which task belongs to which text, at its very first step."""

    def __init__(self) -> None:
        self._known: defaultdict[str, asyncio.Future[str]] = defaultdict(asyncio.Future)

    def say(self, text: str, task_id: str) -> None:
        """Called by the agent."""
        if not self._known[text].done():
            self._known[text].set_result(task_id)

    async def of(self, text: str) -> str:
        """Wait for it."""
        async with asyncio.timeout(PATIENCE):
            return await self._known[text]


def request(text: str, *, task_id: str = "", immediately: bool = False) -> SendMessageRequest:
    """A message with this text."""
    message = Message(message_id=f"message {text}", role=Role.USER, parts=[Part(text=text)], task_id=task_id)
    configuration = SendMessageConfiguration(return_immediately=True) if immediately else None
    return SendMessageRequest(message=message, configuration=configuration)


class Onlookers:
    """Callers and streams of one task: some wait from its beginning on, others come when they like."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._seeing: list[asyncio.Task[TaskState | None]] = []
        self.refused = 0

    def send(self, text: str, *, task_id: str = "") -> None:
        """A caller who waits for the answer."""
        self._see(self._wait(text, task_id))

    def stream(self, text: str) -> None:
        """A caller who reads the stream of its message."""
        self._see(self._read_from(SEND_STREAMING_MESSAGE, request(text)))

    def subscribe(self, task_id: str, after: int = 0) -> None:
        """Somebody who subscribes after so many turns. To be refused, because the task is over, is fine."""
        self._see(self._subscribe(task_id, after))

    def _see(self, seeing) -> None:
        self._seeing.append(asyncio.create_task(seeing))

    async def _wait(self, text: str, task_id: str) -> TaskState | None:
        answer = await self._app.operations.call(SEND_MESSAGE, request(text, task_id=task_id), CallContext())
        assert isinstance(answer, SendMessageResponse)
        assert answer.task is not None
        state = answer.task.status.state
        assert isinstance(state, TaskState)
        return state

    async def _read_from(self, op, request) -> TaskState | None:
        return last_of(await read(await self._app.operations.stream(op, request, CallContext())))

    async def _subscribe(self, task_id: str, after: int) -> TaskState | None:
        await turns(after)
        try:
            return await self._read_from(SUBSCRIBE_TO_TASK, SubscribeToTaskRequest(id=task_id))
        except UnsupportedOperationError:
            self.refused += 1
            return None

    async def agree(self, task_id: str) -> TaskState:
        """Wait for all of them, and for the store; the one state in which all saw the task end."""
        async with asyncio.timeout(PATIENCE):
            seen = await asyncio.gather(*self._seeing)
        task = await self._app.operations.call(GET_TASK, GetTaskRequest(id=task_id), CallContext())
        assert isinstance(task, Task)
        store = self._app.runtime._store
        stored = await store.task(task_id, None)
        assert stored is not None
        log = await read_log(store, task_id)
        assert check_log(log, stored) == []
        states = {*seen, task.status.state, stored.task.status.state, last_of([Event(r.event) for r in log])} - {None}
        assert len(states) == 1, states
        (state,) = states
        assert state in TERMINAL
        return state


async def read(stream: EventStream) -> list[Event]:
    """All events of a stream."""
    events: list[Event] = []
    async with stream:
        while batch := await stream.next_batch():
            events += batch
    return events


def last_of(events: Sequence[Event]) -> TaskState:
    """The state that the last event shows, which has to be the only end among them."""
    ends = []
    for event in events:
        holder = event.response.status_update or event.response.task
        if holder is not None and holder.status.state in TERMINAL:
            ends.append(holder.status.state)
    assert len(ends) == 1, [event.json for event in events]
    last = events[-1].response.status_update or events[-1].response.task
    assert last is not None
    assert last.status.state is ends[0]
    return ends[0]
