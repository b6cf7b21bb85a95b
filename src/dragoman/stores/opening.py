"""From the setting of a server to a store."""

from __future__ import annotations

from pathlib import Path

from dragoman.errors import ConfigurationError
from dragoman.ports.store import TaskStore
from dragoman.stores.memory import MemoryStore

_ALLOWED = "memory, sqlite:///relative/file.db, sqlite:////absolute/file.db or the path of a file"


def open_store(url: str | None) -> TaskStore:
    """The store that ``url`` names, not opened yet.

    * None, ``memory`` or ``memory://``: everything in this process, gone when it ends;
    * ``sqlite:///tasks.db`` (relative), ``sqlite:////var/lib/tasks.db`` (absolute), or just the path of a file: SQLite.

    Raises ConfigurationError for anything else, MissingExtraError when the extra ``sql`` is not installed. Nothing is
    read or written before ``open()``.
    """
    if url is None or url in ("memory", "memory://"):
        return MemoryStore()
    scheme, separator, _ = url.partition("://")
    if not separator and url:
        return _sqlite(Path(url))
    if scheme == "sqlite":
        return _sqlite(url)
    if scheme.partition("+")[0] in ("postgres", "postgresql"):
        raise ConfigurationError(f"A PostgreSQL store is not there yet, it comes later; allowed are {_ALLOWED}")
    raise ConfigurationError(f"The store {scheme or 'setting'!r} is unknown; allowed are {_ALLOWED}")


def _sqlite(url: str | Path) -> TaskStore:
    # SQLAlchemy is an extra and takes a tenth of a second to import; its door is opened on demand.
    from dragoman.stores.sql import SqlStore

    return SqlStore(url)
