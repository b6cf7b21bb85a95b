"""Appends as SQL: check, then write, a few statements for a whole group.

Every function runs inside the one write transaction of its caller. ``SELECT … FOR UPDATE`` (a plain select on SQLite,
where the transaction holds the only write lock from its beginning) fixes the heads of the tasks, so what is refused
is known before anything is written, and what is written cannot fail for a lease.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, bindparam, select, update

from dragoman.errors import StoreError
from dragoman.stores.sql.encoding import Write
from dragoman.stores.sql.planning import Head, Plan, TotalKey, plan_create, plan_write
from dragoman.stores.sql.portions import portions
from dragoman.stores.sql.schema import SEGMENTS, SNAPSHOTS, TASKS, TOTALS, WEBHOOKS
from dragoman.stores.sql.upserting import upsert
from dragoman.stores.sql.webhooks import WAKE

Outcomes = tuple[list[StoreError | None], bool]
"""One outcome for each append, in order, and whether webhooks are due by the write."""


def create_all(connection: Connection, writes: Sequence[Write], shard: int) -> Outcomes:
    """Write a group of nothing but new tasks, without a look at what is there.

    Raises the database's integrity error when one of them exists already; use :func:`write_all` then.
    """
    plan = Plan()
    for write in writes:
        plan_create(plan, write)
    _carry_out(connection, plan, shard)
    return [None] * len(writes), plan.has_due


def write_all(connection: Connection, writes: Sequence[Write], shard: int) -> Outcomes:
    """Write a group."""
    heads = _read_heads(connection, {write.append.task_id for write in writes})
    plan = Plan()
    refused: set[str] = set()
    outcomes: list[StoreError | None] = []
    for write in writes:
        outcome = plan_write(plan, write, heads, refused)
        if outcome is not None:
            refused.add(write.append.task_id)
        outcomes.append(outcome)
    _carry_out(connection, plan, shard)
    return outcomes, plan.has_due


_HEADS = (
    select(
        TASKS.c.id,
        TASKS.c.fence,
        TASKS.c.number,
        TASKS.c.state,
        TASKS.c.timestamp_ms,
        TASKS.c.worker,
        TASKS.c.agent,
        TASKS.c.tenant,
        TASKS.c.owner,
        TASKS.c.metadata,
        TASKS.c.webhooks,
    )
    .where(TASKS.c.id.in_(bindparam("ids", expanding=True)))
    .order_by(TASKS.c.id)
    .with_for_update()
)


def _read_heads(connection: Connection, ids: set[str]) -> dict[str, Head]:
    heads: dict[str, Head] = {}
    for some in portions(sorted(ids)):
        for row in connection.execute(_HEADS, {"ids": some}):
            heads[row[0]] = Head(*tuple(row)[1:])
    return heads


_INSERT_TASKS = TASKS.insert()
_INSERT_SEGMENTS = SEGMENTS.insert()
_INSERT_WEBHOOKS = WEBHOOKS.insert()
# Two updates, since a database renews every index of a column that is written, even with the same value; most
# writes of a streaming task change no indexed column.
_GROW_TASKS = (
    update(TASKS).where(TASKS.c.id == bindparam("task")).values(number=bindparam("number"), status=bindparam("status"))
)
_MOVE_TASKS = _GROW_TASKS.values(
    state=bindparam("state"),
    timestamp_ms=bindparam("timestamp_ms"),
    finished_ms=bindparam("finished_ms"),
    worker=bindparam("worker"),
)
_ANNOTATE_TASKS = update(TASKS).where(TASKS.c.id == bindparam("task")).values(metadata=bindparam("metadata"))


def _carry_out(connection: Connection, plan: Plan, shard: int) -> None:
    if plan.created:
        connection.execute(_INSERT_TASKS, plan.created)
    if plan.moved:
        connection.execute(_MOVE_TASKS, list(plan.moved.values()))
    if plan.grown:
        connection.execute(_GROW_TASKS, list(plan.grown.values()))
    if plan.annotated:
        connection.execute(_ANNOTATE_TASKS, list(plan.annotated.values()))
    if plan.segments:
        connection.execute(_INSERT_SEGMENTS, plan.segments)
    if plan.snapshots:
        connection.execute(upsert(connection, SNAPSHOTS), list(plan.snapshots.values()))
    if plan.webhooks:
        connection.execute(_INSERT_WEBHOOKS, plan.webhooks)
    if plan.wakes:
        connection.execute(WAKE, list(plan.wakes.values()))
    add_totals(connection, plan.totals, shard)


def add_totals(connection: Connection, totals: dict[TotalKey, int], shard: int) -> None:
    """Add changes to the counts of tasks by scope and state."""
    # Sorted, so that two writers never wait for each other in a circle.
    rows = [
        {"agent": agent, "tenant": tenant, "owner": owner, "state": state, "shard": shard, "tasks": change}
        for (agent, tenant, owner, state), change in sorted(totals.items())
        if change
    ]
    if rows:
        connection.execute(upsert(connection, TOTALS, add="tasks"), rows)
