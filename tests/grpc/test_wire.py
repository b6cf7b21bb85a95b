"""The gRPC binding as a client that nobody here wrote sees it. Spec: §10."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import grpc
import pytest
from google.rpc import error_details_pb2
from grpc import aio

from dragoman import RESUMABLE_STREAMS, Agent
from dragoman import Caller as Identity
from dragoman.errors import PermissionDeniedError, RateLimitedError, UnauthenticatedError, UnavailableError
from dragoman.model import (
    AgentExtension,
    DeleteTaskPushNotificationConfigRequest,
    Empty,
    StreamResponse,
    decode_value,
)
from dragoman.ports.operations import CallContext, Event
from tests.client.local import FixedStream
from tests.conformance.raw import eventually
from tests.grpc.agents import make_echo, make_resumable
from tests.grpc.raw import VERSION, Caller, Refused, called, read, rest_of, say, write

EXTENSION = "https://x.example/ext/v1"


@pytest.mark.req("GRPC-01", "GRPC-02", "PARAM-06", "DATA-22")
async def test_unary_operations_answer_with_their_messages() -> None:
    async with called(make_echo()) as caller:
        sent = (await caller.call("SendMessage", say()))["task"]
        got = await caller.call("GetTask", {"id": sent["id"]})
        listed = await caller.call("ListTasks", {"pageSize": 5})
        reply = await caller.call("SendMessage", say("reply"))

    assert sent["status"]["state"] == "TASK_STATE_COMPLETED"
    assert sent["artifacts"][0]["parts"] == [{"text": "You said: hello"}]
    assert got == sent
    assert (listed["totalSize"], listed["pageSize"], listed["tasks"][0]["id"]) == (1, 5, sent["id"])
    assert reply["message"]["parts"] == [{"text": "direct"}]


@pytest.mark.req("GRPC-02", "STREAM-03", "STREAM-04")
async def test_streaming_operations_yield_stream_responses() -> None:
    async with called(make_echo()) as caller:
        events = await caller.events("SendStreamingMessage", say("count 3"))
        lone = await caller.events("SendStreamingMessage", say("reply"))

    assert [next(iter(event)) for event in events] == ["task", *["artifactUpdate"] * 3, "statusUpdate"]
    assert [list(event) for event in lone] == [["message"]]


@pytest.mark.req("SUB-01", "SUB-02", "STRM-01")
async def test_a_subscription_begins_with_the_task_and_ends_with_it() -> None:
    agent = make_echo()
    async with called(agent) as caller:
        sent = await caller.call("SendMessage", {**say("wait"), "configuration": {"returnImmediately": True}})
        call = caller.stream("SubscribeToTask", {"id": sent["task"]["id"]})
        first = read("SubscribeToTask", await call.read())
        agent.go.set()  # type: ignore[attr-defined]
        rest = await rest_of("SubscribeToTask", call)

    assert first["task"]["status"]["state"] == "TASK_STATE_WORKING"
    assert rest[-1]["statusUpdate"]["status"]["state"] == "TASK_STATE_COMPLETED"


@pytest.mark.req("GRPC-03")
async def test_delete_answers_with_the_empty_message() -> None:
    class Deleting:
        def __init__(self, inner: Any) -> None:
            self.stream = inner.stream

        async def call(self, op: Any, request: Any, context: CallContext) -> Any:
            assert request == DeleteTaskPushNotificationConfigRequest(task_id="t", id="c")
            return Empty()

    async with called(make_echo(), interceptors=[Deleting]) as caller:
        request = write("DeleteTaskPushNotificationConfig", {"taskId": "t", "id": "c"})
        answer = await caller.send("DeleteTaskPushNotificationConfig", request)

    assert answer == b""


NO_PUSH = "PUSH_NOTIFICATION_NOT_SUPPORTED"
ERRORS = [
    ("GetTask", {"id": "nobody"}, "NOT_FOUND", "TASK_NOT_FOUND"),
    ("SubscribeToTask", {"id": "nobody"}, "NOT_FOUND", "TASK_NOT_FOUND"),
    ("CancelTask", {"id": "done"}, "FAILED_PRECONDITION", "TASK_NOT_CANCELABLE"),
    ("SubscribeToTask", {"id": "done"}, "FAILED_PRECONDITION", "UNSUPPORTED_OPERATION"),
    ("SendMessage", say(taskId="done"), "FAILED_PRECONDITION", "UNSUPPORTED_OPERATION"),
    ("SendStreamingMessage", say(taskId="done"), "FAILED_PRECONDITION", "UNSUPPORTED_OPERATION"),
    ("ListTaskPushNotificationConfigs", {"taskId": "t"}, "FAILED_PRECONDITION", NO_PUSH),
    ("DeleteTaskPushNotificationConfig", {"taskId": "t", "id": "c"}, "FAILED_PRECONDITION", NO_PUSH),
    ("GetExtendedAgentCard", {}, "FAILED_PRECONDITION", "UNSUPPORTED_OPERATION"),
    ("SendMessage", say(parts=[{"text": "a", "mediaType": "x/y"}]), "INVALID_ARGUMENT", "CONTENT_TYPE_NOT_SUPPORTED"),
]  # fmt: skip


@pytest.mark.req("GRPC-04", "ERR-14", "ERR-15", "ERR-16", "ERR-18", "ERR-19", "ERR-20", "ERR-23", "ERR-24", "AMB-09")
@pytest.mark.parametrize(("op", "request_", "code", "reason"), ERRORS)
async def test_errors_are_statuses_with_packed_details_and_no_message_before(
    op: str, request_: Any, code: str, reason: str
) -> None:
    agent = make_echo(input_modes=["text/plain"])
    async with called(agent) as caller:
        done = (await caller.call("SendMessage", say()))["task"]["id"]
        ask = caller.events if op in ("SubscribeToTask", "SendStreamingMessage") else caller.call
        with pytest.raises(Refused) as refused:
            await ask(op, _with_id(request_, done))

    told = refused.value
    assert (told.code, told.reason) == (code, reason)
    assert told.status.message == told.text != ""
    assert told.status.code == grpc.StatusCode[code].value[0]


def _with_id(request: dict[str, Any], done: str) -> dict[str, Any]:
    if request.get("id") == "done":
        return {"id": done}
    message = request.get("message", {})
    return {"message": {**message, "taskId": done}} if message.get("taskId") == "done" else request


@pytest.mark.req("ERR-08", "ERR-16", "GRPC-04")
async def test_a_validation_error_names_its_fields_in_bad_request() -> None:
    async with called(make_echo()) as caller:
        with pytest.raises(Refused) as refused:
            await caller.call("SendMessage", {"message": {"parts": [{}]}})

    assert refused.value.code == "INVALID_ARGUMENT"
    assert refused.value.fields == ["message.messageId", "message.role", "message.parts[0]"]


@pytest.mark.req("ERR-12", "AMB-38", "SEC-10")
async def test_advice_to_come_back_is_a_retry_info() -> None:
    async with called(make_echo(), interceptors=[lambda inner: _Refusing(RateLimitedError(retry_after=1.5))]) as caller:
        with pytest.raises(Refused) as refused:
            await caller.call("GetTask", {"id": "t"})

    delay = refused.value.detail(error_details_pb2.RetryInfo).retry_delay
    assert (refused.value.code, delay.seconds, delay.nanos) == ("RESOURCE_EXHAUSTED", 1, 500_000_000)


class _Refusing:
    """Operations that fail."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    async def call(self, op: Any, request: Any, context: CallContext) -> Any:
        raise self._error

    stream = call


