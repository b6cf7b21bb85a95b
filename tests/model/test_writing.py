"""What is written."""

from __future__ import annotations

import json

import pytest

from dragoman.model import (
    AgentCapabilities,
    AgentCard,
    Artifact,
    EncodingError,
    GetTaskRequest,
    Message,
    Part,
    Role,
    SendMessageRequest,
    Task,
    TaskArtifactUpdateEvent,
    TaskState,
    TaskStatus,
    decode_json,
    encode_json,
)
from tests.model.samples import NOON, TASK


@pytest.mark.req("DATA-03", "DATA-04", "DATA-07", "DATA-28")
def test_a_task_is_written_in_camel_case_with_names_of_enums_and_without_what_is_empty() -> None:
    task = Task(id="t", context_id="c", status=TaskStatus(state=TaskState.INPUT_REQUIRED, timestamp=NOON))

    assert encode_json(task) == (
        b'{"id":"t","contextId":"c","status":{"state":"TASK_STATE_INPUT_REQUIRED",'
        b'"timestamp":"2026-03-12T12:00:00.125Z"}}'
    )


@pytest.mark.req("DATA-12", "AMB-41", "B009")
def test_required_fields_are_written_also_when_they_are_empty() -> None:
    message = Message(message_id="", role=Role.UNSPECIFIED, parts=[])

    assert encode_json(message) == b'{"messageId":"","role":"ROLE_UNSPECIFIED","parts":[]}'
    assert json.loads(encode_json(_bare_card())) == {
        "name": "", "description": "", "supportedInterfaces": [], "version": "", "capabilities": {},
        "defaultInputModes": [], "defaultOutputModes": [], "skills": [],
    }  # fmt: skip


def _bare_card() -> AgentCard:
    return AgentCard(
        name="",
        description="",
        supported_interfaces=[],
        version="",
        capabilities=AgentCapabilities(),
        default_input_modes=[],
        default_output_modes=[],
        skills=[],
    )


@pytest.mark.req("DATA-15")
def test_explicit_presence_is_written_also_when_it_is_the_default() -> None:
    assert encode_json(GetTaskRequest(id="t", history_length=0)) == b'{"id":"t","historyLength":0}'
    assert encode_json(AgentCapabilities(streaming=False)) == b'{"streaming":false}'
    assert encode_json(Part(text="")) == b'{"text":""}'
    assert encode_json(Part(raw=b"")) == b'{"raw":""}'
    assert encode_json(SendMessageRequest(message=_bare_message(), metadata={})).endswith(b',"metadata":{}}')


def _bare_message() -> Message:
    return Message(message_id="m", role=Role.USER, parts=[])


@pytest.mark.req("DATA-18", "AMB-48", "B001")
@pytest.mark.parametrize("data", [None, 0, False, "", [], {}, {"a": None}])
def test_data_of_any_value_survives_null_and_empty_ones_too(data: object) -> None:
    part = Part(data=data, media_type="application/json")

    text = encode_json(part)

    assert json.loads(text)["data"] == data
    assert decode_json(Part, text) == part


@pytest.mark.req("AMB-48", "B003")
def test_integers_stay_integers() -> None:
    part = Part(data={"revision": 1, "big": 9007199254740993, "huge": 10**30}, metadata={"n": 3})
    text = b'{"data":{"revision":1,"big":9007199254740993,"huge":1000000000000000000000000000000},"metadata":{"n":3}}'

    assert encode_json(part) == text
    assert encode_json(decode_json(Part, text)) == text


@pytest.mark.req("B007")
@pytest.mark.parametrize("text", ["你好", "👋🏽", "e\u0301", "a\u2028b\u2029", "\x7f\x80"])
def test_text_is_written_as_raw_utf_8(text: str) -> None:
    assert encode_json(Part(text=text)) == f'{{"text":"{text}"}}'.encode()


@pytest.mark.req("AMB-97")
def test_line_ends_are_escaped_so_that_a_message_is_one_line() -> None:
    assert encode_json(Part(text="a\r\nb\x00")) == b'{"text":"a\\r\\nb\\u0000"}'


@pytest.mark.req("DATA-05")
def test_bytes_are_written_in_the_standard_alphabet_with_padding() -> None:
    assert encode_json(Part(raw=b"\xff\xef")) == b'{"raw":"/+8="}'


@pytest.mark.req("AMB-42")
def test_an_unknown_enum_number_is_written_as_a_number() -> None:
    assert encode_json(TaskStatus(state=42)) == b'{"state":42}'


@pytest.mark.req("DATA-26")
def test_flags_of_an_artifact_event_are_written_when_they_are_true() -> None:
    event = TaskArtifactUpdateEvent(
        task_id="t", context_id="c", artifact=Artifact(artifact_id="a", parts=[Part(text="x")]), append=True
    )

    assert encode_json(event).endswith(b',"append":true}')


def test_what_json_cannot_carry_is_an_encoding_error() -> None:
    cyclic: list[object] = []
    cyclic.append(cyclic)

    for data in ("\ud800", {"\ud800": 1}, {"a": object()}, {None: 1}, cyclic):
        with pytest.raises(EncodingError) as refused:
            encode_json(Part(data=data))
        assert isinstance(refused.value, ValueError)


def test_a_task_with_every_kind_of_part_survives() -> None:
    assert decode_json(Task, encode_json(TASK)) == TASK
