"""Several agents in one database, also in one that was made before there could be."""

from __future__ import annotations

from pathlib import Path

import pytest
from alembic import command
from alembic.config import Config
from sqlalchemy import create_engine, text

import dragoman.stores.sql.migrating as migrating
from dragoman.model import TaskState
from dragoman.ports.store import Scope, TaskQuery
from dragoman.stores.sql import SqlStore
from dragoman.testing.sample_task import START_MS

ROW = """INSERT INTO dragoman_tasks (id, tenant, owner, context_id, agent, wire_version, request, number, state,
    timestamp_ms, finished_ms, status, fence, webhooks)
    VALUES (:id, '', 'ann', 'c', :agent, '1.0', '', 1, 3, :at, :at, :status, 1, 1)"""
HOOK = """INSERT INTO dragoman_webhooks (task_id, id, key, wire_version, payload, position, snapshot, state, failures,
    claim, due_ms) VALUES (:id, 'h', 1, '1.0', '{}', 0, 0, 0, 0, 0, 1)"""
LETTER = "INSERT INTO dragoman_dead_letters VALUES (:id, :task, 'h', 'https://h', 1, 1, 'HTTP 500', 3, 5)"


def made_before(path: Path) -> None:
    """A database of schema v0002 with tasks of two agents."""
    config = Config()
    config.set_main_option("script_location", str(Path(migrating.__file__).parent / "migrations"))
    engine = create_engine(f"sqlite:///{path}")
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "v0002")
        status = b'{"state":"TASK_STATE_COMPLETED","timestamp":"2026-01-01T00:00:00.000Z"}'
        for number, agent in enumerate(("Billing", "Billing", "Travel")):
            values = {"id": f"task-{number}", "agent": agent, "at": START_MS + number, "status": status}
            connection.execute(text(ROW), values)
            connection.execute(text(HOOK), {"id": f"task-{number}"})
        connection.execute(text("INSERT INTO dragoman_totals VALUES ('', 'ann', 3, 0, 3)"))
        for number, task in enumerate(("task-0", "task-2", "gone")):
            connection.execute(text(LETTER), {"id": f"letter-{number}", "task": task})
    engine.dispose()


@pytest.mark.req("TEN-03", "AUTH-10", "LIST-13")
async def test_a_database_of_before_is_divided_among_its_agents(tmp_path: Path) -> None:
    made_before(tmp_path / "tasks.db")
    store = SqlStore(tmp_path / "tasks.db")
    await store.open()

    for agent, ids, letters in (
        ("Billing", ["task-1", "task-0"], ["letter-0"]),
        ("Travel", ["task-2"], ["letter-1"]),
        ("", [], ["letter-2"]),
    ):
        page = await store.page(TaskQuery(scope=Scope("", "ann", agent), state=TaskState.COMPLETED))
        assert ([task.id for task in page.tasks], page.total) == (ids, len(ids))
        due = await store.claim_webhooks(10, 20, 10, agent)
        assert {found.task_id for found in due} == set(ids)
        assert [letter.id for letter in await store.dead_letters("", 9, agent)] == letters
    assert await store.purge(START_MS + 9, 10, "Billing") == 2
    assert (await store.page(TaskQuery(scope=Scope("", "ann", "Travel")))).total == 1
    assert (await store.page(TaskQuery(scope=Scope("", "ann", "Billing")))).total == 0
    await store.close()
