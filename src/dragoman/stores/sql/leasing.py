"""Workers, leases, memos and secrets in SQL."""

from __future__ import annotations

import secrets

from sqlalchemy import Connection, bindparam, delete, or_, select, update

from dragoman.errors import StaleLeaseError
from dragoman.ports.store import StoredTask
from dragoman.stores.refusing import unknown_task
from dragoman.stores.sql.reading import read_memo, read_task
from dragoman.stores.sql.schema import MEMOS, SECRETS, TASKS, WORKERS
from dragoman.stores.sql.upserting import insert_once, upsert

_DAY_MS = 86_400_000

_FORGET_WORKERS = delete(WORKERS).where(WORKERS.c.until_ms < bindparam("before_ms"))
_RETIRE = delete(WORKERS).where(WORKERS.c.name == bindparam("name"))


def write_heartbeat(connection: Connection, worker: str, until_ms: int) -> None:
    """The worker is alive before ``until_ms``. Forgets workers that died long ago: no row says the same."""
    connection.execute(upsert(connection, WORKERS), {"name": worker, "until_ms": until_ms})
    connection.execute(_FORGET_WORKERS, {"before_ms": until_ms - _DAY_MS})


def remove_worker(connection: Connection, worker: str) -> None:
    """The worker is gone."""
    connection.execute(_RETIRE, {"name": worker})


_WITH_WORKER = TASKS.outerjoin(WORKERS, WORKERS.c.name == TASKS.c.worker)
_NOBODY_ALIVE = or_(WORKERS.c.until_ms.is_(None), WORKERS.c.until_ms <= bindparam("now_ms"))
_ORPHANS = (
    select(TASKS.c.id)
    .select_from(_WITH_WORKER)
    .where(TASKS.c.worker.is_not(None), TASKS.c.agent == bindparam("agent"), _NOBODY_ALIVE)
    .order_by(TASKS.c.timestamp_ms, TASKS.c.id)
    .limit(bindparam("limit"))
)


def read_orphans(connection: Connection, now_ms: int, limit: int, agent: str) -> list[str]:
    """Ids of the agent's tasks that a dead worker holds, oldest status first."""
    return list(connection.execute(_ORPHANS, {"now_ms": now_ms, "limit": limit, "agent": agent}).scalars())


_CLAIMABLE = (
    select(TASKS.c.fence)
    .select_from(_WITH_WORKER)
    .where(
        TASKS.c.id == bindparam("id"),
        or_(TASKS.c.worker.is_(None), TASKS.c.worker == bindparam("worker"), _NOBODY_ALIVE),
    )
    .with_for_update(of=TASKS)
)
_CLAIM = (
    update(TASKS).where(TASKS.c.id == bindparam("task")).values(fence=TASKS.c.fence + 1, worker=bindparam("worker"))
)


def claim_task(connection: Connection, task_id: str, worker: str, now_ms: int) -> StoredTask | None:
    """Take the lease of a task that nobody alive holds, or None."""
    if connection.execute(_CLAIMABLE, {"id": task_id, "worker": worker, "now_ms": now_ms}).first() is None:
        return None
    connection.execute(_CLAIM, {"task": task_id, "worker": worker})
    return read_task(connection, task_id, None)


_FENCE = select(TASKS.c.fence).where(TASKS.c.id == bindparam("id")).with_for_update()


def write_memo(connection: Connection, task_id: str, fence: int, key: str, value: bytes) -> bytes:
    """Keep a value once; what is kept."""
    held = connection.execute(_FENCE, {"id": task_id}).scalar()
    if held is None:
        raise unknown_task(task_id)
    if held != fence:
        raise StaleLeaseError(f"Task {task_id} has fence {held}, the memo came with {fence}")
    kept = read_memo(connection, task_id, key)
    if kept is None:
        connection.execute(MEMOS.insert(), {"task_id": task_id, "key": key, "value": value})
        return value
    return kept


_SECRET = select(SECRETS.c.value).where(SECRETS.c.name == bindparam("name"))


def make_secret(connection: Connection, name: str) -> bytes:
    """The secret of this name, made on first use."""
    connection.execute(insert_once(connection, SECRETS), {"name": name, "value": secrets.token_bytes(32)})
    value: bytes = connection.execute(_SECRET, {"name": name}).scalar_one()
    return value
