"""What is read, and what is refused."""

from __future__ import annotations

import json

import msgspec
import pytest

from dragoman.errors import InvalidParamsError, JSONParseError
from dragoman.model import (
    AgentCard,
    GetTaskRequest,
    ListTasksRequest,
    ListTasksResponse,
    Message,
    OAuth2SecurityScheme,
    OAuthFlows,
    Part,
    Role,
    SendMessageRequest,
    StreamResponse,
    Task,
    TaskState,
    TaskStatus,
    TaskStatusUpdateEvent,
    Timestamp,
    decode_json,
    decode_value,
    decoder_for,
    encode_json,
)
from tests.model.samples import REQUEST, TASK


def violations(kind: type, text: str | bytes, **options: bool) -> dict[str, str]:
    """Path → description of what is wrong."""
    with pytest.raises(InvalidParamsError) as refused:
        decode_json(kind, text.encode() if isinstance(text, str) else text, **options)
    assert refused.value.code == -32602
    return {violation.field: violation.description for violation in refused.value.violations}


@pytest.mark.req("DATA-16", "AMB-46", "AMB-56", "B005")
def test_unknown_members_are_ignored_at_all_depths() -> None:
    value = json.loads(encode_json(REQUEST))
    value["bogus"] = True
    value["message"]["kind"] = {"deep": [1, {"a": None}]}
    value["message"]["parts"][0]["kind"] = "text"
    value["configuration"]["blocking"] = False

    assert decode_json(SendMessageRequest, json.dumps(value).encode()) == REQUEST


@pytest.mark.req("AMB-46", "DATA-29")
def test_content_of_metadata_and_data_is_kept() -> None:
    text = b'{"data":{"kind":"x","a_b":1},"metadata":{"https://e.example/v1":{"k":[null]}},"unknown":1}'

    part = decode_json(Part, text)

    assert part.data == {"kind": "x", "a_b": 1}
    assert part.metadata == {"https://e.example/v1": {"k": [None]}}


@pytest.mark.req("B005", "ERR-08", "ERR-16")
def test_a_value_of_the_wrong_type_is_an_error_at_its_path() -> None:
    assert violations(SendMessageRequest, '{"message":"text"}') == {"message": "must be an object"}
    assert violations(SendMessageRequest, "[]") == {"": "must be an object"}
    assert violations(Message, '{"messageId":"m","role":"ROLE_USER","parts":[{"text":"a"},{"text":5}]}') == {
        "parts[1].text": "must be a string"
    }


@pytest.mark.req("ERR-08")
def test_several_errors_are_told_at_once() -> None:
    found = violations(SendMessageRequest, '{"message":{"role":"user","parts":[{"raw":"?"},{"url":1}]},"metadata":7}')

    assert list(found) == [
        "message.role",
        "message.parts[0].raw",
        "message.parts[1].url",
        "message.messageId",
        "metadata",
    ]


@pytest.mark.req("ERR-08")
def test_the_number_of_errors_is_bounded() -> None:
    assert len(violations(Message, '{"messageId":"m","role":1,"parts":[%s0]}' % ("0," * 5_000))) == 20


@pytest.mark.req("DATA-12", "DATA-13", "AMB-43")
@pytest.mark.parametrize("absent", ["", '"message":null'])
def test_a_missing_required_message_is_an_error_that_names_it(absent: str) -> None:
    assert violations(SendMessageRequest, f"{{{absent}}}") == {"message": "is required"}


@pytest.mark.req("DATA-13")
def test_missing_required_members_of_a_nested_message_are_named() -> None:
    assert violations(SendMessageRequest, '{"message":{"parts":null}}') == {
        "message.messageId": "is required",
        "message.role": "is required",
        "message.parts": "is required",
    }


@pytest.mark.req("AMB-47", "DATA-09")
def test_a_timestamp_without_a_zone_is_utc_in_an_answer_and_an_error_in_a_request() -> None:
    text = b'{"state":"TASK_STATE_WORKING","timestamp":"2026-03-12T09:30:00.125999"}'

    assert decode_json(TaskStatus, text, lenient_required=True).timestamp == Timestamp.parse("2026-03-12T09:30:00.125Z")
    assert list(violations(TaskStatus, text.decode())) == ["timestamp"]


@pytest.mark.req("AMB-41", "AMB-42")
def test_empty_ids_and_arrays_are_left_to_validation() -> None:
    message = decode_json(Message, b'{"messageId":"","role":"ROLE_UNSPECIFIED","parts":[]}')

    assert message == Message(message_id="", role=Role.UNSPECIFIED, parts=[])


@pytest.mark.req("AMB-43", "AMB-44")
def test_answers_may_lack_required_members() -> None:
    text = b'{"statusUpdate":{"taskId":"t","status":{"message":{"role":"ROLE_AGENT","parts":[{"text":"a"}]}}}}'

    event = decode_json(StreamResponse, text, lenient_required=True)

    said = Message(message_id="", role=Role.AGENT, parts=[Part(text="a")])
    status = TaskStatus(state=TaskState.UNSPECIFIED, message=said)
    assert event.status_update == TaskStatusUpdateEvent(task_id="t", context_id="", status=status)


