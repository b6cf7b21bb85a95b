"""The store's contract: a log for each task, a row that finds it, and leases.

Theory. A task is its log: records numbered 1, 2, 3 … without gaps; record 1 carries the task as it was created.
Beside the log a task has a *head*: what ListTasks sorts and filters by, and the fold of the log at some number.
Every task has one writer at a time; its lease is a worker's name and a fencing number (``fence``) that grows with
each change of hands. A worker is alive as long as its heartbeat has not run out; the tasks of a dead worker are
*orphans* and may be claimed by another.

Whatever a store is given it owns from then on and never hands out to be changed; what it returns is the
caller's (no aliasing, either way).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from dragoman.errors import StoreError
from dragoman.model import Message, StreamResponse, Task, TaskState, TaskStatus, decode_json, encode_json
from dragoman.ports.push import Webhook
from dragoman.ports.scoping import Scope as Scope


class Record(msgspec.Struct, gc=False):
    """One event of a task's log.

    ``number`` counts from 1; ``message`` is a message of the user that joined the history with the event, or None. The
    event itself is held as an object (``given``), as ProtoJSON (``encoded``) or both; read it by ``event`` and
    ``event_json``, which convert at most once, so that store and streams share one encoding.
    """

    number: int
    given: StreamResponse | None = None
    message: Message | None = None
    encoded: bytes | None = None

    @property
    def event(self) -> StreamResponse:
        """What streams show."""
        if self.given is None:
            assert self.encoded is not None
            self.given = decode_json(StreamResponse, self.encoded)
        return self.given

    @property
    def event_json(self) -> bytes:
        """The event in ProtoJSON, a ``StreamResponse``."""
        if self.encoded is None:
            assert self.given is not None
            self.encoded = encode_json(self.given)
        return self.encoded


class NewTask(msgspec.Struct, kw_only=True, gc=False):
    """The fixed facts of a task, written with its first record.

    ``request`` is what the runtime keeps of the request that began the task; stores do not look into it. ``webhook``,
    which only a :class:`~dragoman.ports.push.WebhookStore` is given, is told of the task from its first record on.
    """

    context_id: str
    scope: Scope
    wire_version: str = "1.0"
    request: bytes = b""
    webhook: Webhook | None = None


class Append(msgspec.Struct, kw_only=True, gc=False):
    """Records to add to one task's log, all or none.

    ``records`` are consecutive; the store refuses them with StaleLeaseError unless ``fence`` is the task's fence and
    the first number is the one after the last stored. ``new`` is set when record 1 is among them. ``state``,
    ``timestamp_ms`` and ``status`` are the head after the last record. ``snapshot`` is the
    whole task after the last record in ProtoJSON, or None when it is not worth writing. ``worker`` holds the lease;
    None gives it up (the task waits or is over, nobody runs it).
    """

    task_id: str
    fence: int
    records: Sequence[Record]
    state: TaskState
    timestamp_ms: int
    status: TaskStatus
    worker: str | None
    new: NewTask | None = None
    snapshot: bytes | None = None


class StoredTask(msgspec.Struct, kw_only=True):
    """A task as a store gives it: the fold of records 1 to ``number``, and who holds it."""

    task: Task
    number: int
    scope: Scope
    fence: int
    worker: str | None = None
    wire_version: str = "1.0"
    request: bytes = b""


class TaskQuery(msgspec.Struct, kw_only=True, frozen=True):
    """A page of ListTasks. ``after`` is the sort key (timestamp_ms, task id) of the last task of the page before.

    Order: timestamp descending, then id descending. ``since_ms`` is inclusive. Spec: LIST-03, LIST-09, AMB-50, AMB-53.
    """

    scope: Scope
    context_id: str = ""
    state: TaskState | None = None
    since_ms: int | None = None
    page_size: int = 50
    after: tuple[int, str] | None = None
    with_artifacts: bool = False
    with_history: bool = False


class TaskPage(msgspec.Struct, kw_only=True):
    """What a query found. ``next`` is the sort key to go on after, None at the end; ``total`` counts all matches."""

    tasks: list[Task]
    total: int
    next: tuple[int, str] | None = None


class TaskStore(Protocol):
    """Where tasks live. Every method may raise StoreError; all may run together.

    Cancellation of a write leaves it either done or not done, never half.
    """

    durable: bool

    async def open(self) -> None:
        """Connect, check or migrate the schema. Raises StoreError that says what is wrong with the location."""
        ...

    async def close(self) -> None:
        """Finish what was accepted, then let go. Safe to call twice."""
        ...

    async def append(self, batch: Sequence[Append]) -> Sequence[StoreError | None]:
        """Write a group in one commit; returns one outcome for each append, in order.

        A refused append (stale lease) does not hurt its neighbours. Raises StoreError when nothing was written.
        """
        ...

    async def task(self, task_id: str, scope: Scope | None) -> StoredTask | None:
        """The task, or None when it is unknown or not in ``scope`` (None: any scope). Spec: ERR-09."""
        ...

    async def records(self, task_id: str, after: int, limit: int) -> list[Record]:
        """Up to ``limit`` records with numbers above ``after``, in order."""
        ...

    async def page(self, query: TaskQuery) -> TaskPage:
        """One page. Tasks come without artifacts and history unless the query asks for them."""
        ...

    async def memo(self, task_id: str, key: str) -> bytes | None:
        """What ``remember`` kept under this key, or None."""
        ...

    async def remember(self, task_id: str, fence: int, key: str, value: bytes) -> bytes:
        """Keep a value once; returns what is kept (the first value wins). StaleLeaseError by an old fence."""
        ...

    async def heartbeat(self, worker: str, until_ms: int) -> None:
        """This worker is alive until then."""
        ...

    async def retire(self, worker: str) -> None:
        """This worker is gone; what it still holds are orphans at once."""
        ...

    async def orphans(self, now_ms: int, limit: int, agent: str = "") -> list[str]:
        """Ids of the agent's tasks that a dead worker holds, oldest status first."""
        ...

    async def claim(self, task_id: str, worker: str, now_ms: int) -> StoredTask | None:
        """Take the lease of a task, in any state, that nobody alive holds: fence grows by one.

        None when another living worker holds it or it is gone. A worker may claim again what it holds itself.
        """
        ...

    async def purge(self, before_ms: int, limit: int, agent: str = "") -> int:
        """Remove up to ``limit`` terminal tasks of the agent (log and memos too) whose status is older; how many."""
        ...

    async def secret(self, name: str) -> bytes:
        """32 random bytes kept under this name, made on first use; the same for every process on this store."""
        ...
