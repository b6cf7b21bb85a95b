"""``kill -9`` in the middle of work: what a caller was told is still true after a restart."""

from __future__ import annotations

import pytest

import dragoman
from dragoman import TaskState
from tests.cli.conftest import Run
from tests.runtime.running import reaches, said, texts, within

S = TaskState


async def test_after_a_kill_every_task_goes_on_or_ends_within_two_leases(run: Run) -> None:
    process = run("errand:limited")
    async with dragoman.connect(process.url) as client:
        asking = await client.send("ask")
        asking = await client.send("one", task=asking)
        finished = await client.send("quick")
        working = await client.send("wait", wait=False)
        waiting = [await client.send(f"sleep 0.0{n}", wait=False) for n in range(3)]
        await reaches(client, working, S.WORKING)
        assert {task.status.state for task in waiting} == {S.SUBMITTED}
        process.kill()
        process.start()

        found = {task.id for task in (await client.list_tasks()).tasks}
        assert found == {task.id for task in (asking, finished, working, *waiting)}
        assert await client.get_task(finished) == finished
        lost = await reaches(client, working, S.FAILED, seconds=1.2 + 1)
        done = await within(client.send("two", task=asking))
        started = [await reaches(client, task, S.COMPLETED) for task in waiting]

    assert said(lost) == "The process that worked on this task was lost, and the work is not safe to repeat."
    assert texts(done) == ["one two"]
    assert [texts(task) for task in started] == [["begun", "done False"]] * 3


@pytest.mark.req("B045")
async def test_after_a_kill_work_that_may_be_run_again_is_and_its_stream_goes_on(run: Run) -> None:
    process = run("errand:again", "--store", "tasks.db", "--lease", "0.5")
    async with dragoman.connect(process.url) as client:
        task = await client.send("wait", wait=False)
        process.kill()
        process.start()

        result = await within(client.wait(task), 10)

    assert result.state is S.COMPLETED
    assert result.text.endswith("done True")
