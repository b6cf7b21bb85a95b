"""What passes through a proxy is what passes without one: on every binding, to an agent on every binding."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from dragoman import Agent, Context, Part, Task, TaskState, connect
from dragoman.client import ClientStream
from dragoman.errors import (
    A2AError,
    ContentTypeNotSupportedError,
    ExtendedAgentCardNotConfiguredError,
    FieldViolation,
    InternalError,
    InvalidParamsError,
    PermissionDeniedError,
    PushNotificationNotSupportedError,
    RateLimitedError,
    RemoteError,
    RequestTimeoutError,
    TaskNotCancelableError,
    TaskNotFoundError,
    UnauthenticatedError,
    UnavailableError,
    UnsupportedOperationError,
    VersionNotSupportedError,
)
from dragoman.model import (
    GET_TASK,
    SUBSCRIBE_TO_TASK,
    GetTaskRequest,
    StreamResponse,
    SubscribeToTaskRequest,
    TaskPushNotificationConfig,
    encode_json,
)
from dragoman.ports.operations import CallContext, Event
from tests.bindings.parts import TASK, RecordingOperations, ScriptedStream, status_event, text_event, usual_answer
from tests.peers.our_agent import MODES, make_agent
from tests.proxy.chain import BOUND, Gate, ScriptedApp, chained

UNICODE = 'naïve ☃ 😀 \u2028\u0085 \\ " \t é 你好'
DATA = {"nothing": None, "deep": {"é": [1, 2.5, False, {}]}, "text": UNICODE}


async def test_a_task_comes_out_as_it_is(near: str, far: str) -> None:
    async with chained(make_agent(), near=near, far=far) as chain:
        task = await chain.client.send("do " + UNICODE, metadata={"k": DATA})

        assert isinstance(task, Task)
        assert task.status.state is TaskState.COMPLETED
        assert encode_json(await chain.direct.get_task(task.id)) == encode_json(await chain.client.get_task(task.id))
        assert task.artifacts[0].parts[0].text == UNICODE


async def test_data_files_and_a_megabyte_pass(near: str, far: str) -> None:
    parts = [
        Part(text="echo"),
        Part(data=DATA),
        Part(data=None),
        Part(raw=bytes(range(256)) * 4096, filename="ünï.bin", media_type=MODES[2]),
        Part(url="https://example.com/a%20b.png?x=1", media_type=MODES[3]),
    ]

    async with chained(make_agent(), near=near, far=far) as chain:
        task = await chain.client.send(parts)

    assert isinstance(task, Task)
    assert task.artifacts[0].parts == parts[1:]


async def test_a_stream_is_the_agents_stream_and_ends_with_it(near: str, far: str) -> None:
    async with chained(make_agent(), near=near, far=far) as chain:
        async with asyncio.timeout(BOUND):
            seen = [type(event).__name__ async for event in chain.client.stream("stream 5")]
            direct = [type(event).__name__ async for event in chain.direct.stream("stream 5")]

    assert seen == direct
    assert seen[0] == "Task"
    assert seen[-1] == "TaskStatusUpdateEvent"


async def test_a_direct_reply_passes_in_both_forms(near: str, far: str) -> None:
    async with chained(make_agent(), near=near, far=far) as chain:
        reply = await chain.client.send("say hello")
        (streamed,) = [event async for event in chain.client.stream("say hello")]

    assert reply.parts[0].text == streamed.parts[0].text == "hello"  # type: ignore[union-attr]


async def test_turns_cancellation_and_lists_work(near: str, far: str) -> None:
    async with chained(make_agent(), near=near, far=far) as chain:
        client = chain.client
        talk = client.conversation()
        asked = await talk.send("ask")
        answered = await talk.send("Ada")
        held = await client.send("hold x", wait=False)
        assert isinstance(held, Task)
        canceled = await client.cancel(held)
        pages = [await client.list_tasks(page_size=1)]
        pages.append(await client.list_tasks(page_size=1, page_token=pages[0].next_page_token))

    assert isinstance(asked, Task)
    assert isinstance(answered, Task)
    assert (asked.id, answered.status.state) == (answered.id, TaskState.COMPLETED)
    assert canceled.status.state is TaskState.CANCELED
    assert [page.tasks[0].id for page in pages] == [held.id, asked.id]
    assert pages[1].next_page_token == ""


async def test_who_subscribes_sees_the_rest_of_the_task(near: str, far: str) -> None:
    async with chained(make_agent(), near=near, far=far) as chain, asyncio.timeout(BOUND):
        held = await chain.client.send("hold y", wait=False)
        assert isinstance(held, Task)
        stream = chain.client.subscribe(held)
        first = await anext(stream)
        await chain.direct.send("release y")
        rest = [event async for event in stream]

    assert isinstance(first, Task)
    assert rest[-1].status.state is TaskState.COMPLETED  # type: ignore[union-attr]


ERRORS: list[A2AError] = [
    TaskNotFoundError("No such task: ☃", metadata={"taskId": "nope"}),
    TaskNotCancelableError(),
    PushNotificationNotSupportedError(),
    UnsupportedOperationError("Not like this"),
    ContentTypeNotSupportedError(),
    ExtendedAgentCardNotConfiguredError(),
    VersionNotSupportedError("Only 1.0", metadata={"supported": "1.0"}),
    InvalidParamsError("Wrong", violations=[FieldViolation("message.parts[0].text", "must not be empty")]),
    InternalError("It failed"),
    UnauthenticatedError("Who are you?", metadata={"challenge": 'Bearer realm="far"'}),
    PermissionDeniedError("Not you"),
    RateLimitedError("Slowly", retry_after=7),
    UnavailableError("Later", retry_after=3),
    TaskNotFoundError(
        extra_details=[{"@type": "type.googleapis.com/google.rpc.Help", "links": [{"url": "https://example.com/h"}]}]
    ),
]


@pytest.mark.req("ERR-18", "ERR-15", "ERR-16")
@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
async def test_an_error_of_the_agent_passes_with_code_reason_and_details(near: str, error: A2AError) -> None:
    upstream = ScriptedApp(RecordingOperations(lambda op, request, context: error))

    async with chained(upstream, near=near, far="JSONRPC") as chain:
        told = [await refusal(client.get_task("nope")) for client in (chain.client, chain.direct)]

    for seen in told:
        assert type(seen) is type(error)
        assert (seen.message, seen.violations, seen.retry_after) == (error.message, error.violations, error.retry_after)
    assert told[0].metadata == told[1].metadata
    assert told[0].details == told[1].details


async def refusal(call: Any) -> A2AError:
    with pytest.raises(A2AError) as caught:
        await call
    return caught.value


@pytest.mark.parametrize("error", [ERRORS[0], ERRORS[7], ERRORS[11]], ids=lambda error: type(error).__name__)
async def test_it_does_so_from_every_binding_for_calls_and_streams(near: str, far: str, error: A2AError) -> None:
    operations = RecordingOperations(lambda op, request, context: error, stream=error)

    async with chained(ScriptedApp(operations), near=near, far=far) as chain:
        told = [
            await refusal(chain.client.get_task("nope")),
            await refusal(anext(chain.client.subscribe("nope"))),
            await refusal(anext(chain.client.stream("hello"))),
        ]

    for seen in told:
        assert type(seen) is type(error)
        assert (seen.message, seen.violations, seen.retry_after) == (error.message, error.violations, error.retry_after)


@pytest.mark.req("AMB-35")
async def test_an_error_that_nobody_knows_keeps_its_code_and_its_details() -> None:
    class OddError(A2AError):
        code, http_status, reason = -32050, 418, "TEAPOT"

    error = OddError("Short and stout", metadata={"spout": "here"})
    upstream = ScriptedApp(RecordingOperations(lambda op, request, context: error))

    async with chained(upstream, near="JSONRPC", far="JSONRPC") as chain:
        by_rpc = await refusal(chain.client.get_task("x"))
        async with connect(chain.url, bindings=("HTTP+JSON",)) as client:
            crossed = await refusal(client.get_task("x"))
    async with chained(upstream, near="HTTP+JSON", far="HTTP+JSON") as chain:
        by_rest = await refusal(chain.client.get_task("x"))

    assert isinstance(by_rpc, RemoteError)
    assert isinstance(by_rest, RemoteError)
    assert by_rpc.origin is not None
    assert by_rest.origin is not None
    assert (by_rpc.origin.code, by_rest.origin.status) == (-32050, 418)
    assert {seen.message for seen in (by_rpc, by_rest, crossed)} == {"Short and stout"}
    assert all("TEAPOT" in str(seen.details) for seen in (by_rpc, by_rest, crossed))


async def test_push_configurations_pass_with_their_errors(near: str, far: str) -> None:
    def answer(op: Any, request: Any, context: CallContext) -> Any:
        if op.name.startswith("Delete") and request.id == "gone":
            return TaskNotFoundError()
        return usual_answer(op, request, context)

    operations = RecordingOperations(answer)
    upstream = ScriptedApp(operations, capabilities={"pushNotifications": True})
    given = TaskPushNotificationConfig(id="1", url="https://example.com/hook", token="t", task_id="t-1")

    async with chained(upstream, near=near, far=far) as chain:
        config = await chain.client.create_push_config("t-1", given)
        await chain.client.get_push_config("t-1", "1")
        listed = await chain.client.list_push_configs("t-1", page_size=3, page_token="p")
        await chain.client.delete_push_config("t-1", "1")
        gone = await refusal(chain.client.delete_push_config("t-1", "gone"))

    assert (config, listed.configs) == (given, [])
    assert isinstance(gone, TaskNotFoundError)
    requests = [request for _, request, _ in operations.calls]
    assert (requests[2].page_size, requests[2].page_token) == (3, "p")
    assert chain.client.card.capabilities.push_notifications is True


@pytest.mark.req("PCFG-10")
async def test_push_that_is_not_passed_on_is_not_offered_and_refused() -> None:
    operations = RecordingOperations()
    upstream = ScriptedApp(operations, capabilities={"pushNotifications": True})

    async with chained(upstream, push=False) as chain:
        offered = chain.client.card.capabilities.push_notifications
        created = await refusal(chain.client.create_push_config("t-1", "https://example.com/hook"))
        sent = await refusal(chain.client.send("x", push=TaskPushNotificationConfig(url="https://example.com/hook")))

    assert offered is False
    assert isinstance(created, PushNotificationNotSupportedError)
    assert isinstance(sent, PushNotificationNotSupportedError)
    assert operations.calls == []


async def test_tenants_pass(near: str, far: str) -> None:
    operations = RecordingOperations()

    async with chained(ScriptedApp(operations), near=near, far=far) as chain:
        await chain.client.operations.call(GET_TASK, GetTaskRequest(id="t-1", tenant="acme"), CallContext())

    assert operations.calls[0][1] == GetTaskRequest(id="t-1", tenant="acme")


@pytest.mark.req("EXT-02", "EXT-09", "AMB-25")
async def test_extensions_are_asked_for_and_their_activation_is_told(near: str, far: str) -> None:
    def answer(op: Any, request: Any, context: CallContext) -> Any:
        context.activated = ("urn:one", "urn:unasked")
        return usual_answer(op, request, context)

    operations = RecordingOperations(answer)
    context = CallContext(extensions=("urn:one", "urn:two"))

    async with chained(ScriptedApp(operations), near=near, far=far, extensions=["urn:ours"]) as chain:
        await chain.client.operations.call(GET_TASK, GetTaskRequest(id="t-1"), context)

    assert operations.context.extensions == ("urn:one", "urn:two", "urn:ours")
    assert context.activated == ("urn:one",)


async def test_events_keep_their_numbers_and_a_stream_is_resumed_by_them(near: str, far: str) -> None:
    gate = Gate()

    async with chained(gate.agent, near=near, far=far) as chain, asyncio.timeout(BOUND):
        held = await chain.client.send("hello", wait=False)
        assert isinstance(held, Task)
        stream = chain.client.subscribe(held)
        await anext(stream)
        number = stream.last_event_id
        await stream.aclose()
        gate.open.set()
        await chain.direct.wait(held)
        resumed = chain.client.subscribe(held, last_event_id=number)
        kinds = [type(event).__name__ async for event in resumed]

    assert number is not None
    assert kinds == ["TaskArtifactUpdateEvent", "TaskStatusUpdateEvent"]


@pytest.mark.req("SUB-01")
async def test_who_did_not_ask_to_resume_gets_the_snapshot(near: str, far: str) -> None:
    gate = Gate()
    context = CallContext(last_event_id=0)

    async with chained(gate.agent, near=near, far=far) as chain, asyncio.timeout(BOUND):
        held = await chain.client.send("hello", wait=False)
        assert isinstance(held, Task)
        request = SubscribeToTaskRequest(id=held.id)
        async with await chain.client.operations.stream(SUBSCRIBE_TO_TASK, request, context) as stream:
            batch = await stream.next_batch()
        gate.open.set()

    assert batch[0].response.task is not None
    assert batch[0].response.task.status.state is TaskState.WORKING
    assert context.activated == ()


@pytest.mark.parametrize("version", ["0.3", "1.1", ""])
@pytest.mark.req("VER-07")
async def test_versions_that_are_not_spoken_are_refused_here(version: str) -> None:
    operations = RecordingOperations()

    async with chained(ScriptedApp(operations)) as chain:
        call = chain.client.operations.call(GET_TASK, GetTaskRequest(id="x"), CallContext(version=version))
        assert isinstance(await refusal(call), VersionNotSupportedError)

    assert operations.calls == []


async def test_a_patch_version_is_the_same_version() -> None:
    operations = RecordingOperations()

    async with chained(ScriptedApp(operations)) as chain:
        await chain.client.operations.call(GET_TASK, GetTaskRequest(id="x"), CallContext(version="1.0.7"))

    assert operations.context.version == "1.0"


async def test_a_deadline_is_passed_on_and_ends_the_call_but_not_the_task(far: str) -> None:
    agent = make_agent()

    async with chained(agent, near="GRPC", far=far) as chain, asyncio.timeout(BOUND):
        with pytest.raises(RequestTimeoutError):
            await chain.client.send("hold v", timeout=0.3)
        (task,) = (await chain.direct.list_tasks()).tasks
        await chain.direct.send("release v")
        ended = await chain.direct.wait(task)

    assert ended.task is not None
    assert ended.task.status.state is TaskState.COMPLETED


async def test_an_agent_that_is_too_slow_is_an_error_with_neutral_words() -> None:
    never = asyncio.Event()
    upstream = ScriptedApp(RecordingOperations(lambda op, request, context: never.wait()))

    async with chained(upstream, timeout=0.1) as chain:
        read = await refusal(chain.client.get_task("x"))
        sent = await refusal(chain.client.send("x", wait=False))

    assert isinstance(read, UnavailableError)
    assert read.message == "The agent behind this server did not answer in time"
    assert isinstance(sent, InternalError)
    assert "may have taken the request" in sent.message


async def test_a_message_that_waits_for_its_task_may_take_longer_than_other_calls() -> None:
    gate = Gate()

    async with chained(gate.agent, timeout=0.1) as chain, asyncio.timeout(BOUND):
        sending = asyncio.create_task(chain.client.send("hello"))
        await gate.begun.wait()
        await asyncio.wait((sending,), timeout=0.3)
        assert not sending.done()
        gate.open.set()
        task = await sending

    assert isinstance(task, Task)
    assert task.status.state is TaskState.COMPLETED


async def test_a_proxy_of_a_proxy_is_one_too(near: str) -> None:
    agent = Agent("Inner", description="Answers")

    @agent.task
    async def answer(ctx: Context) -> str:
        return f"heard {ctx.text}"

    async with chained(agent) as inner, chained(inner.proxy, near=near, far="JSONRPC") as outer:
        task = await outer.client.send("hello")

    assert isinstance(task, Task)
    assert task.artifacts[0].parts[0].text == "heard hello"


async def test_errors_in_a_stream_come_after_the_events_before_them(near: str, far: str) -> None:
    stream = ScriptedStream(
        [Event(StreamResponse(task=TASK), number=1)],
        [text_event("one", 2)],
        InternalError("broken inside"),
    )
    upstream = ScriptedApp(RecordingOperations(stream=stream))

    async with chained(upstream, near=near, far=far) as chain:
        events = chain.client.stream("hello")
        seen = [type(await anext(events)).__name__ for _ in range(2)]
        error = await refusal(anext(events))

    assert seen == ["Task", "TaskArtifactUpdateEvent"]
    assert isinstance(error, InternalError)
    assert error.message == "broken inside"


async def test_a_quiet_stream_lives_through_heartbeats() -> None:
    stream = ScriptedStream([text_event("one", 1)])
    upstream = ScriptedApp(RecordingOperations(stream=stream))

    async with chained(upstream, heartbeat=0.02) as chain, asyncio.timeout(BOUND):
        events = chain.client.stream("hello")
        await anext(events)
        rest = asyncio.create_task(_kinds(events))
        await asyncio.wait((rest,), timeout=0.2)  # ten heartbeats
        stream.feed([text_event("two", 2)])
        stream.feed([status_event(TaskState.COMPLETED, 3)])
        stream.feed([])

        assert await rest == ["TaskArtifactUpdateEvent", "TaskStatusUpdateEvent"]
    assert len(upstream.script.calls) == 1


async def _kinds(events: ClientStream) -> list[str]:
    return [type(event).__name__ async for event in events]
