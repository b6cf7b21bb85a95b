"""The contract kit finds what is wrong with a store."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from dragoman.errors import StoreError
from dragoman.ports.store import Append, StoredTask, TaskPage, TaskQuery
from dragoman.stores import MemoryStore
from dragoman.testing.store_contract import StoreContract


class ForgetsTheFence(MemoryStore):
    async def append(self, batch: Sequence[Append]) -> Sequence[StoreError | None]:
        for append in batch:
            stored = await self.task(append.task_id, None)
            append.fence = stored.fence if stored is not None else append.fence
        return await super().append(batch)


class ForgetsTheOwner(MemoryStore):
    async def task(self, task_id: str, scope: object) -> StoredTask | None:
        return await super().task(task_id, None)


class CountsThePage(MemoryStore):
    async def page(self, query: TaskQuery) -> TaskPage:
        page = await super().page(query)
        page.total = len(page.tasks)
        return page


class ClaimsFromTheLiving(MemoryStore):
    async def claim(self, task_id: str, worker: str, now_ms: int) -> StoredTask | None:
        return await super().claim(task_id, worker, 2**62)


@pytest.mark.parametrize(
    ("store", "test"),
    [
        (ForgetsTheFence(), "test_a_claim_ends_the_old_lease"),
        (ForgetsTheOwner(), "test_another_tenant_or_owner_sees_nothing"),
        (CountsThePage(), "test_filters_narrow_together_and_the_total_counts_all_matches"),
        (ClaimsFromTheLiving(), "test_a_worker_lives_until_its_heartbeat_runs_out"),
    ],
)
async def test_a_broken_store_fails_the_test_that_is_about_it(store: MemoryStore, test: str) -> None:
    with pytest.raises(AssertionError):
        await getattr(StoreContract(), test)(store)
