"""What a client gets wrong: the right status and details, and never the text of an exception."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from google.rpc import error_details_pb2
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dragoman.errors import A2AError
from dragoman.model import OPERATIONS, Part, SendMessageResponse
from dragoman.ports.operations import CallContext
from dragoman.server import GrpcServerSettings
from tests.grpc.agents import make_echo
from tests.grpc.raw import VERSION, Refused, called, say, write

SECRET = "a secret of the inside"


@pytest.mark.req("ERR-07", "ERR-08", "GRPC-04")
@pytest.mark.parametrize("op", OPERATIONS)
async def test_bytes_that_are_no_message_are_an_invalid_argument(op: str) -> None:
    async with called(make_echo()) as caller:
        with pytest.raises(Refused) as refused:
            await caller.send(op, b"\x0a\xff\xff\xff")

    assert refused.value.code == "INVALID_ARGUMENT"
    violation = refused.value.detail(error_details_pb2.BadRequest).field_violations[0]
    assert violation.description == f"is no message of the type lf.a2a.v1.{OPERATIONS[op].request.__name__}"


@pytest.mark.req("ERR-07")
async def test_text_that_is_not_unicode_is_an_invalid_argument() -> None:
    async with called(make_echo()) as caller:
        with pytest.raises(Refused) as refused:
            await caller.send("GetTask", b"\x12\x02\xff\xfe")

    assert refused.value.code == "INVALID_ARGUMENT"


@pytest.mark.req("ERR-19", "AMB-39")
@pytest.mark.parametrize("method", ["/lf.a2a.v1.A2AService/Nothing", "/lf.a2a.v2.A2AService/SendMessage"])
async def test_an_unknown_method_or_service_of_another_version_is_unimplemented(method: str) -> None:
    async with called(make_echo()) as caller:
        call: Any = caller.channel.unary_unary(method)(b"", metadata=VERSION)
        with pytest.raises(Exception, match=r"lf\.a2a\.v1\.A2AService") as refused:
            await call

    told = Refused(refused.value)  # type: ignore[arg-type]
    assert (told.code, told.status.code) == ("UNIMPLEMENTED", 12)


async def test_a_foreign_service_is_unimplemented() -> None:
    async with called(make_echo()) as caller:
        call: Any = caller.channel.unary_unary("/some.Other/Method")(b"")
        with pytest.raises(Exception, match="Method not found"):
            await call


MISSING = [
    ("SendMessage", {}, ["message"]),
    ("SendMessage", {"message": {}}, ["message.messageId", "message.role", "message.parts"]),
    ("SendStreamingMessage", {}, ["message"]),
    ("GetTask", {}, ["id"]),
    ("CancelTask", {}, ["id"]),
    ("SubscribeToTask", {}, ["id"]),
    ("GetTask", {"id": "t", "historyLength": -1}, ["historyLength"]),
    ("ListTasks", {"pageSize": 0}, ["pageSize"]),
    ("ListTasks", {"status": 99}, ["status"]),
    ("ListTasks", {"pageToken": "forged"}, ["pageToken"]),
    ("SendMessage", say(role=77), ["message.role"]),
    ("SendMessage", say(role="ROLE_AGENT"), ["message.role"]),
    ("SendMessage", {**say(), "configuration": {"historyLength": -5}}, ["configuration.historyLength"]),
]


@pytest.mark.req("ERR-07", "ERR-08", "DATA-12", "DATA-13", "DATA-14", "DATA-20", "AMB-42", "LIST-10")
@pytest.mark.parametrize(("op", "request_", "fields"), MISSING)
async def test_fields_that_are_missing_or_out_of_range_are_named(op: str, request_: Any, fields: list[str]) -> None:
    async with called(make_echo()) as caller:
        ask = caller.events if OPERATIONS[op].streaming else caller.call
        with pytest.raises(Refused) as refused:
            await ask(op, request_)

    assert (refused.value.code, refused.value.fields) == ("INVALID_ARGUMENT", fields)


@pytest.mark.req("SEC-03", "ERR-14")
@pytest.mark.parametrize("size", [60_000, 200_000])
async def test_a_request_that_is_too_large_is_refused_and_a_smaller_one_is_taken(size: int) -> None:
    async with called(make_echo(), GrpcServerSettings(port=0, max_message_bytes=50_000)) as caller:
        with pytest.raises(Refused) as refused:
            await caller.call("SendMessage", say("x" * size))
        taken = await caller.call("SendMessage", say("x" * 49_000))

    assert refused.value.code == "RESOURCE_EXHAUSTED"
    assert "larger than" in refused.value.text
    assert taken["task"]


@pytest.mark.req("SEC-03")
async def test_without_a_setting_the_limit_is_that_of_http_bodies() -> None:
    async with called(make_echo(), max_body_bytes=1000) as caller:
        with pytest.raises(Refused, match="larger than 1000 bytes"):
            await caller.call("SendMessage", say("x" * 1500))


class _Failing:
    def __init__(self, error: Exception) -> None:
        self._error = error

    async def call(self, op: Any, request: Any, context: CallContext) -> Any:
        raise self._error

    stream = call


@pytest.mark.req("ERR-13", "ERR-14", "SEC-09")
@pytest.mark.parametrize("error", [ValueError(SECRET), KeyError(SECRET), RuntimeError(SECRET), RecursionError(SECRET)])
async def test_the_text_of_an_exception_stays_inside(error: Exception, caplog: pytest.LogCaptureFixture) -> None:
    async with called(make_echo(), interceptors=[lambda inner: _Failing(error)]) as caller:
        with caplog.at_level(logging.ERROR), pytest.raises(Refused) as unary:
            await caller.call("GetTask", {"id": "t"})
        with pytest.raises(Refused) as stream:
            await caller.events("SubscribeToTask", {"id": "t"})

    for told in (unary.value, stream.value):
        assert (told.code, told.text) == ("INTERNAL", "Internal error")
        assert SECRET not in repr(told.trailers)
    assert SECRET in caplog.text


@pytest.mark.req("AMB-37")
async def test_an_answer_that_has_no_form_on_the_wire_is_an_invalid_agent_response() -> None:
    class Odd(_Failing):
        async def call(self, op: Any, request: Any, context: CallContext) -> Any:
            from dragoman.model import Message, Role

            return SendMessageResponse(message=Message(message_id="m", role=Role.AGENT, parts=[Part(data=object())]))

    async with called(make_echo(), interceptors=[lambda inner: Odd(ValueError())]) as caller:
        with pytest.raises(Refused) as refused:
            await caller.call("SendMessage", say())

    assert (refused.value.code, refused.value.reason) == ("INTERNAL", "INVALID_AGENT_RESPONSE")


@pytest.mark.req("ERR-14")
async def test_a_status_fits_into_trailers_whatever_is_in_the_error() -> None:
    class Huge(A2AError):
        grpc_status, reason = "INTERNAL", "HUGE"

    error = Huge(
        "ü" * 100_000,
        metadata={"a": "b" * 100_000, "surrogate": "\ud800"},
        extra_details=[{"@type": "x/y", "long": "z" * 100_000}, {"@type": "x/z", "bad": object()}],
    )
    async with called(make_echo(), interceptors=[lambda inner: _Failing(error)]) as caller:
        with pytest.raises(Refused) as refused:
            await caller.call("GetTask", {"id": "t"})

    assert refused.value.code == "INTERNAL"
    assert refused.value.text.startswith("üüü")
    assert refused.value.reason == "HUGE"


@pytest.mark.req("ERR-08", "ERR-14")
async def test_a_request_with_hundreds_of_faults_is_told_of_some() -> None:
    async with called(make_echo()) as caller:
        with pytest.raises(Refused) as refused:
            await caller.call("SendMessage", say(parts=[{}] * 900))

    assert refused.value.code == "INVALID_ARGUMENT"
    assert refused.value.fields[:2] == ["message.parts[0]", "message.parts[1]"]


@pytest.mark.req("ERR-07", "SEC-03")
async def test_random_requests_never_end_in_an_unknown_status() -> None:
    codes = set()
    base = write("SendMessage", say(parts=[{"data": {"a": [1, None, "x"]}}]))

    @settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), database=None)
    @given(st.lists(st.tuples(st.integers(0, len(base) - 1), st.integers(0, 255)), min_size=1, max_size=4))
    def collect(changes: list[tuple[int, int]]) -> None:
        data = bytearray(base)
        for at, byte in changes:
            data[at] = byte
        requests.append(bytes(data))

    requests: list[bytes] = []
    collect()
    async with called(make_echo()) as caller:
        for data in requests:
            try:
                await caller.send("SendMessage", data)
                codes.add("OK")
            except Refused as refused:
                codes.add(refused.code)

    assert codes <= {"OK", "INVALID_ARGUMENT", "NOT_FOUND"}