@pytest.mark.req("ERR-02", "ERR-03", "ERR-04", "AUTH-05", "GRPC-05")
async def test_identify_is_the_one_of_http_and_sees_metadata_as_headers() -> None:
    scopes = []

    async def identify(scope: Any) -> Identity:
        scopes.append(scope)
        token = dict(scope["headers"]).get(b"authorization", b"")
        if not token:
            raise UnauthenticatedError(metadata={"challenge": 'Bearer realm="agents"'})
        if token != b"Bearer right":
            raise PermissionDeniedError
        return Identity(id="somebody")

    async with called(make_echo(), identify=identify) as caller:
        with pytest.raises(Refused) as nobody:
            await caller.call("SendMessage", say())
        with pytest.raises(Refused) as stranger:
            await caller.events("SendStreamingMessage", say(), (*VERSION, ("authorization", "Bearer wrong")))
        task = await caller.call("SendMessage", say(), (*VERSION, ("authorization", "Bearer right")))

    assert (nobody.value.code, nobody.value.trailers["www-authenticate"]) == (
        "UNAUTHENTICATED",
        'Bearer realm="agents"',
    )
    assert stranger.value.code == "PERMISSION_DENIED"
    assert task["task"]["status"]["state"] == "TASK_STATE_COMPLETED"
    assert (scopes[0]["type"], scopes[0]["path"]) == ("grpc", "/lf.a2a.v1.A2AService/SendMessage")
    assert scopes[0]["client"][0] == "127.0.0.1"