@pytest.mark.req("AMB-43")
def test_a_required_message_that_an_answer_lacks_is_read_as_an_empty_one() -> None:
    assert decode_json(Task, b'{"id":"t"}', lenient_required=True).status == TaskStatus(state=TaskState.UNSPECIFIED)
    assert decode_json(OAuth2SecurityScheme, b"{}", lenient_required=True).flows == OAuthFlows()
    assert decode_json(ListTasksResponse, b"{}", lenient_required=True) == ListTasksResponse(
        tasks=[], next_page_token="", page_size=0, total_size=0
    )


@pytest.mark.req("AMB-43")
def test_answers_with_wrong_types_are_errors_all_the_same() -> None:
    assert violations(Task, '{"status":{"state":"done"}}', lenient_required=True).keys() == {"status.state"}


@pytest.mark.req("DATA-06")
def test_null_is_an_unset_member() -> None:
    text = b'{"tenant":null,"contextId":null,"status":null,"pageSize":null,"statusTimestampAfter":null}'

    assert decode_json(ListTasksRequest, text) == ListTasksRequest()


@pytest.mark.req("B013")
@pytest.mark.parametrize("task_id", ["", '"taskId":"",', '"taskId":null,', '"task_id":"",'])
def test_a_task_id_that_is_absent_empty_or_null_is_the_same(task_id: str) -> None:
    message = decode_json(Message, f'{{{task_id}"messageId":"m","role":"ROLE_USER","parts":[]}}'.encode())

    assert message.task_id == ""


@pytest.mark.req("DATA-05")
def test_null_as_an_element_or_a_value_of_a_map_is_an_error() -> None:
    assert violations(Message, '{"messageId":"m","role":1,"parts":[],"extensions":["a",null]}') == {
        "extensions[1]": "must not be null"
    }
    assert violations(AgentCard, '{"securitySchemes":{"a b":null}}', lenient_required=True) == {
        'securitySchemes["a b"]': "must not be null"
    }


@pytest.mark.req("DATA-06")
@pytest.mark.parametrize("number", ["10", '"10"', "10.0", "1e1", '"1e1"', '"10.0"', "100e-1"])
def test_an_integer_is_read_in_every_spelling(number: str) -> None:
    assert decode_json(ListTasksRequest, f'{{"pageSize":{number}}}'.encode()).page_size == 10


@pytest.mark.req("DATA-06")
@pytest.mark.parametrize(
    "number", ["1.5", "2147483648", "-2147483649", "1e400", '"1_0"', '" 1"', '"0x1"', '"٣"', '""', "true", "[]", '"01"']
)
def test_what_is_no_whole_number_of_32_bits_is_refused(number: str) -> None:
    assert violations(ListTasksRequest, f'{{"pageSize":{number}}}').keys() == {"pageSize"}


@pytest.mark.req("DATA-06", "AMB-42")
@pytest.mark.parametrize("state", ['"TASK_STATE_WORKING"', "2", '"2"', "2.0"])
def test_an_enum_is_read_by_name_and_by_number(state: str) -> None:
    assert decode_json(TaskStatus, f'{{"state":{state}}}'.encode()).state is TaskState.WORKING


@pytest.mark.req("AMB-42")
@pytest.mark.parametrize("state", ["99", '"99"', "-1"])
def test_an_unknown_enum_number_is_kept(state: str) -> None:
    assert decode_json(TaskStatus, f'{{"state":{state}}}'.encode()).state == int(state.strip('"'))


@pytest.mark.req("AMB-99", "DATA-28")
@pytest.mark.parametrize("state", ['"working"', '"task_state_working"', '"WORKING"', "4294967296", "2.5", "true"])
def test_an_unknown_enum_name_is_refused_with_the_known_ones(state: str) -> None:
    found = violations(TaskStatus, f'{{"state":{state}}}')

    assert found["state"].startswith("must be one of TASK_STATE_UNSPECIFIED, TASK_STATE_SUBMITTED, ")


@pytest.mark.req("DATA-06")
@pytest.mark.parametrize("raw", ["/+8=", "/+8", "_-8=", "_-8"])
def test_bytes_are_read_in_both_alphabets_with_or_without_padding(raw: str) -> None:
    assert decode_json(Part, f'{{"raw":"{raw}"}}'.encode()).raw == b"\xff\xef"


@pytest.mark.req("DATA-05")
@pytest.mark.parametrize("raw", ["A", "AA=", "AA===", "=", "A A=", "AAAA=", "ÄÄ==", "AA\\n=="])
def test_what_is_not_base64_is_refused(raw: str) -> None:
    assert violations(Part, f'{{"raw":"{raw}"}}') == {"raw": "must be a string in base64"}


@pytest.mark.req("AMB-47")
def test_a_timestamp_in_a_message_is_read_with_any_offset() -> None:
    status = decode_json(TaskStatus, b'{"state":2,"timestamp":"2026-03-12T09:30:00.123456789+02:00"}')

    assert status.timestamp == Timestamp.parse("2026-03-12T07:30:00.123Z")


