"""Streams of a hosted agent: events leave at once, within the front's limits, and a lost reader loses nobody's work."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
from collections.abc import AsyncIterator

import httpx2
import pytest

from dragoman import Agent, agentcore
from dragoman.agentcore.operations import CallSettings, HostedStream
from dragoman.model import StreamResponse, Task, TaskState, TaskStatus
from dragoman.ports.operations import CallContext, Event, EventStream
from dragoman.push import PushSettings
from tests.agentcore.server.hosts import Gate, hosted, ping, post, rpc, send, served, until, working
from tests.push.hooks import hooks_serving

OLD = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "message/stream",
    "params": {"message": {"role": "user", "parts": [{"kind": "text", "text": "x"}], "messageId": "m-1"}},
}


async def events(answer: httpx2.Response) -> AsyncIterator[dict]:
    """The events of a stream, as they come."""
    async for line in answer.aiter_lines():
        if line.startswith("data:"):
            yield json.loads(line[5:])


def halting(gate: Gate) -> Agent:
    """An agent that says something, waits at the gate, and says something more."""
    agent = Agent("halting", description="x")

    @agent.task
    async def work(ctx):
        yield "first"
        await gate.wait()
        yield "second"

    return agent


@pytest.mark.req("AC-S-50")
@pytest.mark.parametrize("own_thread", [True, False])
@pytest.mark.parametrize("body", [send(method="SendStreamingMessage"), OLD], ids=["1.0", "0.3"])
async def test_each_event_leaves_at_once(body: dict, own_thread: bool):
    gate = Gate()
    async with (
        served(hosted(halting(gate), own_thread=own_thread)) as client,
        client.stream("POST", "/", json=body) as answer,
    ):
        assert answer.headers["content-type"].startswith("text/event-stream")
        assert "no-cache" in answer.headers["cache-control"]
        assert "content-encoding" not in answer.headers
        found, stream = "", events(answer)
        while "first" not in found:
            found = json.dumps(await anext(stream))
        assert not gate._open.is_set()
        gate.open()
        rest = [json.dumps(event) async for event in stream]
        assert any("second" in event for event in rest)
        assert "completed" in rest[-1].lower()


@pytest.mark.req("AC-S-51")
async def test_a_silent_stream_gets_comments():
    gate = Gate()
    async with (
        served(hosted(working(gate), heartbeat=0.05)) as client,
        client.stream("POST", "/", json=send(method="SendStreamingMessage")) as answer,
    ):
        lines = answer.aiter_lines()
        beats = 0
        while beats < 3:
            beats += (await anext(lines)).startswith(":")
        gate.open()


def test_comments_come_every_15_seconds_by_default():
    assert hosted().settings.heartbeat == 15


@pytest.mark.req("AC-S-52", "P7")
async def test_a_lost_reader_leaves_the_task_at_work_and_the_ping_busy():
    gate = Gate()
    async with served(hosted(working(gate))) as client:
        async with client.stream("POST", "/", json=send(method="SendStreamingMessage")) as answer:
            first = await anext(events(answer))
        task_id = first["result"]["task"]["id"]
        assert (await ping(client))[0] == "HealthyBusy"
        async with client.stream("POST", "/", json=rpc("SubscribeToTask", {"id": task_id})) as answer:
            stream = events(answer)
            assert (await anext(stream))["result"]["task"]["id"] == task_id
            gate.open()
            updates = [event["result"].get("statusUpdate") async for event in stream]
        assert [update["status"]["state"] for update in updates if update] == ["TASK_STATE_COMPLETED"]
        await until(lambda: not_busy(client))


async def not_busy(client: httpx2.AsyncClient) -> bool:
    return (await ping(client))[0] == "Healthy"


@pytest.mark.req("P13")
async def test_a_stream_of_a_finished_task_holds_nothing():
    async with served(hosted()) as client:
        task = (await post(client, send()))["result"]["task"]
        await until(lambda: not_busy(client))
        stamp = await ping(client)
        await post(client, rpc("SubscribeToTask", {"id": task["id"]}))
        assert await ping(client) == stamp


@pytest.mark.req("AC-S-53")
async def test_an_event_that_is_too_large_ends_the_stream_and_not_the_task(caplog: pytest.LogCaptureFixture):
    agent = Agent("large", description="x")

    @agent.task
    async def work(ctx):
        yield "small"
        await ctx.artifact("x" * 11_000_000)

    async with served(hosted(agent)) as client:
        async with client.stream("POST", "/", json=send(method="SendStreamingMessage")) as answer:
            found = [event async for event in events(answer)]
        task_id = found[0]["result"]["task"]["id"]
        assert found[-1]["error"]["code"] == -32603
        assert all(len(json.dumps(event)) < 10_000_000 for event in found)
        assert any("11000" in record.getMessage() for record in caplog.records if record.levelno == logging.ERROR)

        async def is_completed() -> bool:
            task.update((await post(client, rpc("GetTask", {"id": task_id})))["result"])
            return task["status"]["state"] == "TASK_STATE_COMPLETED"

        task: dict = {}
        await until(is_completed)
        assert sum(len(part.get("text", "")) for a in task["artifacts"] for part in a["parts"]) == 11_000_005


@pytest.mark.req("AC-S-53")
@pytest.mark.parametrize("content", ["\x01ä👋" * 1_500_000, bytes(range(256)) * 50_000, "", b""])
async def test_large_content_in_pieces_is_the_same_when_it_is_joined(content: str | bytes):
    agent = Agent("large", description="x")

    @agent.task
    async def work(ctx):
        await agentcore.publish(ctx, content, name="tides")

    async with served(hosted(agent)) as client:
        largest, last = 0, {}
        async with client.stream("POST", "/", json=send(method="SendStreamingMessage")) as answer:
            async for line in answer.aiter_lines():
                largest = max(largest, len(line))
                if line.startswith("data:"):
                    last = json.loads(line[5:])["result"]
        assert largest < 10_000_000
        task_id = last["statusUpdate"]["taskId"]
        task = (await post(client, rpc("GetTask", {"id": task_id})))["result"]
        parts = task["artifacts"][0]["parts"]
        if isinstance(content, str):
            assert "".join(part["text"] for part in parts) == content
        else:
            assert b"".join(base64.b64decode(part["raw"]) for part in parts) == content
        assert task["artifacts"][0]["name"] == "tides"


class Silent(EventStream):
    """A stream that gives some batches and then nothing."""

    def __init__(self, *batches: list[Event]) -> None:
        self.batches = list(batches)

    async def next_batch(self) -> list[Event]:
        if self.batches:
            return self.batches.pop(0)
        await asyncio.Event().wait()
        raise AssertionError

    async def aclose(self) -> None:
        """Nothing is held."""


def event() -> Event:
    task = Task(id="t", context_id="c", status=TaskStatus(state=TaskState.WORKING))
    return Event(StreamResponse(task=task))


@pytest.mark.req("AC-S-54")
async def test_a_stream_that_is_too_old_ends_between_two_events(monkeypatch: pytest.MonkeyPatch):
    loop = asyncio.get_running_loop()
    settings = CallSettings(present=lambda card: card, most_stream_seconds=3_300)
    stream = HostedStream(Silent([event()], [event()]), CallContext(), settings)
    assert len(await stream.next_batch()) == 1
    real = loop.time
    monkeypatch.setattr(loop, "time", lambda: real() + 3_301)
    assert await stream.next_batch() == []


@pytest.mark.req("AC-S-54")
async def test_a_task_outlives_its_stream_and_can_be_subscribed_to_again():
    gate = Gate()
    async with served(hosted(working(gate), stream_seconds=0.2)) as client:
        async with client.stream("POST", "/", json=send(method="SendStreamingMessage")) as answer:
            found = [event async for event in events(answer)]
        assert all("error" not in event for event in found)
        task_id = found[0]["result"]["task"]["id"]
        task = (await post(client, rpc("GetTask", {"id": task_id})))["result"]
        assert task["status"]["state"] == "TASK_STATE_WORKING"
        gate.open()
        async with client.stream("POST", "/", json=rpc("SubscribeToTask", {"id": task_id})) as answer:
            assert [event async for event in events(answer)]


def test_streams_end_after_55_minutes_by_default():
    assert hosted().profile.stream_seconds == 55 * 60


@pytest.mark.req("AC-S-55")
@pytest.mark.parametrize("step", ["hang", 500])
async def test_the_ping_stays_busy_until_a_webhook_was_told_or_is_given_up(step: str | int):
    settings = PushSettings(allow_private=True, attempts=2, first_pause=0.1, timeout=0.5)
    async with hooks_serving() as listening, served(hosted(push=settings)) as client:
        listening.always["/slow"] = step
        card = (await client.get("/.well-known/agent-card.json")).json()
        assert card["capabilities"]["pushNotifications"] is True
        body = send()
        config = {"url": f"{listening.url}/slow"}
        body["params"]["configuration"] = {"taskPushNotificationConfig": config}
        assert "result" in await post(client, body)
        assert (await ping(client))[0] == "HealthyBusy"
        await until(lambda: not_busy(client))
        assert len(listening.at("/slow")) >= 2
