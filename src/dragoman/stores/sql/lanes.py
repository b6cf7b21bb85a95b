"""Threads with database connections of their own, and the hop to them and back.

Theory. One hop runs one job in one transaction. The lane for writing has one thread, so writes of this process never
wait for each other's locks; the lane for reading has a few, which see the last commit and never wait for the writer.
A connection on which the database failed is dropped, and the next job begins with a fresh one.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Concatenate, ParamSpec, TypeVar

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError, IntegrityError, SQLAlchemyError

from dragoman.errors import StoreError
from dragoman.stores.sql.explaining import explain

P = ParamSpec("P")
R = TypeVar("R")


class Lane:
    """Some threads that run jobs with a connection, one transaction for each job.

    ``location`` is what error messages call the database.
    """

    def __init__(self, engine: Engine, *, name: str, threads: int, location: str) -> None:
        self._engine = engine
        self._location = location
        # While a connection is prepared, the driver's errors come as they are.
        self._driver_error: type[Exception] = engine.dialect.loaded_dbapi.Error
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix=f"dragoman-{name}")
        self._local = threading.local()
        self._connections: set[Connection] = set()
        self._closed = False

    async def run(self, job: Callable[Concatenate[Connection, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Run the job in a transaction of its own, which is committed when it returns and undone when it raises.

        Raises StoreError. When the caller is cancelled, the job is either not begun or runs to its end.
        """
        if self._closed:
            raise StoreError(f"The store in {self._location} is closed")
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._executor, lambda: self._work(job, *args, **kwargs))

    def _work(self, job: Callable[Concatenate[Connection, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
        try:
            connection = self._connection()
            with connection.begin():
                return job(connection, *args, **kwargs)
        except IntegrityError as error:
            raise explain(error, self._location) from error
        except (SQLAlchemyError, self._driver_error, UnicodeEncodeError) as error:
            self._drop()
            raise explain(error, self._location) from error

    def _connection(self) -> Connection:
        connection: Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._local.connection = self._engine.connect()
            self._connections.add(connection)
        return connection

    def _drop(self) -> None:
        connection: Connection | None = getattr(self._local, "connection", None)
        if connection is not None:
            self._local.connection = None
            self._connections.discard(connection)
            _close(connection)

    async def close(self) -> None:
        """Finish the jobs that were accepted, then close the connections. Safe to call twice."""
        self._closed = True
        await asyncio.to_thread(self._finish)

    def _finish(self) -> None:
        self._executor.shutdown(wait=True)
        while self._connections:
            _close(self._connections.pop())


def _close(connection: Connection) -> None:
    try:
        connection.close()
    except DBAPIError:
        # The database is beyond reach; what mattered was committed or reported before.
        connection.invalidate()
