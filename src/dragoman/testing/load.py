"""Load: callers of every kind, all at once and without end, who tell a witness what they are told.

A caller meets crashes as any caller does: its connection breaks, the address refuses it for a while, the server is busy
or going down. It bears with that and comes back; what it was told before is the witness's business. Any other error
is a fault of the server and is kept.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import random
from collections import Counter
from collections.abc import Awaitable, Sequence
from typing import Protocol

import msgspec

from dragoman.client import Client, Reconnect, connect
from dragoman.client.reconnect import PASSING
from dragoman.errors import StreamInterruptedError, TaskNotCancelableError, UnsupportedOperationError
from dragoman.model import Task, TaskState
from dragoman.protocol.lifecycle import SETTLED
from dragoman.testing.witness import Witness

PATIENT = Reconnect(attempts=10_000, first=0.01, longest=0.1)
"""How the callers come back: soon, and for as long as a restart may take."""

_POLL = 0.02


class Caller(Protocol):
    """One interaction: with an agent, under the eyes of a witness, beginning with a text."""

    __name__: str

    def __call__(self, client: Client, witness: Witness, text: str) -> Awaitable[None]:
        """Have it."""
        ...


async def blocking(client: Client, witness: Witness, text: str) -> None:
    """Send, and wait for the answer."""
    _told(witness, await client.send(text))


async def immediate(client: Client, witness: Witness, text: str) -> None:
    """Send, take the immediate answer, and ask for the task until it is settled."""
    task = _told(witness, await client.send(text, wait=False))
    if task is not None:
        await settle(client, witness, task.id)


async def streaming(client: Client, witness: Witness, text: str) -> None:
    """Send, and read the stream to its end."""
    async for _ in witness.follow(client.stream(text)):
        pass


async def subscribing(client: Client, witness: Witness, text: str) -> None:
    """Send, take the immediate answer, and read two subscriptions to their end."""
    task = _told(witness, await client.send(text, wait=False))
    if task is not None:
        await asyncio.gather(*(_subscribe(client, witness, task.id) for _ in range(2)))


async def _subscribe(client: Client, witness: Witness, task_id: str) -> None:
    while True:  # a first connection that fails is the caller's business
        try:
            async for _ in witness.follow(client.subscribe(task_id)):
                pass
            return
        except PASSING:
            await asyncio.sleep(_POLL)


async def canceling(client: Client, witness: Witness, text: str) -> None:
    """Send, and cancel at once."""
    task = _told(witness, await client.send(text, wait=False))
    if task is None:
        return
    with contextlib.suppress(TaskNotCancelableError, *PASSING):
        witness.told(await client.cancel(task))
    await settle(client, witness, task.id)


async def conversing(client: Client, witness: Witness, text: str) -> None:
    """Send, and answer every question, each answer with a text of its own, until the task is over."""
    task = _told(witness, await client.send(text))
    for number in itertools.count(1):
        if task is None or task.status.state is not TaskState.INPUT_REQUIRED:
            return
        task = await _answer(client, witness, task, f"answer {number}")


async def _answer(client: Client, witness: Witness, task: Task, text: str) -> Task | None:
    """Give an answer once. When its fate is unknown, find out from the history whether it was taken."""
    while True:
        try:
            return _told(witness, await client.send(text, task=task))
        except UnsupportedOperationError:
            return None  # the task ended meanwhile
        except PASSING:
            found = await settle(client, witness, task.id)
            taken = any(part.text == text for message in found.history for part in message.parts)
            if taken or found.status.state is not TaskState.INPUT_REQUIRED:
                return found


async def settle(client: Client, witness: Witness, task_id: str) -> Task:
    """Ask for a task until it is over or waits for its caller, through crashes and restarts."""
    while True:
        try:
            task = witness.told(await client.get_task(task_id))
            if task.status.state in SETTLED:
                return task
        except PASSING:
            pass
        await asyncio.sleep(_POLL)


def _told(witness: Witness, answer: object) -> Task | None:
    return witness.told(answer) if isinstance(answer, Task) else None


class Crowd(msgspec.Struct, frozen=True):
    """So many callers of one kind, each always busy with one interaction that begins with one of the texts."""

    caller: Caller
    count: int
    texts: Sequence[str]


class LoadReport(msgspec.Struct):
    """What a load did: interactions by kind that ended, that a crash broke off, and what should not have been."""

    done: Counter[str] = msgspec.field(default_factory=Counter)
    broken: Counter[str] = msgspec.field(default_factory=Counter)
    faults: list[str] = msgspec.field(default_factory=list)


class Load:
    """Callers at work until the end of the block: ``async with Load(url, [Crowd(blocking, 4, ["hi"])], witness):``.

    ``seed`` is that of the generator that chooses texts; ``bindings`` as for :func:`dragoman.connect`, one after the
    other among the callers. At the end of the block what is under way is let go on for ``patience`` seconds, then
    cancelled, which counts as a fault. ``report`` may be read at any time.
    """

    def __init__(
        self,
        url: str,
        crowds: Sequence[Crowd],
        witness: Witness,
        *,
        seed: int = 0,
        bindings: Sequence[str] = ("JSONRPC", "HTTP+JSON"),
        patience: float = 30.0,
    ) -> None:
        self.report = LoadReport()
        self._url = url
        self._crowds = crowds
        self._witness = witness
        self._dice = random.Random(seed)
        self._bindings = itertools.cycle(bindings)
        self._patience = patience
        self._stopping = False
        self._working: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Load:
        crowds = [crowd for crowd in self._crowds for _ in range(crowd.count)]
        self._working = [asyncio.create_task(self._work(crowd, next(self._bindings))) for crowd in crowds]
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.finish()

    async def finish(self) -> LoadReport:
        """Begin nothing new, and see what is under way to its end. Safe to call twice."""
        self._stopping = True
        working, self._working = self._working, []
        if not working:
            return self.report
        _, hanging = await asyncio.wait(working, timeout=self._patience)
        for caller in hanging:
            self.report.faults.append(f"{caller.get_name()} did not come to an end")
            caller.cancel()
        outcomes = await asyncio.gather(*working, return_exceptions=True)
        self.report.faults += [repr(outcome) for outcome in outcomes if isinstance(outcome, Exception)]
        return self.report

    async def _work(self, crowd: Crowd, binding: str) -> None:
        name = crowd.caller.__name__
        current = asyncio.current_task()
        assert current is not None
        current.set_name(f"{name} over {binding}")
        async with connect(self._url, bindings=(binding,), reconnect=PATIENT) as client:
            while not self._stopping:
                await self._interact(crowd.caller(client, self._witness, self._dice.choice(crowd.texts)), name)

    async def _interact(self, interaction: Awaitable[None], name: str) -> None:
        try:
            await interaction
            self.report.done[name] += 1
        except (*PASSING, StreamInterruptedError) as error:
            self.report.broken[type(error).__name__] += 1
            await asyncio.sleep(_POLL)
        except Exception as error:
            self.report.faults.append(f"{name}: {error!r}")
            await asyncio.sleep(_POLL)
