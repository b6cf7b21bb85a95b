"""What the database says, in words that help the operator. Never with the credentials of a URL."""

from __future__ import annotations

from sqlalchemy.exc import DBAPIError, IntegrityError

from dragoman.errors import StoreError


class ConflictError(StoreError):
    """A row with this key exists already."""


_SQLITE = {
    "SQLITE_BUSY": "is locked by another process",
    "SQLITE_LOCKED": "is locked by another process",
    "SQLITE_READONLY": "cannot be written: the file or its folder is read only for this process",
    "SQLITE_PERM": "cannot be opened: this process lacks the permission",
    "SQLITE_FULL": "cannot be written: the disk is full",
    "SQLITE_IOERR": "cannot be read or written: the disk is full, a size limit is reached, or the disk is broken",
    "SQLITE_NOTADB": "is not a SQLite database",
    "SQLITE_CORRUPT": "is damaged",
    "SQLITE_CANTOPEN": "cannot be opened: the folder is missing, or this process may not use it",
    "SQLITE_TOOBIG": "cannot take a value of that size",
    "SQLITE_NOMEM": "cannot be used: memory is exhausted",
}


def explain(error: BaseException, location: str) -> StoreError:
    """A StoreError that says which database it is about and what is wrong; the cause is to be chained."""
    cause = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
    name = getattr(cause, "sqlite_errorname", "")
    for prefix, text in _SQLITE.items():
        if name == prefix or name.startswith(f"{prefix}_"):
            return StoreError(f"The store in {location} {text}")
    if isinstance(error, IntegrityError):
        return ConflictError(f"The store in {location} holds a row with this key already")
    return StoreError(f"The store in {location} failed ({name or type(cause).__name__})")
