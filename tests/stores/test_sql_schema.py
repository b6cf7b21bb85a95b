"""The schema: migrations, indexes, and what a listing costs."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import AsyncIterator, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Engine, Executable, create_engine, text
from sqlalchemy.dialects import postgresql
from sqlalchemy.schema import CreateIndex, CreateTable

import dragoman.stores.sql.migrating as migrating
from dragoman.model import TaskState
from dragoman.ports.store import Scope, TaskQuery
from dragoman.stores.sql import SqlStore, expiring, leasing, reading, upserting, webhooks, writing
from dragoman.stores.sql.reading import Reach, page_statement, total_statement
from dragoman.stores.sql.schema import METADATA, SECRETS, SNAPSHOTS, TOTALS, WORKERS
from dragoman.testing.sample_task import START_MS, SampleTask
from dragoman.testing.store_contract.asking import every_page

REACHES: tuple[Reach, ...] = ("one", "some", "all")
VALUES = {
    "agent": "",
    "tenant": "",
    "owner": "",
    "context_id": "context-1",
    "state": 3,
    "since_ms": START_MS,
    "after_ms": START_MS + 500,
    "after_id": "task",
    "limit": 51,
}


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqlStore]:
    store = SqlStore(f"sqlite:///{tmp_path}/tasks.db")
    await store.open()
    yield store
    await store.close()


@pytest.fixture
def engine(store: SqlStore, tmp_path: Path) -> Iterator[Engine]:
    engine = create_engine(f"sqlite:///{tmp_path}/tasks.db")
    yield engine
    engine.dispose()


def test_the_migrations_make_the_schema_that_the_statements_use(engine: Engine) -> None:
    with engine.connect() as connection:
        options = {"version_table": migrating.VERSION_TABLE}
        context = MigrationContext.configure(connection, opts=options)
        assert compare_metadata(context, METADATA) == []
        made = set(connection.execute(text("SELECT sql FROM sqlite_master WHERE name LIKE 'dragoman_tasks_%'")))
    wanted = {index.name for index in METADATA.tables["dragoman_tasks"].indexes}
    assert {name for name in wanted if any(str(name) in str(sql) for (sql,) in made)} == wanted
    assert sum("WHERE" in str(sql) for (sql,) in made) == 2  # the partial ones


def test_the_version_that_opening_looks_for_is_the_newest_migration() -> None:
    config = Config()
    config.set_main_option("script_location", str(Path(migrating.__file__).parent / "migrations"))
    assert ScriptDirectory.from_config(config).get_current_head() == migrating.SCHEMA_VERSION


def test_the_schema_can_be_written_for_postgresql() -> None:
    for table in METADATA.sorted_tables:
        statements = [CreateTable(table), *(CreateIndex(index) for index in table.indexes)]
        for statement in statements:
            assert "CREATE" in str(statement.compile(dialect=postgresql.dialect()))


def test_every_statement_can_be_written_for_postgresql() -> None:
    modules = (expiring, leasing, reading, webhooks, writing)
    found = [value for module in modules for value in vars(module).values() if isinstance(value, Executable)]
    found += expiring._REMOVALS
    for table, add in ((SNAPSHOTS, ""), (WORKERS, ""), (TOTALS, "tasks")):
        found.append(upserting._upsert("postgresql", table, add))
    found.append(upserting._insert_once("postgresql", SECRETS))
    for reach in REACHES:
        found += [page_statement(*flags, reach) for flags in product((False, True), repeat=4)]
        found += [total_statement(*flags, reach) for flags in product((False, True), repeat=3)]
    assert len(found) > 40
    for statement in found:
        assert str(statement.compile(dialect=postgresql.dialect()))
    assert "FOR UPDATE OF dragoman_tasks" in str(leasing._CLAIMABLE.compile(dialect=postgresql.dialect()))


async def test_a_database_with_other_tables_is_taken_and_opened_again(tmp_path: Path) -> None:
    path = tmp_path / "tasks.db"
    sqlite3.connect(path).execute("CREATE TABLE somebody_elses (id TEXT)").connection.close()

    store = SqlStore(f"sqlite:///{path}")
    await store.open()
    assert await store.append([SampleTask().take()]) == [None]
    await store.close()

    again = SqlStore(f"sqlite:///{path}")
    await again.open()
    assert await again.task("task-1", None) is not None
    await again.close()


def plan(engine: Engine, statement: Any) -> str:
    compiled = statement.compile(dialect=engine.dialect)
    with engine.connect() as connection:
        names = [name for name in compiled.positiontup if name != "owners"]
        values = tuple(VALUES[name.removesuffix("_1")] if name in VALUES else 0 for name in names)
        asked = str(compiled).replace("__[POSTCOMPILE_owners]", "'ann', 'bob'")
        rows = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {asked}", values).all()
    return "; ".join(str(row[-1]) for row in rows)


@pytest.mark.req("LIST-02", "AMB-50")
@pytest.mark.parametrize(("context", "state", "since", "after"), list(product((False, True), repeat=4)))
def test_every_listing_reads_an_index_in_order(
    engine: Engine, context: bool, state: bool, since: bool, after: bool
) -> None:
    found = plan(engine, page_statement(context, state, since, after))

    index = "by_context" if context else "by_state" if state else "by_time"
    assert f"SEARCH dragoman_tasks USING INDEX dragoman_tasks_{index} (agent=? AND tenant=? AND owner=?" in found
    assert "TEMP B-TREE" not in found
    assert not (since or after) or "timestamp_ms" in found


@pytest.mark.req("LIST-02", "AUTH-08")
@pytest.mark.parametrize("reach", ["some", "all"])
def test_a_listing_of_several_owners_sorts_in_an_index_and_reads_the_tasks_of_its_page_alone(
    engine: Engine, reach: Reach
) -> None:
    for state in (False, True):
        found = plan(engine, page_statement(False, state, False, True, reach))
        print(found)
        assert "USING COVERING INDEX dragoman_tasks_by_" in found
        assert "USING INDEX sqlite_autoindex_dragoman_tasks" in found


@pytest.mark.req("LIST-13")
def test_totals_are_looked_up_or_counted_in_an_index(engine: Engine) -> None:
    for state in (False, True):
        assert "SEARCH dragoman_totals USING" in plan(engine, total_statement(False, state, False))
        assert "COVERING INDEX" in plan(engine, total_statement(False, state, True))
    assert "COVERING INDEX" in plan(engine, total_statement(True, False, True))


FILL = """
WITH RECURSIVE counter(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM counter WHERE n < :count)
INSERT INTO dragoman_tasks (id, tenant, owner, context_id, agent, wire_version, request, number, state, timestamp_ms,
    finished_ms, status, fence)
