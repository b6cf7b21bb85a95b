"""Several agents in one database: what is looked for is looked for by agent."""

import sqlalchemy as sa
from alembic import op

revision = "v0003"
down_revision = "v0002"
branch_labels = None
depends_on = None

_SCOPE = ["agent", "tenant", "owner"]
_KEY = ["timestamp_ms", "id"]


def upgrade() -> None:
    """Put the agent first in the indexes of tasks, count by it, and name it beside webhooks and dead letters."""
    _index_tasks()
    _count_by_agent()
    _name_agents_of_webhooks()


def _index_tasks() -> None:
    for name in ("by_time", "by_state", "by_context", "finished"):
        op.drop_index(f"dragoman_tasks_{name}", "dragoman_tasks")
    op.create_index("dragoman_tasks_by_time", "dragoman_tasks", [*_SCOPE, *_KEY])
    op.create_index("dragoman_tasks_by_state", "dragoman_tasks", [*_SCOPE, "state", *_KEY])
    op.create_index("dragoman_tasks_by_context", "dragoman_tasks", [*_SCOPE, "context_id", *_KEY])
    over = sa.column("finished_ms").is_not(None)
    columns = ["agent", "finished_ms"]
    op.create_index("dragoman_tasks_finished", "dragoman_tasks", columns, sqlite_where=over, postgresql_where=over)


def _count_by_agent() -> None:
    op.drop_table("dragoman_totals")
    op.create_table(
        "dragoman_totals",
        sa.Column("agent", sa.Text, nullable=False),
        sa.Column("tenant", sa.Text, nullable=False),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("state", sa.SmallInteger, nullable=False),
        sa.Column("shard", sa.SmallInteger, nullable=False),
        sa.Column("tasks", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("agent", "tenant", "owner", "state", "shard", name="dragoman_totals_pk"),
    )
    op.execute(
        "INSERT INTO dragoman_totals (agent, tenant, owner, state, shard, tasks) "
        "SELECT agent, tenant, owner, state, 0, count(*) FROM dragoman_tasks GROUP BY agent, tenant, owner, state"
    )


def _name_agents_of_webhooks() -> None:
    for table in ("dragoman_webhooks", "dragoman_dead_letters"):
        op.add_column(table, sa.Column("agent", sa.Text, nullable=False, server_default=""))
        op.execute(
            f"UPDATE {table} SET agent = "
            f"coalesce((SELECT t.agent FROM dragoman_tasks AS t WHERE t.id = {table}.task_id), '')"
        )
    op.drop_index("dragoman_webhooks_due", "dragoman_webhooks")
    due = sa.column("due_ms").is_not(None)
    columns = ["agent", "due_ms"]
    op.create_index("dragoman_webhooks_due", "dragoman_webhooks", columns, sqlite_where=due, postgresql_where=due)
