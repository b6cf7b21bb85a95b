"""An agent hosted in the AgentCore profile, the stand-in front before it, and our client before that."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from dragoman import Agent, Context, agentcore
from dragoman.agentcore import AgentCoreApp, AwsCredentials, RuntimeConnection, Timing, connect
from dragoman.model import Message, StreamResponse, Task, TaskArtifactUpdateEvent, TaskStatusUpdateEvent
from dragoman.testing.agentcore_front import REHEARSAL_KEY, Front, Shared, SigV4
from dragoman.testing.agentcore_front.routes import runtime_path
from dragoman.testing.agentcore_front.serving import AsgiApp, Serving
from dragoman.testing.agentcore_front.settings import ARN
from dragoman.testing.process import free_port
from dragoman.testing.serving import serving

KEYS = AwsCredentials(REHEARSAL_KEY.key_id, REHEARSAL_KEY.secret)
SESSION = "harbour-7c0d9f1e-2b64-4f0e-8a55-90d1c3b7e2aa"
OTHER = "harbour-11111111-2b64-4f0e-8a55-90d1c3b7e2ab"


class Tides:
    """An agent whose turns a test holds in its hands.

    Words: ``wait`` and ``parts`` publish before each ``go_on``; anything else is answered at once.
    """

    def __init__(self) -> None:
        self.go_on = asyncio.Semaphore(0)
        self.turns = 0
        self.agent = Agent("tide-desk", description="Answers questions about harbour tides.", version="2.4.0")
        self.agent.task(self._answer)

    async def _answer(self, ctx: Context) -> str:
        self.turns += 1
        if ctx.text.startswith("parts"):
            async with ctx.artifact_stream(artifact_id="tides", name="tides") as tides:
                for number in range(int(ctx.text.removeprefix("parts"))):
                    await tides.write(f"{number} ")
                    await self.go_on.acquire()
        if ctx.text == "wait":
            await ctx.artifact("begun")
            await self.go_on.acquire()
        return f"18:42, {ctx.text}"


@asynccontextmanager
async def rehearsal(agent: Agent, *, front: dict[str, Any] | None = None, **profile: Any) -> AsyncIterator[Front]:
    """The agent in the profile behind a front that takes signed requests; ``front`` and ``profile``: their settings.

    It works in the loop of the test, so that the test can hold its turns.
    """
    options = {"auth": SigV4(), "watch": False, "port": free_port(), **(front or {})}
    profile.setdefault("own_thread", False)
    profile.setdefault("environment", {"AGENTCORE_RUNTIME_URL": public_url(options["port"])})
    async with hosted(agentcore.app(agent, **profile)) as url, Front(Shared(url), **options) as running:
        yield running


def public_url(port: int) -> str:
    """The address that the platform tells the agent."""
    return f"http://127.0.0.1:{port}{runtime_path(ARN)}/invocations/"


@asynccontextmanager
async def hosted(app: AgentCoreApp) -> AsyncIterator[str]:
    """The address of an application on a socket."""
    async with serving(app) as url:
        yield url


@asynccontextmanager
async def wrapped(agent: Agent, wrap: Callable[[AgentCoreApp], AsgiApp]) -> AsyncIterator[str]:
    """The address of an application in the profile with something around it."""
    app = agentcore.app(agent, own_thread=False, environment={})
    serving = Serving(wrap(app))
    async with app:
        await serving.start()
        try:
            yield serving.url
        finally:
            await serving.stop()


def calling(front: Front, **options: Any) -> RuntimeConnection:
    """Our client, on the way to a front; signed, unless it brings a token. It does not wait long for anything."""
    if "bearer" not in options:
        options.setdefault("credentials", KEYS)
    return connect(front.arn, endpoint=front.url, **options)


class FastTime:
    """Waits of a client that take no time, and are kept."""

    def __init__(self) -> None:
        self.waits: list[float] = []
        self.past = 0.0

    async def _sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.past += seconds
        await asyncio.sleep(0)

    def timing(self, **more: Any) -> Timing:
        loop = asyncio.get_running_loop()
        return Timing(monotonic=lambda: loop.time() + self.past, sleep=self._sleep, chance=lambda: 0.0, **more)


def said(task: Task) -> list[str]:
    """The texts of the artifacts of a task."""
    return ["".join(part.text or "" for part in artifact.parts) for artifact in task.artifacts]


def texts(event: Any) -> str:
    """What a new event of a stream says: the text of an artifact's chunk, or the state."""
    if isinstance(event, StreamResponse):
        raise AssertionError("an event is one of its kinds")
    if isinstance(event, TaskArtifactUpdateEvent):
        return "".join(part.text or "" for part in event.artifact.parts)
    if isinstance(event, TaskStatusUpdateEvent | Task):
        return str(getattr(event.status.state, "name", event.status.state))
    assert isinstance(event, Message)
    return "message"
