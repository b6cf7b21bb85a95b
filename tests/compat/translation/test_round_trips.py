"""What both generations can say comes back as it was, through each JSON of 0.3."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings

from dragoman.compat.v03 import types as v03
from dragoman.compat.v03.downward import down_event, down_message, down_push_config, down_task
from dragoman.compat.v03.kinds import write_kind
from dragoman.compat.v03.protojson import write_proto
from dragoman.compat.v03.reading import read
from dragoman.compat.v03.upward import up_event, up_message, up_push_config, up_task
from dragoman.model import Message, Part, Role, StreamResponse, Task, TaskPushNotificationConfig, TaskState, TaskStatus
from tests.compat.translation.strategies import EVENTS, V03_EVENTS, WEBHOOKS, by_final

BOUNDED = settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))


def through_json(value: Any) -> Any:
    """What a peer parses of what is written."""
    return msgspec.json.decode(msgspec.json.encode(value))


def by_kind(message: Any, kind: type[Any]) -> Any:
    return read(kind, through_json(write_kind(message)), answer=True)


def by_proto(message: Any, kind: type[Any]) -> Any:
    return read(kind, through_json(write_proto(message)), answer=True)


def by_proto_with_raw_bytes(message: Any, kind: type[Any]) -> Any:
    written = through_json(write_proto(message, bytes_as_text=False))
    return read(kind, written, answer=True, raw_bytes=True)


WIRES = [by_kind, by_proto, by_proto_with_raw_bytes]


@pytest.mark.req("V03-07", "V03-01", "B151")
@pytest.mark.parametrize("wire", WIRES)
@given(event=EVENTS)
@BOUNDED
def test_an_event_of_1_0_that_0_3_can_say_comes_back_as_it_was(wire: Any, event: StreamResponse) -> None:
    assert up_event(wire(down_event(event), v03.StreamResponse)) == event


@pytest.mark.req("V03-07")
@pytest.mark.parametrize("wire", WIRES)
@given(event=V03_EVENTS.map(by_final))
@BOUNDED
def test_an_event_of_0_3_comes_back_as_it_was(wire: Any, event: v03.StreamResponse) -> None:
    assert down_event(up_event(wire(event, v03.StreamResponse))) == event


@pytest.mark.req("V03-07")
@pytest.mark.parametrize("wire", [by_kind, by_proto])
@given(config=WEBHOOKS)
@BOUNDED
def test_a_webhook_comes_back_as_it_was(wire: Any, config: TaskPushNotificationConfig) -> None:
    assert up_push_config(wire(down_push_config(config), v03.TaskPushNotificationConfig)) == config


@pytest.mark.req("V03-07", "B151", "V03-P31")
@pytest.mark.parametrize("state", list(TaskState))
@pytest.mark.parametrize("wire", WIRES)
def test_each_state_comes_back_as_itself(wire: Any, state: TaskState) -> None:
    task = Task(id="t", context_id="c", status=TaskStatus(state=state))

    assert up_task(wire(down_task(task), v03.Task)) == task


@pytest.mark.req("V03-07")
@pytest.mark.parametrize("number", [3, -(2**53), 2**63, 0.5])
@pytest.mark.parametrize("wire", WIRES)
def test_numbers_in_data_stay_what_they_are(wire: Any, number: float) -> None:
    task = Task(id="t", context_id="c", status=TaskStatus(state=TaskState.WORKING), metadata={"n": number})

    found = up_task(wire(down_task(task), v03.Task)).metadata

    assert found == {"n": number}
    assert type(found["n"]) is type(number)


def test_file_name_and_media_type_of_a_text_are_lost_and_nothing_else_is() -> None:
    part = Part(text="hi", filename="a.txt", media_type="text/plain", metadata={"k": 1})
    message = Message(message_id="m", role=Role.AGENT, parts=[part])

    found = up_message(by_kind(down_message(message), v03.Message))

    assert found.parts == [Part(text="hi", metadata={"k": 1})]
