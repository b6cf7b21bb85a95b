"""One script of calls, whose outcome must not depend on how the agent was reached. Spec: §5.1."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

import dragoman
from dragoman import Agent, App
from dragoman.model import encode_json
from dragoman.server import GrpcServerSettings
from dragoman.testing.serving import serving
from tests.conformance.wire import QUICK


def agent() -> Agent:
    made = Agent("Script", description="Plays a part.")

    @made.message
    async def play(ctx):  # type: ignore[no-untyped-def]
        if ctx.text == "reply":
            return dragoman.Reply("direct")
        if ctx.text == "reject":
            raise dragoman.Reject("no")
        if ctx.text == "fail":
            raise dragoman.Fail("broken")
        if ctx.text == "ask":
            answer = await ctx.ask("and?")
            return {"answer": answer.text}
        await ctx.artifact(b"\x00\xff", name="bytes")
        return [1, 2.5, None, "ü"]

    return made


class Names:
    """Fresh ids as numbers in the order they are seen, so that two runs can be compared."""

    def __init__(self) -> None:
        self._seen: dict[str, str] = {}

    def plain(self, value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            return {name: self.plain(inner, name) for name, inner in value.items()}
        if isinstance(value, list):
            return [self.plain(inner, key) for inner in value]
        if key == "timestamp":
            return "a moment"
        if key in ("id", "taskId", "contextId", "messageId", "referenceTaskIds") and isinstance(value, str):
            return self._seen.setdefault(value, f"id-{len(self._seen)}")
        return value


async def outcome(client: Any) -> list[Any]:
    """What a client sees of the script: answers, events and errors in a comparable form."""
    names, told = Names(), []

    async def note(awaitable: Any) -> Any:
        try:
            found = await awaitable
        except dragoman.A2AError as error:
            told.append((type(error).__name__, error.message.split(" ")[0], [v.field for v in error.violations]))
            return None
        told.append(names.plain(json_of(found)))
        return found

    for text in ("reply", "reject", "fail", "work"):
        await note(client.send(text))
    task = await note(client.send("ask", history_length=1))
    told.extend(names.plain(json_of(event)) for event in [event async for event in client.stream("work")])
    await note(client.send("x", task_id=task.id, context_id="another"))
    await note(client.send("x", task_id="no-such"))
    done = await note(client.send("because", task=task))
    await note(client.cancel(done))
    await note(client.get_task(done, history_length=0))
    await note(client.list_tasks(context_id=done.context_id, include_artifacts=True, history_length=1))
    await note(client.list_tasks(page_size=101))
    await note(client.list_push_configs(done))
    await note(client.get_extended_card())
    return told


def json_of(value: Any) -> Any:

    found = msgspec.json.decode(encode_json(value))
    if isinstance(found, dict):
        found.pop("nextPageToken", None)
    return found


@pytest.mark.req("BIND-01", "ERR-18", "ERR-19", "CARD-04", "GRPC-02", "GRPC-04", "AMB-73")
async def test_the_same_calls_have_the_same_outcome_in_process_and_over_every_binding() -> None:
    async def over(binding: str) -> list[Any]:
        app = App(agent(), limits=QUICK)
        if binding == "in process":
            async with app, dragoman.connect(app, check_capabilities=False) as client:
                return await outcome(client)
        grpc = GrpcServerSettings(port=0)
        async with (
            serving(app, grpc=grpc) as url,
            dragoman.connect(url, bindings=(binding,), check_capabilities=False) as client,
        ):
            return await outcome(client)

    inside, *others = await asyncio.gather(
        *(over(binding) for binding in ("in process", "JSONRPC", "HTTP+JSON", "GRPC"))
    )

    assert len(inside) > 15
    for other in others:
        assert other == inside