SELECT printf('filler-%08d', n), '', '', printf('context-%08d', n), '', '1.0', '', 1, 3, :start + n, :start + n,
    :status, 1
FROM counter
"""


@pytest.mark.req("LIST-02", "LIST-13")
async def test_a_listing_of_100_000_tasks_costs_about_what_100_cost(store: SqlStore, engine: Engine) -> None:
    query = TaskQuery(scope=Scope(), state=TaskState.COMPLETED, page_size=50)
    costs: list[float] = []
    for count in (100, 100_000):
        status = b'{"state":"TASK_STATE_COMPLETED","timestamp":"2026-01-01T00:00:00.000Z"}'
        with engine.begin() as connection:
            connection.execute(text("DELETE FROM dragoman_tasks"))
            connection.execute(text("DELETE FROM dragoman_totals"))
            connection.execute(text(FILL), {"count": count, "start": START_MS, "status": status})
            connection.execute(text(f"INSERT INTO dragoman_totals VALUES ('', '', '', 3, 0, {count})"))
        assert (await store.page(query)).total == count
        begun = time.perf_counter()
        for _ in range(20):
            await store.page(query)
        costs.append((time.perf_counter() - begun) / 20 * 1e3)

    print(f"a page of 50: {costs[0]:.2f} ms of 100 tasks, {costs[1]:.2f} ms of 100,000 tasks")
    pages = await every_page(store, TaskQuery(scope=Scope(), page_size=100, since_ms=START_MS + 99_001))
    assert [len(page.tasks) for page in pages] == [100] * 10