# Service parameters.


@pytest.mark.req("PARAM-08", "VER-07", "VER-08", "AMB-17", "AMB-98")
@pytest.mark.parametrize(
    "metadata", [(), (("a2a-version", ""),), (("a2a-version", "99.0"),), (("a2a-version", "0.3"),)]
)
async def test_a_version_that_is_missing_or_not_served_is_refused(metadata: Any) -> None:
    async with called(make_echo()) as caller:
        with pytest.raises(Refused) as refused:
            await caller.call("SendMessage", say(), metadata)
        with pytest.raises(Refused) as streaming:
            await caller.events("SendStreamingMessage", say(), metadata)

    for told in (refused.value, streaming.value):
        assert (told.code, told.reason) == ("FAILED_PRECONDITION", "VERSION_NOT_SUPPORTED")
        assert told.detail(error_details_pb2.ErrorInfo).metadata["supportedVersions"] == "1.0"


@pytest.mark.req("AMB-17", "AMB-19")
async def test_a_version_may_be_inferred_or_have_a_patch_part() -> None:
    async with called(make_echo(), infer_version=True) as caller:
        assert await caller.call("SendMessage", say("reply"), ())
        assert await caller.call("SendMessage", say("reply"), (("a2a-version", "1.0.7"),))


@pytest.mark.req("PARAM-01", "PARAM-06", "PARAM-07", "EXT-02", "EXT-06", "EXT-09", "AMB-25", "B039")
@pytest.mark.parametrize(
    "asked",
    [
        (("a2a-extensions", f"https://other.example, {EXTENSION}"),),
        (("a2a-extensions", "https://other.example"), ("a2a-extensions", EXTENSION)),
        (("x-a2a-extensions", EXTENSION),),
    ],
    ids=["commas", "several entries", "the older name"],
)
async def test_extensions_are_asked_for_in_metadata_and_those_active_named_in_the_head(asked: Any) -> None:
    agent = make_echo(extensions=[AgentExtension(uri=EXTENSION)])
    async with called(agent) as caller:
        unary = caller.channel.unary_unary("/lf.a2a.v1.A2AService/SendMessage")(
            write("SendMessage", say()), metadata=(*VERSION, *asked)
        )
        await unary
        stream = caller.stream("SendStreamingMessage", say(), (*VERSION, *asked))
        heads = [dict(tuple(await call.initial_metadata())) for call in (unary, stream)]
        stream.cancel()
        plain = caller.channel.unary_unary("/lf.a2a.v1.A2AService/SendMessage")(
            write("SendMessage", say()), metadata=VERSION
        )
        await plain

    assert [head["a2a-extensions"] for head in heads] == [EXTENSION, EXTENSION]
    assert "a2a-extensions" not in dict(tuple(await plain.initial_metadata()))


@pytest.mark.req("PARAM-01", "PARAM-06", "SEC-09")
async def test_other_metadata_reaches_the_operations_and_shows_no_values_in_logs() -> None:
    seen: list[CallContext] = []

    class Watching:
        def __init__(self, inner: Any) -> None:
            self.stream = inner.stream
            self._inner = inner

        async def call(self, op: Any, request: Any, context: CallContext) -> Any:
            seen.append(context)
            return await self._inner.call(op, request, context)

    metadata = (*VERSION, ("x-trace", "one"), ("x-trace", "two"), ("x-data-bin", b"\x00"), ("authorization", "secret"))
    async with called(make_echo(), interceptors=[Watching]) as caller:
        await caller.call("SendMessage", say("reply"), metadata)

    assert seen[0].parameters["X-Trace"] == "one, two"
    assert "x-data-bin" not in seen[0].parameters
    assert "authorization" in repr(seen[0].parameters)
    assert "secret" not in repr(seen[0])
    assert seen[0].timeout is not None
    assert 0 < seen[0].timeout < 6


# Numbers.


