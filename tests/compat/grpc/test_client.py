"""Our client, calling agents of 0.3 over a2a.v1: ours, and some that others might have written."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest

import dragoman
from dragoman import App, Client, Message, Task, TaskState
from dragoman.client.dialects import V03Settings
from dragoman.errors import (
    A2A_ERRORS,
    A2AError,
    ConnectError,
    ExtendedAgentCardNotConfiguredError,
    InternalError,
    InvalidAgentResponseError,
    InvalidParamsError,
    RateLimitedError,
    TaskNotCancelableError,
    TaskNotFoundError,
    UnauthenticatedError,
    UnsupportedOperationError,
    VersionNotSupportedError,
)
from dragoman.model import (
    CANCEL_TASK,
    GET_TASK,
    AgentInterface,
    CancelTaskRequest,
    GetTaskRequest,
    Part,
    TaskPushNotificationConfig,
    TaskStatusUpdateEvent,
)
from dragoman.ports.operations import CallContext
from dragoman.server import GrpcServerSettings, V03ServerSettings
from dragoman.testing.serving import serving
from tests.compat.grpc import oracle
from tests.compat.grpc.raw import scripted_old
from tests.compat.grpc.stand_ins import Failing, Keeping
from tests.grpc.agents import make_echo
from tests.grpc.raw import BOUND, grpc_served


def interface(address: str, version: str = "0.3") -> AgentInterface:
    return AgentInterface(url=address, protocol_binding="GRPC", protocol_version=version)


@asynccontextmanager
async def talking(agent: Any = None, *, v03: V03Settings | None = None, **more: Any) -> AsyncIterator[Client]:
    """Our client with our server, over a2a.v1; keywords are settings of App."""
    async with (
        grpc_served(agent or make_echo(), **more) as server,
        dragoman.connect(interface(f"127.0.0.1:{server.port}"), v03=v03) as client,
    ):
        yield client


@asynccontextmanager
async def calling(v03: V03Settings | None = None, **methods: Any) -> AsyncIterator[Client]:
    """Our client with a server that does what the functions say."""
    async with scripted_old(**methods) as address, dragoman.connect(interface(address), v03=v03) as client:
        yield client


def answering(name: str, value: Any, seen: list[Any] | None = None) -> Any:
    """A method that answers with this message, and keeps the metadata of calls."""

    async def answer(data: bytes, context: Any) -> bytes:
        if seen is not None:
            seen.append((data, tuple(context.invocation_metadata())))
        return oracle.write(name, value)

    return answer


def streaming(*values: Any, leave_open: bool = False) -> Any:
    """A streaming method that sends these events."""

    async def stream(data: bytes, context: Any) -> AsyncIterator[bytes]:
        for value in values:
            yield oracle.write("StreamResponse", value)
        if leave_open:
            await asyncio.Event().wait()

    return stream


def refusing(code: grpc.StatusCode, text: str) -> Any:
    async def refuse(data: bytes, context: Any) -> bytes:
        await context.abort(code, text)
        return b""

    return refuse


def working(task_id: str = "t", state: str = "TASK_STATE_WORKING", **more: Any) -> Any:
    return {"id": task_id, "contextId": "c", "status": {"state": state}, **more}


def update(state: str, final: bool = False) -> Any:
    return {"statusUpdate": {"taskId": "t", "contextId": "c", "status": {"state": state}, "final": final}}


# With our own server.


@pytest.mark.req("V03-01", "V03-08")
async def test_messages_tasks_and_cancellation_are_as_with_1_0() -> None:
    agent = make_echo()
    async with talking(agent) as client:
        task = await client.send("hello")
        reply = await client.send("reply")
        running = await client.send("wait", wait=False)
        assert isinstance(running, Task)
        canceled = await client.cancel(running)
        assert isinstance(task, Task)
        same = await client.get_task(task)

    assert (task.status.state, task.artifacts[0].parts[0].text) == (TaskState.COMPLETED, "You said: hello")
    assert isinstance(reply, Message)
    assert canceled.status.state is TaskState.CANCELED
    assert same == task
    assert client.interface.protocol_version == "0.3"


@pytest.mark.req("V03-01", "V03-04")
async def test_a_stream_and_a_subscription_tell_the_same() -> None:
    agent = make_echo()
    async with talking(agent) as client:
        async with asyncio.timeout(BOUND):
            stream = client.stream("wait")
            first = await anext(stream)
            assert isinstance(first, Task)
            other = client.subscribe(first)
            also = await anext(other)
            agent.go.set()  # type: ignore[attr-defined]
            events = [event async for event in stream]
            same = [event async for event in other]

    assert isinstance(also, Task)
    assert also.id == first.id
    assert isinstance(events[-1], TaskStatusUpdateEvent)
    assert events[-1].status.state is TaskState.COMPLETED
    assert same[-1] == events[-1]


@pytest.mark.req("V03-P17")
async def test_a_subscription_to_a_task_that_is_over_is_the_task() -> None:
    async with talking() as client, asyncio.timeout(BOUND):
        task = await client.send("hello")
        assert isinstance(task, Task)
        events = [event async for event in client.subscribe(task)]

    assert events == [task]


@pytest.mark.req("V03-04", "V03-P06")
async def test_a_question_of_the_agent_is_answered() -> None:
    async with talking() as client:
        asked = await client.send("ask")
        assert isinstance(asked, Task)
        answered = await client.send("Ann", task_id=asked.id)

    assert asked.status.state is TaskState.INPUT_REQUIRED
    assert isinstance(answered, Task)
    assert answered.artifacts[0].parts[0].text == "You said: Ann"


@pytest.mark.req("V03-P09", "V03-07")
@pytest.mark.parametrize("raw", [False, True])
async def test_files_and_data_come_back_as_they_were_sent(raw: bool) -> None:
    agent = dragoman.Agent("Copies", description="Gives back parts.", input_modes=["*/*"], output_modes=["*/*"])

    @agent.task
    async def copy(ctx):  # type: ignore[no-untyped-def]
        await ctx.artifact(list(ctx.message.parts))

    parts = [
        Part(raw=b"aGVsbG8=", filename="looks-like-base64.txt", media_type="text/plain"),
        Part(raw=bytes(range(256)), media_type="application/octet-stream"),
        Part(url="https://files.example/a", media_type="image/png"),
        Part(data={"count": 3, "half": 0.5}),
        Part(data=[1, None, "x"]),
        Part(data=None),
        Part(text="ü", metadata={"lang": "de"}),
    ]
    settings = V03ServerSettings(raw_bytes=raw)
    async with (
        grpc_served(App(agent, v03=settings)) as server,
        dragoman.connect(interface(f"127.0.0.1:{server.port}"), v03=V03Settings(raw_bytes=raw)) as client,
    ):
        task = await client.send(parts)

    assert isinstance(task, Task)
    assert task.artifacts[0].parts == parts


@pytest.mark.req("V03-P01", "V03-01")
@pytest.mark.parametrize("kind", A2A_ERRORS)
async def test_every_error_comes_back_as_itself(kind: type[A2AError]) -> None:
    failing = [lambda inner: Failing(kind("some words", metadata={"a": "b"}))]
    async with talking(interceptors=failing) as client:
        with pytest.raises(kind) as unary:
            await client.get_task("t")
        with pytest.raises(kind) as stream:
            await anext(client.stream("x"))

    for refused in (unary.value, stream.value):
        assert (refused.message, refused.metadata) == ("some words", {"a": "b"})


@pytest.mark.req("V03-01")
async def test_webhooks_and_the_extended_card_are_as_with_1_0() -> None:
    async with talking(interceptors=[Keeping]) as client:
        config = TaskPushNotificationConfig(id="c", url="https://hooks.example/a", token="s")
        made = await client.create_push_config("t", config)
        same = await client.get_push_config("t", "c")
        listed = await client.list_push_configs("t")
        await client.delete_push_config("t", "c")
        left = await client.list_push_configs("t")
        card = await client.get_extended_card()

    assert made == same == TaskPushNotificationConfig(id="c", task_id="t", url="https://hooks.example/a", token="s")
    assert listed.configs == [made]
    assert left.configs == []
    assert (card.name, card.supported_interfaces[0].protocol_version) == ("Tide Desk", "0.3")


@pytest.mark.req("V03-01")
async def test_an_extended_card_that_there_is_not_is_its_own_error() -> None:
    async with talking() as client:
        with pytest.raises(ExtendedAgentCardNotConfiguredError):
            await client.get_extended_card()


@pytest.mark.req("V03-01")
async def test_what_0_3_has_no_words_for_is_refused_without_a_call() -> None:
    async with calling() as client:  # a server without a method
        with pytest.raises(UnsupportedOperationError, match=r"0\.3"):
            await client.list_tasks()
        with pytest.raises(UnsupportedOperationError, match=r"0\.3"):
            await client.operations.call(GET_TASK, GetTaskRequest(tenant="one", id="t"), CallContext())
        with pytest.raises(InvalidParamsError):
            await client.get_task("a/b")


@pytest.mark.req("V03-P23", "V03-01")
async def test_no_history_is_none_although_0_3_cannot_say_it() -> None:
    async with talking() as client:
        task = await client.send("hello")
        assert isinstance(task, Task)
        without = await client.get_task(task, history_length=0)
        whole = await client.get_task(task)

    assert without.history == []
    assert len(whole.history) == 1


@pytest.mark.req("V03-05")
async def test_an_agent_found_by_its_card_is_called_by_0_3_when_only_that_is_wanted() -> None:
    async with (
        serving(App(make_echo()), grpc=GrpcServerSettings(port=0)) as url,
        dragoman.connect(url, bindings=("GRPC",), versions=("0.3",)) as client,
    ):
        reply = await client.send("reply")

    assert isinstance(reply, Message)
    assert (client.interface.protocol_binding, client.interface.protocol_version) == ("GRPC", "0.3")


# With others.


@pytest.mark.req("V03-01", "V03-P05")
async def test_what_is_sent_says_everything_that_a_peer_looks_for() -> None:
    seen: list[Any] = []
    answer = answering("SendMessageResponse", {"task": working(state="TASK_STATE_COMPLETED")}, seen)
    async with calling(SendMessage=answer) as client:
        await client.send("hello", extensions=["https://ext.example/one"])
        await client.send("hello", wait=False)

    (first, metadata), (second, _) = seen
    found = oracle.read("SendMessageRequest", first)
    assert (found["message"]["role"], found["message"]["content"]) == ("ROLE_USER", [{"text": "hello"}])
    assert found["configuration"]["blocking"] is True
    assert oracle.read("SendMessageRequest", second)["configuration"].get("blocking", False) is False
    assert ("a2a-version", "0.3") in metadata
    assert ("x-a2a-extensions", "https://ext.example/one") in metadata
    assert not [key for key, _ in metadata if key == "a2a-extensions"]


@pytest.mark.req("V03-04", "V03-P06")
async def test_a_final_update_ends_the_stream_though_the_server_leaves_it_open() -> None:
    events = streaming(
        {"task": working()}, update("TASK_STATE_WORKING"), update("TASK_STATE_WORKING", final=True), leave_open=True
    )
    async with calling(SendStreamingMessage=events) as client, asyncio.timeout(BOUND):
        found = [event async for event in client.stream("hello")]

    assert [type(event) for event in found] == [Task, TaskStatusUpdateEvent, TaskStatusUpdateEvent]


@pytest.mark.req("V03-04", "V03-P16")
async def test_a_stream_that_begins_with_an_update_begins_with_a_task_here() -> None:
    events = streaming(update("TASK_STATE_SUBMITTED"), update("TASK_STATE_COMPLETED", final=True))
    async with calling(SendStreamingMessage=events) as client, asyncio.timeout(BOUND):
        first, *others = [event async for event in client.stream("hello")]

    assert isinstance(first, Task)
    assert (first.id, first.context_id) == ("t", "c")
    assert isinstance(others[-1], TaskStatusUpdateEvent)
    assert others[-1].status.state is TaskState.COMPLETED


@pytest.mark.req("V03-04")
async def test_a_connection_that_is_cut_is_followed_up_by_a_subscription() -> None:
    async def cut(data: bytes, context: Any) -> AsyncIterator[bytes]:
        yield oracle.write("StreamResponse", {"task": working()})

    again = streaming({"task": working()}, update("TASK_STATE_COMPLETED", final=True))
    async with calling(SendStreamingMessage=cut, TaskSubscription=again) as client, asyncio.timeout(BOUND):
        found = [event async for event in client.stream("hello")]

    assert isinstance(found[-1], TaskStatusUpdateEvent)
    assert found[-1].status.state is TaskState.COMPLETED


@pytest.mark.req("V03-P01")
@pytest.mark.parametrize(
    ("code", "text", "kind", "message"),
    [
        ("NOT_FOUND", "TaskNotFoundError: no such task", TaskNotFoundError, "no such task"),
        ("NOT_FOUND", "no such task", TaskNotFoundError, "no such task"),
        ("UNIMPLEMENTED", "TaskNotCancelableError: too late", TaskNotCancelableError, "too late"),
        ("UNIMPLEMENTED", "not here", UnsupportedOperationError, "not here"),
        ("UNKNOWN", "AuthenticatedExtendedCardNotConfiguredError: x", ExtendedAgentCardNotConfiguredError, "x"),
        ("INVALID_ARGUMENT", "what?", InvalidParamsError, "what?"),
        ("INTERNAL", "InvalidAgentResponseError: odd", InvalidAgentResponseError, "odd"),
        ("INTERNAL", "oh", InternalError, "oh"),
        ("UNAUTHENTICATED", "who?", UnauthenticatedError, "who?"),
        ("RESOURCE_EXHAUSTED", "slow", RateLimitedError, "slow"),
    ],
)
async def test_errors_are_told_by_the_name_in_front_and_else_by_the_status(
    code: str, text: str, kind: type[A2AError], message: str
) -> None:
    async with calling(GetTask=refusing(grpc.StatusCode[code], text)) as client:
        with pytest.raises(A2AError) as refused:
            await client.get_task("t")

    assert (type(refused.value), refused.value.message) == (kind, message)


@pytest.mark.req("V03-P01")
async def test_a_cancellation_that_comes_too_late_is_told_by_its_status_alone() -> None:
    refuse = refusing(grpc.StatusCode.FAILED_PRECONDITION, "too late")
    async with calling(CancelTask=refuse) as client:
        with pytest.raises(TaskNotCancelableError):
            await client.operations.call(CANCEL_TASK, CancelTaskRequest(id="t"), CallContext())


@pytest.mark.req("V03-P24")
async def test_an_answer_with_nearly_nothing_in_it_is_read() -> None:
    async with calling(GetTask=answering("Task", {"id": "t"})) as client:
        task = await client.get_task("t")

    assert (task.id, task.status.state, task.status.message) == ("t", TaskState.UNSPECIFIED, None)


async def test_an_answer_that_is_no_message_is_an_invalid_one() -> None:
    async def answer(data: bytes, context: Any) -> bytes:
        return b"\xff\xff"

    async with calling(GetTask=answer) as client:
        with pytest.raises(InvalidAgentResponseError):
            await client.get_task("t")


async def test_a_stream_with_a_message_that_is_none_is_an_invalid_one() -> None:
    async def broken(data: bytes, context: Any) -> AsyncIterator[bytes]:
        yield oracle.write("StreamResponse", {"task": working()})
        yield b"\xff\xff"

    async with calling(SendStreamingMessage=broken) as client, asyncio.timeout(BOUND):
        stream = client.stream("hello")
        assert isinstance(await anext(stream), Task)
        with pytest.raises(InvalidAgentResponseError):
            await anext(stream)


@pytest.mark.req("V03-P09")
@pytest.mark.parametrize(
    ("content", "raw", "read"),
    [(b"aGVsbG8=", False, b"hello"), (b"hello", False, b"hello"), (b"aGVsbG8=", True, b"aGVsbG8=")],
)
async def test_files_of_peers_are_read_by_either_habit(content: bytes, raw: bool, read: bytes) -> None:
    answer = oracle.new("Task")
    answer.id = "t"
    answer.artifacts.add().parts.add().file.file_with_bytes = content

    async def give(data: bytes, context: Any) -> bytes:
        return bytes(answer.SerializeToString())

    async with calling(V03Settings(raw_bytes=raw), GetTask=give) as client:
        task = await client.get_task("t")

    assert task.artifacts[0].parts[0].raw == read


@pytest.mark.req("V03-01")
@pytest.mark.parametrize("where", ["head", "tail"])
async def test_extensions_that_are_active_are_read_wherever_a_peer_tells_of_them(where: str) -> None:
    told = (("x-a2a-extensions", "https://ext.example/one"),)

    async def answer(data: bytes, context: Any) -> bytes:
        if where == "head":
            await context.send_initial_metadata(told)
        else:
            context.set_trailing_metadata(told)
        return oracle.write("Task", working())

    call = CallContext()
    async with calling(GetTask=answer) as client:
        await client.operations.call(GET_TASK, GetTaskRequest(id="t"), call)

    assert call.activated == ("https://ext.example/one",)


@pytest.mark.req("V03-06")
async def test_a_server_that_takes_1_0_only_is_an_error_that_says_so() -> None:
    async with talking(versions=("1.0",)) as client:
        with pytest.raises(A2AError, match=r"lf\.a2a\.v1\.A2AService"):
            await client.send("hello")


@pytest.mark.req("V03-06")
async def test_a_refusal_of_the_version_comes_back_as_one() -> None:
    refuse = refusing(grpc.StatusCode.FAILED_PRECONDITION, "VersionNotSupportedError: not that")
    async with calling(SendMessage=refuse) as client:
        with pytest.raises(VersionNotSupportedError):
            await client.send("hello")


async def test_a_server_that_is_not_there_is_told_as_with_1_0() -> None:
    async with scripted_old() as address:
        pass
    async with dragoman.connect(interface(address), connect_timeout=1.0) as client:
        with pytest.raises(ConnectError):
            await client.get_task("t")
