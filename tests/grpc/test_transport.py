"""Our client over gRPC, against our server and against servers that nobody here wrote."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest
from grpc import aio

import dragoman
from dragoman import RESUMABLE_STREAMS, Client, Reconnect, TaskState
from dragoman.client import GrpcClientSettings
from dragoman.client.grpc_transport import GrpcTransport
from dragoman.errors import (
    CardError,
    ClientError,
    ConnectError,
    ConnectionLostError,
    InternalError,
    InvalidAgentResponseError,
    OutboundUrlError,
    PayloadTooLargeError,
    RemoteError,
    RequestTimeoutError,
    TaskNotFoundError,
    UnavailableError,
    UnsupportedOperationError,
)
from dragoman.http.guard import Resolver
from dragoman.model import (
    GET_TASK,
    SEND_STREAMING_MESSAGE,
    SUBSCRIBE_TO_TASK,
    AgentInterface,
    GetTaskRequest,
    Message,
    Part,
    Role,
    SendMessageRequest,
    StreamResponse,
    SubscribeToTaskRequest,
    Task,
    TaskStatus,
    encode_json,
)
from dragoman.ports.operations import CallContext
from dragoman.server import GrpcServerSettings
from tests.conformance.raw import eventually
from tests.grpc.agents import make_echo, make_resumable
from tests.grpc.raw import grpc_served, scripted
from tests.http.peer import free_url
from tests.model import oracle

TASK = Task(id="t-1", status=TaskStatus(state=TaskState.COMPLETED))


def interface(url: str, tenant: str = "") -> AgentInterface:
    return AgentInterface(url=url, protocol_binding="GRPC", protocol_version="1.0", tenant=tenant)


def message(text: str = "hello") -> SendMessageRequest:
    return SendMessageRequest(message=Message(message_id="m", role=Role.USER, parts=[Part(text=text)]))


def as_bytes(value: Any) -> bytes:
    """A message, by the protobuf library."""
    data: bytes = oracle.parse(type(value), encode_json(value)).SerializeToString()
    return data


@asynccontextmanager
async def transport(url: str, settings: GrpcClientSettings | None = None, **more: Any) -> AsyncIterator[GrpcTransport]:
    made = GrpcTransport(interface(url), settings, **more)
    try:
        yield made
    finally:
        await made.aclose()


@asynccontextmanager
async def connected(url: str, **more: Any) -> AsyncIterator[Client]:
    async with dragoman.connect(interface(url), **{"timeout": 5, **more}) as client:
        yield client


async def get(to: GrpcTransport, timeout: float | None = 5) -> Any:
    return await to.call(GET_TASK, GetTaskRequest(id="t-1"), CallContext(timeout=timeout))


async def subscribe(to: GrpcTransport, timeout: float | None = 5) -> Any:
    return await to.stream(SUBSCRIBE_TO_TASK, SubscribeToTaskRequest(id="t-1"), CallContext(timeout=timeout))


# What is sent.


@pytest.mark.req("GRPC-05", "PARAM-06", "PARAM-07", "VER-04", "EXT-02", "TEN-02", "CARD-10", "B039")
async def test_service_parameters_and_the_tenant_go_with_a_call() -> None:
    seen: list[Any] = []

    async def get_task(data: bytes, context: Any) -> bytes:
        seen.append((data, dict(context.invocation_metadata())))
        await context.send_initial_metadata((("a2a-extensions", "https://b.example"),))
        return as_bytes(TASK)

    async with scripted(GetTask=get_task) as url:
        made = GrpcTransport(interface(url, tenant="acme"))
        context = CallContext(extensions=("https://a.example", "https://b.example"), parameters={"X-Trace": "7"})
        answer = await made.call(GET_TASK, GetTaskRequest(id="t-1"), context)
        await made.aclose()

    request = oracle.new(GetTaskRequest)
    request.ParseFromString(seen[0][0])
    assert (request.tenant, request.id) == ("acme", "t-1")
    assert seen[0][1]["a2a-version"] == "1.0"
    assert seen[0][1]["a2a-extensions"] == "https://a.example, https://b.example"
    assert seen[0][1]["x-trace"] == "7"
    assert answer == TASK
    assert context.activated == ("https://b.example",)


@pytest.mark.req("SEND-08")
async def test_the_deadline_goes_with_a_call_and_none_with_a_stream() -> None:
    left: list[float | None] = []

    async def get_task(data: bytes, context: Any) -> bytes:
        left.append(context.time_remaining())
        return as_bytes(TASK)

    async def stream(data: bytes, context: Any) -> None:
        left.append(context.time_remaining())
        await context.write(as_bytes(StreamResponse(task=TASK)))

    async with scripted(GetTask=get_task, SubscribeToTask=stream) as url, transport(url) as to:
        await get(to, timeout=30)
        await get(to, timeout=None)
        async for _ in await subscribe(to, timeout=30):
            pass

    assert left[0] is not None
    assert 20 < left[0] < 31
    assert left[1:] == [None, None]


# Failures.


@pytest.mark.req("CARD-12")
async def test_nobody_there_is_a_connect_error_with_the_reason() -> None:
    async with transport(free_url().removeprefix("http://")) as to:
        with pytest.raises(ConnectError, match="refused"):
            await get(to)
        with pytest.raises(ConnectError, match="refused"):
            await subscribe(to)


async def test_a_name_that_there_is_not_is_a_connect_error() -> None:
    async with transport("http://no-such-host.invalid:1") as to:
        with pytest.raises(ConnectError):
            await get(to)


async def test_a_host_that_does_not_answer_is_a_connect_error_in_time() -> None:
    server = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with transport(f"127.0.0.1:{port}", connect_timeout=0.2) as hasty:
        with pytest.raises(ConnectError):
            await get(hasty)
    async with server, transport(f"127.0.0.1:{port}", connect_timeout=30) as patient:
        with pytest.raises(RequestTimeoutError):
            await get(patient, timeout=0.1)


async def test_it_connects_again_as_soon_as_somebody_is_there() -> None:
    async with grpc_served(make_echo()) as server:
        port = server.port
    async with transport(f"127.0.0.1:{port}") as to:
        with pytest.raises(ConnectError):
            await get(to)
        async with grpc_served(make_echo(), GrpcServerSettings(port=port)):

            async def there() -> bool:
                try:
                    await get(to)
                except TaskNotFoundError:
                    return True
                except ConnectError:
                    return False
                return False

            assert await eventually(there)


@pytest.mark.req("CARD-09", "CARD-12")
async def test_another_interface_is_taken_when_grpc_cannot_be_reached() -> None:
    async with grpc_served(make_echo()) as server:
        card = await server._app.start()
        dead = interface(free_url().removeprefix("http://"))
        card.supported_interfaces[:] = [dead, server.interface]
        async with dragoman.connect(card, timeout=5) as client:
            await client.send("reply")

            assert client.interface.url == server.interface.url


@pytest.mark.req("SEND-08")
async def test_a_call_that_takes_too_long_is_a_timeout_and_the_task_goes_on() -> None:
    agent = make_echo()
    async with grpc_served(agent) as server, connected(server.interface.url) as client:
        with pytest.raises(RequestTimeoutError):
            await client.send("wait", timeout=0.2)
        task = (await client.list_tasks()).tasks[0]
        agent.go.set()  # type: ignore[attr-defined]
        done = await client.wait(task.id)

    assert done.state is TaskState.COMPLETED


async def test_a_stream_that_does_not_open_in_time_is_a_timeout() -> None:
    async def silent(data: bytes, context: Any) -> None:
        await asyncio.sleep(30)

    async with scripted(SubscribeToTask=silent) as url, transport(url) as to:
        with pytest.raises(RequestTimeoutError):
            await subscribe(to, timeout=0.2)


@pytest.mark.req("STREAM-10", "AMB-10")
async def test_a_server_that_dies_under_a_stream_is_a_lost_connection_after_what_came() -> None:
    async def stream(data: bytes, context: Any) -> None:
        await context.write(as_bytes(StreamResponse(task=TASK)))
        await asyncio.sleep(30)

    async with transport("127.0.0.1:1") as to:
        async with scripted(SubscribeToTask=stream) as url:
            to = GrpcTransport(interface(url))
            opened = await subscribe(to)
            first = await opened.next_batch()
        with pytest.raises((ConnectionLostError, UnavailableError)):
            await opened.next_batch()
        await opened.aclose()
        await to.aclose()

    assert first[0].response.task == TASK


async def test_calls_of_a_client_that_was_closed_are_client_errors() -> None:
    async def slow(data: bytes, context: Any) -> bytes:
        await asyncio.sleep(30)
        return b""

    async with scripted(GetTask=slow) as url:
        to = GrpcTransport(interface(url))
        waiting = asyncio.create_task(get(to))
        await eventually(lambda: to._channel is not None)
        await asyncio.sleep(0.05)  # until the call is under way
        await to.aclose()
        with pytest.raises(ClientError):
            await waiting
        with pytest.raises(ClientError, match="closed"):
            await get(to)
        await to.aclose()


@pytest.mark.req("B037")
async def test_statuses_without_details_are_read_by_their_code() -> None:
    codes = iter([grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN])

    async def refuse(data: bytes, context: Any) -> bytes:
        await context.abort(next(codes), "some words")
        return b""

    async with scripted(GetTask=refuse) as url, transport(url) as to:
        for kind in (UnavailableError, InternalError, RemoteError):
            with pytest.raises(kind, match="some words") as told:
                await get(to)
            assert told.value.origin.url == url


@pytest.mark.req("AMB-37", "AMB-43")
async def test_an_answer_that_is_no_message_is_an_invalid_agent_response() -> None:
    async def garbage(data: bytes, context: Any) -> bytes:
        return b"\x0a\xff\xff"

    async def stream(data: bytes, context: Any) -> None:
        await context.write(as_bytes(StreamResponse(task=TASK)))
        await context.write(b"\x0a\xff\xff")
        await asyncio.sleep(30)

    async with scripted(GetTask=garbage, SubscribeToTask=stream) as url, transport(url) as to:
        with pytest.raises(InvalidAgentResponseError):
            await get(to)
        opened = await subscribe(to)
        assert [event.response.task async for event in _until_error(opened)] == [TASK]
        with pytest.raises(InvalidAgentResponseError):
            await opened.next_batch()
        await opened.aclose()


async def _until_error(stream: Any) -> AsyncIterator[Any]:
    try:
        async for event in stream:
            yield event
    except InvalidAgentResponseError:
        return


@pytest.mark.req("SEC-03")
async def test_an_answer_that_is_too_large_is_refused_here_and_a_request_there() -> None:
    async with grpc_served(make_echo(), max_body_bytes=100_000) as server:
        url = server.interface.url
        async with connected(url, grpc=GrpcClientSettings(max_message_bytes=10_000)) as client:
            with pytest.raises(InvalidAgentResponseError, match="larger than 10000 bytes"):
                await client.send("x" * 50_000)
            with pytest.raises(PayloadTooLargeError):
                await client.send("x" * 150_000)


@pytest.mark.req("AMB-09")
@pytest.mark.parametrize("early_head", [True, False])
async def test_an_error_instead_of_a_stream_is_raised_when_it_is_opened(early_head: bool) -> None:
    async def refuse(data: bytes, context: Any) -> None:
        if early_head:
            await context.send_initial_metadata((("server", "odd"),))
        await context.abort(grpc.StatusCode.NOT_FOUND, "no such task")

    async with scripted(SubscribeToTask=refuse) as url, transport(url) as to:
        with pytest.raises(TaskNotFoundError):
            await subscribe(to)


@pytest.mark.req("AMB-09", "STREAM-10")
async def test_a_stream_of_another_server_that_is_silent_after_its_head_is_open_all_the_same() -> None:
    go = asyncio.Event()

    async def stream(data: bytes, context: Any) -> None:
        await context.send_initial_metadata(())
        await go.wait()
        await context.write(as_bytes(StreamResponse(task=TASK)))

    async with scripted(SubscribeToTask=stream) as url, transport(url) as to:
        opened = await subscribe(to)
        go.set()

        assert [event.response.task async for event in opened] == [TASK]


async def test_empty_events_are_passed_over_and_many_come_in_batches() -> None:
    async def stream(data: bytes, context: Any) -> None:
        await context.write(b"")
        for _ in range(1000):
            await context.write(as_bytes(StreamResponse(task=TASK)))

    async with scripted(SubscribeToTask=stream) as url, transport(url) as to:
        opened = await subscribe(to)
        await asyncio.sleep(0.05)  # so that some are read ahead
        sizes = []
        while batch := await opened.next_batch():
            sizes.append(len(batch))

    assert sum(sizes) == 1000
    assert 1 < max(sizes) <= 256


@pytest.mark.req("STREAM-10")
async def test_a_cancelled_wait_for_events_loses_none() -> None:
    go = asyncio.Event()

    async def stream(data: bytes, context: Any) -> None:
        await context.send_initial_metadata((("a2a-version", "1.0"),))
        await go.wait()
        await context.write(as_bytes(StreamResponse(task=TASK)))

    async with scripted(SubscribeToTask=stream) as url, transport(url) as to:
        opened = await subscribe(to)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(opened.next_batch(), 0.05)
        go.set()

        assert [event.response.task async for event in opened] == [TASK]
        assert await opened.next_batch() == []
        await opened.aclose()
        await opened.aclose()


# Addresses.


@pytest.mark.req("AMB-77", "CARD-11")
async def test_an_address_that_is_none_is_a_card_error() -> None:
    with pytest.raises(CardError):
        GrpcTransport(interface("https://agent.example/a2a"))
    with pytest.raises(CardError):
        async with dragoman.connect(interface("https://agent.example/a2a")):
            pass


def resolving(*addresses: str) -> Resolver:
    async def resolve(host: str, port: int) -> Any:
        return addresses

    return resolve


@pytest.mark.req("SEC-15", "AMB-71")
@pytest.mark.parametrize("url", ["127.0.0.1:1", "localhost:1", "agent.example:1", "[::1]:1"])
async def test_private_addresses_are_refused_when_they_are_not_wanted(url: str) -> None:
    async with transport(url, allow_private=False, resolver=resolving("10.0.0.1")) as to:
        with pytest.raises(OutboundUrlError):
            await get(to)


@pytest.mark.req("SEC-15", "AMB-71")
@pytest.mark.parametrize(("address", "target"), [("8.8.8.8", "8.8.8.8:7"), ("2001:4860::1", "[2001:4860::1]:7")])
async def test_a_public_address_is_connected_to_as_it_was_checked(
    address: str, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    dialed: list[Any] = []

    def channel(target: str, options: Any) -> Any:
        dialed.append((target, dict(options)["grpc.default_authority"]))
        raise ConnectError("as far as this test goes")

    monkeypatch.setattr(aio, "insecure_channel", channel)
    async with transport("http://agent.example:7", allow_private=False, resolver=resolving(address)) as to:
        with pytest.raises(ConnectError):
            await get(to)

    assert dialed == [(target, "agent.example:7")]


# Resuming.


@pytest.mark.req("SUB-07", "STREAM-10", "EXT-17")
async def test_events_have_numbers_and_a_stream_goes_on_where_it_was_cut() -> None:
    async with grpc_served(make_resumable()) as server, transport(server.interface.url) as to:
        context = CallContext(extensions=(RESUMABLE_STREAMS,))
        opened = await to.stream(SEND_STREAMING_MESSAGE, message("count 5"), context)
        events = [event async for event in opened]
        task_id = events[0].response.task.id
        again = CallContext(extensions=(RESUMABLE_STREAMS,), last_event_id=3)
        resumed = await to.stream(SUBSCRIBE_TO_TASK, SubscribeToTaskRequest(id=task_id), again)
        rest = [event async for event in resumed]

    assert context.activated == (RESUMABLE_STREAMS,)
    assert [event.number for event in events] == [1, 2, 3, 4, 5, 6, 7]
    assert [event.number for event in rest] == [4, 5, 6, 7]
    assert [event.response for event in rest] == [event.response for event in events[3:]]
    assert all(event.response.artifact_update.metadata is None for event in events[1:6])


@pytest.mark.req("SUB-03", "AMB-08")
async def test_subscribing_to_a_finished_task_is_refused_at_once() -> None:
    async with grpc_served(make_echo()) as server, connected(server.interface.url) as client:
        task = await client.send("hello")
        with pytest.raises(UnsupportedOperationError):
            async with transport(server.interface.url) as to:
                await to.stream(SUBSCRIBE_TO_TASK, SubscribeToTaskRequest(id=task.id), CallContext())


@pytest.mark.req("STREAM-10", "SUB-07")
async def test_a_client_comes_back_to_its_stream_by_itself() -> None:
    agent = make_resumable()
    app = dragoman.App(agent, limits=dragoman.Limits(shutdown_grace=0.2, lease=2))
    async with grpc_served(app) as server:
        card = app.card("http://127.0.0.1:1")
        card.supported_interfaces[:] = [server.interface]
        async with dragoman.connect(card, reconnect=Reconnect(first=0.01, attempts=50)) as client:
            stream = client.stream("wait")
            await anext(stream)
            stream._stream._call.cancel()  # type: ignore[union-attr]
            agent.go.set()  # type: ignore[attr-defined]
            kinds = [type(event).__name__ async for event in stream]

    assert kinds == ["TaskStatusUpdateEvent", "TaskArtifactUpdateEvent", "TaskStatusUpdateEvent"]
