"""Streams of ours as streams of 0.3.

Spec: 0.3 register, section 7.6.
"""

from __future__ import annotations

from collections.abc import Callable

from dragoman.compat.v03 import types as v03
from dragoman.compat.v03.streaming import Downstream
from dragoman.errors import UnavailableError
from dragoman.model import StreamResponse, Task, TaskState
from dragoman.ports.operations import Event, EventStream

Write = Callable[[v03.StreamResponse], bytes]


class TaskEvents(EventStream):
    """The events of a stream in a form of 0.3, until 0.3 says that the stream is over.

    ``write`` makes the JSON of an event; ``key`` names its form: readers of the same one share the JSON.
    """

    def __init__(self, stream: EventStream, key: str, write: Write) -> None:
        self._stream = stream
        self._key = key
        self._write = write
        self._machine = Downstream()
        self._over = False
        self._state: TaskState | int | None = None

    async def next_batch(self) -> list[Event]:
        """Wait for events that have something to say to a reader of 0.3."""
        while not self._over:
            if found := self._translated(await self._read()):
                return found
        return []

    async def _read(self) -> list[Event]:
        try:
            return await self._stream.next_batch()
        except UnavailableError:
            # Nobody brought the credential in time, or the server leaves: the reader may come back. Spec: 7.6.
            if self._state is not TaskState.AUTH_REQUIRED:
                raise
            return []

    def _translated(self, batch: list[Event]) -> list[Event]:
        if not batch:
            self._over = True
            return [Event(json=self._write(made)) for made in self._machine.finish()]
        found: list[Event] = []
        for event in batch:
            self._note(event.response)
            made = self._machine.feed(event.response)
            found += [self._shared(event, made[0])] if len(made) == 1 else [Event(json=self._write(e)) for e in made]
            if self._machine.ended:
                self._over = True
                break
        return found

    def _shared(self, event: Event, made: v03.StreamResponse) -> Event:
        """An update looks the same to all readers of a form; a task, to those who get it as one."""
        if event.response.task is not None:
            return Event(json=self._write(made))
        json = event.forms.get(self._key)
        if json is None:
            json = event.forms[self._key] = self._write(made)
        return Event(json=json)

    def _note(self, response: StreamResponse) -> None:
        if response.status_update is not None:
            self._state = response.status_update.status.state
        elif response.task is not None:
            self._state = response.task.status.state

    async def aclose(self) -> None:
        """Let go of the stream."""
        self._over = True
        await self._stream.aclose()


class _Settled(EventStream):
    def __init__(self, task: Task) -> None:
        self._events = [Event(StreamResponse(task=task))]

    async def next_batch(self) -> list[Event]:
        events, self._events = self._events, []
        return events

    async def aclose(self) -> None:
        self._events = []


def settled(task: Task) -> EventStream:
    """The stream about a task that is over: the task."""
    return _Settled(task)
