"""LiveTask: the mailbox of one task that something in this process works on, waits for or watches.

Theory. A live task has two fronts. The *staged* front is what its one writer has decided: every record gets its number
here, and the rules of the protocol are checked against it. The *published* front is what is in the store: the
fold of all committed records, the only thing that callers and streams are shown. Records move from one to the other
when the committer reports that they are stored; whoever waits is woken then.

Everything here runs in the event loop's thread and never awaits, so each method is one step of the machine.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Protocol

from dragoman.errors import (
    A2AError,
    InternalError,
    InvalidAgentResponseError,
    StaleLeaseError,
    StoreError,
    UnavailableError,
)
from dragoman.model import (
    EncodingError,
    Message,
    Part,
    Role,
    SendMessageRequest,
    StreamResponse,
    Task,
    TaskArtifactUpdateEvent,
    TaskState,
    TaskStatus,
    TaskStatusUpdateEvent,
    Timestamp,
    encode_json,
)
from dragoman.ports.agent import Grant
from dragoman.ports.operations import CallContext, Event
from dragoman.ports.push import Webhook
from dragoman.ports.store import Append, NewTask, Record, Scope, StoredTask
from dragoman.protocol.lifecycle import (
    SETTLED,
    STATES,
    TaskFold,
    check_event,
    copy_task,
    is_settled,
    state_after_message,
)
from dragoman.runtime.waiters import Waiters
from dragoman.runtime.window import Window

if TYPE_CHECKING:
    from dragoman.runtime.runs import Run

logger = logging.getLogger("dragoman.runtime")

UNSAVED_BYTES = 4 * 1024 * 1024
"""Events of one task in JSON that are published and not stored, before its handler waits; or one event, if larger."""

SNAPSHOT_EVERY = 64
"""Records after which a settled task's fold is written beside its log, so that reading it costs the same."""


class Host(Protocol):
    """What a live task needs of the runtime."""

    worker: str

    def submit(self, live: LiveTask) -> None:
        """Queue the task for the next write."""
        ...

    def now(self) -> Timestamp:
        """The moment."""
        ...

    def new_id(self) -> str:
        """A fresh id."""
        ...

    def forget(self, live: LiveTask) -> None:
        """Nothing needs this live task any more."""
        ...

    def lost(self, live: LiveTask, error: StoreError) -> None:
        """The task's records could not be stored."""
        ...


class Watcher(Protocol):
    """A stream on the task."""

    def wake(self) -> None:
        """There is something new."""
        ...


def _encoded(event: StreamResponse) -> bytes:
    """The event as JSON, made here once for store and streams, so that what cannot be written is never staged."""
    try:
        return encode_json(event)
    except EncodingError as error:
        raise InvalidAgentResponseError(f"An event cannot be written as JSON: {error}") from error


