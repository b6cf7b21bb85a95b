"""Tasks put together from events, and results read off them."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.client import Assembly, Result, StreamEvent
from dragoman.client.progress import event_of
from dragoman.model import (
    Artifact,
    Message,
    Part,
    Role,
    StreamResponse,
    Task,
    TaskState,
    TaskStatus,
    decode_value,
    encode_json,
)
from tests.client.words import artifact, message, status, task


def event(value: dict[str, Any]) -> StreamEvent:
    found = event_of(decode_value(StreamResponse, value, lenient_required=True))
    assert found is not None
    return found


def assembled(*values: dict[str, Any]) -> Result:
    assembly = Assembly()
    for value in values:
        assembly.apply(event(value))
    return assembly.result()


@pytest.mark.req("B089", "AMB-57", "DATA-26")
def test_chunks_of_an_artifact_come_together() -> None:
    result = assembled({"task": task("WORKING")}, artifact("a"), artifact("b", append=True), status("COMPLETED"))

    assert (result.text, result.state, result.ok, len(result.artifacts)) == ("ab", TaskState.COMPLETED, True, 1)


@pytest.mark.req("AMB-04", "STREAM-11")
def test_a_task_replaces_what_there_was() -> None:
    other = task("COMPLETED", artifacts=[{"artifactId": "z", "parts": [{"text": "whole"}]}])

    assert assembled({"task": task("WORKING")}, artifact("a"), {"task": other}).text == "whole"


@pytest.mark.req("B071", "AMB-04")
@pytest.mark.parametrize("first", [status("WORKING"), artifact("a")])
def test_a_stream_that_starts_without_a_task_is_understood(first: dict[str, Any]) -> None:
    result = assembled(first, artifact("b"), status("COMPLETED"))

    assert (result.task_id, result.context_id, result.text, result.ok) == ("t1", "c1", "b", True)


@pytest.mark.req("B061")
def test_a_message_beside_a_task_is_kept_beside_it() -> None:
    result = assembled({"task": task("WORKING")}, {"message": message("psst")}, status("COMPLETED"))

    assert result.message is None
    assert [m.parts[0].text for m in result.messages] == ["psst"]


def test_a_message_alone_is_the_answer() -> None:
    result = assembled({"message": message("hello", contextId="c7")})

    assert (result.text, result.ok, result.task, result.state, result.context_id) == ("hello", True, None, None, "c7")


def test_the_events_given_are_not_changed() -> None:
    first = event({"task": task("WORKING", artifacts=[{"artifactId": "a1", "parts": [{"text": "x"}]}])})
    before = encode_json(first)
    assembly = Assembly()

    assembly.apply(first)
    assembly.apply(event(artifact("y", append=True)))

    assert assembly.result().text == "xy"
    assert encode_json(first) == before


def test_nothing_is_no_success() -> None:
    assert (Result().ok, Result().text, Result().artifacts, Result().data, Result().waiting) == (
        False,
        "",
        [],
        None,
        False,
    )


def test_a_result_offers_its_content_by_kind() -> None:
    parts = [Part(text="see "), Part(data={"n": 1}), Part(raw=b"x", filename="f"), Part(text="this")]
    found = Task(
        id="t1",
        context_id="c1",
        status=TaskStatus(
            state=TaskState.INPUT_REQUIRED, message=Message(message_id="m", role=Role.AGENT, parts=[Part(text="ok?")])
        ),
        artifacts=[Artifact(artifact_id="a", parts=parts), Artifact(artifact_id="b", parts=[Part(text="more")])],
    )

    result = Result(task=found)

    assert (result.text, result.data, [f.filename for f in result.files]) == ("see this\n\nmore", {"n": 1}, ["f"])
    assert (result.question, result.waiting, result.ok) == ("ok?", True, False)
