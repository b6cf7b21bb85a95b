"""The fold of a log: what events do to a task, and that nothing is shared with those who gave or took."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, precondition, rule

from dragoman.errors import InvalidAgentResponseError, TaskNotCancelableError, UnsupportedOperationError
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
    decode_json,
    encode_json,
)
from dragoman.ports.store import Record
from dragoman.protocol.lifecycle import (
    TERMINAL,
    Command,
    TaskFold,
    apply_event,
    apply_record,
    check_command,
    check_event,
    copy_task,
    state_after_message,
)

S = TaskState
TEXTS = st.text("ab\u2028ä", min_size=1, max_size=3)
METADATA = st.none() | st.dictionaries(st.sampled_from("xyz"), st.integers(0, 9), min_size=1, max_size=2)
NAMES = st.sampled_from(("a", "b", "c"))


def new_task() -> Task:
    asked = message("question", Role.USER)
    return Task(id="t", context_id="c", status=TaskStatus(state=S.WORKING), history=[asked])


def message(message_id: str, role: Role = Role.AGENT) -> Message:
    return Message(message_id=message_id, role=role, task_id="t", context_id="c", parts=[Part(text=message_id)])


@st.composite
def artifacts(draw: st.DrawFn) -> StreamResponse:
    artifact = Artifact(
        artifact_id=draw(NAMES),
        name=draw(st.sampled_from(("", "n1", "n2"))),
        parts=[Part(text=text) for text in draw(st.lists(TEXTS, min_size=1, max_size=3))],
        metadata=draw(METADATA),
        extensions=draw(st.lists(st.sampled_from(("e1", "e2")), unique=True, max_size=2)),
    )
    update = TaskArtifactUpdateEvent(
        task_id="t", context_id="c", artifact=artifact, append=draw(st.booleans()), last_chunk=draw(st.booleans())
    )
    return StreamResponse(artifact_update=update)


@st.composite
def statuses(draw: st.DrawFn) -> StreamResponse:
    said = draw(st.none() | st.sampled_from(("m1", "m2", "m3")))
    status = TaskStatus(
        state=draw(st.sampled_from((S.WORKING, S.INPUT_REQUIRED, S.AUTH_REQUIRED))),
        message=None if said is None else message(said),
    )
    update = TaskStatusUpdateEvent(task_id="t", context_id="c", status=status, metadata=draw(METADATA))
    return StreamResponse(status_update=update)


@st.composite
def logs(draw: st.DrawFn) -> list[Record]:
    events = draw(st.lists(artifacts() | statuses(), max_size=12))
    records = [Record(1, StreamResponse(task=new_task()))]
    for number, event in enumerate(events, 2):
        heard = message(f"u{number}", Role.USER) if event.status_update is not None and draw(st.booleans()) else None
        records.append(Record(number, event, message=heard))
    return records


def fold(records: list[Record], start: Task | None = None) -> Task:
    kept = TaskFold(Task(id="", context_id="", status=TaskStatus(state=S.SUBMITTED)) if start is None else start)
    for record in records:
        kept.apply(record)
    return kept.task


@pytest.mark.req("STRM-06", "AMB-57")
@given(logs())
def test_a_fold_equals_applying_one_by_one(records: list[Record]) -> None:
    one_by_one = fold(records[:1])
    for record in records[1:]:
        apply_record(one_by_one, record)

    assert one_by_one == fold(records)


@given(logs(), st.integers(1, 13))
def test_a_snapshot_and_the_rest_of_the_log_give_the_same_task(records: list[Record], at: int) -> None:
    snapshot = fold(records[:at])

    assert fold(records[at:], decode_json(Task, encode_json(snapshot))) == fold(records)


@given(logs())
def test_a_fold_changes_nothing_that_it_was_given(records: list[Record]) -> None:
    before = [(encode_json(record.event), record.message) for record in records]

    fold(records)

    assert [(encode_json(record.event), record.message) for record in records] == before


@pytest.mark.req("B101")
@given(logs(), st.integers(1, 13))
def test_a_copy_is_not_reached_by_later_events(records: list[Record], at: int) -> None:
    kept = TaskFold(Task(id="", context_id="", status=TaskStatus(state=S.SUBMITTED)))
    for record in records[:at]:
        kept.apply(record)
    copy = copy_task(kept.task)
    before = encode_json(copy)

    for record in records[at:]:
        kept.apply(record)

    assert encode_json(copy) == before


@pytest.mark.req("B093", "STRM-06")
@given(logs())
def test_no_message_is_twice_in_the_history_and_none_is_lost(records: list[Record]) -> None:
    task = fold(records)

    heard = [record.message.message_id for record in records if record.message is not None]
    said = [r.event.status_update.status.message for r in records if r.event.status_update is not None]
    agents = [m.message_id for m in task.history if m.role is Role.AGENT]
    assert [m.message_id for m in task.history if m.role is Role.USER] == ["question", *heard]
    assert len(agents) == len(set(agents))
    current = task.status.message.message_id if task.status.message is not None else None
    assert {m.message_id for m in said if m is not None} - {current} <= set(agents)


@pytest.mark.req("DATA-26", "B089")
def test_pieces_are_appended_replaced_and_begun() -> None:
    def piece(text: str, append: bool, **more: Any) -> StreamResponse:
        artifact = Artifact(artifact_id="a", parts=[Part(text=text)], **more)
        return StreamResponse(
            artifact_update=TaskArtifactUpdateEvent(task_id="t", context_id="c", artifact=artifact, append=append)
        )

    task = new_task()
    apply_event(task, piece("1", True, name="first", metadata={"x": 1}))
    apply_event(task, piece("2", True, metadata={"y": 2}))
    grown = copy_task(task).artifacts[0]
    apply_event(task, piece("3", False))

    assert [part.text for part in grown.parts] == ["1", "2"]
    assert (grown.name, grown.metadata) == ("first", {"x": 1, "y": 2})
    assert [part.text for part in task.artifacts[0].parts] == ["3"]
    assert (task.artifacts[0].name, task.artifacts[0].metadata) == ("", None)


@pytest.mark.req("AMB-04")
def test_a_task_replaces_everything_and_a_message_nothing() -> None:
    kept = TaskFold(new_task())
    other = Task(id="t", context_id="c", status=TaskStatus(state=S.COMPLETED))

    kept.apply_event(StreamResponse(message=message("m")))
    assert kept.task == new_task()
    kept.apply_event(StreamResponse(task=other))

    assert kept.task == other
    assert kept.task is not other


class LifeOfATask(RuleBasedStateMachine):
    """Events of the agent and commands of the client in any order, against a model of a few lines."""

    published: Bundle[int] = Bundle("published")

    @initialize(state=st.sampled_from((S.SUBMITTED, S.WORKING)))
    def begin(self, state: TaskState) -> None:
        task = new_task()
        task.status = TaskStatus(state=state)
        self.state = state
        self.log = [Record(1, StreamResponse(task=task))]
        self.fold = TaskFold(copy_task(task))
        self.snapshots = {1: encode_json(self.fold.task)}
        self.end: bytes | None = None

    def _add(self, event: StreamResponse, heard: Message | None = None) -> None:
        record = Record(len(self.log) + 1, event, message=heard)
        self.log.append(record)
        self.fold.apply(record)
        self.snapshots[record.number] = encode_json(self.fold.task)

    @rule(state=st.sampled_from(TaskState), said=st.booleans())
    def move(self, state: TaskState, said: bool) -> None:
        number = len(self.log)
        status = TaskStatus(state=state, message=message(f"s{number}") if said else None)
        event = StreamResponse(status_update=TaskStatusUpdateEvent(task_id="t", context_id="c", status=status))
        back = state is S.SUBMITTED and self.state is not S.SUBMITTED
        if self.state in TERMINAL or state is S.UNSPECIFIED or back:
            with pytest.raises(InvalidAgentResponseError):
                check_event(event, task_id="t", context_id="c", state=self.state)
            return
        self.state = check_event(event, task_id="t", context_id="c", state=self.state)
        assert self.state is state
        self._add(event)

    @rule(event=artifacts())
    def artifact(self, event: StreamResponse) -> None:
        if self.state in TERMINAL:
            with pytest.raises(InvalidAgentResponseError):
                check_event(event, task_id="t", context_id="c", state=self.state)
            return
        assert check_event(event, task_id="t", context_id="c", state=self.state) is self.state
        self._add(event)

    @rule()
    def hear(self) -> None:
        if self.state in TERMINAL:
            with pytest.raises(UnsupportedOperationError):
                check_command(Command.MESSAGE, self.state, "t")
            return
        check_command(Command.MESSAGE, self.state, "t")
        self.state = state_after_message(self.state)
        status = TaskStatus(state=self.state)
        event = StreamResponse(status_update=TaskStatusUpdateEvent(task_id="t", context_id="c", status=status))
        self._add(event, message(f"u{len(self.log)}", Role.USER))

    @rule()
    def cancel(self) -> None:
        if self.state in TERMINAL - {S.CANCELED}:
            with pytest.raises(TaskNotCancelableError):
                check_command(Command.CANCEL, self.state, "t")
            return
        check_command(Command.CANCEL, self.state, "t")

    @precondition(lambda self: self.state in TERMINAL)
    @rule()
    def note_the_end(self) -> None:
        self.end = self.end or encode_json(self.fold.task)

    @rule(data=st.data())
    def read_again(self, data: st.DataObject) -> None:
        number = data.draw(st.integers(1, len(self.log)))
        assert encode_json(fold(self.log[:number])) == self.snapshots[number]

    @invariant()
    def the_fold_shows_the_state(self) -> None:
        assert self.fold.task.status.state is self.state

    @invariant()
    def the_end_is_final(self) -> None:
        assert self.end is None or encode_json(self.fold.task) == self.end


TestLifeOfATask = pytest.mark.req("STRM-09", "STRM-10", "SEND-06", "CANCEL-02")(LifeOfATask.TestCase)
TestLifeOfATask.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
