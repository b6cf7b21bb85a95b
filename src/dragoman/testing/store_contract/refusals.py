"""What a store must refuse."""

from __future__ import annotations

from dragoman.errors import StaleLeaseError, StoreError
from dragoman.ports.store import Scope, TaskQuery, TaskStore
from dragoman.testing.sample_task import SampleTask
from dragoman.testing.store_contract.asking import (
    get,
    listed_ids,
    put,
    refusal,
)


class RefusalContract:
    """What must not be written is refused, and alone."""

    async def test_a_write_with_an_old_fence_is_refused_and_its_neighbours_are_written(self, store: TaskStore) -> None:
        """Outcomes come in the order of the group."""
        first, second = SampleTask("task-1"), SampleTask("task-2")
        await put(store, first.take(), second.take())
        second.fence = 0
        third = SampleTask("task-3")

        outcomes = await store.append([first.chunk("a").take(), second.chunk("a").take(), third.take()])

        assert outcomes[0] is None
        assert isinstance(outcomes[1], StaleLeaseError)
        assert outcomes[2] is None
        assert (await get(store, "task-1")).number == 2
        assert (await get(store, "task-2")).number == 1
        assert (await get(store, "task-3")).number == 1

    async def test_a_gap_and_a_repetition_are_refused(self, store: TaskStore) -> None:
        """Numbers go on from the last stored one, or nothing is written."""
        sample = SampleTask()
        await put(store, sample.take())
        repeated = sample.chunk("a").take()
        await put(store, repeated)
        sample.chunk("lost").take()

        assert isinstance(await refusal(store, repeated), StaleLeaseError)
        assert isinstance(await refusal(store, sample.chunk("c").take()), StaleLeaseError)
        assert len(await store.records(sample.id, 0, 100)) == 2

    async def test_records_that_are_not_consecutive_are_refused(self, store: TaskStore) -> None:
        """All or none of an append."""
        append = SampleTask().chunk("a").chunk("b").take()
        append.records = [append.records[0], append.records[2]]

        assert isinstance(await refusal(store, append), StoreError)
        assert await store.task("task-1", None) is None

    async def test_a_write_to_an_unknown_task_is_refused(self, store: TaskStore) -> None:
        """Nobody holds the lease of a task that is gone."""
        sample = SampleTask()
        sample.take()
        assert isinstance(await refusal(store, sample.chunk("a").take()), StaleLeaseError)

    async def test_a_second_task_with_the_same_id_is_refused_with_all_that_follows(self, store: TaskStore) -> None:
        """The first stays as it was; neighbours are written."""
        first = SampleTask()
        await put(store, first.take())
        second, neighbour = SampleTask(scope=Scope("other")), SampleTask("task-2")
        create, extend = second.take(), second.chunk("stray").take()

        outcomes = await store.append([create, extend, neighbour.take()])

        assert isinstance(outcomes[0], StoreError)
        assert isinstance(outcomes[1], StoreError)
        assert outcomes[2] is None
        assert (await get(store, first.id)).task == first.task
        assert await listed_ids(store, TaskQuery(scope=Scope("other"))) == []

    async def test_two_new_tasks_with_one_id_in_a_group_are_one_task(self, store: TaskStore) -> None:
        """The second is refused."""
        first, second = SampleTask(), SampleTask(context_id="context-2")

        outcomes = await store.append([first.take(), second.take()])

        assert outcomes[0] is None
        assert isinstance(outcomes[1], StoreError)
        assert (await get(store, first.id)).task == first.task

    async def test_an_append_without_records_changes_the_head_alone(self, store: TaskStore) -> None:
        """So a lease can be given up."""
        sample = SampleTask()
        await put(store, sample.take())
        sample.worker = None

        await put(store, sample.take())

        stored = await get(store, sample.id)
        assert (stored.worker, stored.number, stored.task) == (None, 1, sample.task)
