"""Rounds of crashes under load, and what is checked after each.

A round: let the load go on until the witness has seen so many more things, as a seeded generator says; end the process
at that moment, by SIGKILL or SIGTERM; copy the files as it left them, and check on the copy that the database is whole
and holds all that anybody was told; start the process again; see that every task that was at work goes on or ends
within the bound, and that every task anybody was told of is there.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import shutil
import sqlite3
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec

from dragoman.client import Client, connect
from dragoman.client.reconnect import PASSING
from dragoman.errors import TaskNotFoundError
from dragoman.model import TaskState
from dragoman.ports.store import Scope, TaskQuery, TaskStore
from dragoman.protocol.lifecycle import ACTIVE
from dragoman.stores import open_store
from dragoman.testing.load import PATIENT
from dragoman.testing.process import ServerProcess
from dragoman.testing.witness import Discrepancy, Witness

_POLL = 0.02
_PAGE = 100


class CrashReport(msgspec.Struct):
    """What the rounds came to. ``found`` has to be empty; times are in seconds."""

    kills: int = 0
    terminations: int = 0
    tasks: int = 0
    sightings: int = 0
    left_at_work: int = 0
    longest_recovery: float = 0.0
    found: list[str] = msgspec.field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"{self.kills} kills and {self.terminations} terminations; {self.tasks} tasks, {self.sightings} sightings; "
            f"{self.left_at_work} tasks left at work, recovered within {self.longest_recovery:.2f} s"
        )


class CrashRounds:
    """Ends a server again and again under a load.

    * ``server``: running, on the SQLite file ``path``; ``agent``: the name of what it serves;
    * ``witness``: of the load;
    * ``bound``: seconds after the restart within which no task is at work any more that was when the server died: two
      leases and the time of the work itself;
    * ``seed``: of the moments.
    """

    def __init__(
        self, server: ServerProcess, path: Path, witness: Witness, *, agent: str, bound: float, seed: int = 0
    ) -> None:
        self.report = CrashReport()
        self._server = server
        self._path = path
        self._witness = witness
        self._agent = agent
        self._bound = bound
        self._dice = random.Random(seed)

    async def round(self, *, kill: bool = True, most: int = 200, patience: float = 30.0) -> None:
        """One crash after 1 to ``most`` sightings, at most ``patience`` seconds later. ``kill=False``: by SIGTERM."""
        async with asyncio.timeout(patience):
            await self._witness.sees(self._dice.randrange(1, most))
        if kill:
            await self._server.kill()
            self.report.kills += 1
        else:
            await self._server.terminate()
            self.report.terminations += 1
        at_work = await self._inspect()
        await self._server.start()
        await self._see_recovery(at_work)

    async def finish(self) -> CrashReport:
        """Compare everything once more, with the server running, and report."""
        store = open_store(str(self._path))
        await store.open()
        try:
            self._add(await self._witness.compare(store))
            left = await tasks_in(store, self._agent, *ACTIVE)
            self.report.found += [f"task {task_id}: is at work at the end" for task_id in left]
        finally:
            await store.close()
        self.report.tasks = len(self._witness.task_ids)
        self.report.sightings = self._witness.count
        return self.report

    async def _inspect(self) -> list[str]:
        """Check the files as the process left them; the tasks that were at work."""
        async with copied(self._path) as copy:
            self._check_integrity(copy)
            store = open_store(str(copy))
            await store.open()
            try:
                self._add(await self._witness.compare(store, fresh=True))
                return await tasks_in(store, self._agent, *ACTIVE)
            finally:
                await store.close()

    def _check_integrity(self, path: Path) -> None:
        with contextlib.closing(sqlite3.connect(path)) as database:
            said = [row[0] for row in database.execute("PRAGMA integrity_check")]
        if said != ["ok"]:
            self.report.found.append(f"the database is damaged: {said}")

    async def _see_recovery(self, at_work: list[str]) -> None:
        self.report.left_at_work += len(at_work)
        begun = time.monotonic()
        async with connect(self._server.url, reconnect=PATIENT) as client:
            left = at_work
            while left and time.monotonic() - begun < self._bound:
                left = [task_id for task_id in left if await self._is_at_work(client, task_id)]
                if left:
                    await asyncio.sleep(_POLL)
            missing = await self._missing(client)
        self.report.longest_recovery = max(self.report.longest_recovery, time.monotonic() - begun)
        self.report.found += [f"task {task_id}: is at work {self._bound:g} s after the restart" for task_id in left]
        self.report.found += [f"task {task_id}: a caller was told of it, and it is not there" for task_id in missing]

    async def _is_at_work(self, client: Client, task_id: str) -> bool:
        try:
            return self._witness.told(await client.get_task(task_id)).status.state in ACTIVE
        except PASSING:
            return True

    async def _missing(self, client: Client) -> list[str]:
        """Tasks that callers were told of and that are not there."""
        known = self._witness.task_ids
        listed = {task.id async for task in client.tasks(page_size=_PAGE)}
        # A task that moves while the pages are read may be on none of them, so the rest is asked for one by one.
        return [task_id for task_id in known - listed if not await _exists(client, task_id)]

    def _add(self, found: list[Discrepancy]) -> None:
        texts = [str(discrepancy) for discrepancy in found]
        self.report.found += [text for text in texts if text not in self.report.found]


@contextlib.asynccontextmanager
async def copied(path: Path) -> AsyncIterator[Path]:
    """A copy of a SQLite file with all that belongs to it, so that looking at it mends nothing."""
    with tempfile.TemporaryDirectory(prefix="dragoman-") as folder:
        for suffix in ("", "-wal", "-shm"):
            part = path.with_name(path.name + suffix)
            if part.exists():
                shutil.copy2(part, folder)
        yield Path(folder) / path.name


async def tasks_in(store: TaskStore, agent: str, *states: TaskState) -> list[str]:
    """Ids of all tasks of an agent in these states, of anonymous callers without a tenant."""
    found: list[str] = []
    for state in states:
        after: tuple[int, str] | None = None
        while True:
            page = await store.page(TaskQuery(scope=Scope(agent=agent), state=state, page_size=_PAGE, after=after))
            found += [task.id for task in page.tasks]
            after = page.next
            if after is None:
                break
    return found


async def _exists(client: Client, task_id: str) -> bool:
    try:
        await client.get_task(task_id)
    except TaskNotFoundError:
        return False
    return True
