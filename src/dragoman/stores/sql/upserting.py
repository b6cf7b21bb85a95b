"""INSERT … ON CONFLICT: the same words in SQLite and PostgreSQL, but not in SQLAlchemy's common language."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from sqlalchemy import Connection, Table
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.sql.expression import Executable


def upsert(connection: Connection, table: Table, *, add: str = "") -> Executable:
    """Insert a row, or give the row with the same primary key the new values.

    ``add`` names a column whose new value is added to the old one.
    """
    return _upsert(connection.dialect.name, table, add)


def insert_once(connection: Connection, table: Table) -> Executable:
    """Insert a row unless there is one with the same primary key."""
    return _insert_once(connection.dialect.name, table)


@lru_cache
def _upsert(dialect: str, table: Table, add: str) -> Executable:
    statement = _insert(dialect, table)
    key = [column.name for column in table.primary_key]
    new: dict[str, Any] = {c.name: statement.excluded[c.name] for c in table.c if not c.primary_key}
    if add:
        new[add] = table.c[add] + new[add]
    return statement.on_conflict_do_update(index_elements=key, set_=new)


@lru_cache
def _insert_once(dialect: str, table: Table) -> Executable:
    return _insert(dialect, table).on_conflict_do_nothing()


def _insert(dialect: str, table: Table) -> sqlite.Insert | postgresql.Insert:
    return postgresql.insert(table) if dialect == "postgresql" else sqlite.insert(table)
