"""Streams of 0.3: how they begin, how they end, and what breaks them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from dragoman import Agent, Limits
from dragoman.cli.echo import make_echo
from dragoman.errors import InternalError, UnavailableError, UnsupportedOperationError
from dragoman.model import (
    Artifact,
    Part,
    StreamResponse,
    Task,
    TaskState,
    TaskStatus,
)
from dragoman.ports.operations import Event
from tests.bindings.parts import RecordingOperations, ScriptedStream, ask, status_event, text_event
from tests.compat.server.recording import endpoint_over
from tests.compat.server.speaking import Old, check_kinds, envelope, opened, serving, told, told_in_proto
from tests.conformance.wire import BOUND

pytestmark = pytest.mark.req("V03-04", "V03-01")

Read = Callable[[Old, str], Any]


def flat(event: Any) -> Any:
    """An event of either binding: its kind, its state, whether it is final."""
    if "kind" not in event:
        ((kind, event),) = event.items()
        kind = {"statusUpdate": "status-update", "artifactUpdate": "artifact-update"}.get(kind, kind)
    else:
        kind = event["kind"]
    state = event.get("status", {}).get("state", "")
    state = state.removeprefix("TASK_STATE_").lower().replace("_", "-").replace("cancelled", "canceled")
    return kind, state, event.get("final", False)


def check_ending(events: list[Any]) -> list[Any]:
    """One final update at the very end, or a single first Task or Message. Spec: V03-P06, V03-P07, V03-P16."""
    seen = [flat(event) for event in events]
    kinds = [kind for kind, _, _ in seen]
    assert "task" not in kinds[1:], seen
    finals = [final for _, _, final in seen]
    if kinds == ["message"]:
        return seen
    if len(seen) == 1 and kinds == ["task"]:
        assert seen[0][1] in ("completed", "failed", "canceled", "rejected", "input-required")
        return seen
    assert kinds[0] == "task"
    assert finals == [False] * (len(finals) - 1) + [True], seen
    return seen


@asynccontextmanager
async def streaming(old: Old, binding: str, text: str, **more: Any) -> AsyncIterator[Any]:
    """The stream of a message."""
    if binding == "JSONRPC":
        async with old.stream("/", envelope("message/stream", told(text, **more))) as events:
            yield events
    else:
        async with old.stream("/v1/message:stream", json.dumps(told_in_proto(text, **more)).encode()) as events:
            yield events


async def read(old: Old, binding: str, text: str, **more: Any) -> list[Any]:
    """All that a stream says."""
    async with streaming(old, binding, text, **more) as events:
        found = await events.rest()
    assert not events.ids, "events are not numbered"
    found = [opened(event, 1) for event in found] if binding == "JSONRPC" else found
    if binding == "JSONRPC":
        check_kinds(found)
    return found


BOTH = pytest.mark.parametrize("binding", ["JSONRPC", "HTTP+JSON"])


@BOTH
@pytest.mark.req("V03-P06", "V03-P07", "B151")
@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("hello", "completed"),
        ("!stream 3 0", "completed"),
        ("!fail out of paper", "failed"),
        ("!reject no", "rejected"),
        ("!input Which floor?", "input-required"),
    ],
)
async def test_a_stream_ends_with_its_one_final_update(old: Old, binding: str, text: str, state: str) -> None:
    seen = check_ending(await read(old, binding, text))

    assert seen[-1][1] == state
    assert text != "!stream 3 0" or [kind for kind, _, _ in seen].count("artifact-update") >= 3


@BOTH
async def test_a_stream_of_a_direct_message_is_that(old: Old, binding: str) -> None:
    assert [flat(event)[0] for event in await read(old, binding, "!message hi")] == ["message"]


@BOTH
async def test_a_crash_of_the_agent_is_a_final_failure_without_its_text(binding: str) -> None:
    agent = Agent("Crash")

    @agent.task
    async def crash(ctx):  # type: ignore[no-untyped-def]
        raise RuntimeError("secret of the inside")

    async with serving(agent) as old:
        events = await read(old, binding, "x")

    assert check_ending(events)[-1][1] == "failed"
    assert "secret" not in json.dumps(events)


@BOTH
async def test_a_canceled_task_ends_its_stream(old: Old, binding: str) -> None:
    async with streaming(old, binding, "!slow 30s") as events:
        found = [await events.next()]
        task_id = (found[0].get("result") or found[0]["task"])["id"]
        await old.result("tasks/cancel", {"id": task_id})
        found += await events.rest()

    seen = check_ending([event.get("result", event) for event in found])
    assert seen[-1] == ("status-update", "canceled", True)


@BOTH
async def test_a_stream_goes_on_behind_a_missing_authorization(old: Old, binding: str) -> None:
    found: list[Any] = []
    async with streaming(old, binding, "!auth Sign in") as events:
        while not found or flat(found[-1])[1] != "auth-required":
            event = await events.next()
            found.append(event.get("result", event))
        first = found[0].get("task", found[0])
        await old.result("message/send", told("the credential", taskId=first["id"], messageId="m-2"))
        found += [event.get("result", event) for event in await events.rest()]

    seen = check_ending(found)
    assert ("status-update", "auth-required", False) in seen
    assert seen[-1] == ("status-update", "completed", True)


@BOTH
async def test_who_brings_no_authorization_in_time_is_told_that_this_was_all(binding: str) -> None:
    async with serving(limits=Limits(stream_idle=0.2, shutdown_grace=0.2)) as old:
        seen = check_ending(await read(old, binding, "!auth Sign in"))

    assert seen[-1] == ("status-update", "auth-required", True)
    assert seen[-2] == ("status-update", "auth-required", False)


@BOTH
async def test_an_idle_stream_of_another_task_breaks_with_an_error(binding: str) -> None:
    async with (
        serving(limits=Limits(stream_idle=0.2, shutdown_grace=0.2)) as old,
        streaming(old, binding, "!slow 30s") as events,
    ):
        found = await events.rest()

    last = found[-1]["error"] if binding == "JSONRPC" else found[-1]
    assert last["code"] == -32603
    assert "subscribe again" in last["message"]
    assert binding == "JSONRPC" or b"event: error\ndata: " in events.raw


@BOTH
async def test_who_leaves_changes_nothing(old: Old, binding: str) -> None:
    async with streaming(old, binding, "!slow 200ms") as events:
        first = await events.next()
    task_id = (first.get("result") or first["task"])["id"]

    async with asyncio.timeout(BOUND):
        found = [flat(event) for event in await old.rpc_events("tasks/resubscribe", {"id": task_id})]

    assert found[-1][1] == "completed"


@BOTH
@pytest.mark.req("V03-P17")
async def test_watching_again_begins_with_the_task_as_it_is(old: Old, binding: str) -> None:
    async with streaming(old, binding, "!stream 3 100ms") as events:
        first = await events.next()
        task_id = (first.get("result") or first["task"])["id"]
        if binding == "JSONRPC":
            again = await old.rpc_events("tasks/resubscribe", {"id": task_id})
        else:
            async with old.stream(f"/v1/tasks/{task_id}:subscribe", None, "GET") as watched:
                again = await watched.rest()

    seen = check_ending(again)
    assert seen[-1][1] == "completed"
    assert len(seen) > 2


@pytest.mark.req("V03-P17")
async def test_a_task_that_is_over_is_shown_once(old: Old) -> None:
    for text, state in [("hello", "completed"), ("!fail x", "failed"), ("!reject x", "rejected")]:
        task = await old.result("message/send", told(text))
        (event,) = await old.rpc_events("tasks/resubscribe", {"id": task["id"]})
        assert (event["kind"], event["status"]["state"]) == ("task", state)
        assert event.get("artifacts") == task.get("artifacts")


async def test_a_waiting_task_is_shown_once_too(old: Old) -> None:
    task = await old.result("message/send", told("!input Which floor?"))
    (event,) = await old.rpc_events("tasks/resubscribe", {"id": task["id"]})

    assert (event["kind"], event["status"]["state"]) == ("task", "input-required")


async def test_errors_from_before_the_first_event_are_one_event(old: Old) -> None:
    done = await old.result("message/send", told())
    for method, params, code in [
        ("message/stream", told(taskId="nope"), -32001),
        ("message/stream", told(taskId=done["id"]), -32004),
        ("message/stream", {}, -32602),
        ("message/stream", told(parts=[{"kind": "video"}]), -32602),
        ("tasks/resubscribe", {"id": "nope"}, -32001),
        ("tasks/resubscribe", {}, -32602),
    ]:
        (event,) = await old.rpc_events(method, params, id="q-5")
        assert event["error"]["code"] == code


async def test_a_missing_capability_is_told_as_an_event_and_by_a_status() -> None:
    async with serving(make_echo(streaming=False)) as old:
        done = await old.result("message/send", told())
        events = await old.rpc_events("message/stream", told())
        events += await old.rpc_events("tasks/resubscribe", {"id": done["id"]})
        over_rest = await old.rest("POST", "/message:stream", told_in_proto())

    assert [event["error"]["code"] for event in events] == [-32004, -32004]
    assert (over_rest.status, over_rest.json["code"]) == (501, -32004)


async def test_refusals_of_the_server_are_told_by_their_status_on_streams_too() -> None:
    refusing = RecordingOperations(stream=UnavailableError("come back later", retry_after=5))
    answer = await ask(endpoint_over(refusing), "POST", "/", envelope("message/stream", told()))

    assert (answer.status, answer.header("retry-after")) == (503, "5")
    assert answer.error["code"] == -32603
    assert "data" not in answer.error or isinstance(answer.error["data"], dict)


# Streams of other agents, by a script.


def task_event(state: TaskState, *texts: str) -> Event:
    artifacts = [Artifact(artifact_id="a-1", parts=[Part(text=text) for text in texts])] if texts else []
    task = Task(id="t-1", context_id="c-1", status=TaskStatus(state=state), artifacts=artifacts)
    return Event(StreamResponse(task=task))


async def scripted(*script: Any, path: str = "/", body: bytes | None = None) -> list[Any]:
    """The events that a caller sees of such a stream."""
    stream = ScriptedStream(*script)
    answer = await ask(
        endpoint_over(RecordingOperations(stream=stream)), "POST", path, body or envelope("message/stream", told())
    )
    assert stream.closed.is_set()
    events = [json.loads(line[6:]) for line in answer.body.decode().split("\n") if line.startswith("data: ")]
    return [event.get("result", event) for event in events]


@pytest.mark.req("V03-P16")
async def test_a_closing_snapshot_becomes_what_was_not_said_yet_and_a_final_update() -> None:
    events = await scripted(
        [task_event(TaskState.WORKING)], [text_event("a")], [task_event(TaskState.COMPLETED, "a", "b")], []
    )

    seen = check_ending(events)
    assert seen[-1] == ("status-update", "completed", True)
    assert "b" in json.dumps(events[2:])


async def test_a_stream_that_ends_without_a_final_update_gets_one() -> None:
    events = await scripted([task_event(TaskState.WORKING)], [status_event(TaskState.WORKING)], [])

    assert check_ending(events)[-1] == ("status-update", "working", True)


async def test_nothing_comes_after_the_end() -> None:
    events = await scripted(
        [task_event(TaskState.WORKING), status_event(TaskState.INPUT_REQUIRED), status_event(TaskState.WORKING)],
        [text_event("late")],
        [],
    )

    assert [flat(event) for event in events] == [("task", "working", False), ("status-update", "input-required", True)]


async def test_a_stream_that_breaks_says_why() -> None:
    events = await scripted([task_event(TaskState.WORKING)], InternalError())
    over_rest = await scripted(
        [task_event(TaskState.WORKING)],
        RuntimeError("secret"),
        path="/v1/message:stream",
        body=json.dumps(told_in_proto()).encode(),
    )

    assert events[-1]["error"]["code"] == -32603
    assert over_rest[-1]["type"] == "InternalError"
    assert "secret" not in json.dumps(over_rest)


async def test_a_refused_watching_of_a_task_that_is_not_over_stays_refused() -> None:
    refused = RecordingOperations(stream=UnsupportedOperationError("not now"))
    answer = await ask(endpoint_over(refused), "POST", "/", envelope("tasks/resubscribe", {"id": "t-1"}))

    assert b'"code":-32004' in answer.body


async def test_readers_of_one_form_share_what_was_written() -> None:
    event = text_event("a")
    for path, body in [
        ("/", envelope("message/stream", told())),
        ("/", envelope("message/stream", told(), id=2)),
        ("/v1/message:stream", json.dumps(told_in_proto()).encode()),
    ]:
        await scripted([task_event(TaskState.WORKING)], [event], [], path=path, body=body)

    assert set(event.forms) == {"kind", "A"}
    assert json.loads(event.forms["kind"])["kind"] == "artifact-update"
