"""Settings that name a store, and stores of third parties."""

from __future__ import annotations

import glob
import sys
from pathlib import Path
from typing import Any

import pytest

from dragoman.errors import ConfigurationError, MissingExtraError
from dragoman.ports.store import TaskStore
from dragoman.stores import MemoryStore, check_store, open_store
from dragoman.stores.sql import SqlStore
from dragoman.testing.sample_task import SampleTask


@pytest.mark.parametrize("url", [None, "memory", "memory://"])
def test_no_url_and_memory_are_the_memory_store(url: str | None) -> None:
    store = open_store(url)
    assert isinstance(store, MemoryStore)
    assert store.durable is False


@pytest.mark.parametrize(
    "form", ["sqlite:///tasks.db", "tasks.db", "./data/tasks.db", "what?.db", "{}/tasks.db", "sqlite:///{}/a b.db"]
)
async def test_urls_and_paths_of_files_are_the_sql_store(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()

    store = open_store(form.format(tmp_path))
    await store.open()
    await store.append([SampleTask().take()])
    await store.close()

    assert isinstance(store, SqlStore)
    assert store.durable is True
    assert len(glob.glob("**/*.db", root_dir=tmp_path, recursive=True)) == 1


@pytest.mark.parametrize("url", ["mysql://root:secret@host/db", "redis://x", "", "file://tasks.db"])
def test_an_unknown_scheme_is_refused_with_what_is_allowed(url: str) -> None:
    with pytest.raises(ConfigurationError, match=r"allowed are memory, sqlite:///") as refused:
        open_store(url)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("url", ["postgresql://u:secret@host/db", "postgres://host/db", "postgresql+asyncpg://host/db"])
def test_postgresql_is_refused_as_something_that_comes_later(url: str) -> None:
    with pytest.raises(ConfigurationError, match="comes later") as refused:
        open_store(url)
    assert "secret" not in str(refused.value)


def test_without_sqlalchemy_the_extra_to_install_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("dragoman.stores.sql")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "sqlalchemy", None)

    with pytest.raises(MissingExtraError, match=r"dragoman\[sql\]"):
        open_store("tasks.db")


def make_foreign(**changes: Any) -> Any:
    names = [name for name in vars(TaskStore) if not name.startswith("_")]
    members = {name: getattr(MemoryStore, name) for name in names} | {"durable": False} | changes
    return type("ForeignStore", (), {name: member for name, member in members.items() if member is not None})()


def test_a_store_of_a_third_party_with_all_methods_is_accepted() -> None:
    check_store(make_foreign())


@pytest.mark.req("B109")
@pytest.mark.parametrize("name", ["append", "claim", "purge", "page", "close"])
def test_a_missing_method_of_a_store_is_found_at_start_up(name: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"ForeignStore has no method {name}\("):
        check_store(make_foreign(**{name: None}))


@pytest.mark.req("B109")
def test_a_method_with_other_arguments_is_found_at_start_up() -> None:
    async def claim(self: object, task_id: str) -> None: ...

    with pytest.raises(ConfigurationError, match=r"claim\(\) that does not take \(task_id, worker, now_ms\)"):
        check_store(make_foreign(claim=claim))


def test_a_store_that_does_not_say_whether_it_is_durable_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="durable"):
        check_store(make_foreign(durable="yes"))
