"""What a store keeps of a task: its log and its fold."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from dragoman.model import Part, TaskState
from dragoman.ports.store import Scope, StoredTask, TaskQuery, TaskStore
from dragoman.testing.sample_task import START_MS, SampleTask
from dragoman.testing.store_contract.asking import (
    ANYBODY,
    DONE,
    WAITING,
    WORKING,
    get,
    listed_ids,
    proves,
    put,
)


class LogContract:
    """What is written is what is read."""

    async def test_a_task_that_was_never_written_is_unknown(self, store: TaskStore) -> None:
        """Unknown is None or empty, not an error."""
        assert await store.task("nobody", None) is None
        assert await store.records("nobody", 0, 10) == []
        assert await store.memo("nobody", "key") is None

    async def test_a_new_task_comes_back_with_its_facts(self, store: TaskStore) -> None:
        """Task, number, scope, lease, agent, wire version and what was kept of the request."""
        sample = SampleTask(scope=Scope("tenant", "owner", "sample"), metadata={"n": 1}, request=b"kept \xff")
        await put(store, sample.take())

        stored = await get(store, sample.id)

        assert stored == StoredTask(
            task=sample.task,
            number=1,
            scope=Scope("tenant", "owner", "sample"),
            fence=1,
            worker="worker-1",
            wire_version="1.0",
            request=b"kept \xff",
        )

    async def test_a_task_is_the_fold_of_its_log_after_each_append(self, store: TaskStore) -> None:
        """Chunks, statuses, messages of both sides, metadata."""
        sample = SampleTask(metadata={"a": 1})
        steps: list[Callable[[], SampleTask]] = [
            lambda: sample,
            lambda: sample.chunk("one ").chunk("two"),
            lambda: sample.move(WAITING, START_MS + 1, said="Which?", metadata={"b": 2}),
            lambda: sample.move(WORKING, START_MS + 2, heard="That one"),
            lambda: sample.chunk("new", append=False).chunk("other", "artifact-2"),
            lambda: sample.move(DONE, START_MS + 3, said="Done"),
        ]
        for step in steps:
            await put(store, step().take())
            stored = await get(store, sample.id)
            assert stored.task == sample.task
            assert stored.number == sample.number

    async def test_records_come_back_in_order_after_any_number(self, store: TaskStore) -> None:
        """Also across the borders of commits; ``limit`` is kept."""
        sample = SampleTask()
        await put(store, sample.chunk("a").take())
        await put(store, sample.move(WAITING, said="?").move(WORKING, heard="!").chunk("b").take())
        await put(store, sample.move(DONE).take())

        for after in range(sample.number + 1):
            for limit in (1, 2, 100):
                records = await store.records(sample.id, after, limit)
                expected = sample.records[after : after + limit]
                assert [record.number for record in records] == [record.number for record in expected]
                assert [record.event for record in records] == [record.event for record in expected]
                assert [record.event_json for record in records] == [record.event_json for record in expected]
                assert [record.message for record in records] == [record.message for record in expected]

    async def test_a_snapshot_stands_for_the_log_before_it(self, store: TaskStore) -> None:
        """And the log goes on from there; the records before it stay."""
        sample = SampleTask().chunk("a")
        await put(store, sample.take(snapshot=True))
        assert (await get(store, sample.id)).task == sample.task
        await put(store, sample.chunk("b").take())
        assert (await get(store, sample.id)).task == sample.task
        await put(store, sample.chunk("c").take(snapshot=True))
        assert (await get(store, sample.id)).task == sample.task
        assert len(await store.records(sample.id, 0, 100)) == sample.number

    async def test_one_group_may_hold_several_appends_of_a_task(self, store: TaskStore) -> None:
        """They are written in their order, from the first on."""
        sample = SampleTask()
        first, second = sample.take(), sample.chunk("a").take()
        third, fourth = sample.move(WAITING, START_MS + 5).take(), sample.chunk("b").take()

        await put(store, first, second, third, fourth)

        stored = await get(store, sample.id)
        assert (stored.task, stored.number) == (sample.task, 4)
        assert await listed_ids(store, TaskQuery(scope=ANYBODY, state=WAITING)) == [sample.id]

    @proves("B103")
    async def test_the_first_tasks_of_an_owner_written_together_are_all_there(self, store: TaskStore) -> None:
        """Twenty at once, for an owner the store has not seen."""
        owner = Scope("tenant", "new owner")
        samples = [SampleTask(f"task-{n}", scope=owner) for n in range(20)]

        await asyncio.gather(*(put(store, sample.take()) for sample in samples))

        page = await store.page(TaskQuery(scope=owner))
        assert sorted(task.id for task in page.tasks) == sorted(sample.id for sample in samples)
        assert page.total == 20

    @proves("B101")
    async def test_what_is_changed_after_writing_or_reading_does_not_change_the_store(self, store: TaskStore) -> None:
        """No aliasing, either way."""
        sample = SampleTask(metadata={"a": 1}).chunk("a")
        append = sample.take()
        expected = sample.task
        await put(store, append)
        given = append.records[0].event.task
        assert given is not None
        given.history.clear()
        given.context_id = "changed"
        given.status.state = TaskState.FAILED

        for _ in range(2):
            task = (await get(store, sample.id)).task
            assert task.context_id == "context-1"
            assert task.status.state is WORKING
            assert task.history == expected.history
            assert task.artifacts == expected.artifacts
            assert task.metadata == {"a": 1}
            task.status.state = TaskState.FAILED
            task.history.clear()
            task.artifacts[0].parts.append(Part(text="changed"))
            task.artifacts.clear()
            assert task.metadata is not None
            task.metadata["a"] = 2

    async def test_a_cancelled_write_is_whole_or_absent(self, store: TaskStore) -> None:
        """And the store goes on."""
        sample = SampleTask().chunk("a")
        writing = asyncio.ensure_future(store.append([sample.take()]))
        await asyncio.sleep(0)
        writing.cancel()
        await asyncio.wait([writing])

        other = SampleTask("task-2")
        await put(store, other.take())

        stored = await store.task(sample.id, None)
        assert stored is None or stored.task == sample.task
        assert (await get(store, other.id)).task == other.task
