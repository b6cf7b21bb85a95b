"""The two machines of streams: where they end, what they make up, and what holds whatever comes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from dragoman.compat.v03 import types as v03
from dragoman.compat.v03.downward import FINAL
from dragoman.compat.v03.streaming import Downstream, Upstream
from dragoman.compat.v03.upward import up_event
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
from dragoman.protocol.lifecycle import INTERRUPTED, TERMINAL, TaskFold, copy_task
from tests.compat.translation.strategies import ARTIFACTS, MESSAGES, METADATA, STATUSES, V03_EVENTS

GOES_ON = [TaskState.SUBMITTED, TaskState.WORKING, TaskState.AUTH_REQUIRED, TaskState.UNSPECIFIED]


def task(state: TaskState, **members: Any) -> StreamResponse:
    return StreamResponse(task=Task(id="t", context_id="c", status=TaskStatus(state=state), **members))


def status(state: TaskState) -> StreamResponse:
    return StreamResponse(
        status_update=TaskStatusUpdateEvent(task_id="t", context_id="c", status=TaskStatus(state=state))
    )


def chunk(text: str, *, append: bool = False) -> StreamResponse:
    artifact = Artifact(artifact_id="a", parts=[Part(text=text)])
    return StreamResponse(
        artifact_update=TaskArtifactUpdateEvent(task_id="t", context_id="c", artifact=artifact, append=append)
    )


def answer() -> StreamResponse:
    return StreamResponse(message=Message(message_id="m", role=Role.AGENT, parts=[Part(text="hi")]))


def sent(machine: Downstream, *events: StreamResponse) -> list[v03.StreamResponse]:
    return [made for event in events for made in machine.feed(event)]


def finals(events: list[v03.StreamResponse]) -> list[bool]:
    return [event.status_update.final for event in events if event.status_update is not None]


# Downstream.


@pytest.mark.req("V03-03", "V03-P06", "V03-P07")
@pytest.mark.parametrize("state", sorted(FINAL, key=str))
def test_a_stream_ends_with_a_final_update_when_the_task_ends_or_asks(state: TaskState) -> None:
    machine = Downstream()

    made = sent(machine, task(TaskState.SUBMITTED), status(TaskState.WORKING), status(state), chunk("late"))

    assert finals(made) == [False, True]
    assert machine.ended
    assert machine.finish() == []


@pytest.mark.req("V03-03")
@pytest.mark.parametrize("state", GOES_ON)
def test_a_stream_goes_on_in_other_states_and_is_closed_by_repeating_the_last_one(state: TaskState) -> None:
    machine = Downstream()

    made = sent(machine, task(TaskState.SUBMITTED), status(state))
    last = machine.finish()

    assert finals(made) == [False]
    assert finals(last) == [True]
    assert last[0].status_update is not None
    assert last[0].status_update.status == v03.TaskStatus(state=state)


@pytest.mark.req("V03-03")
def test_a_task_that_goes_on_after_authentication_ends_as_usual() -> None:
    made = sent(Downstream(), task(TaskState.WORKING), status(TaskState.AUTH_REQUIRED), status(TaskState.COMPLETED))

    assert finals(made) == [False, True]


@pytest.mark.req("V03-03", "V03-P17")
@pytest.mark.parametrize("state", sorted(FINAL, key=str))
def test_a_first_task_that_is_settled_is_the_whole_stream(state: TaskState) -> None:
    machine = Downstream()

    [made] = machine.feed(task(state))

    assert made.task is not None
    assert machine.ended
    assert machine.finish() == []


@pytest.mark.req("V03-03")
def test_a_message_is_the_whole_stream() -> None:
    machine = Downstream()

    [made] = machine.feed(answer())

    assert made.msg is not None
    assert machine.ended
    assert sent(machine, task(TaskState.WORKING)) == []


@pytest.mark.req("V03-03", "V03-P16")
def test_a_closing_task_is_told_by_what_was_not_sent_yet_and_one_status() -> None:
    machine = Downstream()
    whole = Artifact(artifact_id="a", parts=[Part(text="Mon"), Part(text="Tue")])
    other = Artifact(artifact_id="b", name="map", parts=[Part(url="https://quay.example/map")])

    sent(machine, task(TaskState.WORKING), chunk("Mon"))
    made = machine.feed(task(TaskState.COMPLETED, artifacts=[whole, other]))

    first, second, last = made
    assert first.artifact_update is not None
    assert first.artifact_update.append
    assert first.artifact_update.artifact == v03.Artifact(artifact_id="a", parts=[v03.Part(text="Tue")])
    assert second.artifact_update is not None
    assert not second.artifact_update.append
    assert finals([last]) == [True]


@pytest.mark.req("V03-03")
def test_a_stream_of_which_nothing_came_ends_with_nothing() -> None:
    assert Downstream().finish() == []


ANY_TASK = st.builds(
    Task,
    id=st.just("t"),
    context_id=st.just("c"),
    status=STATUSES,
    artifacts=st.lists(ARTIFACTS, max_size=2, unique_by=lambda artifact: artifact.artifact_id),
    history=st.just([]),
    metadata=METADATA,
)
ANY_EVENT = (
    st.builds(StreamResponse, task=ANY_TASK)
    | st.builds(StreamResponse, message=MESSAGES)
    | st.builds(
        StreamResponse,
        status_update=st.builds(
            TaskStatusUpdateEvent, task_id=st.just("t"), context_id=st.just("c"), status=STATUSES, metadata=METADATA
        ),
    )
    | st.builds(
        StreamResponse,
        artifact_update=st.builds(
            TaskArtifactUpdateEvent,
            task_id=st.just("t"),
            context_id=st.just("c"),
            artifact=ARTIFACTS,
            append=st.booleans(),
            last_chunk=st.booleans(),
        ),
    )
    | st.just(StreamResponse())
)
BOUNDED = settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.mark.req("V03-03", "V03-P06", "V03-P16")
@given(events=st.lists(ANY_EVENT, max_size=8))
@BOUNDED
def test_whatever_comes_a_stream_about_a_task_ends_once_and_has_one_task_at_most(events: list[StreamResponse]) -> None:
    machine = Downstream()
    made = [*sent(machine, *events), *machine.finish()]

    assert machine.feed(status(TaskState.WORKING)) == [] or not made
    assert sum(event.task is not None for event in made) <= 1
    assert all(event.task is None for event in made[1:])
    if not made or made[0].msg is not None:
        assert len(made) <= 1
        return
    settled_at_once = made[0].task is not None and made[0].task.status.state in FINAL
    assert finals(made).count(True) == (0 if settled_at_once else 1)
    if settled_at_once:
        assert len(made) == 1
    else:
        assert finals(made[-1:]) == [True]


@pytest.mark.req("V03-03")
@given(events=st.lists(ANY_EVENT.filter(lambda event: event.message is None), max_size=8))
@BOUNDED
def test_whatever_comes_a_reader_knows_of_artifacts_and_state_what_the_events_told(
    events: list[StreamResponse],
) -> None:
    machine = Downstream()
    told: TaskFold | None = None
    known: TaskFold | None = None
    blank = Task(id="t", context_id="c", status=TaskStatus(state=TaskState.UNSPECIFIED))
    for event in events:
        if machine.ended:
            break
        if event.task is not None and told is not None:  # 0.3 has nothing that takes an artifact away, nor has 1.0
            assume({a.artifact_id for a in told.task.artifacts} <= {a.artifact_id for a in event.task.artifacts})
        made = machine.feed(event)
        if made or told is not None:
            told = told or TaskFold(copy_task(blank))
            told.apply_event(event)
        for one in made:
            known = known or TaskFold(copy_task(blank))
            known.apply_event(up_event(one))

    if known is not None and told is not None:
        assert known.task.status == told.task.status
        at_least = {artifact.artifact_id: artifact for artifact in known.task.artifacts}
        assert all(at_least[artifact.artifact_id] == artifact for artifact in told.task.artifacts)


# Upstream.


def old_status(state: TaskState, *, final: bool = False) -> v03.StreamResponse:
    said = v03.Message(message_id="m", role=Role.AGENT, content=[v03.Part(text="hm")])
    return v03.StreamResponse(
        status_update=v03.TaskStatusUpdateEvent(
            task_id="t", context_id="c", status=v03.TaskStatus(state=state, update=said), final=final
        )
    )


def old_chunk(**ids: str) -> v03.StreamResponse:
    artifact = v03.Artifact(artifact_id="a", parts=[v03.Part(text="Mon")])
    return v03.StreamResponse(artifact_update=v03.TaskArtifactUpdateEvent(artifact=artifact, **ids))


def old_task(state: TaskState) -> v03.StreamResponse:
    return v03.StreamResponse(task=v03.Task(id="t", context_id="c", status=v03.TaskStatus(state=state)))


@pytest.mark.req("V03-03")
@pytest.mark.parametrize("state", list(TaskState))
def test_final_ends_the_stream_of_the_caller_whatever_the_state(state: TaskState) -> None:
    machine = Upstream()

    machine.feed(old_task(TaskState.WORKING))
    [update] = machine.feed(old_status(state, final=True))

    assert update.status_update is not None
    assert machine.ended
    assert machine.finish()
    assert machine.feed(old_status(TaskState.WORKING)) == []


@pytest.mark.req("V03-03")
@pytest.mark.parametrize("state", list(TaskState))
def test_a_connection_that_closes_without_final_was_cut_unless_the_task_is_settled(state: TaskState) -> None:
    machine = Upstream()

    machine.feed(old_task(TaskState.SUBMITTED))
    machine.feed(old_status(state))

    assert not machine.ended
    assert machine.finish() == (state in TERMINAL | INTERRUPTED)


@pytest.mark.req("V03-03")
def test_a_message_ends_the_stream_of_the_caller() -> None:
    machine = Upstream()

    [event] = machine.feed(v03.StreamResponse(msg=v03.Message(message_id="m")))

    assert event.message is not None
    assert machine.ended


@pytest.mark.req("V03-03")
def test_a_stream_that_begins_with_a_status_gets_a_task_of_ids_and_state() -> None:
    machine = Upstream()
    first = old_status(TaskState.WORKING)

    lacks = machine.lacks_task(first)
    opening, update = machine.feed(first)

    assert lacks
    assert opening == task(TaskState.WORKING)
    assert update.status_update is not None
    assert update.status_update.status.message is not None
    assert not machine.lacks_task(old_status(TaskState.WORKING))


@pytest.mark.req("V03-03")
def test_a_stream_that_begins_with_an_artifact_gets_a_task_without_a_state() -> None:
    opening, update = Upstream().feed(old_chunk(task_id="t", context_id="c"))

    assert opening == task(TaskState.UNSPECIFIED)
    assert update.artifact_update is not None


def test_a_task_that_was_asked_for_stands_for_the_one_that_was_not_sent() -> None:
    machine = Upstream()
    known = Task(id="t", context_id="c", status=TaskStatus(state=TaskState.WORKING))

    assert machine.open(known) == [StreamResponse(task=known)]
    assert len(machine.feed(old_status(TaskState.WORKING))) == 1


def test_ids_that_an_update_lacks_are_those_of_the_task() -> None:
    machine = Upstream()

    machine.feed(old_task(TaskState.WORKING))
    [update] = machine.feed(old_chunk())

    assert update.artifact_update is not None
    assert (update.artifact_update.task_id, update.artifact_update.context_id) == ("t", "c")


@pytest.mark.req("V03-P16")
def test_repeated_tasks_are_passed_on() -> None:
    machine = Upstream()

    made = [machine.feed(old_task(TaskState.WORKING)) for _ in range(3)]

    assert made == [[task(TaskState.WORKING)]] * 3


@pytest.mark.req("V03-03")
@given(events=st.lists(V03_EVENTS, max_size=8))
@BOUNDED
def test_whatever_comes_the_caller_gets_the_task_or_a_message_first(events: list[v03.StreamResponse]) -> None:
    machine = Upstream()
    made = [one for event in events for one in machine.feed(event)]

    assert not made or made[0].task is not None or made[0].message is not None
    assert all(one.message is None for one in made[:-1])
