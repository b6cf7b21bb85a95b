"""Tasks with their logs, snapshots and memos; totals; workers; secrets."""

import sqlalchemy as sa
from alembic import op

revision = "v0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create everything."""
    _create_tasks()
    _create_logs()
    _create_totals()
    _create_names()


def _create_tasks() -> None:
    op.create_table(
        "dragoman_tasks",
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("tenant", sa.Text, nullable=False),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("context_id", sa.Text, nullable=False),
        sa.Column("agent", sa.Text, nullable=False),
        sa.Column("wire_version", sa.Text, nullable=False),
        sa.Column("request", sa.LargeBinary, nullable=False),
        sa.Column("metadata", sa.LargeBinary),
        sa.Column("number", sa.BigInteger, nullable=False),
        sa.Column("state", sa.SmallInteger, nullable=False),
        sa.Column("timestamp_ms", sa.BigInteger, nullable=False),
        sa.Column("finished_ms", sa.BigInteger),
        sa.Column("status", sa.LargeBinary, nullable=False),
        sa.Column("fence", sa.BigInteger, nullable=False),
        sa.Column("worker", sa.Text),
        sa.PrimaryKeyConstraint("id", name="dragoman_tasks_pk"),
    )
    scope = ["tenant", "owner"]
    key = ["timestamp_ms", "id"]
    op.create_index("dragoman_tasks_by_time", "dragoman_tasks", [*scope, *key])
    op.create_index("dragoman_tasks_by_state", "dragoman_tasks", [*scope, "state", *key])
    op.create_index("dragoman_tasks_by_context", "dragoman_tasks", [*scope, "context_id", *key])
    _create_partial_index("dragoman_tasks_held", "worker")
    _create_partial_index("dragoman_tasks_finished", "finished_ms")


def _create_partial_index(name: str, column: str) -> None:
    present = sa.column(column).is_not(None)
    op.create_index(name, "dragoman_tasks", [column], sqlite_where=present, postgresql_where=present)


def _create_logs() -> None:
    op.create_table(
        "dragoman_segments",
        sa.Column("task_id", sa.Text, nullable=False),
        sa.Column("last", sa.BigInteger, nullable=False),
        sa.Column("first", sa.BigInteger, nullable=False),
        sa.Column("payload", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("task_id", "last", name="dragoman_segments_pk"),
    )
    op.create_table(
        "dragoman_snapshots",
        sa.Column("task_id", sa.Text, nullable=False),
        sa.Column("number", sa.BigInteger, nullable=False),
        sa.Column("payload", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("task_id", name="dragoman_snapshots_pk"),
    )
    op.create_table(
        "dragoman_memos",
        sa.Column("task_id", sa.Text, nullable=False),
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("value", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("task_id", "key", name="dragoman_memos_pk"),
    )


def _create_totals() -> None:
    op.create_table(
        "dragoman_totals",
        sa.Column("tenant", sa.Text, nullable=False),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("state", sa.SmallInteger, nullable=False),
        sa.Column("shard", sa.SmallInteger, nullable=False),
        sa.Column("tasks", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("tenant", "owner", "state", "shard", name="dragoman_totals_pk"),
    )


def _create_names() -> None:
    op.create_table(
        "dragoman_workers",
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("until_ms", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("name", name="dragoman_workers_pk"),
    )
    op.create_table(
        "dragoman_secrets",
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("value", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("name", name="dragoman_secrets_pk"),
    )