@pytest.mark.req("DATA-17", "DATA-18", "DATA-27", "AMB-48")
@pytest.mark.parametrize(
    ("kind", "text", "path"),
    [
        (Part, '{"text":"a","data":null}', "data"),
        (Part, '{"data":null,"text":"a"}', "data"),
        (Part, '{"text":"a","url":"b"}', "url"),
        (StreamResponse, '{"task":{"id":"t","status":{"state":2}},"message":{}}', "message"),
    ],
)
def test_two_members_of_one_oneof_are_refused(kind: type, text: str, path: str) -> None:
    assert path in violations(kind, text)


@pytest.mark.req("DATA-17", "DATA-18")
@pytest.mark.parametrize("text", ['{"text":"a","raw":null,"url":null}', '{"raw":null,"text":"a"}'])
def test_a_null_member_of_a_oneof_does_not_count(text: str) -> None:
    assert decode_json(Part, text.encode()) == Part(text="a")


@pytest.mark.req("AMB-54", "AMB-55")
def test_a_card_with_several_flows_is_read() -> None:
    flows = decode_json(OAuthFlows, b'{"implicit":{"scopes":{"a":"b"}},"password":{},"deviceCodes":{}}')

    assert flows.implicit is not None
    assert flows.password is not None


@pytest.mark.req("DATA-05")
def test_a_field_under_both_names_is_refused() -> None:
    assert violations(GetTaskRequest, '{"id":"t","historyLength":1,"history_length":null}').keys() == {"historyLength"}


@pytest.mark.req("DATA-05")
@pytest.mark.parametrize(
    ("text", "path"),
    [
        ('{"text":"a","text":"a","media_type":"x"}', ""),
        ('{"data":{"a":{"b":1,"b":2}},"media_type":"x"}', 'data["a"]'),
        ('{"text":"a","metadata":{"a":1,"a":1},"media_type":"x"}', "metadata"),
    ],
)
def test_a_key_that_occurs_twice_is_refused_by_the_lenient_path(text: str, path: str) -> None:
    assert violations(Part, text).keys() == {path}


@pytest.mark.req("DATA-05")
@pytest.mark.parametrize(
    ("text", "path"),
    [
        ('{"text":"\\ud800"}', "text"),
        ('{"text":"\\udc00\\ud800"}', "text"),
        ('{"data":["\\ud800"]}', "data[0]"),
        ('{"data":{"\\ud800":1}}', 'data["\\ud800"]'),
        ('{"text":"a","metadata":{"k":{"x":"\\udfff"}}}', 'metadata["k"]["x"]'),
    ],
)
def test_a_lone_surrogate_is_refused_at_its_path(text: str, path: str) -> None:
    assert violations(Part, text) == {path: "must not hold a lone surrogate"}


@pytest.mark.req("DATA-05")
def test_a_number_beyond_a_double_is_refused_at_its_path() -> None:
    assert violations(Part, '{"data":[0,-1e999]}') == {"data[1]": "must be a number in the range of a double"}


@pytest.mark.req("B015")
@pytest.mark.parametrize(
    "text",
    [b"", b" ", b"{", b'{"text":"a"', b'{"text":"a"}}', b'{"text":"a",}', b"{'text':1}", b"\xff",
     b'{"text":"\xed\xa0\x80"}', b'{"text":"\xff"}', b'{"data":NaN}', b'{"data":-Infinity}',
     b'{"text":"\n"}', b'{"data":01}', b"\xef\xbb\xbf{}",
     b'{"text":"\\x"}', b'{"data":' + b"9" * 5000 + b'.5.5}'],
)  # fmt: skip
def test_what_is_not_json_is_a_parse_error(text: bytes) -> None:
    with pytest.raises(JSONParseError) as refused:
        decode_json(Part, text)

    assert refused.value.code == -32700
    assert refused.value.violations == ()


@pytest.mark.req("SEC-03")
def test_refusing_a_hostile_message_takes_linear_time_and_a_short_answer() -> None:
    keys = ",".join(f'"{n}":0' for n in range(100_000))
    deep = '{"%s":' % ("k" * 500) * 400 + "NULL" + "}" * 400

    assert violations(Part, f'{{"data":{{{keys},"99999":1}},"media_type":"x"}}').keys() == {"data"}
    assert [len(path) for path in violations(Part, f'{{"data":{deep}}}'.replace("NULL", "1e999"))] == [201]


def test_bytes_may_come_in_any_buffer() -> None:
    text = encode_json(TASK)

    for data in (text, bytearray(text), memoryview(text), msgspec.Raw(text)):
        assert decode_json(Task, data) == TASK
    snake = text.replace(b"contextId", b"context_id")
    for data in (snake, bytearray(snake), memoryview(snake), msgspec.Raw(snake)):
        assert decode_json(Task, data) == TASK


def test_a_parsed_value_is_read_like_text() -> None:
    assert decode_value(Task, json.loads(encode_json(TASK))) == TASK
    with pytest.raises(InvalidParamsError):
        decode_value(Task, {"id": "t"})


def test_decoders_are_made_once() -> None:
    assert decoder_for(StreamResponse) is decoder_for(StreamResponse)
