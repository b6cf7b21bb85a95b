"""Both stores keep the contract."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from dragoman.ports.store import TaskStore
from dragoman.stores import MemoryStore, check_store
from dragoman.stores.sql import SqlStore
from dragoman.testing.store_contract import StoreContract, WebhookContract

for _part in (*StoreContract.__mro__, WebhookContract):
    for _test in vars(_part).values():
        if hasattr(_test, "requirements"):
            pytest.mark.req(*_test.requirements)(_test)


class TestMemoryStore(StoreContract, WebhookContract):
    @pytest.fixture
    async def store(self) -> AsyncIterator[TaskStore]:
        store = MemoryStore()
        check_store(store)
        await store.open()
        yield store
        await store.close()


class TestSqlStore(StoreContract, WebhookContract):
    @pytest.fixture
    async def store(self, tmp_path: Path) -> AsyncIterator[TaskStore]:
        store = SqlStore(f"sqlite:///{tmp_path}/tasks.db")
        check_store(store)
        await store.open()
        yield store
        await store.close()
