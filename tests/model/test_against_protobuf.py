"""Our ProtoJSON against the protobuf library's, for all message types, in both directions."""

from __future__ import annotations

import json

import pytest
from google.protobuf import json_format
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dragoman.errors import InvalidParamsError
from dragoman.model import ListTasksRequest, ListTasksResponse, Message, Part, WireMessage, decode_json, encode_json
from tests.model import oracle
from tests.model.strategies import MESSAGE_TYPES, any_message, messages, respelled

BOUNDED = settings(max_examples=1500, deadline=None, suppress_health_check=list(HealthCheck))
EACH_TYPE = settings(BOUNDED, max_examples=80)


@pytest.mark.req("DATA-02", "DATA-05", "DATA-06")
@pytest.mark.parametrize("kind", MESSAGE_TYPES, ids=lambda kind: kind.__name__)
@EACH_TYPE
@given(data=st.data())
def test_what_we_write_means_the_same_to_the_protobuf_library_and_back(
    kind: type[WireMessage], data: st.DataObject
) -> None:
    message = data.draw(messages(kind))

    theirs = oracle.print_json(oracle.parse(kind, encode_json(message)))

    assert decode_json(kind, theirs.encode(), lenient_required=True) == message


@pytest.mark.req("DATA-03", "DATA-04", "DATA-07", "DATA-15")
@BOUNDED
@given(any_message())
def test_we_print_the_members_that_the_protobuf_library_prints_and_empty_required_ones_besides(
    message: WireMessage,
) -> None:
    kind = type(message)
    ours = oracle.encoded(message)

    theirs = json.loads(oracle.print_json(oracle.parse(kind, encode_json(message))))

    # Timestamps are compared by the test above: the library drops the fraction when it is zero.
    ignored = "timestamp", "statusTimestampAfter"
    assert _without(ignored, oracle.without_empty_required(kind, ours)) == _without(ignored, theirs)


def _without(names: tuple[str, ...], value: object) -> object:
    if isinstance(value, dict):
        return {key: _without(names, item) for key, item in value.items() if key not in names}
    return [_without(names, item) for item in value] if isinstance(value, list) else value


@pytest.mark.req("DATA-06", "DATA-16", "AMB-46", "AMB-47", "B005")
@BOUNDED
@given(st.data())
def test_other_spellings_are_read_as_the_same_message_by_us_and_by_the_protobuf_library(data: st.DataObject) -> None:
    message = data.draw(any_message())
    kind = type(message)
    text = json.dumps(data.draw(respelled(kind, oracle.encoded(message))))

    assert decode_json(kind, text.encode()) == message
    assert decode_json(kind, oracle.print_json(oracle.parse(kind, text)).encode(), lenient_required=True) == message


WRONG = {
    "a fraction for an integer": (ListTasksRequest, '{"pageSize": 1.5}'),
    "a number beyond 32 bits": (ListTasksRequest, '{"pageSize": 2147483648}'),
    "text that is no number": (ListTasksRequest, '{"pageSize": "many"}'),
    "a boolean for an integer": (ListTasksRequest, '{"pageSize": true}'),
    "text for a boolean": (ListTasksRequest, '{"includeArtifacts": "true"}'),
    "a number for text": (ListTasksRequest, '{"contextId": 5}'),
    "an unknown name of an enum": (ListTasksRequest, '{"status": "TASK_STATE_DONE"}'),
    "the old name of a state": (ListTasksRequest, '{"status": "working"}'),
    "a timestamp without a zone": (ListTasksRequest, '{"statusTimestampAfter": "2026-03-12T09:30:00"}'),
    "a timestamp with a blank": (ListTasksRequest, '{"statusTimestampAfter": "2026-03-12 09:30:00Z"}'),
    "a null element": (Message, '{"messageId": "m", "role": 1, "parts": [null]}'),
    "an object for a list": (Message, '{"messageId": "m", "role": 1, "parts": {}}'),
    "text for a message": (Message, '{"messageId": "m", "role": 1, "parts": ["a"]}'),
    "two members of a oneof": (Part, '{"text": "a", "url": "b"}'),
    "a key that occurs twice": (Part, '{"text": "a", "text": "b", "media_type": "c/d"}'),
    "a list for an object": (Part, '{"text": "a", "metadata": []}'),
    "one letter of base64": (Part, '{"raw": "A"}'),
}


@pytest.mark.req("DATA-05", "DATA-13", "AMB-99")
@pytest.mark.parametrize("what", WRONG)
def test_both_refuse(what: str) -> None:
    kind, text = WRONG[what]

    with pytest.raises(json_format.ParseError):
        json_format.Parse(text, oracle.new(kind))
    with pytest.raises(InvalidParamsError) as refused:
        decode_json(kind, text.encode())

    assert refused.value.code == -32602
    assert len(refused.value.violations) == 1


# Where we differ on purpose.


@pytest.mark.req("DATA-12", "AMB-41")
def test_unlike_the_library_we_print_required_fields_that_are_empty() -> None:
    page = ListTasksResponse(tasks=[], next_page_token="", page_size=50, total_size=0)

    assert encode_json(page) == b'{"tasks":[],"nextPageToken":"","pageSize":50,"totalSize":0}'
    assert oracle.print_json(oracle.parse(ListTasksResponse, encode_json(page))) == '{"pageSize": 50}'


@pytest.mark.req("AMB-48", "B003")
def test_unlike_the_library_we_keep_integers_beyond_the_precision_of_a_double() -> None:
    part = Part(data=2**53 + 1)

    assert decode_json(Part, encode_json(part)).data == 2**53 + 1
    assert oracle.parse(Part, encode_json(part)).data.number_value == 2**53


@pytest.mark.req("DATA-17", "DATA-18")
def test_unlike_the_library_we_refuse_null_data_beside_text() -> None:
    text = '{"text": "a", "data": null}'

    with pytest.raises(InvalidParamsError):
        decode_json(Part, text.encode())

    assert oracle.parse(Part, text).WhichOneof("content") == "data"


@pytest.mark.req("DATA-05")
def test_unlike_the_library_we_refuse_a_field_under_both_its_names() -> None:
    text = '{"pageToken": "a", "page_token": "b"}'

    with pytest.raises(InvalidParamsError):
        decode_json(ListTasksRequest, text.encode())

    assert oracle.parse(ListTasksRequest, text).page_token == "b"


@pytest.mark.req("DATA-06")
def test_unlike_the_library_we_refuse_letters_that_are_not_base64() -> None:
    text = '{"raw": "QU?I="}'

    with pytest.raises(InvalidParamsError):
        decode_json(Part, text.encode())

    assert oracle.parse(Part, text).raw == b"AB"


@pytest.mark.req("DATA-16", "AMB-46")
def test_unlike_the_library_by_default_we_ignore_members_that_nobody_knows() -> None:
    text = '{"text": "a", "mood": "good"}'

    assert decode_json(Part, text.encode()) == Part(text="a")
    with pytest.raises(json_format.ParseError):
        json_format.Parse(text, oracle.new(Part))


@pytest.mark.req("AMB-47")
def test_unlike_the_library_we_read_small_letters_in_timestamps_as_rfc_3339_has_them() -> None:
    text = '{"statusTimestampAfter": "2026-03-12t09:30:00z"}'

    assert encode_json(decode_json(ListTasksRequest, text.encode())) == (
        b'{"statusTimestampAfter":"2026-03-12T09:30:00.000Z"}'
    )
    with pytest.raises(json_format.ParseError):
        oracle.parse(ListTasksRequest, text)
