"""Who may write, what was done once, and what is removed."""

from __future__ import annotations

import asyncio

from dragoman.errors import StaleLeaseError
from dragoman.ports.store import TaskQuery, TaskStore
from dragoman.testing.sample_task import START_MS, SampleTask
from dragoman.testing.store_contract.asking import (
    ANYBODY,
    DONE,
    WAITING,
    get,
    listed_ids,
    put,
    raised,
    refusal,
)


class LeaseContract:
    """Every task has one writer at a time."""

    async def test_a_worker_lives_until_its_heartbeat_runs_out(self, store: TaskStore) -> None:
        """From ``until_ms`` on its tasks are orphans, and can be claimed."""
        sample = SampleTask()
        await store.heartbeat("worker-1", 1000)
        await put(store, sample.take())

        assert await store.orphans(999, 10) == []
        assert await store.claim(sample.id, "worker-2", 999) is None
        assert await store.orphans(1000, 10) == [sample.id]
        await store.heartbeat("worker-1", 2000)
        assert await store.orphans(1000, 10) == []

    async def test_a_claim_ends_the_old_lease(self, store: TaskStore) -> None:
        """The fence grows by one, and writes with the old one are refused."""
        sample = SampleTask()
        await put(store, sample.take())
        await store.heartbeat("worker-2", 5000)

        claimed = await store.claim(sample.id, "worker-2", 1000)

        assert claimed is not None
        assert (claimed.task, claimed.number, claimed.fence, claimed.worker) == (sample.task, 1, 2, "worker-2")
        assert await get(store, sample.id) == claimed
        late = sample.chunk("late").take()
        assert isinstance(await refusal(store, late), StaleLeaseError)
        late.fence, late.worker = claimed.fence, claimed.worker
        await put(store, late)
        assert await store.orphans(1000, 10) == []

    async def test_of_two_claims_one_wins(self, store: TaskStore) -> None:
        """The other gets None."""
        await put(store, SampleTask().take())
        await store.heartbeat("worker-2", 5000)
        await store.heartbeat("worker-3", 5000)

        claims = await asyncio.gather(*(store.claim("task-1", f"worker-{n}", 1000) for n in (2, 3)))

        assert [claim is None for claim in claims].count(True) == 1

    async def test_a_task_that_nobody_holds_can_be_claimed_and_is_no_orphan(self, store: TaskStore) -> None:
        """It waits, or is over."""
        sample = SampleTask(state=WAITING, worker=None)
        await put(store, sample.take())

        assert await store.orphans(1000, 10) == []
        claimed = await store.claim(sample.id, "worker-2", 1000)
        assert claimed is not None
        assert claimed.fence == 2

    async def test_an_unknown_task_cannot_be_claimed(self, store: TaskStore) -> None:
        """It is gone."""
        assert await store.claim("nobody", "worker-1", 1000) is None

    async def test_a_retired_worker_leaves_orphans_at_once(self, store: TaskStore) -> None:
        """However far its heartbeat reached; a living worker's tasks are not among them."""
        await store.heartbeat("worker-1", 5000)
        await store.heartbeat("worker-2", 5000)
        await put(store, SampleTask("a").take(), SampleTask("b", worker="worker-2").take())

        await store.retire("worker-1")

        assert await store.orphans(1000, 10) == ["a"]

    async def test_orphans_come_oldest_first_and_limited(self, store: TaskStore) -> None:
        """By the time of their status."""
        for task_id, at in (("b", 2), ("a", 3), ("c", 1)):
            await put(store, SampleTask(task_id, at=START_MS + at).take())

        assert await store.orphans(1000, 10) == ["c", "b", "a"]
        assert await store.orphans(1000, 2) == ["c", "b"]

    async def test_a_task_that_is_over_is_no_orphan(self, store: TaskStore) -> None:
        """Its lease was given up with the last write."""
        await put(store, SampleTask().move(DONE).take())
        assert await store.orphans(1000, 10) == []


class MemoContract:
    """What a handler did once."""

    async def test_the_first_value_wins(self, store: TaskStore) -> None:
        """Each key of each task keeps one value."""
        await put(store, SampleTask("a").take(), SampleTask("b").take())

        assert await store.remember("a", 1, "key", b"first") == b"first"
        assert await store.remember("a", 1, "key", b"second") == b"first"
        assert await store.remember("a", 1, "other", b"") == b""
        assert await store.memo("a", "key") == b"first"
        assert await store.memo("a", "other") == b""
        assert await store.memo("b", "key") is None

    async def test_a_memo_with_an_old_fence_or_for_an_unknown_task_is_refused(self, store: TaskStore) -> None:
        """Also when a value is there."""
        await put(store, SampleTask().take())
        await store.remember("task-1", 1, "key", b"first")

        for task_id, fence in (("task-1", 0), ("task-1", 2), ("nobody", 1)):
            assert isinstance(await raised(store.remember(task_id, fence, "key", b"x")), StaleLeaseError)


class HousekeepingContract:
    """Retention, secrets, closing."""

    async def test_purge_removes_old_finished_tasks_with_all_they_have(self, store: TaskStore) -> None:
        """Those that are not over stay, and those that are not older."""
        old, fresh = SampleTask("old", at=START_MS), SampleTask("fresh", at=START_MS + 10)
        waiting = SampleTask("waiting", at=START_MS, state=WAITING)
        await put(store, old.take(), fresh.move(DONE).take(), waiting.take())
        await store.remember("old", 1, "key", b"value")
        await put(store, old.chunk("a").move(DONE).take(snapshot=True))

        assert await store.purge(START_MS, 10) == 0
        assert await store.purge(START_MS + 10, 10) == 1

        assert await store.task("old", None) is None
        assert await store.records("old", 0, 10) == []
        assert await store.memo("old", "key") is None
        assert await listed_ids(store, TaskQuery(scope=ANYBODY)) == ["fresh", "waiting"]
        await put(store, SampleTask("old").take())

    async def test_purge_takes_the_oldest_up_to_its_limit(self, store: TaskStore) -> None:
        """The rest stays for the next time."""
        await put(store, *(SampleTask(f"{n}", at=START_MS + n).move(DONE).take() for n in range(5)))

        assert await store.purge(START_MS + 100, 2) == 2
        assert await listed_ids(store, TaskQuery(scope=ANYBODY)) == ["4", "3", "2"]
        assert await store.purge(START_MS + 100, 10) == 3
        assert await store.purge(START_MS + 100, 10) == 0

    async def test_a_secret_is_made_once(self, store: TaskStore) -> None:
        """32 bytes for each name, also when asked for at once."""
        first, again, other = await asyncio.gather(store.secret("a"), store.secret("a"), store.secret("b"))

        assert first == again
        assert first != other
        assert len(first) == len(other) == 32

    async def test_the_store_can_be_closed_twice(self, store: TaskStore) -> None:
        """The second time does nothing."""
        await store.close()
        await store.close()
