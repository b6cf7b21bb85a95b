"""What Alembic runs: the migrations, on the connection and in the transaction of the store that is being opened."""

from alembic import context

from dragoman.stores.sql.migrating import VERSION_TABLE
from dragoman.stores.sql.schema import METADATA

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=METADATA,
    version_table=VERSION_TABLE,
    transactional_ddl=True,
)
context.run_migrations()
