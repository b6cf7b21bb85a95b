"""Webhooks of tasks, and what could not be delivered to them."""

import sqlalchemy as sa
from alembic import op

revision = "v0002"
down_revision = "v0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the tables, and count webhooks in the rows of tasks."""
    op.add_column("dragoman_tasks", sa.Column("webhooks", sa.SmallInteger, nullable=False, server_default="0"))
    op.create_table(
        "dragoman_webhooks",
        sa.Column("task_id", sa.Text, nullable=False),
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("key", sa.BigInteger, nullable=False),
        sa.Column("wire_version", sa.Text, nullable=False),
        sa.Column("payload", sa.LargeBinary, nullable=False),
        sa.Column("position", sa.BigInteger, nullable=False),
        sa.Column("snapshot", sa.SmallInteger, nullable=False),
        sa.Column("state", sa.SmallInteger, nullable=False),
        sa.Column("failures", sa.BigInteger, nullable=False),
        sa.Column("claim", sa.BigInteger, nullable=False),
        sa.Column("due_ms", sa.BigInteger),
        sa.PrimaryKeyConstraint("task_id", "id", name="dragoman_webhooks_pk"),
    )
    due = sa.column("due_ms").is_not(None)
    op.create_index("dragoman_webhooks_due", "dragoman_webhooks", ["due_ms"], sqlite_where=due, postgresql_where=due)
    op.create_table(
        "dragoman_dead_letters",
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("task_id", sa.Text, nullable=False),
        sa.Column("webhook_id", sa.Text, nullable=False),
        sa.Column("url", sa.Text, nullable=False),
        sa.Column("first", sa.BigInteger, nullable=False),
        sa.Column("last", sa.BigInteger, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("attempts", sa.BigInteger, nullable=False),
        sa.Column("failed_ms", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("id", name="dragoman_dead_letters_pk"),
    )
    op.create_index("dragoman_dead_letters_by_time", "dragoman_dead_letters", ["failed_ms"])
