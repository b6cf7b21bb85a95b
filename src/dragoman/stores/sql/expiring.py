"""Removal of tasks that are over."""

from __future__ import annotations

from sqlalchemy import Connection, bindparam, delete, select

from dragoman.stores.sql.planning import TotalKey
from dragoman.stores.sql.portions import portions
from dragoman.stores.sql.schema import MEMOS, SEGMENTS, SNAPSHOTS, TASKS, WEBHOOKS
from dragoman.stores.sql.writing import add_totals

_EXPIRED = (
    select(TASKS.c.id, TASKS.c.agent, TASKS.c.tenant, TASKS.c.owner, TASKS.c.state)
    .where(TASKS.c.agent == bindparam("agent"), TASKS.c.finished_ms < bindparam("before_ms"))
    .order_by(TASKS.c.finished_ms)
    .limit(bindparam("limit"))
    .with_for_update()
)
_REMOVALS = [
    delete(table).where(column.in_(bindparam("ids", expanding=True)))
    for table, column in (
        (SEGMENTS, SEGMENTS.c.task_id),
        (SNAPSHOTS, SNAPSHOTS.c.task_id),
        (MEMOS, MEMOS.c.task_id),
        (WEBHOOKS, WEBHOOKS.c.task_id),
        (TASKS, TASKS.c.id),
    )
]


def remove_expired(connection: Connection, before_ms: int, limit: int, agent: str, shard: int) -> int:
    """Remove terminal tasks of an agent with an older status, the oldest first; how many."""
    rows = connection.execute(_EXPIRED, {"agent": agent, "before_ms": before_ms, "limit": limit}).all()
    for ids in portions(row.id for row in rows):
        for removal in _REMOVALS:
            connection.execute(removal, {"ids": ids})
    totals: dict[TotalKey, int] = {}
    for _, *key in rows:
        owner = tuple(key)
        totals[owner] = totals.get(owner, 0) - 1
    add_totals(connection, totals, shard)
    return len(rows)
