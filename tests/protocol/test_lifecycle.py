"""Which state may follow which, which command a state refuses, and what an agent may publish."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.errors import (
    InvalidAgentResponseError,
    TaskNotCancelableError,
    UnsupportedOperationError,
)
from dragoman.model import (
    Artifact,
    Message,
    Part,
    Role,
    StreamResponse,
    Task,
    TaskArtifactUpdateEvent,
    TaskState,
    TaskStatus,
    TaskStatusUpdateEvent,
)
from dragoman.protocol.lifecycle import (
    ACTIVE,
    INTERRUPTED,
    STATES,
    TERMINAL,
    Command,
    check_agent_message,
    check_command,
    check_event,
    is_settled,
    is_terminal,
    may_follow,
    state_after_message,
    with_history,
)

S = TaskState
END = {S.COMPLETED, S.FAILED, S.CANCELED, S.REJECTED}
WAIT = {S.INPUT_REQUIRED, S.AUTH_REQUIRED}
WORK = {S.SUBMITTED, S.WORKING}
ALL = END | WAIT | WORK


def status_event(state: Any, message: Message | None = None, **ids: str) -> StreamResponse:
    ids = {"task_id": "t", "context_id": "c", **ids}
    update = TaskStatusUpdateEvent(status=TaskStatus(state=state, message=message), **ids)
    return StreamResponse(status_update=update)


def artifact_event(artifact: Artifact, **ids: str) -> StreamResponse:
    ids = {"task_id": "t", "context_id": "c", **ids}
    return StreamResponse(artifact_update=TaskArtifactUpdateEvent(artifact=artifact, **ids))


def said(**changes: Any) -> Message:
    return Message(**{"message_id": "m", "context_id": "c", "role": Role.AGENT, "parts": [Part(text="x")], **changes})


def publish(event: StreamResponse, state: TaskState = S.WORKING) -> TaskState:
    return check_event(event, task_id="t", context_id="c", state=state)


def test_every_state_is_in_one_class() -> None:
    assert (set(ACTIVE), set(INTERRUPTED), set(TERMINAL), set(STATES)) == (WORK, WAIT, END, ALL)
    assert {state for state in ALL if is_terminal(state)} == END
    assert {state for state in ALL if is_settled(state)} == END | WAIT
    assert not is_terminal(99)
    assert not is_settled(99)


@pytest.mark.req("STRM-09", "STRM-10")
@pytest.mark.parametrize("state", sorted(ALL, key=lambda state: state.value))
def test_a_state_is_followed_by_all_but_its_past(state: TaskState) -> None:
    followers = {successor for successor in [*TaskState, 99] if may_follow(state, successor)}

    if state in END:
        assert followers == set()
    elif state is S.SUBMITTED:
        assert followers == ALL
    else:
        assert followers == ALL - {S.SUBMITTED}


@pytest.mark.req("SEND-06", "CANCEL-02", "SUB-03", "AMB-11", "AMB-12")
@pytest.mark.parametrize("state", sorted(ALL, key=lambda state: state.value))
def test_a_command_is_refused_by_the_states_that_are_over(state: TaskState) -> None:
    refusals, texts = {}, []
    for command in Command:
        try:
            check_command(command, state, "task-1")
        except (UnsupportedOperationError, TaskNotCancelableError) as error:
            refusals[command] = type(error)
            texts.append((error.metadata, state.value in error.message))

    expected: dict[Command, type] = {}
    if state in END:
        expected = {Command.MESSAGE: UnsupportedOperationError, Command.SUBSCRIBE: UnsupportedOperationError}
        if state is not S.CANCELED:
            expected[Command.CANCEL] = TaskNotCancelableError
    assert refusals == expected
    assert texts == [({"taskId": "task-1", "state": state.value}, True)] * len(expected)


def test_a_message_sets_a_task_to_work_unless_it_never_started() -> None:
    assert state_after_message(S.SUBMITTED) is S.SUBMITTED
    assert {state_after_message(state) for state in WAIT | {S.WORKING}} == {S.WORKING}


@pytest.mark.req("DATA-24", "DATA-25", "STREAM-02")
def test_a_good_event_gives_the_state_after_it() -> None:
    assert publish(status_event(S.COMPLETED)) is S.COMPLETED
    assert publish(status_event(S.WORKING, said()), S.INPUT_REQUIRED) is S.WORKING
    assert publish(artifact_event(Artifact(artifact_id="a", parts=[Part(data=None)])), S.AUTH_REQUIRED) is (
        S.AUTH_REQUIRED
    )


TWO = Part(text="x")
TWO.url = "https://x.example"

VIOLATIONS = {
    "foreign task": (status_event(S.WORKING, task_id="other"), "another task"),
    "no task id": (status_event(S.WORKING, task_id=""), "another task"),
    "foreign context": (status_event(S.WORKING, context_id="other"), "another context"),
    "foreign task in an artifact": (
        artifact_event(Artifact(artifact_id="a", parts=[TWO]), task_id="o"),
        "another task",
    ),
    "back to submitted": (status_event(S.SUBMITTED), "may not follow"),
    "unspecified": (status_event(S.UNSPECIFIED), "may not follow"),
    "unknown number": (status_event(77), "77 may not follow"),
    "artifact without id": (artifact_event(Artifact(artifact_id="", parts=[Part(text="x")])), "artifactId"),
    "artifact without parts": (artifact_event(Artifact(artifact_id="a", parts=[])), "no parts"),
    "empty part": (artifact_event(Artifact(artifact_id="a", parts=[Part()])), "exactly one of"),
    "part with two contents": (artifact_event(Artifact(artifact_id="a", parts=[TWO])), "exactly one of"),
    "message without parts": (status_event(S.WORKING, said(parts=[])), "no parts"),
    "message without id": (status_event(S.WORKING, said(message_id="")), "messageId"),
    "message of the user": (status_event(S.WORKING, said(role=Role.USER)), "ROLE_AGENT"),
    "message without its context": (status_event(S.WORKING, said(context_id="")), "context"),
    "message of another task": (status_event(S.WORKING, said(task_id="other")), "another task"),
    "a bare message": (StreamResponse(message=said()), "status and artifact updates only"),
    "a task": (
        StreamResponse(task=Task(id="t", context_id="c", status=TaskStatus(state=S.WORKING))),
        "status and artifact updates only",
    ),
    "nothing": (StreamResponse(), "status and artifact updates only"),
}


@pytest.mark.req("AMB-37", "AMB-41", "STREAM-02", "DATA-14", "DATA-17", "DATA-19", "B063")
@pytest.mark.parametrize("name", VIOLATIONS)
def test_what_an_agent_may_not_publish_is_named(name: str) -> None:
    event, text = VIOLATIONS[name]

    with pytest.raises(InvalidAgentResponseError, match=text):
        publish(event)


@pytest.mark.req("STRM-09", "AMB-37")
@pytest.mark.parametrize("state", sorted(END, key=lambda state: state.value))
def test_nothing_comes_after_the_end(state: TaskState) -> None:
    for event in (status_event(S.WORKING), status_event(state), artifact_event(Artifact(artifact_id="a", parts=[TWO]))):
        with pytest.raises(InvalidAgentResponseError, match="after the task had ended"):
            publish(event, state)


def test_a_direct_message_is_checked_alike() -> None:
    check_agent_message(said())
    with pytest.raises(InvalidAgentResponseError):
        check_agent_message(said(role=Role.UNSPECIFIED))


@pytest.mark.req("SEND-13", "SEND-14", "SEND-15", "GET-02")
@pytest.mark.parametrize(("length", "shown"), [(None, "abc"), (0, ""), (1, "c"), (2, "bc"), (3, "abc"), (9, "abc")])
def test_history_is_cut_to_the_newest(length: int | None, shown: str) -> None:
    history = [said(message_id=name) for name in "abc"]
    task = Task(id="t", context_id="c", status=TaskStatus(state=S.WORKING), history=history, metadata={"k": 1})

    cut = with_history(task, length)

    assert [message.message_id for message in cut.history] == list(shown)
    assert (cut.id, cut.context_id, cut.status, cut.metadata) == (task.id, task.context_id, task.status, {"k": 1})
    assert len(task.history) == 3
