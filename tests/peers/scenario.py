"""What a scenario is, and what it is written with."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Sequence
from typing import Any
from uuid import uuid4

import msgspec

from tests.peers.calling import BOUND, Caller, Json, Refused, Stream

OVER = {"TASK_STATE_COMPLETED", "TASK_STATE_FAILED", "TASK_STATE_CANCELED", "TASK_STATE_REJECTED"}
Run = Callable[[Caller], Awaitable[Json]]


class Scenario(msgspec.Struct, frozen=True):
    """Work with an agent, and what must be seen.

    ``ours`` is what our client shows instead where it does more than one call; ``rows`` are rows of the register.
    """

    name: str
    run: Run
    expected: Json
    ours: Json
    rows: Sequence[str]


SCENARIOS: dict[str, Scenario] = {}


def scenario(name: str, /, *rows: str, ours: Json | None = None, **expected: Any) -> Callable[[Run], Run]:
    """Register a scenario; the keyword arguments are what must be seen."""

    def register(run: Run) -> Run:
        SCENARIOS[name] = Scenario(name, run, expected, ours or {}, rows)
        return run

    return register


# Asking.


def new_name() -> str:
    """A name that nobody else uses: agents outlive a test."""
    return uuid4().hex


def message(text: str, *parts: Json, task: Json | None = None, context: str = "", **more: Any) -> Json:
    """A Message; with ``task`` it goes on with it."""
    said: Json = {"messageId": new_name(), "role": "ROLE_USER", "parts": [{"text": text}, *parts], **more}
    if task is not None:
        said |= {"taskId": task["id"], "contextId": task["contextId"]}
    if context:
        said["contextId"] = context
    return said


def request(said: Json | str, **configuration: Any) -> Json:
    """A SendMessageRequest."""
    asked: Json = {"message": message(said) if isinstance(said, str) else said}
    if configuration:
        asked["configuration"] = configuration
    return asked


async def task_of(caller: Caller, said: Json | str, **configuration: Any) -> Json:
    """Send, and the task that is the answer."""
    answer: Json = (await caller.send(request(said, **configuration)))["task"]
    return answer


async def held_task(caller: Caller, name: str) -> Json:
    """A task that works until it is released."""
    return await task_of(caller, f"hold {name}", returnImmediately=True)


async def release(caller: Caller, name: str) -> None:
    """Let it go on."""
    await caller.send(request(f"release {name}"))


async def polled(caller: Caller, task_id: str) -> Json:
    """The task when it is over, asked for again and again."""
    async with asyncio.timeout(BOUND):
        while True:
            task = await caller.get_task({"id": task_id})
            if state_of(task) in OVER:
                return task
            await asyncio.sleep(0.02)


async def rest_of(stream: Stream) -> list[Json]:
    """All further events."""
    found = []
    while (event := await stream.next()) is not None:
        found.append(event)
    return found


async def until(stream: Stream, wanted: Callable[[Json], bool]) -> list[Json]:
    """The events up to the first one that is wanted."""
    found = []
    while (event := await stream.next()) is not None:
        found.append(event)
        if wanted(event):
            return found
    raise AssertionError(f"the stream ended with {found}")


async def refusal(call: Awaitable[Any]) -> str:
    """The error class that a call raises, or ``none``."""
    try:
        await call
    except Refused as refused:
        return refused.name
    return "none"


async def stream_refusal(opening: Awaitable[Stream]) -> str:
    """The error class that a stream raises before its first event, or ``none``."""
    stream = await opening
    try:
        return await refusal(stream.next())
    finally:
        await stream.close()


# Looking.


def state_of(task: Json) -> str:
    """The state, as on the wire."""
    return str(task["status"]["state"])


def words(task: Json) -> str:
    """The state, for a table of what was seen."""
    return state_of(task).removeprefix("TASK_STATE_")


def text_of(parts: Sequence[Json]) -> str:
    """The texts, joined."""
    return "".join(part.get("text", "") for part in parts)


def said_in(task: Json) -> str:
    """The text of the status message."""
    return text_of(task["status"].get("message", {}).get("parts", []))


def made_in(task: Json) -> str:
    """The text of the artifacts."""
    return text_of([part for artifact in task.get("artifacts", []) for part in artifact["parts"]])


def kinds(events: Sequence[Json]) -> list[str]:
    """Which member each event has, runs of the same counted as one."""
    return [kind for kind, _ in itertools.groupby(next(iter(event)) for event in events)]


def states(events: Sequence[Json]) -> list[str]:
    """The states that the events tell, runs of the same counted as one."""
    told = [event.get("task") or event.get("statusUpdate") for event in events]
    return [state for state, _ in itertools.groupby(words(status) for status in told if status)]


def pieces(events: Sequence[Json]) -> list[Json]:
    """The artifact updates."""
    return [event["artifactUpdate"] for event in events if "artifactUpdate" in event]


def text_in(events: Sequence[Json]) -> str:
    """The text of the artifact updates."""
    return "".join(text_of(piece["artifact"]["parts"]) for piece in pieces(events))
