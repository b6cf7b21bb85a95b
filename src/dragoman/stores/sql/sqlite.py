"""SQLite as the database: engine, pragmas, and what can be wrong with a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.pool import NullPool

from dragoman.errors import ConfigurationError, StoreError

_PRAGMAS = (
    "PRAGMA journal_mode = WAL",  # readers go on while the writer writes
    "PRAGMA synchronous = FULL",  # a commit that was acknowledged survives loss of power
    "PRAGMA temp_store = MEMORY",
)


def database_path(url: URL) -> Path:
    """The file that a SQLite URL names. ConfigurationError when it names none."""
    if not url.database or url.database == ":memory:" or url.query.get("mode") == "memory":
        raise ConfigurationError("A SQLite store needs a file; for a store in memory say 'memory'")
    return Path(url.database.removeprefix("file:"))


def check_location(path: Path) -> None:
    """Raise StoreError when there can be no database at ``path``."""
    folder = path.absolute().parent
    if not folder.is_dir():
        raise StoreError(f"The store in {path} cannot be opened: there is no folder {folder}")
    if path.is_dir():
        raise StoreError(f"The store in {path} cannot be opened: it is a folder, a file is needed")


def make_engine(url: URL, *, begin: str, busy_timeout: float) -> Engine:
    """An engine whose transactions begin with ``begin``. ``busy_timeout``: seconds to wait for another process's lock.

    There is no pool: each thread keeps its connection (see :mod:`~dragoman.stores.sql.lanes`).
    """
    arguments = {"timeout": busy_timeout, "check_same_thread": False}
    engine = create_engine(url, poolclass=NullPool, connect_args=arguments)
    event.listen(engine, "connect", _prepare)
    event.listen(engine, "begin", lambda connection: _begin(connection, begin))
    return engine


def _prepare(connection: Any, _record: object) -> None:
    # The driver must not open transactions by itself: it would do so too late, before the first write only.
    connection.isolation_level = None
    for pragma in _PRAGMAS:
        connection.execute(pragma).close()


def _begin(connection: Connection, begin: str) -> None:
    connection.exec_driver_sql(begin)
