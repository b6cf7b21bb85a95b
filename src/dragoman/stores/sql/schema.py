"""The tables. What is changed here needs a migration in ``migrations/versions``; a test compares the two.

Theory. Several agents may share the tables: everything is looked for by agent. ``tasks`` has one row for each task:
its fixed facts, its head (what listings sort, filter and show) and its lease. The log is in ``segments``: the
consecutive records of one commit are one row, so a group of events costs one insert. ``snapshots`` are apart from
``tasks``, because a row that grows with the task must not be rewritten with each event. ``totals`` counts tasks by
scope and state, so that the size of a listing is not found by counting. Its ``shard`` keeps several writers of one
database out of each other's way. ``webhooks`` are told of their tasks' records; how many a task has is in its row,
which a write reads anyway, so that a task without any costs nothing more.

Times are milliseconds since the epoch; JSON is kept as bytes, as it goes over the wire.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Index, LargeBinary, MetaData, SmallInteger, Table, Text

METADATA = MetaData(
    naming_convention={"pk": "%(table_name)s_pk", "ix": "%(table_name)s_%(column_0_name)s"},
)

TASKS = Table(
    "dragoman_tasks",
    METADATA,
    Column("id", Text, primary_key=True),
    Column("tenant", Text, nullable=False),
    Column("owner", Text, nullable=False),
    Column("context_id", Text, nullable=False),
    Column("agent", Text, nullable=False),
    Column("wire_version", Text, nullable=False),
    Column("request", LargeBinary, nullable=False),
    Column("metadata", LargeBinary),
    Column("number", BigInteger, nullable=False),
    Column("state", SmallInteger, nullable=False),
    Column("timestamp_ms", BigInteger, nullable=False),
    Column("finished_ms", BigInteger),
    Column("status", LargeBinary, nullable=False),
    Column("fence", BigInteger, nullable=False),
    Column("worker", Text),
    Column("webhooks", SmallInteger, nullable=False, server_default="0"),
)

_SCOPE = TASKS.c.agent, TASKS.c.tenant, TASKS.c.owner
_KEY = TASKS.c.timestamp_ms, TASKS.c.id
Index("dragoman_tasks_by_time", *_SCOPE, *_KEY)
Index("dragoman_tasks_by_state", *_SCOPE, TASKS.c.state, *_KEY)
Index("dragoman_tasks_by_context", *_SCOPE, TASKS.c.context_id, *_KEY)
Index(
    "dragoman_tasks_held",
    TASKS.c.worker,
    sqlite_where=TASKS.c.worker.is_not(None),
    postgresql_where=TASKS.c.worker.is_not(None),
)
Index(
    "dragoman_tasks_finished",
    TASKS.c.agent,
    TASKS.c.finished_ms,
    sqlite_where=TASKS.c.finished_ms.is_not(None),
    postgresql_where=TASKS.c.finished_ms.is_not(None),
)

SEGMENTS = Table(
    "dragoman_segments",
    METADATA,
    Column("task_id", Text, primary_key=True),
    Column("last", BigInteger, primary_key=True, autoincrement=False),
    Column("first", BigInteger, nullable=False),
    Column("payload", LargeBinary, nullable=False),
)

SNAPSHOTS = Table(
    "dragoman_snapshots",
    METADATA,
    Column("task_id", Text, primary_key=True),
    Column("number", BigInteger, nullable=False),
    Column("payload", LargeBinary, nullable=False),
)

MEMOS = Table(
    "dragoman_memos",
    METADATA,
    Column("task_id", Text, primary_key=True),
    Column("key", Text, primary_key=True),
    Column("value", LargeBinary, nullable=False),
)

TOTALS = Table(
    "dragoman_totals",
    METADATA,
    Column("agent", Text, primary_key=True),
    Column("tenant", Text, primary_key=True),
    Column("owner", Text, primary_key=True),
    Column("state", SmallInteger, primary_key=True, autoincrement=False),
    Column("shard", SmallInteger, primary_key=True, autoincrement=False),
    Column("tasks", BigInteger, nullable=False),
)

WEBHOOKS = Table(
    "dragoman_webhooks",
    METADATA,
    Column("task_id", Text, primary_key=True),
    Column("id", Text, primary_key=True),
    Column("key", BigInteger, nullable=False),
    Column("wire_version", Text, nullable=False),
    Column("payload", LargeBinary, nullable=False),
    Column("position", BigInteger, nullable=False),
    Column("snapshot", SmallInteger, nullable=False),
    Column("state", SmallInteger, nullable=False),
    Column("failures", BigInteger, nullable=False),
    Column("claim", BigInteger, nullable=False),
    Column("due_ms", BigInteger),
    Column("agent", Text, nullable=False, server_default=""),
)

Index(
    "dragoman_webhooks_due",
    WEBHOOKS.c.agent,
    WEBHOOKS.c.due_ms,
    sqlite_where=WEBHOOKS.c.due_ms.is_not(None),
    postgresql_where=WEBHOOKS.c.due_ms.is_not(None),
)

DEAD_LETTERS = Table(
    "dragoman_dead_letters",
    METADATA,
    Column("id", Text, primary_key=True),
    Column("task_id", Text, nullable=False),
    Column("webhook_id", Text, nullable=False),
    Column("url", Text, nullable=False),
    Column("first", BigInteger, nullable=False),
    Column("last", BigInteger, nullable=False),
    Column("reason", Text, nullable=False),
    Column("attempts", BigInteger, nullable=False),
    Column("failed_ms", BigInteger, nullable=False),
    Column("agent", Text, nullable=False, server_default=""),
)

Index("dragoman_dead_letters_by_time", DEAD_LETTERS.c.failed_ms)

WORKERS = Table(
    "dragoman_workers",
    METADATA,
    Column("name", Text, primary_key=True),
    Column("until_ms", BigInteger, nullable=False),
)

SECRETS = Table(
    "dragoman_secrets",
    METADATA,
    Column("name", Text, primary_key=True),
    Column("value", LargeBinary, nullable=False),
)
