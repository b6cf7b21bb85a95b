"""Our server, called over a2a.v1 by somebody else."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest
from grpc import aio
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from dragoman import RESUMABLE_STREAMS, Agent, App
from dragoman.errors import (
    A2A_ERRORS,
    A2AError,
    InternalError,
    InvalidParamsError,
    MethodNotFoundError,
    RateLimitedError,
    UnauthenticatedError,
    UnavailableError,
)
from dragoman.model import Part, StreamResponse, decode_value
from dragoman.ports.operations import CallContext, Event
from dragoman.server import GrpcServerSettings, V03ServerSettings
from tests.client.local import FixedStream
from tests.compat.grpc.raw import SERVICE, OldCaller, called_old, events_of, next_event, say
from tests.compat.grpc.stand_ins import Failing, Keeping, Watching
from tests.conformance.raw import eventually
from tests.grpc.agents import make_echo
from tests.grpc.raw import BOUND, QUICK, Caller, Refused, grpc_served
from tests.grpc.raw import say as say_in_1_0

NEW = "lf.a2a.v1.A2AService"
OLD = "a2a.v1.A2AService"


def told(text: str) -> dict[str, Any]:
    """A message as it is in a history."""
    return {"messageId": "m-1", "role": "ROLE_USER", "content": [{"text": text}]}


def states(events: list[Any]) -> list[Any]:
    """State and ``final`` of the status updates."""
    updates = [event["statusUpdate"] for event in events if "statusUpdate" in event]
    return [(update["status"]["state"], update.get("final", False)) for update in updates]


# Messages.


@pytest.mark.req("V03-01", "V03-08")
async def test_a_message_is_answered_with_its_task_when_that_is_done() -> None:
    async with called_old(make_echo()) as old:
        answer = await old.call("SendMessage", say("hello"))

    task = answer["task"]
    assert task["status"]["state"] == "TASK_STATE_COMPLETED"
    assert task["artifacts"][0]["parts"] == [{"text": "You said: hello"}]
    assert [message["content"] for message in task["history"]] == [[{"text": "hello"}]]
    assert task["history"][0]["taskId"] == task["id"]


@pytest.mark.req("V03-01")
async def test_a_direct_answer_is_a_message() -> None:
    async with called_old(make_echo()) as old:
        answer = await old.call("SendMessage", say("reply"))
        (event,) = await old.events("SendStreamingMessage", say("reply"))

    for message in (answer["message"], event["message"]):
        assert (message["role"], message["content"]) == ("ROLE_AGENT", [{"text": "direct"}])


@pytest.mark.req("V03-P05", "V03-01")
async def test_a_configuration_that_does_not_say_blocking_returns_at_once() -> None:
    agent = make_echo()
    async with called_old(agent) as old:
        answer = await old.call("SendMessage", say("wait", {"acceptedOutputModes": ["text/plain"]}))
        agent.go.set()  # type: ignore[attr-defined]
        waited = await old.call("SendMessage", say("wait", {"blocking": True}))

    assert answer["task"]["status"]["state"] in ("TASK_STATE_SUBMITTED", "TASK_STATE_WORKING")
    assert waited["task"]["status"]["state"] == "TASK_STATE_COMPLETED"


@pytest.mark.req("V03-P23")
async def test_a_history_length_of_nothing_is_all_of_it() -> None:
    async with called_old(make_echo()) as old:
        task = (await old.call("SendMessage", say("ask")))["task"]
        await old.call("SendMessage", say("me", taskId=task["id"], messageId="m-2"))
        whole = await old.call("GetTask", {"name": f"tasks/{task['id']}"})
        last = await old.call("GetTask", {"name": f"tasks/{task['id']}", "historyLength": 1})

    assert len(whole["history"]) > 1
    assert last["history"] == whole["history"][-1:]


@pytest.mark.req("V03-P09", "V03-07")
@pytest.mark.parametrize(
    ("raw", "wire"), [(False, "YUdWc2JHOD0="), (True, "aGVsbG8=")], ids=["base64 text", "content as it is"]
)
async def test_the_content_of_files_is_written_and_read_by_the_habit_that_is_set(raw: bool, wire: str) -> None:
    agent = Agent("Copies", description="Gives back files.", input_modes=["*/*"], output_modes=["*/*"])

    @agent.task
    async def copy(ctx):  # type: ignore[no-untyped-def]
        (part,) = ctx.message.parts
        await ctx.artifact(Part(raw=part.raw + b"!", filename=part.filename, media_type=part.media_type))

    file = {"file": {"fileWithBytes": wire, "mimeType": "text/plain", "name": "h.txt"}}
    async with called_old(agent, v03=V03ServerSettings(raw_bytes=raw)) as old:
        task = (await old.call("SendMessage", say(content=[file])))["task"]

    part = task["artifacts"][0]["parts"][0]["file"]
    assert part == {
        "fileWithBytes": "aGVsbG8h" if raw else "YUdWc2JHOGg=",
        "mimeType": "text/plain",
        "name": "h.txt",
    }


@pytest.mark.req("V03-07")
async def test_data_that_is_no_object_is_wrapped_and_whole_numbers_stay_whole() -> None:
    agent = Agent("Data", description="Gives back data.", input_modes=["*/*"], output_modes=["*/*"])
    seen: list[Any] = []

    @agent.task
    async def copy(ctx):  # type: ignore[no-untyped-def]
        seen.extend(part.data for part in ctx.message.parts)
        await ctx.artifact(Part(data=[1, 2.5]))

    data = [
        {"data": {"data": {"count": 3}}},
        {"data": {"data": {"value": 7}}, "metadata": {"data_part_compat": True}},
    ]
    async with called_old(agent) as old:
        task = (await old.call("SendMessage", say(content=data)))["task"]

    assert repr(seen) == "[{'count': 3}, 7]"
    part = task["artifacts"][0]["parts"][0]
    assert part == {"data": {"data": {"value": [1, 2.5]}}, "metadata": {"data_part_compat": True}}


# Streams.


@pytest.mark.req("V03-04", "V03-P06", "V03-P07", "V03-P16")
async def test_a_stream_is_a_task_then_updates_of_which_the_last_is_final() -> None:
    async with called_old(make_echo()) as old:
        events = await old.events("SendStreamingMessage", say("count 3"))

    kinds = [next(iter(event)) for event in events]
    assert kinds[0] == "task"
    assert "task" not in kinds[1:]
    assert set(kinds[1:-1]) <= {"statusUpdate", "artifactUpdate"}
    assert states(events)[-1] == ("TASK_STATE_COMPLETED", True)
    assert [final for _, final in states(events)[:-1]].count(True) == 0
    assert kinds[-1] == "statusUpdate"


@pytest.mark.req("V03-04", "V03-P06")
async def test_a_stream_ends_when_the_agent_asks_and_the_task_goes_on() -> None:
    async with called_old(make_echo()) as old:
        events = await old.events("SendStreamingMessage", say("ask"))
        task_id = events[0]["task"]["id"]
        goes_on = await old.events("SendStreamingMessage", say("Ann", taskId=task_id, messageId="m-2"))

    assert states(events)[-1] == ("TASK_STATE_INPUT_REQUIRED", True)
    assert states(goes_on)[-1] == ("TASK_STATE_COMPLETED", True)


@pytest.mark.req("V03-P17", "V03-01")
async def test_a_subscription_begins_with_the_task_and_one_to_a_task_that_is_over_is_the_task() -> None:
    agent = make_echo()
    async with called_old(agent) as old:
        first = old.stream("SendStreamingMessage", say("wait"))
        task_id = (await next_event(first))["task"]["id"]
        second = old.stream("TaskSubscription", {"name": f"tasks/{task_id}"})
        begins = await next_event(second)
        agent.go.set()  # type: ignore[attr-defined]
        rest, same = await asyncio.gather(events_of(first), events_of(second))
        over = await old.events("TaskSubscription", {"name": f"tasks/{task_id}"})

    assert begins["task"]["id"] == task_id
    assert rest[-1] == same[-1]
    assert states(rest)[-1] == ("TASK_STATE_COMPLETED", True)
    assert [event["task"]["status"]["state"] for event in over] == ["TASK_STATE_COMPLETED"]


@pytest.mark.req("V03-04")
async def test_a_client_that_leaves_does_not_stop_the_task() -> None:
    agent = make_echo()
    async with called_old(agent) as old:
        call = old.stream("SendStreamingMessage", say("wait"))
        task_id = (await next_event(call))["task"]["id"]
        call.cancel()
        agent.go.set()  # type: ignore[attr-defined]

        async def is_completed() -> bool:
            task = await old.call("GetTask", {"name": f"tasks/{task_id}"})
            return bool(task["status"]["state"] == "TASK_STATE_COMPLETED")

        await eventually(is_completed)


@pytest.mark.req("V03-04")
async def test_an_agent_that_breaks_ends_the_stream_with_a_final_failure(caplog: pytest.LogCaptureFixture) -> None:
    agent = Agent("Broken", description="Breaks.")

    @agent.task
    async def broken(ctx):  # type: ignore[no-untyped-def]
        raise ValueError("a secret")

    async with called_old(agent) as old:
        with caplog.at_level(logging.CRITICAL):
            events = await old.events("SendStreamingMessage", say())

    assert states(events)[-1] == ("TASK_STATE_FAILED", True)
    assert "secret" not in repr(events)


# Tasks.


@pytest.mark.req("V03-01")
async def test_a_task_is_canceled_unless_it_is_done() -> None:
    async with called_old(make_echo()) as old:
        task = (await old.call("SendMessage", say("wait", {"blocking": False})))["task"]
        canceled = await old.call("CancelTask", {"name": f"tasks/{task['id']}"})
        done = (await old.call("SendMessage", say()))["task"]
        with pytest.raises(Refused) as late:
            await old.call("CancelTask", {"name": f"tasks/{done['id']}"})

    assert canceled["status"]["state"] == "TASK_STATE_CANCELLED"
    assert (late.value.code, late.value.reason) == ("FAILED_PRECONDITION", "TASK_NOT_CANCELABLE")
    assert late.value.text.startswith("TaskNotCancelableError: ")


@pytest.mark.req("V03-01")
async def test_both_generations_see_the_same_tasks_on_the_same_port() -> None:
    async with called_old(make_echo()) as old:
        new = Caller(old.channel)
        made_by_old = (await old.call("SendMessage", say("a")))["task"]["id"]
        made_by_new = (await new.call("SendMessage", say_in_1_0("b")))["task"]["id"]
        seen_by_new = await new.call("GetTask", {"id": made_by_old})
        seen_by_old = await old.call("GetTask", {"name": f"tasks/{made_by_new}"})

    assert seen_by_new["history"][0]["parts"] == [{"text": "a"}]
    assert seen_by_old["history"][0]["content"] == [{"text": "b"}]


@pytest.mark.req("V03-01")
@pytest.mark.parametrize("name", ["/tasks/{}", "tasks/{}", "tasks/{}/pushNotificationConfigs"])
async def test_a_task_is_found_by_names_as_peers_write_them(name: str) -> None:
    async with called_old(make_echo()) as old:
        task = (await old.call("SendMessage", say()))["task"]
        found = await old.call("GetTask", {"name": name.format(task["id"])})

    assert found == task


@pytest.mark.req("V03-01")
async def test_tasks_cannot_be_listed() -> None:
    async with called_old(make_echo()) as old:
        with pytest.raises(Refused) as refused:
            await old.call("ListTasks")

    assert (refused.value.code, refused.value.reason) == ("UNIMPLEMENTED", "UNSUPPORTED_OPERATION")


# Webhooks and the extended card.

CONFIG = {"pushNotificationConfig": {"id": "c", "url": "https://hooks.example/a", "token": "s"}}
PUSH_CALLS = [
    ("CreateTaskPushNotificationConfig", {"parent": "tasks/t", "configId": "c", "config": CONFIG}),
    ("GetTaskPushNotificationConfig", {"name": "tasks/t/pushNotificationConfigs/c"}),
    ("GetTaskPushNotificationConfig", {"name": "tasks/t"}),
    ("ListTaskPushNotificationConfig", {"parent": "tasks/t"}),
    ("DeleteTaskPushNotificationConfig", {"name": "tasks/t/pushNotificationConfigs/c"}),
]


@pytest.mark.req("V03-01")
@pytest.mark.parametrize(("method", "request_value"), PUSH_CALLS)
async def test_webhooks_that_the_agent_does_not_take_are_refused_by_name(method: str, request_value: Any) -> None:
    async with called_old(make_echo()) as old:
        with pytest.raises(Refused) as refused:
            await old.call(method, request_value)

    assert (refused.value.code, refused.value.reason) == ("UNIMPLEMENTED", "PUSH_NOTIFICATION_NOT_SUPPORTED")
    assert refused.value.text.startswith("PushNotificationNotSupportedError: ")


@pytest.mark.req("V03-01", "V03-P18", "V03-P19")
async def test_webhooks_are_set_read_listed_and_deleted_with_and_without_ids() -> None:
    nameless = {"pushNotificationConfig": {"url": "https://hooks.example/b"}}
    async with called_old(make_echo(), interceptors=[Keeping]) as old:
        made = await old.call(*PUSH_CALLS[0])
        same = await old.call(*PUSH_CALLS[1])
        own = await old.call("CreateTaskPushNotificationConfig", {"parent": "tasks/t", "config": nameless})
        by_task = await old.call("GetTaskPushNotificationConfig", {"name": "tasks/t/pushNotificationConfigs/None"})
        listed = await old.call("ListTaskPushNotificationConfig", {"parent": "tasks/t"})
        deleted = await old.call(*PUSH_CALLS[4])
        left = await old.call("ListTaskPushNotificationConfig", {"parent": "tasks/t"})

    assert made == same == {"name": "tasks/t/pushNotificationConfigs/c", **CONFIG}
    assert own == by_task
    assert own["name"] == "tasks/t/pushNotificationConfigs/t"
    assert listed["configs"] == [made, own]
    assert deleted == {}
    assert left["configs"] == [own]


@pytest.mark.req("V03-01", "V03-05")
async def test_the_card_is_the_extended_one_in_the_form_of_0_3() -> None:
    async with called_old(make_echo(), interceptors=[Keeping]) as old:
        card = await old.call("GetAgentCard")

    assert (card["name"], card["protocolVersion"], card["preferredTransport"]) == ("Tide Desk", "0.3.0", "GRPC")
    assert card["supportsAuthenticatedExtendedCard"] is True


@pytest.mark.req("V03-01")
async def test_no_extended_card_has_its_own_error() -> None:
    async with called_old(make_echo()) as old:
        with pytest.raises(Refused) as refused:
            await old.call("GetAgentCard")

    assert refused.value.code == "UNIMPLEMENTED"
    assert refused.value.text.startswith("AuthenticatedExtendedCardNotConfiguredError: ")
    assert refused.value.reason == "EXTENDED_AGENT_CARD_NOT_CONFIGURED"


# Errors.

STATUSES = {
    "TASK_NOT_FOUND": "NOT_FOUND",
    "TASK_NOT_CANCELABLE": "FAILED_PRECONDITION",
    "PUSH_NOTIFICATION_NOT_SUPPORTED": "UNIMPLEMENTED",
    "UNSUPPORTED_OPERATION": "UNIMPLEMENTED",
    "CONTENT_TYPE_NOT_SUPPORTED": "UNIMPLEMENTED",
    "INVALID_AGENT_RESPONSE": "INTERNAL",
    "EXTENDED_AGENT_CARD_NOT_CONFIGURED": "UNIMPLEMENTED",
    "EXTENSION_SUPPORT_REQUIRED": "FAILED_PRECONDITION",
    "VERSION_NOT_SUPPORTED": "FAILED_PRECONDITION",
}


@pytest.mark.req("V03-P01", "V03-01")
@pytest.mark.parametrize("kind", A2A_ERRORS)
async def test_every_error_has_its_status_its_name_and_its_reason_in_calls_and_in_streams(kind: type[A2AError]) -> None:
    async with called_old(make_echo(), interceptors=[lambda inner: Failing(kind("some words"))]) as old:
        with pytest.raises(Refused) as unary:
            await old.call("GetTask", {"name": "tasks/t"})
        with pytest.raises(Refused) as stream:
            await old.events("SendStreamingMessage", say())

    for refused in (unary.value, stream.value):
        assert (refused.code, refused.reason) == (STATUSES[kind.reason], kind.reason)
        assert refused.text.endswith("Error: some words")


@pytest.mark.req("V03-P01")
@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (InvalidParamsError("bad"), "INVALID_ARGUMENT", "InvalidParamsError: bad"),
        (InternalError("oh"), "INTERNAL", "InternalError: oh"),
        (MethodNotFoundError("which"), "NOT_FOUND", "MethodNotFoundError: which"),
        (UnauthenticatedError("who"), "UNAUTHENTICATED", None),
        (RateLimitedError("slow"), "RESOURCE_EXHAUSTED", None),
        (ValueError("a secret"), "INTERNAL", "InternalError: Internal error"),
    ],
)
async def test_other_errors_have_theirs(error: Exception, code: str, text: str | None) -> None:
    async with called_old(make_echo(), interceptors=[lambda inner: Failing(error)]) as old:
        with pytest.raises(Refused) as refused:
            await old.call("GetTask", {"name": "tasks/t"})

    assert refused.value.code == code
    assert text is None or refused.value.text == text
    assert "secret" not in repr(refused.value.trailers)


@pytest.mark.req("V03-P01", "V03-04")
async def test_an_error_of_a_stream_that_has_begun_is_its_status() -> None:
    class Breaking:
        def __init__(self, inner: Any) -> None:
            self.call = inner.call

        async def stream(self, op: Any, request: Any, context: CallContext) -> Any:
            task = {"id": "t", "contextId": "c", "status": {"state": "TASK_STATE_WORKING"}}
            return FixedStream([Event(decode_value(StreamResponse, {"task": task}))], failure=UnavailableError("later"))

    async with called_old(make_echo(), interceptors=[Breaking]) as old:
        call = old.stream("SendStreamingMessage", say())
        first = await next_event(call)
        with pytest.raises(aio.AioRpcError) as broken:
            await next_event(call)

    assert first["task"]["id"] == "t"
    assert broken.value.code().name == "UNAVAILABLE"


# Bad input.


@pytest.mark.req("V03-01")
@pytest.mark.parametrize(
    ("method", "request_value", "field"),
    [
        ("SendMessage", {}, "message"),
        ("SendMessage", say(content=[]), "message.parts"),
        ("SendMessage", say(content=[{"metadata": {"a": 1}}]), "message.parts[0]"),
        ("SendMessage", say(messageId=""), "message.messageId"),
        ("GetTask", {}, None),
        ("GetTask", {"name": "t"}, "name"),
        ("CancelTask", {"name": "tasks/t/x"}, "name"),
        ("TaskSubscription", {"name": "tasks/"}, "name"),
        ("ListTaskPushNotificationConfig", {"parent": "t"}, "parent"),
        ("CreateTaskPushNotificationConfig", {"parent": "tasks/t"}, "config"),
        ("CreateTaskPushNotificationConfig", {"parent": "x", "config": CONFIG}, "parent"),
    ],
)
async def test_a_request_that_makes_no_sense_is_refused_and_its_field_named(
    method: str, request_value: Any, field: str | None
) -> None:
    async with called_old(make_echo()) as old:
        ask = old.events if method == "TaskSubscription" else old.call
        with pytest.raises(Refused) as refused:
            await ask(method, request_value)

    assert refused.value.code == "INVALID_ARGUMENT"
    assert field is None or any(found.startswith(field) for found in refused.value.fields), refused.value.fields


@pytest.mark.req("V03-01")
async def test_bytes_that_are_no_message_are_refused_and_the_connection_lives() -> None:
    async with called_old(make_echo()) as old:
        with pytest.raises(Refused) as refused:
            await old.send("SendMessage", b"\xff\xff\xff")
        answer = await old.call("SendMessage", say("reply"))

    assert (refused.value.code, refused.value.text.partition(":")[0]) == ("INVALID_ARGUMENT", "InvalidParamsError")
    assert answer["message"]["content"] == [{"text": "direct"}]


@pytest.mark.req("V03-01", "V03-03")
async def test_the_bytes_of_a_request_of_1_0_are_refused_by_the_service_of_0_3() -> None:
    of_1_0 = b"\x12\x0e\x0a\x03m-1\x20\x01\x2a\x05\x0a\x03hey"  # message is field 2 there
    async with called_old(make_echo()) as old:
        with pytest.raises(Refused) as refused:
            await old.send("SendMessage", of_1_0)

    assert (refused.value.code, refused.value.fields) == ("INVALID_ARGUMENT", ["message"])


@pytest.mark.req("V03-01")
async def test_a_method_that_there_is_not_is_refused_by_the_service_that_it_was_asked_of() -> None:
    async with called_old(make_echo()) as old:
        unary: Any = old.channel.unary_unary(SERVICE + "SubscribeToTask")
        with pytest.raises(aio.AioRpcError) as refused:
            await unary(b"", timeout=BOUND)

    assert refused.value.code().name == "UNIMPLEMENTED"
    assert (refused.value.details() or "").startswith("MethodNotFoundError: ")
    assert OLD in (refused.value.details() or "")


@pytest.mark.req("SEC-03")
async def test_a_request_that_is_too_large_is_refused() -> None:
    async with called_old(make_echo(), max_body_bytes=1000) as old:
        with pytest.raises(Refused) as refused:
            await old.call("SendMessage", say("x" * 1500))

    assert "larger than 1000 bytes" in refused.value.text


# Versions, extensions, callers.


def version(text: str) -> tuple[tuple[str, str], ...]:
    return (("a2a-version", text),)


@pytest.mark.req("V03-06", "V03-P10")
@pytest.mark.parametrize("named", ["0.3", "0.3.0", " 0.3 ", ""])
@pytest.mark.parametrize("infer", [False, True])
async def test_the_service_of_0_3_takes_its_own_version_and_none(named: str, infer: bool) -> None:
    async with called_old(make_echo(), infer_version=infer) as old:
        assert "message" in await old.call("SendMessage", say("reply"), version(named))
        assert "message" in await old.call("SendMessage", say("reply"))


@pytest.mark.req("V03-06", "V03-P10")
@pytest.mark.parametrize("named", ["1.0", "1.7", "99.0", "0.2", "new"])
@pytest.mark.parametrize("infer", [False, True])
async def test_the_service_of_0_3_refuses_any_other_version(named: str, infer: bool) -> None:
    async with called_old(make_echo(), infer_version=infer) as old:
        with pytest.raises(Refused) as unary:
            await old.call("SendMessage", say("reply"), version(named))
        with pytest.raises(Refused) as stream:
            await old.events("SendStreamingMessage", say("reply"), version(named))

    for refused in (unary.value, stream.value):
        assert (refused.code, refused.reason) == ("FAILED_PRECONDITION", "VERSION_NOT_SUPPORTED")


@pytest.mark.req("V03-06", "V03-P10", "AMB-17")
async def test_the_service_of_1_0_refuses_0_3_and_an_absent_version_unless_it_may_infer() -> None:
    async with called_old(make_echo()) as strict, called_old(make_echo(), infer_version=True) as lenient:
        for caller, named in ((strict, "0.3"), (strict, ""), (lenient, "0.3")):
            with pytest.raises(Refused) as refused:
                await Caller(caller.channel).call("SendMessage", say_in_1_0("reply"), version(named))
            assert (refused.value.code, refused.value.reason) == ("FAILED_PRECONDITION", "VERSION_NOT_SUPPORTED")
        assert "message" in await Caller(lenient.channel).call("SendMessage", say_in_1_0("reply"), ())


@pytest.mark.req("V03-06")
async def test_what_runs_is_told_that_the_caller_speaks_0_3() -> None:
    watching: list[Watching] = []

    def watch(inner: Any) -> Watching:
        watching.append(Watching(inner))
        return watching[-1]

    async with called_old(make_echo(), interceptors=[watch]) as old:
        await old.call("SendMessage", say("reply"), (("x-trace", "one"), ("last-event-id", "7")))
        await Caller(old.channel).call("SendMessage", say_in_1_0("reply"))

    contexts = [(context.version, context.wire) for context in watching[0].seen]
    assert contexts == [("1.0", "0.3"), ("1.0", "1.0")]
    assert watching[0].seen[0].parameters["x-trace"] == "one"
    assert watching[0].seen[0].last_event_id is None


@pytest.mark.req("V03-01")
@pytest.mark.parametrize("key", ["x-a2a-extensions", "a2a-extensions"])
async def test_extensions_are_asked_for_by_either_name_and_told_of_by_the_old_one(key: str) -> None:
    uri = "https://ext.example/one"
    async with called_old(make_echo(extensions=[uri])) as old:
        call: Any = old.stream("SendStreamingMessage", say(), ((key, f"{uri}, https://ext.example/unknown"),))
        head = dict(tuple(await call.initial_metadata()))
        await events_of(call)

    assert head["x-a2a-extensions"] == uri
    assert "a2a-extensions" not in head
    assert head["a2a-version"] == "0.3"


@pytest.mark.req("V03-01", "EXT-10")
async def test_events_of_0_3_have_no_numbers() -> None:
    async with called_old(make_echo(extensions=[RESUMABLE_STREAMS])) as old:
        events = await old.events("SendStreamingMessage", say(), (("x-a2a-extensions", RESUMABLE_STREAMS),))

    assert RESUMABLE_STREAMS not in repr(events)


@pytest.mark.req("AUTH-05", "V03-01")
async def test_callers_are_identified_as_those_of_1_0_are() -> None:
    paths: list[str] = []

    async def identify(scope: Any) -> Any:
        paths.append(scope["path"])
        raise UnauthenticatedError("who?")

    async with called_old(make_echo(), identify=identify) as old:
        with pytest.raises(Refused) as refused:
            await old.call("GetTask", {"name": "tasks/t"})

    assert (refused.value.code, paths) == ("UNAUTHENTICATED", ["/a2a.v1.A2AService/GetTask"])


# The server around it.


async def test_an_agent_of_1_0_only_has_no_service_and_no_entry_of_0_3() -> None:
    async with (
        grpc_served(make_echo(), versions=("1.0",)) as server,
        aio.insecure_channel(f"127.0.0.1:{server.port}") as channel,
    ):
        with pytest.raises(Refused) as refused:
            await OldCaller(channel).call("SendMessage", say())
        assert [entry.protocol_version for entry in server.interfaces] == ["1.0"]
        assert await services(channel) == {NEW, "grpc.health.v1.Health", "grpc.reflection.v1alpha.ServerReflection"}

    assert (refused.value.code, refused.value.text) == (
        "UNIMPLEMENTED",
        f"Method not found: the service here is {NEW}",
    )


async def services(channel: aio.Channel) -> set[str]:
    stub: Any = reflection_pb2_grpc.ServerReflectionStub(channel)
    asked = [reflection_pb2.ServerReflectionRequest(list_services="")]
    (answer,) = [answer async for answer in stub.ServerReflectionInfo(iter(asked))]
    return {service.name for service in answer.list_services_response.service}


@pytest.mark.req("V03-08")
async def test_reflection_and_health_tell_of_both_services() -> None:
    async with called_old(make_echo()) as old:
        stub: Any = reflection_pb2_grpc.ServerReflectionStub(old.channel)
        asked = [reflection_pb2.ServerReflectionRequest(file_containing_symbol=OLD)]
        (proto,) = [answer async for answer in stub.ServerReflectionInfo(iter(asked))]
        found = await services(old.channel)
        check: Any = old.channel.unary_unary("/grpc.health.v1.Health/Check")
        healthy = await check(health_pb2.HealthCheckRequest(service=OLD).SerializeToString(), timeout=BOUND)

    assert {OLD, NEW} <= found
    assert b"TASK_STATE_CANCELLED" in proto.file_descriptor_response.file_descriptor_proto[0]
    assert health_pb2.HealthCheckResponse.FromString(healthy).status == health_pb2.HealthCheckResponse.SERVING


@pytest.mark.req("V03-05")
async def test_the_card_names_the_service_of_0_3_behind_that_of_1_0_and_no_longer_than_it_is_served() -> None:
    app = App(make_echo(), limits=QUICK)
    async with grpc_served(app, GrpcServerSettings(port=0)) as server:
        entries = app.card("https://a.example").supported_interfaces
        assert [(entry.protocol_binding, entry.protocol_version) for entry in entries[2:3] + entries[5:]] == [
            ("GRPC", "1.0"),
            ("GRPC", "0.3"),
        ]
        assert entries[5].url == entries[2].url == server.interface.url

    assert not [e for e in app.card("https://a.example").supported_interfaces if e.protocol_binding == "GRPC"]
