"""Tasks, logs and listings out of SQL. Every function runs inside one read transaction of its caller."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, Literal

from sqlalchemy import Connection, Select, Table, and_, bindparam, func, select, tuple_

from dragoman.errors import StoreError
from dragoman.model import Task
from dragoman.ports.store import Record, Scope, StoredTask, TaskPage, TaskQuery
from dragoman.stores.segments import decode_head, decode_segment, decode_task, fold_task
from dragoman.stores.sql.portions import portions
from dragoman.stores.sql.schema import MEMOS, SEGMENTS, SNAPSHOTS, TASKS, TOTALS

_STORED = (
    select(
        TASKS.c.tenant,
        TASKS.c.owner,
        TASKS.c.number,
        TASKS.c.fence,
        TASKS.c.worker,
        TASKS.c.agent,
        TASKS.c.wire_version,
        TASKS.c.request,
        SNAPSHOTS.c.number.label("folded"),
        SNAPSHOTS.c.payload.label("snapshot"),
    )
    .outerjoin_from(TASKS, SNAPSHOTS, SNAPSHOTS.c.task_id == TASKS.c.id)
    .where(TASKS.c.id == bindparam("id"))
)

_LOG = (
    select(SEGMENTS.c.first, SEGMENTS.c.payload)
    .where(SEGMENTS.c.task_id == bindparam("id"), SEGMENTS.c.last > bindparam("after"))
    .order_by(SEGMENTS.c.last)
    .limit(bindparam("limit"))
)
_NO_LIMIT = 2**62


def read_task(connection: Connection, task_id: str, scope: Scope | None) -> StoredTask | None:
    """The task as the fold of its log, from its snapshot on; None when it is unknown or not in the scope."""
    row = connection.execute(_STORED, {"id": task_id}).first()
    if row is None:
        return None
    owned = Scope(row.tenant, row.owner, row.agent)
    if scope is not None and not scope.covers(owned):
        return None
    task = _fold(connection, task_id, row)
    if task is None:
        raise StoreError(f"The log of task {task_id} is missing")
    return StoredTask(
        task=task,
        number=row.number,
        scope=owned,
        fence=row.fence,
        worker=row.worker,
        wire_version=row.wire_version,
        request=row.request,
    )


def _fold(connection: Connection, task_id: str, row: Any) -> Task | None:
    snapshot = None if row.snapshot is None else decode_task(row.snapshot)
    if row.folded == row.number:
        return snapshot
    return fold_task(snapshot, _log(connection, task_id, row.folded or 0, _NO_LIMIT))


def _log(connection: Connection, task_id: str, after: int, limit: int) -> Iterator[Record]:
    # A segment has at least one record, so as many segments as records are wanted are enough.
    for first, payload in connection.execute(_LOG, {"id": task_id, "after": after, "limit": limit}):
        for record in decode_segment(payload, first):
            if record.number > after:
                yield record


def read_records(connection: Connection, task_id: str, after: int, limit: int) -> list[Record]:
    """Up to ``limit`` records with numbers above ``after``."""
    records: list[Record] = []
    for record in _log(connection, task_id, after, limit):
        if len(records) == limit:
            break
        records.append(record)
    return records


# Listings.


Reach = Literal["one", "some", "all"]
"""Whose tasks a listing shows: those of one owner, of some, or of everybody in the tenant."""


def _reach(scope: Scope) -> Reach:
    if scope.everybody:
        return "all"
    return "some" if scope.others else "one"


def _owned(table: Table, reach: Reach) -> list[Any]:
    conditions = [table.c.agent == bindparam("agent"), table.c.tenant == bindparam("tenant")]
    if reach == "one":
        conditions.append(table.c.owner == bindparam("owner"))
    elif reach == "some":
        conditions.append(table.c.owner.in_(bindparam("owners", expanding=True)))
    return conditions


@lru_cache
def _selection(context: bool, state: bool, since: bool, reach: Reach) -> Any:
    conditions = _owned(TASKS, reach)
    if context:
        conditions.append(TASKS.c.context_id == bindparam("context_id"))
    if state and context:
        # The sum keeps the planner off the index by state: a context is small, a state may hold everything.
        conditions.append(TASKS.c.state + 0 == bindparam("state"))
    elif state:
        conditions.append(TASKS.c.state == bindparam("state"))
    if since:
        conditions.append(TASKS.c.timestamp_ms >= bindparam("since_ms"))
    return and_(*conditions)


_LISTED = TASKS.c.id, TASKS.c.context_id, TASKS.c.timestamp_ms, TASKS.c.status, TASKS.c.metadata


@lru_cache
def page_statement(context: bool, state: bool, since: bool, after: bool, reach: Reach = "one") -> Select[Any]:
    """The statement for a page of a listing with these filters: an index is read backwards from the cursor.

    That of several owners sorts what an index says of all their tasks, and then reads those of the page alone.
    """
    key = TASKS.c.timestamp_ms, TASKS.c.id
    order = key[0].desc(), key[1].desc()
    statement = select(*(_LISTED if reach == "one" else (TASKS.c.id,))).where(_selection(context, state, since, reach))
    if after:
        statement = statement.where(tuple_(*key) < tuple_(bindparam("after_ms"), bindparam("after_id")))
    statement = statement.order_by(*order).limit(bindparam("limit"))
    return statement if reach == "one" else select(*_LISTED).where(TASKS.c.id.in_(statement)).order_by(*order)


@lru_cache
def total_statement(context: bool, state: bool, since: bool, reach: Reach = "one") -> Select[Any]:
    """The statement that counts what such a listing matches: out of the totals, or by an index alone."""
    if context or since:
        return select(func.count()).select_from(TASKS).where(_selection(context, state, since, reach))
    statement = select(func.coalesce(func.sum(TOTALS.c.tasks), 0)).where(*_owned(TOTALS, reach))
    return statement.where(TOTALS.c.state == bindparam("state")) if state else statement


def read_page(connection: Connection, query: TaskQuery) -> TaskPage:
    """One page of a listing, and how many match in all."""
    filters = bool(query.context_id), query.state is not None, query.since_ms is not None
    values, reach = _values(query), _reach(query.scope)
    total = int(connection.execute(total_statement(*filters, reach), values).scalar_one())
    statement = page_statement(*filters, query.after is not None, reach)
    # One more than asked shows whether there is a next page.
    rows = connection.execute(statement, values | _cursor(query)).all()
    shown, more = rows[: query.page_size], len(rows) > query.page_size
    tasks = [decode_head(row.id, row.context_id, row.status, row.metadata) for row in shown]
    if query.with_artifacts or query.with_history:
        tasks = _complete(connection, tasks, query)
    last = shown[-1] if more else None
    return TaskPage(tasks=tasks, total=total, next=None if last is None else (last.timestamp_ms, last.id))


def _values(query: TaskQuery) -> dict[str, Any]:
    scope = query.scope
    values: dict[str, Any] = {"agent": scope.agent, "tenant": scope.tenant}
    reach = _reach(scope)
    if reach == "one":
        values["owner"] = scope.owner
    elif reach == "some":
        values["owners"] = [scope.owner, *scope.others]
    if query.context_id:
        values["context_id"] = query.context_id
    if query.state is not None:
        values["state"] = query.state.number
    if query.since_ms is not None:
        values["since_ms"] = query.since_ms
    return values


def _cursor(query: TaskQuery) -> dict[str, Any]:
    cursor: dict[str, Any] = {"limit": query.page_size + 1}
    if query.after is not None:
        cursor["after_ms"], cursor["after_id"] = query.after
    return cursor


_SNAPSHOTS = select(SNAPSHOTS.c.task_id, SNAPSHOTS.c.payload).where(
    SNAPSHOTS.c.task_id.in_(bindparam("ids", expanding=True))
)
_LOGS = (
    select(SEGMENTS.c.task_id, SEGMENTS.c.first, SEGMENTS.c.payload)
    .outerjoin_from(SEGMENTS, SNAPSHOTS, SNAPSHOTS.c.task_id == SEGMENTS.c.task_id)
    .where(
        SEGMENTS.c.task_id.in_(bindparam("ids", expanding=True)),
        SEGMENTS.c.last > func.coalesce(SNAPSHOTS.c.number, 0),
    )
    .order_by(SEGMENTS.c.task_id, SEGMENTS.c.last)
)


def _complete(connection: Connection, heads: list[Task], query: TaskQuery) -> list[Task]:
    """The same tasks with artifacts or history, out of their logs."""
    ids = [task.id for task in heads]
    snapshots: dict[str, bytes] = {}
    logs: dict[str, list[Record]] = {}
    for some in portions(ids):
        snapshots.update((row[0], row[1]) for row in connection.execute(_SNAPSHOTS, {"ids": some}))
        for task_id, first, payload in connection.execute(_LOGS, {"ids": some}):
            logs.setdefault(task_id, []).extend(decode_segment(payload, first))
    return [_completed(head, snapshots.get(head.id), logs.get(head.id, ()), query) for head in heads]


def _completed(head: Task, snapshot: bytes | None, log: Sequence[Record], query: TaskQuery) -> Task:
    task = fold_task(None if snapshot is None else decode_task(snapshot), log)
    if task is None:
        raise StoreError(f"The log of task {head.id} is missing")
    if not query.with_artifacts:
        task.artifacts = []
    if not query.with_history:
        task.history = []
    return task


# Memos.

_MEMO = select(MEMOS.c.value).where(MEMOS.c.task_id == bindparam("id"), MEMOS.c.key == bindparam("key"))


def read_memo(connection: Connection, task_id: str, key: str) -> bytes | None:
    """What was remembered under the key, or None."""
    value: bytes | None = connection.execute(_MEMO, {"id": task_id, "key": key}).scalar()
    return value
