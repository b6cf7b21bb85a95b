"""The version of the schema: create it, bring it up to date, refuse what is newer than this package."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Select, column, inspect, select, table

from dragoman.errors import MissingExtraError, StoreError

SCHEMA_VERSION = "v0003"
"""The newest revision in ``migrations/versions``; a test holds the two together."""

VERSION_TABLE = "dragoman_version"

# A migration finds its context in a global of Alembic's, so there can be one at a time in a process.
_ALEMBIC = threading.Lock()
_FOLDER = Path(__file__).parent / "migrations"
_VERSION: Select[Any] = select(column("version_num")).select_from(table(VERSION_TABLE))


def bring_up_to_date(connection: Connection, location: str) -> None:
    """Create or upgrade the schema, in the caller's transaction.

    Raises StoreError for a database that a newer version of this package has written.
    """
    version = _read_version(connection)
    if version == SCHEMA_VERSION:
        return  # the common case, without importing Alembic
    if version is not None and version not in _known_versions():
        raise StoreError(
            f"The store in {location} has schema {version}, newer than the {SCHEMA_VERSION} of this version of "
            "dragoman; install the newer dragoman that wrote it"
        )
    _upgrade(connection)


def _read_version(connection: Connection) -> str | None:
    if not inspect(connection).has_table(VERSION_TABLE):
        return None
    version: str | None = connection.execute(_VERSION).scalar()
    return version


def _known_versions() -> set[str]:
    return {path.stem.partition("_")[0] for path in (_FOLDER / "versions").glob("v*.py")}


def _upgrade(connection: Connection) -> None:
    try:
        from alembic import command
        from alembic.config import Config
    except ImportError:
        raise MissingExtraError("The SQL store", "sql") from None
    config = Config()
    config.set_main_option("script_location", str(_FOLDER).replace("%", "%%"))
    config.attributes["connection"] = connection
    with _ALEMBIC:
        command.upgrade(config, "head")
