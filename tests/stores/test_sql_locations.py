"""What can be wrong with a database file, and what the operator is told."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from dragoman.errors import ConfigurationError, StoreError
from dragoman.stores.sql import SqlStore
from dragoman.testing.sample_task import SampleTask
from tests.stores.test_sql_crash import CHILD


async def make_store(path: Path) -> SqlStore:
    store = SqlStore(f"sqlite:///{path}", busy_timeout=0.05)
    await store.open()
    return store


async def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=f"there is no folder {tmp_path}/nowhere"):
        await make_store(tmp_path / "nowhere" / "tasks.db")


async def test_a_folder_is_no_database(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="it is a folder"):
        await make_store(tmp_path)


async def test_a_file_of_another_kind_is_no_database(tmp_path: Path) -> None:
    path = tmp_path / "tasks.db"
    path.write_text("These are notes, long enough to be taken for the header of a database file." * 20)

    with pytest.raises(StoreError, match=rf"{path} is not a SQLite database"):
        await make_store(path)


async def test_a_file_locked_by_another_process_is_named_when_opening_and_when_writing(tmp_path: Path) -> None:
    path = tmp_path / "tasks.db"
    store = await make_store(path)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")

    with pytest.raises(StoreError, match=rf"{path} is locked by another process"):
        await store.append([SampleTask().take()])
    with pytest.raises(StoreError, match=rf"{path} is locked by another process"):
        await make_store(path)

    other.execute("ROLLBACK")
    assert await store.append([SampleTask().take()]) == [None]
    await store.close()
    other.close()


def forbid(folder: Path, *files: Path) -> None:
    """Nobody but root may write here."""
    for file in files:
        file.chmod(0o444)
    folder.chmod(0o555)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that other users can enter, unlike ``tmp_path``."""
    folder = Path(tempfile.mkdtemp(prefix="dragoman-"))
    folder.chmod(0o755)
    yield folder
    folder.chmod(0o755)
    shutil.rmtree(folder)


def trespass(path: Path) -> str:
    command = [sys.executable, str(CHILD), "trespass", str(path)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout


async def test_a_read_only_file_is_named(open_folder: Path) -> None:
    path = open_folder / "tasks.db"
    await (await make_store(path)).close()
    forbid(open_folder, path)

    said = trespass(path)

    assert said.startswith(f"refused The store in {path} cannot be")
    assert "read only" in said


async def test_a_folder_that_cannot_be_written_is_named(open_folder: Path) -> None:
    forbid(open_folder)

    said = trespass(open_folder / "tasks.db")

    assert said.startswith(f"refused The store in {open_folder}/tasks.db cannot be opened")


async def test_a_database_of_a_newer_version_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "tasks.db"
    await (await make_store(path)).close()
    with sqlite3.connect(path) as other:
        other.execute("UPDATE dragoman_version SET version_num = 'v9999'")
    other.close()

    with pytest.raises(StoreError, match=r"has schema v9999, newer than the v\d{4} of this version"):
        await make_store(path)
    assert sqlite3.connect(path).execute("SELECT version_num FROM dragoman_version").fetchall() == [("v9999",)]


async def test_a_damaged_record_is_an_error_of_the_store(tmp_path: Path) -> None:
    store = await make_store(tmp_path / "tasks.db")
    await store.append([SampleTask().take()])
    with sqlite3.connect(tmp_path / "tasks.db") as other:
        other.execute('UPDATE dragoman_segments SET payload = \'{"event":{"task":1}}\'')

    with pytest.raises(StoreError, match="A stored record cannot be read"):
        await store.task("task-1", None)
    await store.close()
    other.close()


async def test_a_store_that_is_not_open_or_closed_says_so(tmp_path: Path) -> None:
    store = SqlStore(f"sqlite:///{tmp_path}/tasks.db")
    with pytest.raises(StoreError, match="is not open"):
        await store.task("task-1", None)
    await store.close()
    await store.open()
    await store.close()
    with pytest.raises(StoreError, match="is closed"):
        await store.task("task-1", None)


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///:memory:", "mysql://user:secret@host/db", "nonsense"])
def test_a_url_that_names_no_file_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        SqlStore(url)
    assert "secret" not in str(refused.value)
