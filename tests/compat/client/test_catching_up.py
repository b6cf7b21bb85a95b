"""A snapshot and the events around it: nothing double, nothing lost, wherever the snapshot was taken."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.client.catching_up import CatchUp
from dragoman.model import (
    Artifact,
    Part,
    StreamResponse,
    Task,
    TaskArtifactUpdateEvent,
    TaskState,
    TaskStatus,
    TaskStatusUpdateEvent,
)


def chunk(number: int) -> StreamResponse:
    piece = Artifact(artifact_id="a", parts=[Part(text=f"{number} ")])
    update = TaskArtifactUpdateEvent(task_id="t", context_id="c", artifact=piece, append=number > 0)
    return StreamResponse(artifact_update=update)


def snapshot(count: int, state: TaskState = TaskState.WORKING) -> Task:
    parts = [Part(text=f"{number} ") for number in range(count)]
    artifacts = [Artifact(artifact_id="a", parts=parts)] if parts else []
    return Task(id="t", context_id="c", status=TaskStatus(state=state), artifacts=artifacts)


def assembled(task: Task, events: list[StreamResponse]) -> list[str | None]:
    parts = [part.text for artifact in task.artifacts for part in artifact.parts]
    for event in events:
        assert event.artifact_update is not None
        pieces = [part.text for part in event.artifact_update.artifact.parts]
        parts = [*parts, *pieces] if event.artifact_update.append else pieces
    return parts


@pytest.mark.req("AC-C-72", "SUB-07", "V03-P17")
@given(st.data())
def test_wherever_the_snapshot_was_taken_every_chunk_is_there_once(data: st.DataObject) -> None:
    total = data.draw(st.integers(2, 12))
    joined = data.draw(st.integers(0, total - 1))
    early = data.draw(st.integers(joined + 1, total))
    taken = data.draw(st.integers(joined, total))
    live = [chunk(number) for number in range(joined, total)]
    task = snapshot(taken)

    catch_up = CatchUp(task, live[: early - joined])
    news = [*catch_up.news(live[: early - joined]), *catch_up.news(live[early - joined :])]

    assert assembled(task, news) == [f"{number} " for number in range(total)]


@pytest.mark.req("AC-C-72")
def test_a_status_that_the_snapshot_has_is_no_news_and_another_is() -> None:
    def status(state: TaskState) -> StreamResponse:
        update = TaskStatusUpdateEvent(task_id="t", context_id="c", status=TaskStatus(state=state))
        return StreamResponse(status_update=update)

    catch_up = CatchUp(snapshot(0), [])

    assert catch_up.news([status(TaskState.WORKING), status(TaskState.COMPLETED)]) == [status(TaskState.COMPLETED)]
