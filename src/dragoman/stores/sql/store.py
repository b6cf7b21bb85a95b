"""The SQL store: SQLite now; the statements and the schema are those of PostgreSQL too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from dragoman.errors import ConfigurationError, StoreError
from dragoman.ports.push import DeadLetter, DueWebhook, Kept, Settlement, Webhook
from dragoman.ports.store import Append, Record, Scope, StoredTask, TaskPage, TaskQuery
from dragoman.stores.sql import expiring, leasing, reading, webhooks, writing
from dragoman.stores.sql.encoding import Write, encode_write
from dragoman.stores.sql.explaining import ConflictError
from dragoman.stores.sql.lanes import Lane
from dragoman.stores.sql.migrating import bring_up_to_date
from dragoman.stores.sql.sqlite import check_location, database_path, make_engine

# SQLite has one writer at a time, so one shard of the totals is enough.
_SHARD = 0


class SqlStore:
    """A :class:`~dragoman.ports.store.TaskStore` in a SQL database.

    * ``url``: ``sqlite:///relative/file.db`` or ``sqlite:////absolute/file.db``, or a Path; the file is made when it is
      missing, its folder is not;
    * ``busy_timeout``: seconds to wait while another process holds the database's lock (default 5);
    * ``readers``: threads that read (default 4); one more thread writes.

    A write that returned is on the disk. Methods may be called from several event loops. A listing costs the same for
    any number of tasks, except that with a context or a time the total is counted over the matches, in an index.

    Raises ConfigurationError for a URL that names no file of SQLite.
    """

    durable = True

    def __init__(self, url: str | Path, *, busy_timeout: float = 5.0, readers: int = 4) -> None:
        self._url = _parse(url)
        self._path = database_path(self._url)
        self._busy_timeout = busy_timeout
        self._readers = readers
        self._lanes: tuple[Lane, Lane] | None = None
        self._listeners: dict[str, Callable[[], None]] = {}

    async def open(self) -> None:
        """Connect, and create or upgrade the schema. Safe to call twice.

        Raises StoreError: the folder is missing, file or folder cannot be written, the file is locked or is no
        database, or a newer version of this package wrote it.
        """
        if self._lanes is not None:
            return
        check_location(self._path)
        writer = self._make_lane("writer", "BEGIN IMMEDIATE", 1)
        try:
            await writer.run(bring_up_to_date, str(self._path))
        except BaseException:
            await writer.close()
            raise
        self._lanes = writer, self._make_lane("reader", "BEGIN", self._readers)

    def _make_lane(self, name: str, begin: str, threads: int) -> Lane:
        engine = make_engine(self._url, begin=begin, busy_timeout=self._busy_timeout)
        return Lane(engine, name=name, threads=threads, location=str(self._path))

    async def close(self) -> None:
        """Finish what was accepted, then close the file. Safe to call twice."""
        if self._lanes is None:
            return
        writer, reader = self._lanes
        await reader.close()
        await writer.close()  # last, since it can fold the write-ahead log back into the file

    @property
    def _write(self) -> Lane:
        return self._opened()[0]

    @property
    def _read(self) -> Lane:
        return self._opened()[1]

    def _opened(self) -> tuple[Lane, Lane]:
        if self._lanes is None:
            raise StoreError(f"The store in {self._path} is not open")
        return self._lanes

    async def append(self, batch: Sequence[Append]) -> Sequence[StoreError | None]:
        """Write a group in one transaction; one outcome for each append, in order."""
        writes = [encode_write(append) for append in batch]
        outcomes, has_due = await self._append(writes)
        if has_due:
            self._notice_due()
        return outcomes

    async def _append(self, writes: Sequence[Write]) -> writing.Outcomes:
        if all(write.append.new is not None and write.fault is None for write in writes):
            try:
                return await self._write.run(writing.create_all, writes, _SHARD)
            except ConflictError:
                pass  # one of them exists; find out which
        return await self._write.run(writing.write_all, writes, _SHARD)

    async def task(self, task_id: str, scope: Scope | None) -> StoredTask | None:
        """The task, or None when it is unknown or not in the scope."""
        return await self._read.run(reading.read_task, task_id, scope)

    async def records(self, task_id: str, after: int, limit: int) -> list[Record]:
        """Up to ``limit`` records with numbers above ``after``; their events are decoded when looked at."""
        return await self._read.run(reading.read_records, task_id, after, limit)

    async def page(self, query: TaskQuery) -> TaskPage:
        """One page; logs are read only when the query asks for artifacts or history."""
        return await self._read.run(reading.read_page, query)

    async def memo(self, task_id: str, key: str) -> bytes | None:
        """What was remembered, or None."""
        return await self._read.run(reading.read_memo, task_id, key)

    async def remember(self, task_id: str, fence: int, key: str, value: bytes) -> bytes:
        """Keep a value once; what is kept."""
        return await self._write.run(leasing.write_memo, task_id, fence, key, value)

    async def heartbeat(self, worker: str, until_ms: int) -> None:
        """This worker is alive before that moment."""
        await self._write.run(leasing.write_heartbeat, worker, until_ms)

    async def retire(self, worker: str) -> None:
        """This worker is gone."""
        await self._write.run(leasing.remove_worker, worker)

    async def orphans(self, now_ms: int, limit: int, agent: str = "") -> list[str]:
        """Ids of the agent's tasks that a dead worker holds, oldest status first."""
        return await self._read.run(leasing.read_orphans, now_ms, limit, agent)

    async def claim(self, task_id: str, worker: str, now_ms: int) -> StoredTask | None:
        """Take the lease of a task that nobody alive holds."""
        return await self._write.run(leasing.claim_task, task_id, worker, now_ms)

    async def purge(self, before_ms: int, limit: int, agent: str = "") -> int:
        """Remove up to ``limit`` terminal tasks of the agent with a status older than ``before_ms``."""
        return await self._write.run(expiring.remove_expired, before_ms, limit, agent, _SHARD)

    async def secret(self, name: str) -> bytes:
        """32 random bytes under this name, the same for every process on this database."""
        return await self._write.run(leasing.make_secret, name)

    # Webhooks: the contract is that of WebhookStore.

    def watch_webhooks(self, call: Callable[[], None], agent: str = "") -> None:
        """Call this whenever this object has written something that is due."""
        self._listeners[agent] = call

    def _notice_due(self) -> None:
        for call in self._listeners.values():
            call()

    async def keep_webhook(
        self, task_id: str, webhook: Webhook, *, most: int, now_ms: int, snapshot_in: Sequence[int] = ()
    ) -> Kept:
        """Add a webhook to a task, or renew it."""
        kept = await self._write.run(webhooks.keep_webhook, task_id, webhook, most, now_ms, snapshot_in)
        if kept == "kept":
            self._notice_due()
        return kept

    async def webhook(self, task_id: str, webhook_id: str) -> Webhook | None:
        """The webhook, or None."""
        return await self._read.run(webhooks.read_webhook, task_id, webhook_id)

    async def webhooks(self, task_id: str, after: int, limit: int) -> list[tuple[int, Webhook]]:
        """Webhooks of the task with keys above ``after``."""
        return await self._read.run(webhooks.read_webhooks, task_id, after, limit)

    async def remove_webhook(self, task_id: str, webhook_id: str) -> None:
        """Remove it, if it is there."""
        await self._write.run(webhooks.remove_webhook, task_id, webhook_id)

    async def claim_webhooks(self, now_ms: int, until_ms: int, limit: int, agent: str = "") -> list[DueWebhook]:
        """Claim webhooks of the agent's tasks that are due."""
        return await self._write.run(webhooks.claim_due, now_ms, until_ms, limit, agent)

    async def next_due(self, agent: str = "") -> int | None:
        """When the agent's next webhook is due."""
        return await self._read.run(webhooks.read_next_due, agent)

    async def settle_webhooks(self, settlements: Sequence[Settlement], now_ms: int) -> Sequence[bool]:
        """Write down how far webhooks were told."""
        return await self._write.run(webhooks.settle, settlements, now_ms)

    async def dead_letters(self, after: str, limit: int, agent: str = "") -> list[DeadLetter]:
        """Dead letters of the agent in order of their ids."""
        return await self._read.run(webhooks.read_dead_letters, after, limit, agent)

    async def remove_dead_letters(self, before_ms: int, limit: int, agent: str = "") -> int:
        """Remove those of the agent that failed before."""
        return await self._write.run(webhooks.remove_dead_letters, before_ms, limit, agent)


def _parse(url: str | Path) -> URL:
    if isinstance(url, Path):
        return URL.create("sqlite", database=str(url))
    try:
        parsed = make_url(url)
    except ArgumentError:
        raise ConfigurationError("The URL of the store cannot be understood; say sqlite:///file.db") from None
    if parsed.drivername not in ("sqlite", "sqlite+pysqlite"):
        raise ConfigurationError(f"The SQL store does not work with {parsed.drivername!r}; say sqlite:///file.db")
    return parsed
