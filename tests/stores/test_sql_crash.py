"""What was acknowledged survives: a hard kill, a full disk."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

from dragoman.stores.sql import SqlStore

CHILD = Path(__file__).with_name("child.py")


def start(verb: str, path: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(CHILD), verb, str(path)], stdout=subprocess.PIPE, text=True, encoding="utf-8"
    )


def write_until_killed(path: Path, lines: int) -> dict[str, int]:
    """The last number that was acknowledged for each task, by a writer that is killed after some lines."""
    acknowledged: dict[str, int] = {}
    with start("write", path) as child:
        assert child.stdout is not None
        for count, line in enumerate(child.stdout):
            if count == lines:
                child.send_signal(signal.SIGKILL)
            if line.endswith("\n"):  # the kill may cut a line
                acknowledged |= {task: int(number) for task, number in (pair.split("=") for pair in line.split())}
    assert child.returncode == -signal.SIGKILL
    return acknowledged


async def test_after_a_hard_kill_every_acknowledged_record_is_there_without_gaps(tmp_path: Path) -> None:
    path = tmp_path / "tasks.db"
    acknowledged: dict[str, int] = {}
    for lines in (3, 40, 101):
        acknowledged |= write_until_killed(path, lines)

    store = SqlStore(f"sqlite:///{path}")
    await store.open()
    for task_id, number in acknowledged.items():
        stored = await store.task(task_id, None)
        assert stored is not None
        assert stored.number >= number
        numbers = [record.number for record in await store.records(task_id, 0, 1000)]
        assert numbers == list(range(1, stored.number + 1))
    await store.close()
    assert len(acknowledged) > 50
    assert sqlite3.connect(path).execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_a_full_disk_is_named_and_the_store_goes_on_when_there_is_room(tmp_path: Path) -> None:
    with start("fill", tmp_path / "tasks.db") as child:
        said, _ = child.communicate(timeout=60)

    refused, read, written = said.splitlines()
    assert refused.startswith(f"refused The store in {tmp_path}/tasks.db cannot be")
    assert "disk is full" in refused
    assert read == "read True"
    assert written == "written [None]"
