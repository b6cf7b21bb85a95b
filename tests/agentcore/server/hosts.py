"""Agents to host, and how tests speak to them."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import json
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx2

from dragoman import Agent, agentcore
from dragoman.agentcore import AgentCoreApp
from dragoman.testing.serving import serving

PATIENCE = 10.0
SESSION = "x-amzn-bedrock-agentcore-runtime-session-id"
REQUEST = "x-amzn-bedrock-agentcore-runtime-request-id"
NO_ENVIRONMENT: dict[str, str] = {}


def echo() -> Agent:
    """An agent that repeats."""
    agent = Agent("tide-desk", description="Answers questions about harbour tides.", version="2.4.0")

    @agent.task
    async def answer(ctx):
        return f"You said: {ctx.text}"

    return agent


def hosted(agent: Agent | None = None, **settings: Any) -> AgentCoreApp:
    """An app in the profile, whatever the environment of the tests says."""
    settings.setdefault("environment", NO_ENVIRONMENT)
    return agentcore.app(agent or echo(), **settings)


@asynccontextmanager
async def calling(app: Any, base: str = "http://container:9000") -> AsyncIterator[httpx2.AsyncClient]:
    """A client of the bare application, without a server; an application of ours is started and stopped."""
    transport = httpx2.ASGITransport(app=app)
    async with httpx2.AsyncClient(transport=transport, base_url=base, timeout=PATIENCE) as client:
        try:
            if isinstance(app, AgentCoreApp):
                await app.start()
            yield client
        finally:
            if isinstance(app, AgentCoreApp):
                await app.stop()


@asynccontextmanager
async def served(app: AgentCoreApp) -> AsyncIterator[httpx2.AsyncClient]:
    """A client of the application behind a real server."""
    async with serving(app) as url, httpx2.AsyncClient(base_url=url, timeout=PATIENCE) as client:
        yield client


def send(text: str = "Hello", *, method: str = "SendMessage", id: Any = "q-1", **message: Any) -> dict[str, Any]:
    """The body of a call that sends a message."""
    immediately = message.pop("immediately", False)
    content = {"messageId": f"m-{time.monotonic_ns()}", "role": "ROLE_USER", "parts": [{"text": text}], **message}
    params: dict[str, Any] = {"message": content}
    if immediately:
        params["configuration"] = {"returnImmediately": True}
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


def rpc(method: str, params: Any = None, id: Any = "q-1") -> dict[str, Any]:
    """The body of any call."""
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": {} if params is None else params}


async def post(client: httpx2.AsyncClient, body: dict[str, Any], **headers: str) -> dict[str, Any]:
    """Post a call; its status has to be 200, its body a JSON-RPC response."""
    answer = await client.post("/", json=body, headers={key.replace("_", "-"): value for key, value in headers.items()})
    return checked(answer)


def checked(answer: httpx2.Response) -> dict[str, Any]:
    """The JSON-RPC response in an answer."""
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/json"
    found = json.loads(answer.content)
    assert found["jsonrpc"] == "2.0"
    assert "id" in found
    assert ("result" in found) != ("error" in found)
    return found


async def ping(client: httpx2.AsyncClient) -> tuple[str, int]:
    """What a ping says."""
    answer = await client.get("/ping")
    assert answer.status_code == 200, answer.text
    body = answer.json()
    return body["status"], body["time_of_last_update"]


async def until(condition: Callable[[], Any]) -> None:
    """Wait until a condition holds."""
    async with asyncio.timeout(PATIENCE):
        while True:
            found = condition()
            if await found if inspect.isawaitable(found) else found:
                return
            await asyncio.sleep(0.005)


class Gate:
    """A handler's gate, which a test opens from another thread's loop."""

    def __init__(self) -> None:
        self._open = threading.Event()
        self.reached = threading.Event()

    def open(self) -> None:
        self._open.set()

    async def wait(self) -> None:
        """Wait in the agent's loop, without blocking it."""
        self.reached.set()
        await until(self._open.is_set)

    def block(self) -> None:
        """Wait and block."""
        self.reached.set()
        self._open.wait(PATIENCE)

    async def arrive(self) -> None:
        """Wait until the handler is at the gate."""
        await until(self.reached.is_set)


def working(gate: Gate, ignore_cancel: bool = False) -> Agent:
    """An agent that works until its gate is opened."""
    agent = Agent("worker", description="Works")

    @agent.task
    async def work(ctx):
        while ignore_cancel and not gate._open.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await gate.wait()
        await gate.wait()
        return "done"

    return agent