@pytest.mark.req("EXT-10", "EXT-17", "STREAM-04", "STRM-03")
async def test_events_carry_their_numbers_for_those_who_asked_and_for_nobody_else() -> None:
    key = f"{RESUMABLE_STREAMS}/event"
    asking = (*VERSION, ("a2a-extensions", RESUMABLE_STREAMS))
    async with called(make_resumable()) as caller:
        numbered = await caller.events("SendStreamingMessage", say("count 2"), asking)
        plain = await caller.events("SendStreamingMessage", say("count 2"))
        task_id = numbered[0]["task"]["id"]
        resumed = await caller.events("SubscribeToTask", {"id": task_id}, (*asking, ("last-event-id", "2")))

    def number(event: Any) -> Any:
        return next(iter(event.values())).get("metadata", {}).get(key)

    assert [number(event) for event in numbered] == [1, 2, 3, 4]
    assert [number(event) for event in plain] == [None] * 4
    assert resumed == numbered[2:]


# The life of calls.


@pytest.mark.req("STRM-04", "SEND-08")
@pytest.mark.parametrize("how", ["cancelled", "deadline"])
async def test_a_call_that_is_given_up_leaves_the_task_alone(how: str) -> None:
    agent = make_echo()
    async with called(agent) as caller:
        call = caller.channel.unary_unary("/lf.a2a.v1.A2AService/SendMessage")(
            write("SendMessage", say("wait")), metadata=VERSION, timeout=0.2 if how == "deadline" else None
        )
        working = await eventually(lambda: tasks_of(caller))
        if how == "cancelled":
            call.cancel()
        with pytest.raises((aio.AioRpcError, asyncio.CancelledError)):
            await call
        agent.go.set()  # type: ignore[attr-defined]
        done = await eventually(lambda: tasks_of(caller, status="TASK_STATE_COMPLETED", includeArtifacts=True))

    assert done[0]["id"] == working[0]["id"]
    assert done[0]["artifacts"][0]["parts"] == [{"text": "You said: wait"}]


async def tasks_of(caller: Caller, **filters: Any) -> list[Any]:
    """The tasks that there are."""
    return list((await caller.call("ListTasks", filters)).get("tasks", []))


@pytest.mark.req("STRM-02", "STRM-04")
async def test_a_stream_that_is_given_up_leaves_its_neighbour_and_the_task_alone() -> None:
    agent = make_echo()
    async with called(agent) as caller:
        leaving = caller.stream("SendStreamingMessage", say("wait"))
        task_id = read("SendStreamingMessage", await leaving.read())["task"]["id"]
        staying = caller.stream("SubscribeToTask", {"id": task_id})
        await staying.read()
        leaving.cancel()
        agent.go.set()  # type: ignore[attr-defined]
        rest = await rest_of("SubscribeToTask", staying)

    assert rest[-1]["statusUpdate"]["status"]["state"] == "TASK_STATE_COMPLETED"


@pytest.mark.req("SEC-03")
async def test_a_stream_that_nobody_reads_is_ended_and_the_task_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "dragoman.bindings")
    agent = Agent("Talker", description="Talks a lot.")

    @agent.task
    async def talk(ctx):  # type: ignore[no-untyped-def]
        for _ in range(300):
            yield "x" * 100_000

    async with called(agent, stall_timeout=0.1) as caller:
        call = caller.stream("SendStreamingMessage", say())
        await call.read()
        await eventually(lambda: tasks_of(caller, status="TASK_STATE_COMPLETED"))
        await eventually(lambda: "unread" in caplog.text)
        with pytest.raises(aio.AioRpcError) as ended:
            await rest_of("SendStreamingMessage", call)

    assert ended.value.code().name == "UNAVAILABLE"
    assert "unread" in (ended.value.details() or "")


@pytest.mark.req("AMB-10", "GRPC-04", "ERR-18")
async def test_an_error_of_a_stream_that_has_begun_is_the_status_in_its_trailers() -> None:
    event = Event(decode_value(StreamResponse, {"message": say("x")["message"]}))

    class Breaking:
        def __init__(self, inner: Any) -> None:
            self.call = inner.call

        async def stream(self, op: Any, request: Any, context: CallContext) -> Any:
            return FixedStream([event], failure=UnavailableError("later", retry_after=2))

    async with called(make_echo(), interceptors=[Breaking]) as caller:
        call = caller.stream("SendStreamingMessage", say())
        first = await call.read()
        with pytest.raises(aio.AioRpcError) as broken:
            await call.read()

    assert read("SendStreamingMessage", first)["message"]["messageId"] == "m-1"
    told = Refused(broken.value)
    assert (told.code, told.text) == ("UNAVAILABLE", "later")
    assert told.detail(error_details_pb2.RetryInfo).retry_delay.seconds == 2