class LiveTask:
    """One task: its staged and published fronts, and who waits for it."""

    __slots__ = (
        "_backlog_waiter",
        "_closed",
        "_fold",
        "_holds",
        "_host",
        "_in_flight",
        "_in_flight_bytes",
        "_new",
        "_queued",
        "_since_snapshot",
        "_staged",
        "_staged_bytes",
        "_status",
        "_waiters",
        "_watchers",
        "_window",
        "answer_waiter",
        "authorizing",
        "canceling",
        "context_id",
        "failure",
        "fence",
        "grants",
        "kept",
        "number",
        "queue",
        "run",
        "scope",
        "staged_number",
        "state",
        "task_id",
        "user_messages",
    )

    def __init__(self, host: Host, task_id: str, context_id: str, scope: Scope) -> None:
        self._host = host
        self.task_id = task_id
        self.context_id = context_id
        self.scope = scope
        self.fence = 0
        self.kept = b""
        self.number = 0
        self.staged_number = 0
        self.state = TaskState.SUBMITTED
        self.user_messages: list[Message] = []
        self.queue: list[tuple[SendMessageRequest, CallContext]] = []
        self.run: Run | None = None
        self.canceling = False
        self.failure: A2AError | None = None
        self.answer_waiter: asyncio.Future[None] | None = None
        self.authorizing = False
        self.grants: list[Grant] = []
        self._status: TaskStatus | None = None
        self._new: NewTask | None = None
        self._fold: TaskFold | None = None
        self._staged: list[Record] = []
        self._staged_bytes = 0
        self._in_flight: list[Record] = []
        self._in_flight_bytes = 0
        self._queued = False
        self._closed: set[str] = set()
        self._holds = 0
        self._since_snapshot = 0
        self._waiters = Waiters(self.release_if_idle)
        self._watchers: list[Watcher] = []
        self._window = Window()
        self._backlog_waiter: asyncio.Future[None] | None = None

    # How it begins.

    def begin(
        self,
        message: Message,
        state: TaskState,
        kept: bytes = b"",
        wire: str = "1.0",
        webhook: Webhook | None = None,
    ) -> None:
        """Stage record 1: a new task that answers ``message``; ``kept`` of its request is stored beside it, ``wire``,
        the version that its caller speaks, and a ``webhook`` that is told of it.

        Spec: DATA-22, DATA-23, CTX-10, B071.
        """
        self.fence = 1
        self.user_messages = [self.own(message)]
        self.kept = kept
        self._new = NewTask(
            context_id=self.context_id,
            scope=self.scope,
            wire_version=wire,
            request=kept,
            webhook=webhook,
        )
        status = TaskStatus(state=state, timestamp=self._host.now())
        task = Task(id=self.task_id, context_id=self.context_id, status=status, history=list(self.user_messages))
        self._stage(StreamResponse(task=task), state, status)

    def own(self, message: Message) -> Message:
        """A client's message as it stands in the history, with the ids of the task."""
        return Message(
            message_id=message.message_id,
            context_id=self.context_id,
            task_id=self.task_id,
            role=message.role,
            parts=message.parts,
            metadata=message.metadata,
            extensions=message.extensions,
            reference_task_ids=message.reference_task_ids,
        )

    @classmethod
    def load(cls, host: Host, stored: StoredTask) -> LiveTask:
        """A task out of the store; without a lease until :meth:`take_lease`."""
        live = cls(host, stored.task.id, stored.task.context_id, stored.scope)
        live._restore(stored)
        return live

    def _restore(self, stored: StoredTask) -> None:
        task = stored.task
        self.number = self.staged_number = stored.number
        assert isinstance(task.status.state, TaskState)
        self.state = task.status.state
        self.kept = stored.request
        self._status = task.status
        self._fold = TaskFold(task)
        self._window.clear(stored.number)
        self.user_messages = [message for message in task.history if message.role is Role.USER]

    def take_lease(self, claimed: StoredTask) -> None:
        """Become the writer, from the state that the claim found."""
        self.fence = claimed.fence
        if claimed.number != self.number:
            self._restore(claimed)
            self._waiters.resolve(self.task, self.number)
            self.wake_watchers()

    # Staging: what the one writer decides.

    def publish(self, event: StreamResponse) -> None:
        """Stage an event of the agent. Raises InvalidAgentResponseError when it breaks a rule or is no JSON."""
        if self.failure is not None:
            raise self.failure
        state = check_event(event, task_id=self.task_id, context_id=self.context_id, state=self.state)
        update = event.status_update
        if update is None:
            assert event.artifact_update is not None
            self._note_chunk(event.artifact_update)
            self._stage(event, state, None)
        else:
            update.status.timestamp = self._host.now()  # the moment of recording, whatever the agent wrote: DATA-23
            self._stage(event, state, update.status)

    def _note_chunk(self, update: TaskArtifactUpdateEvent) -> None:
        """An artifact that goes on after its last chunk is a fault of the agent; nothing of it is lost. Spec: B089."""
        artifact_id = update.artifact.artifact_id
        if update.append and artifact_id in self._closed:
            logger.warning("Artifact %s of task %s goes on after its last chunk", artifact_id, self.task_id)
        if update.last_chunk:
            self._closed.add(artifact_id)

    def accept(self, message: Message) -> int:
        """Stage a message that goes on with the task; returns its record's number. Spec: CTX-16, SEND-19."""
        if self.failure is not None:
            raise self.failure
        status = TaskStatus(state=state_after_message(self.state), timestamp=self._host.now())
        message = self.own(message)
        self._stage(self._status_event(status), state_after_message(self.state), status, message)
        self.user_messages.append(message)
        self._wake_run()
        return self.staged_number

    def grant(self, grant: Grant) -> None:
        """Take what was handed in out of band: the task goes on. Spec: INTASK-04."""
        if self.failure is not None:
            raise self.failure
        self.grants.append(grant)
        self.move(TaskState.WORKING)
        self._wake_run()

    def _wake_run(self) -> None:
        waiter = self.answer_waiter
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    def move(self, state: TaskState, text: str = "") -> None:
        """Stage a status of the runtime's own; ``text`` becomes the status message."""
        message = self._agent_message(text) if text else None
        status = TaskStatus(state=state, message=message, timestamp=self._host.now())
        self._stage(self._status_event(status), state, status)

    def _agent_message(self, text: str) -> Message:
        return Message(
            message_id=self._host.new_id(),
            context_id=self.context_id,
            task_id=self.task_id,
            role=Role.AGENT,
            parts=[Part(text=text)],
        )

    def _status_event(self, status: TaskStatus) -> StreamResponse:
        return StreamResponse(
            status_update=TaskStatusUpdateEvent(task_id=self.task_id, context_id=self.context_id, status=status)
        )

    def _stage(
        self, event: StreamResponse, state: TaskState, status: TaskStatus | None, message: Message | None = None
    ) -> None:
        encoded = _encoded(event)
        record = Record(self.staged_number + 1, event, message=message, encoded=encoded)
        self.staged_number += 1
        self._staged_bytes += len(encoded)
        self.state = state
        if status is not None:
            self._status = status
        self._staged.append(record)
        if not self._queued:
            self._queued = True
            self._host.submit(self)

    # The committer's side.

    def take_append(self) -> Append | None:
        """All staged records as one append, None when they were lost meanwhile (called by the committer)."""
        self._queued = False
        if self.failure is not None or not self._staged:
            self._staged.clear()
            self.release_if_idle()
            return None
        records = self._in_flight = self._staged
        self._staged = []
        self._in_flight_bytes, self._staged_bytes = self._staged_bytes, 0
        new, self._new = self._new, None
        status = self._status
        assert status is not None
        assert status.timestamp is not None
        return Append(
            task_id=self.task_id,
            fence=self.fence,
            records=records,
            state=self.state,
            timestamp_ms=status.timestamp.ms,
            status=status,
            worker=self._holder(),
            new=new,
            snapshot=self._snapshot(len(records)),
        )

    def _holder(self) -> str | None:
        """Nobody, as long as the next move is the client's: whoever gets the message goes on, also after a crash."""
        return None if self.state in SETTLED else self._host.worker

    def _snapshot(self, added: int) -> bytes | None:
        self._since_snapshot += added
        if self._since_snapshot < SNAPSHOT_EVERY or not is_settled(self.state):
            return None
        self._since_snapshot = 0
        return encode_json(self.staged_task())

    def committed(self, outcome: StoreError | None) -> None:
        """The append that was taken last is stored, or is not (called by the committer)."""
        records, self._in_flight = self._in_flight, []
        self._in_flight_bytes = 0
        if outcome is None:
            self._show(records)
        else:
            self._lose(outcome)
        waiter = self._backlog_waiter
        if waiter is not None and not waiter.done():
            waiter.set_result(None)
        self.release_if_idle()

    def _show(self, records: list[Record]) -> None:
        fold = self._fold
        for record in records:
            if fold is None:
                assert record.event.task is not None
                fold = self._fold = TaskFold(copy_task(record.event.task))
            else:
                fold.apply(record)
        self.number = records[-1].number
        if self._watchers:
            self._window.extend(records)
            self.wake_watchers()
        else:
            self._window.base = self.number
        if self._waiters:
            self._waiters.resolve(self.task, self.number)

    def abandon(self, error: A2AError) -> None:
        """Nobody will work on the task in this process: tell those who wait for it."""
        self._waiters.fail(error)
        self.wake_watchers()

    def _lose(self, outcome: StoreError) -> None:
        """Records could not be stored: what was staged never happened, and nobody may go on from it."""
        if isinstance(outcome, StaleLeaseError):
            self.failure = UnavailableError("The task is handled elsewhere now; try again")
        else:
            self.failure = InternalError("The task could not be stored")
        self._staged.clear()
        self._waiters.fail(self.failure)
        self.wake_watchers()
        self._host.lost(self, outcome)

    # What others see.

    @property
    def task(self) -> Task:
        """The published task. Not to be changed or kept: it grows."""
        assert self._fold is not None
        return self._fold.task

    @property
    def is_stored(self) -> bool:
        """Whether anything of the task is in the store yet."""
        return self._fold is not None

    def staged_task(self) -> Task:
        """A copy of the task with everything that is staged. Raises the failure of a task that was lost."""
        if self.failure is not None:
            raise self.failure
        records = [*self._in_flight, *self._staged]
        if self._fold is not None:
            fold = TaskFold(copy_task(self._fold.task))
        else:
            first = records.pop(0).event.task
            assert first is not None
            fold = TaskFold(copy_task(first))
        for record in records:
            fold.apply(record)
        return fold.task

    def wait(self, number: int, states: frozenset[TaskState] = STATES) -> asyncio.Future[Task]:
        """The task once record ``number`` is stored and the task is, then or later, in one of ``states``."""
        future: asyncio.Future[Task] = asyncio.get_running_loop().create_future()
        if self.failure is not None:
            future.set_exception(self.failure)
        elif self.number >= number and self.task.status.state in states:
            future.set_result(copy_task(self.task))
        else:
            self._waiters.add(future, number, states)
        return future

    @property
    def backlog(self) -> int:
        """Records that are staged and not stored."""
        return len(self._staged) + len(self._in_flight)

    @property
    def is_heavy(self) -> bool:
        """Whether what is staged and not stored takes much memory."""
        return self._staged_bytes + self._in_flight_bytes > UNSAVED_BYTES

    async def drain(self, most: int) -> None:
        """Wait until at most ``most`` records, and not much memory, are not stored.

        Raises the A2AError of a store that failed.
        """
        while (self.backlog > most or self.is_heavy) and self.failure is None:
            if self._backlog_waiter is None or self._backlog_waiter.done():
                self._backlog_waiter = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._backlog_waiter)
        if self.failure is not None:
            raise self.failure

    # Streams.

    def watch(self, watcher: Watcher) -> None:
        """Add a stream; it is woken whenever something new is published."""
        self._watchers.append(watcher)

    def unwatch(self, watcher: Watcher) -> None:
        """Remove a stream."""
        if watcher in self._watchers:
            self._watchers.remove(watcher)
        if not self._watchers:
            self._window.clear(self.number)
        self.release_if_idle()

    def events_after(self, position: int) -> list[Event] | None:
        """The next published events above ``position``; None when these are in the store only."""
        return self._window.after(position)

    def wake_watchers(self) -> None:
        """Let every stream look again, e.g. because the runtime is stopping."""
        for watcher in self._watchers:
            watcher.wake()

    # Who still needs it.

    def hold(self) -> None:
        """Somebody works with this object across an await; pair with :meth:`unhold`."""
        self._holds += 1

    def unhold(self) -> None:
        """The opposite of :meth:`hold`."""
        self._holds -= 1
        self.release_if_idle()

    def release_if_idle(self) -> None:
        """Leave memory when nobody runs, waits for or watches the task."""
        if self.run is None and not (
            self._queued or self._in_flight or self._staged or self._watchers or self._holds or self._waiters
        ):
            self._host.forget(self)
