"""Structs to protobuf and back, against the protobuf library's own JSON reader and printer."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dragoman.bindings.grpc.messages import decode_message, decode_request, encode_message
from dragoman.errors import InvalidParamsError
from dragoman.model import (
    FIELDS,
    OPERATIONS,
    SEND_MESSAGE,
    AgentCard,
    EncodingError,
    ListTasksRequest,
    ListTasksResponse,
    Message,
    Part,
    Role,
    SendMessageRequest,
    StreamResponse,
    Task,
    TaskState,
    TaskStatus,
    Timestamp,
    WireMessage,
    encode_json,
)
from tests.model import oracle
from tests.model.samples import CARD, REQUEST, TASK
from tests.model.strategies import JSON_VALUES, MESSAGE_TYPES, messages

EACH_TYPE = settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))


def theirs(kind: type[WireMessage], data: bytes) -> Any:
    message = oracle.new(kind)
    message.ParseFromString(data)
    return message


@pytest.mark.req("DATA-02", "DATA-15", "GRPC-01", "B003")
@pytest.mark.parametrize("kind", MESSAGE_TYPES, ids=lambda kind: kind.__name__)
@EACH_TYPE
@given(data=st.data())
def test_what_we_write_is_what_the_library_makes_of_our_json(kind: type[WireMessage], data: st.DataObject) -> None:
    message = data.draw(messages(kind))

    assert theirs(kind, encode_message(message)) == oracle.parse(kind, encode_json(message))


@pytest.mark.req("DATA-02", "DATA-15", "GRPC-01", "B003")
@pytest.mark.parametrize("kind", MESSAGE_TYPES, ids=lambda kind: kind.__name__)
@EACH_TYPE
@given(data=st.data())
def test_what_the_library_writes_is_read_as_the_same_message(kind: type[WireMessage], data: st.DataObject) -> None:
    message = data.draw(messages(kind))

    assert decode_message(kind, oracle.parse(kind, encode_json(message)).SerializeToString()) == message


@EACH_TYPE
@given(st.binary(max_size=200))
def test_random_bytes_are_a_message_or_an_error_of_ours(data: bytes) -> None:
    for kind in (SendMessageRequest, StreamResponse, Task, AgentCard):
        with contextlib.suppress(InvalidParamsError):
            assert isinstance(decode_message(kind, data), kind)


@EACH_TYPE
@given(st.data())
def test_a_message_with_bytes_changed_is_a_message_or_an_error_of_ours(data: st.DataObject) -> None:
    sample = data.draw(st.sampled_from([TASK, CARD, REQUEST]))
    whole = bytearray(encode_message(sample))
    for _ in range(data.draw(st.integers(1, 5))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(whole[: data.draw(st.integers(0, len(whole)))])

    for given_bytes in (bytes(whole), cut):
        with contextlib.suppress(InvalidParamsError):
            assert isinstance(decode_message(type(sample), given_bytes), type(sample))


@pytest.mark.req("AMB-48", "B003", "DATA-18")
@given(JSON_VALUES)
def test_a_json_value_comes_back_with_its_whole_numbers_whole(value: Any) -> None:
    back = decode_message(Part, encode_message(Part(data=value))).data

    assert back == value
    assert "." not in json.dumps(back) or has_fraction(value)


def has_fraction(value: Any) -> bool:
    """Whether it holds a number that is written with a point."""
    if isinstance(value, dict):
        return any(map(has_fraction, [*value, *value.values()]))
    if isinstance(value, list):
        return any(map(has_fraction, value))
    return "." in value if isinstance(value, str) else isinstance(value, float)


@pytest.mark.req("AMB-48", "B003")
@pytest.mark.parametrize(
    ("sent", "comes_back"),
    [
        (1, 1),
        (1.0, 1),
        (-3.5, -3.5),
        (2**53, 2**53),
        (2**53 + 1, 2**53),
        (1_700_000_000_123_456_789, 1_700_000_000_123_456_768),
        (1e300, 1e300),
        (float("nan"), None),
        (float("inf"), None),
    ],
)
def test_numbers_are_doubles_on_the_way(sent: float, comes_back: float | None) -> None:
    back = decode_message(Part, encode_message(Part(data=sent))).data

    assert (back, type(back)) == (comes_back, type(comes_back))


@dataclasses.dataclass
class Point:
    x: int
    y: float


@pytest.mark.req("DATA-02")
@pytest.mark.parametrize(
    "value",
    [
        (1, 2),
        {"when": datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC)},
        {"at": Timestamp.from_ms(0)},
        b"\x00\xff",
        Point(1, 2.5),
        {1: "one", "two": 2},
        TaskStatus(state=TaskState.WORKING),
        {"deep": [[[{"a": (None,)}]]]},
    ],
    ids=repr,
)
def test_what_has_a_form_in_json_has_the_same_one_here(value: Any) -> None:
    part = Part(data=value)

    assert decode_message(Part, encode_message(part)).data == json.loads(encode_json(part))["data"]


@pytest.mark.parametrize(
    "part",
    [
        Part(text="\ud800"),
        Part(data="\ud800"),
        Part(data={"\ud800": 1}),
        Part(data=object()),
        Part(data=10**400),
        Part(text="a", metadata={"f": print}),
        Part(text=5),  # type: ignore[arg-type]
    ],
    ids=["surrogate", "in data", "in a key", "an object", "a huge number", "a function", "a number for text"],
)
def test_what_cannot_be_written_is_an_encoding_error(part: Part) -> None:
    with pytest.raises(EncodingError):
        encode_message(part)


def nested(depth: int, inner: Any = "x") -> Any:
    for _ in range(depth):
        inner = [inner]
    return inner


@pytest.mark.req("SEC-03")
def test_what_is_nested_so_deeply_that_no_reader_takes_it_is_not_written() -> None:
    in_objects: Any = "x"
    for _ in range(30):
        in_objects = {"a": in_objects}
    for value in (nested(45), in_objects):
        task = Task(
            id="t", status=TaskStatus(state=1, message=Message(message_id="m", role=1, parts=[Part(data=value)]))
        )
        page = ListTasksResponse(tasks=[task], next_page_token="", page_size=1, total_size=1)

        assert decode_message(ListTasksResponse, encode_message(page)) == page
        for deeper in ([value], {"a": value}, nested(100_000)):
            with pytest.raises(EncodingError):
                encode_message(Part(data=deeper))


@pytest.mark.req("SEC-03")
def test_what_is_nested_too_deeply_is_not_read() -> None:
    value = b"\x1a\x01x"
    for _ in range(1000):
        values = b"\x0a" + _varint(len(value)) + value
        value = b"\x32" + _varint(len(values)) + values

    with pytest.raises(InvalidParamsError):
        decode_message(Part, b"\x22" + _varint(len(value)) + value)


def _varint(number: int) -> bytes:
    return bytes([number]) if number < 128 else bytes([number & 127 | 128]) + _varint(number >> 7)


@pytest.mark.req("AMB-42", "DATA-20")
def test_numbers_of_enums_that_nobody_knows_are_kept() -> None:
    for number in (-1, 99, 2**31 - 1):
        message = Message(message_id="m", role=number, parts=[])

        assert decode_message(Message, encode_message(message)).role == number
    assert decode_message(Message, b"").role is Role.UNSPECIFIED


@pytest.mark.req("DATA-17", "DATA-18")
def test_presence_in_a_oneof_is_what_counts() -> None:
    for part in (Part(), Part(text=""), Part(raw=b""), Part(url=""), Part(data=None)):
        assert decode_message(Part, encode_message(part)) == part


@pytest.mark.req("DATA-12", "DATA-13", "AMB-43")
def test_a_required_message_that_is_missing_is_an_error_in_a_request_and_filled_in_for_an_answer() -> None:
    with pytest.raises(InvalidParamsError) as refused:
        decode_request(SEND_MESSAGE, b"")

    assert [violation.field for violation in refused.value.violations] == ["message"]
    assert decode_message(Task, b"\x0a\x01t") == Task(id="t", status=TaskStatus(state=TaskState.UNSPECIFIED))


def test_requests_hold_no_required_message_further_down() -> None:
    def below(kind: type[WireMessage]) -> set[type[WireMessage]]:
        inner = {field.message for field in FIELDS[kind] if field.message is not None}
        return inner.union(*(below(each) for each in inner))

    for op in OPERATIONS.values():
        found = [field for kind in below(op.request) for field in FIELDS[kind]]
        assert [field.name for field in found if field.required and field.message and field.presence] == []


@pytest.mark.req("DATA-09", "AMB-47")
@pytest.mark.parametrize(("seconds", "nanos"), [(10**15, 0), (0, -1), (0, 10**9), (-(2**62), 0)])
def test_a_time_that_there_is_not_is_an_error(seconds: int, nanos: int) -> None:
    request = oracle.new(ListTasksRequest)
    request.status_timestamp_after.seconds = seconds
    request.status_timestamp_after.nanos = nanos

    with pytest.raises(InvalidParamsError):
        decode_message(ListTasksRequest, request.SerializeToString())


def test_times_are_cut_to_milliseconds() -> None:
    request = oracle.new(ListTasksRequest)
    request.status_timestamp_after.seconds = -1
    request.status_timestamp_after.nanos = 1_999_999

    read = decode_message(ListTasksRequest, request.SerializeToString())

    assert read.status_timestamp_after == Timestamp.from_ms(-999)


def test_a_number_in_json_data_that_is_none_is_an_error() -> None:
    part = oracle.new(Part)
    part.data.number_value = float("nan")

    with pytest.raises(InvalidParamsError):
        decode_message(Part, part.SerializeToString())


@pytest.mark.req("DATA-16", "AMB-46")
def test_fields_that_nobody_knows_are_passed_over() -> None:
    assert decode_message(Part, encode_message(Part(text="a")) + b"\xfa\x7f\x01x") == Part(text="a")
