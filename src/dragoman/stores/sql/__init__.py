"""Tasks in a SQL database. The door to SQLAlchemy and Alembic: nothing else imports them."""

from dragoman.errors import MissingExtraError

try:
    import sqlalchemy as _sqlalchemy
except ImportError:
    raise MissingExtraError("The SQL store", "sql") from None

from dragoman.stores.sql.store import SqlStore

del _sqlalchemy

__all__ = ["SqlStore"]
