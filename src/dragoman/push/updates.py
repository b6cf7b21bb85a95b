"""What webhooks of each version are told, out of a task's log.

Theory. A receiver of 1.0 is told each event. One of another version may want the whole task as it is after the event:
then the log is folded along, from its first record, for as long as the webhook is told.

Spec: §4.3.3, PUSH-01, PUSH-20, AMB-65; v0.3 register, section 7.7.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from dragoman.errors import StoreError
from dragoman.model import StreamResponse, Task, TaskState, encode_json
from dragoman.ports.push import Encoder
from dragoman.ports.store import Record, TaskStore
from dragoman.protocol.lifecycle import SETTLED, TaskFold, copy_task
from dragoman.push.calling import Notification

CONTENT_TYPE = "application/a2a+json"
HEADERS: Mapping[str, str] = {"A2A-Version": "1.0"}
AT_ONCE = 128
"""Records that are read at once."""


class Updates:
    """The log of one task from one webhook's point of view. ``encoder``: None for receivers of the current version."""

    def __init__(
        self, store: TaskStore, task_id: str, encoder: Encoder | None, updates: Literal["all", "states"]
    ) -> None:
        self._store = store
        self._task_id = task_id
        self._encoder = encoder
        self._updates = updates
        self._fold: TaskFold | None = None
        self._folded = 0

    async def after(self, position: int) -> list[Record]:
        """The next records."""
        return await self._store.records(self._task_id, position, AT_ONCE)

    async def whole(self, number: int) -> tuple[Notification, int] | None:
        """The task as it was after a record, and the number of its state; None when it is gone."""
        records = await self._store.records(self._task_id, number - 1, 1)
        if not records:
            return None
        await self._fold_to(records[0])
        assert self._fold is not None
        return self._about(number, self._fold.task), getattr(self._fold.task.status.state, "number", 0)

    async def notification(self, record: Record) -> Notification:
        """What is said about a record."""
        if self._encoder is None:
            return Notification(record.number, record.event_json, CONTENT_TYPE, HEADERS, of_task=False)
        await self._fold_to(record)
        assert self._fold is not None
        return self._about(record.number, self._fold.task)

    def _about(self, number: int, task: Task) -> Notification:
        encoder = self._encoder
        if encoder is None:
            body = encode_json(StreamResponse(task=task))
            return Notification(number, body, CONTENT_TYPE, HEADERS, of_task=True)
        return Notification(number, encoder.encode(task), encoder.content_type, encoder.headers, of_task=True)

    async def _fold_to(self, record: Record) -> None:
        while self._folded < record.number - 1:
            missing = await self._store.records(self._task_id, self._folded, record.number - 1 - self._folded)
            if not missing:
                raise StoreError(f"The log of task {self._task_id} is missing")
            for earlier in missing:
                self._apply(earlier)
        if self._folded < record.number:
            self._apply(record)

    def _apply(self, record: Record) -> None:
        if self._fold is None:
            assert record.event.task is not None
            self._fold = TaskFold(copy_task(record.event.task))
        else:
            self._fold.apply(record)
        self._folded = record.number

    def is_worth_telling(self, record: Record, state: int) -> bool:
        """Whether a webhook that was told ``state`` last hears of the record."""
        if self._updates == "all":
            return True
        now = state_of(record)
        return now is not None and (now.number != state or now in SETTLED)


def state_of(record: Record) -> TaskState | None:
    """The state that a record says; None when it says none."""
    event = record.event
    if event.status_update is not None:
        state = event.status_update.status.state
    elif event.task is not None:
        state = event.task.status.state
    else:
        return None
    return state if isinstance(state, TaskState) else None
