"""A witness: what callers were told of tasks, to be compared with what the store holds later.

Theory. A task is its log, and a log only grows. So whatever any caller was shown is a moment of the log, and stays one:
a Task is the fold of records 1 to n for some n, and an update on a stream with number n is record n. This must hold at
any later time and after any crash, and is all that "nothing is lost" means. A witness notes what callers see as they
see it, checks at once that the numbers on each stream are without gap and double, and later compares.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

import msgspec

from dragoman.client.progress import StreamEvent, as_response
from dragoman.client.streams import ClientStream
from dragoman.model import Task, encode_json
from dragoman.ports.store import Record, StoredTask, TaskStore
from dragoman.protocol.lifecycle import TaskFold, copy_task, is_terminal

_PAGE = 1_000


class Discrepancy(msgspec.Struct, frozen=True):
    """Something that is not as a caller was told."""

    task_id: str
    text: str

    def __str__(self) -> str:
        return f"task {self.task_id}: {self.text}"


class _Sightings:
    """What was seen of one task: whole tasks in JSON, and updates by their number."""

    __slots__ = ("tasks", "updates")

    def __init__(self) -> None:
        self.tasks: set[bytes] = set()
        self.updates: dict[int, bytes] = {}


class Witness:
    """Notes what callers are told. One witness may serve many callers at once, in one event loop.

    ``count`` is how many tasks and updates were seen; ``faults`` are discrepancies found on the way (a gap or a double
    on a stream, one number for two updates).
    """

    def __init__(self) -> None:
        self.count = 0
        self.faults: list[Discrepancy] = []
        self._seen: dict[str, _Sightings] = {}
        self._fresh: set[str] = set()
        self._waiters: list[tuple[int, asyncio.Future[None]]] = []

    @property
    def task_ids(self) -> frozenset[str]:
        """Every task that a caller was told of."""
        return frozenset(self._seen)

    # Noting.

    def told(self, task: Task) -> Task:
        """Note a task that a caller was answered, with its whole history; returns it."""
        self._sightings(task.id).tasks.add(encode_json(task))
        self._noted()
        return task

    async def follow(self, stream: ClientStream, *, resumes: bool = True) -> AsyncIterator[StreamEvent]:
        """Iterate over a stream and note its events.

        ``resumes``: whether its agent has the extension for resumable streams; then the numbers must be without gap
        over all connections, else a Task may jump ahead. Closes the stream.
        """
        last: int | None = None
        async with stream:
            async for event in stream:
                number = None if stream.last_event_id is None else int(stream.last_event_id)
                self._note(stream.task_id, event, number, last, resumes)
                last = number
                yield event

    def _note(self, task_id: str, event: StreamEvent, number: int | None, last: int | None, resumes: bool) -> None:
        if isinstance(event, Task):
            self.told(event)
            if last is not None and number is not None and (number < last or (resumes and number > last)):
                self._fault(task_id, f"a stream that had {last} was given the task at {number}")
            return
        if number is None:
            self._fault(task_id, "an update came without a number")
            return
        if last is not None and number != last + 1:
            self._fault(task_id, f"on a stream {number} came after {last}")
        json = encode_json(as_response(event))
        if self._sightings(task_id).updates.setdefault(number, json) != json:
            self._fault(task_id, f"two different updates were shown as {number}")
        self._noted()

    def _sightings(self, task_id: str) -> _Sightings:
        self._fresh.add(task_id)
        return self._seen.setdefault(task_id, _Sightings())

    def _fault(self, task_id: str, text: str) -> None:
        self.faults.append(Discrepancy(task_id, text))

    def _noted(self) -> None:
        self.count += 1
        if self._waiters and self.count >= self._waiters[0][0]:
            due = [waiter for number, waiter in self._waiters if self.count >= number]
            self._waiters = [(number, waiter) for number, waiter in self._waiters if self.count < number]
            for waiter in due:
                if not waiter.done():
                    waiter.set_result(None)

    async def sees(self, more: int) -> None:
        """Wait until ``more`` sightings have come."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append((self.count + more, waiter))
        self._waiters.sort(key=lambda entry: entry[0])
        await waiter

    # Comparing.

    async def compare(self, store: TaskStore, *, fresh: bool = False) -> list[Discrepancy]:
        """What of all this is not so in an open store, and ``faults``; an empty list when nothing was lost.

        Also checks that each log is without gap, has nothing after its end, and that the store's task is its fold.
        ``fresh``: look only at tasks of which something was seen since the last comparison. Raises StoreError.
        """
        looked_at = list(self._fresh if fresh else self._seen)
        self._fresh.difference_update(looked_at)
        found = list(self.faults)
        for task_id in looked_at:
            found += [Discrepancy(task_id, text) for text in await self._compare_task(store, task_id)]
        return found

    async def _compare_task(self, store: TaskStore, task_id: str) -> list[str]:
        seen = self._seen[task_id]  # as it is before the store is read, which may know more by then
        told, updates = set(seen.tasks), dict(seen.updates)
        stored = await store.task(task_id, None)
        if stored is None:
            return ["a caller was told of it, and it is not in the store"]
        records = await read_log(store, task_id)
        found = check_log(records, stored)
        if found:
            return found
        by_number = {record.number: record for record in records}
        for number, json in updates.items():
            record = by_number.get(number)
            if record is None:
                found.append(f"update {number} was shown, and the log ends at {len(records)}")
            elif record.event_json != json:
                found.append(f"update {number} was shown as {json!r} and is {record.event_json!r}")
        found += [f"it was shown as {json!r}, which it never was" for json in told - _moments(records)]
        return found


async def read_log(store: TaskStore, task_id: str) -> list[Record]:
    """All records of a task."""
    records: list[Record] = []
    while page := await store.records(task_id, len(records), _PAGE):
        records += page
    return records


def check_log(records: Sequence[Record], stored: StoredTask) -> list[str]:
    """What is wrong with a log, and with the task that the store says is its fold at ``stored.number``."""
    numbers = [record.number for record in records]
    if not numbers or numbers != list(range(1, len(numbers) + 1)):
        return [f"its log has a gap: {numbers}"]
    found = []
    fold: TaskFold | None = None
    for record in records:
        if fold is not None and is_terminal(fold.task.status.state):
            found.append(f"record {record.number} came after the end")
        fold = _fold_on(fold, record)
        if record.number == stored.number and encode_json(fold.task) != encode_json(stored.task):
            found.append(f"the stored task is not the fold of its log at {record.number}")
    if stored.number > len(records):
        found.append(f"the stored task is at {stored.number}, and its log ends at {len(records)}")
    return found


def _fold_on(fold: TaskFold | None, record: Record) -> TaskFold:
    if fold is None:
        assert record.event.task is not None
        return TaskFold(copy_task(record.event.task))
    fold.apply(record)
    return fold


def _moments(records: Sequence[Record]) -> set[bytes]:
    """Everything that the task ever was."""
    moments = set()
    fold: TaskFold | None = None
    for record in records:
        fold = _fold_on(fold, record)
        moments.add(encode_json(fold.task))
    return moments
