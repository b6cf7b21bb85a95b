"""What a group of appends does to which rows: pure, decided before anything is written."""

from __future__ import annotations

from typing import Any

import msgspec

from dragoman.errors import StoreError
from dragoman.ports.store import Append
from dragoman.protocol.lifecycle import TERMINAL
from dragoman.stores.refusing import find_conflict, unknown_task
from dragoman.stores.sql.encoding import Write
from dragoman.stores.sql.webhooks import new_row

Row = dict[str, Any]
Owner = tuple[str, str, str]
"""Agent, tenant and owner."""

TotalKey = tuple[str, str, str, int]


class Head(msgspec.Struct, gc=False):
    """What must be known of a stored task to add to it."""

    fence: int
    number: int
    state: int
    timestamp_ms: int
    worker: str | None
    agent: str
    tenant: str
    owner: str
    metadata: bytes | None
    webhooks: int


class Plan:
    """The rows to write for the accepted appends of a group."""

    __slots__ = ("annotated", "created", "grown", "moved", "segments", "snapshots", "totals", "wakes", "webhooks")

    def __init__(self) -> None:
        self.created: list[Row] = []
        self.moved: dict[str, Row] = {}
        self.grown: dict[str, Row] = {}
        self.annotated: dict[str, Row] = {}
        self.segments: list[Row] = []
        self.snapshots: dict[str, Row] = {}
        self.totals: dict[TotalKey, int] = {}
        self.webhooks: list[Row] = []
        self.wakes: dict[str, Row] = {}

    @property
    def has_due(self) -> bool:
        """Whether webhooks become due by it."""
        return bool(self.webhooks or self.wakes)

    def count(self, owner: Owner, state: int, change: int) -> None:
        key = (*owner, state)
        self.totals[key] = self.totals.get(key, 0) + change


def plan_write(plan: Plan, write: Write, heads: dict[str, Head], refused: set[str]) -> StoreError | None:
    """Plan an append, or say why it is refused. Keeps ``heads`` up to date for the next append of the same task."""
    append = write.append
    if write.fault is not None:
        return write.fault
    head = heads.get(append.task_id)
    if append.task_id in refused or (head is None and append.new is None):
        return unknown_task(append.task_id)
    if head is None:
        heads[append.task_id] = plan_create(plan, write)
        return None
    conflict = find_conflict(append, head.fence, head.number)
    if conflict is None:
        _plan_extend(plan, write, head)
    return conflict


def plan_create(plan: Plan, write: Write) -> Head:
    """Plan a new task; its head after that."""
    append, facts = write.append, write.append.new
    assert facts is not None
    scope = facts.scope
    plan.created.append(
        {
            "id": append.task_id,
            "tenant": scope.tenant,
            "owner": scope.owner,
            "context_id": facts.context_id,
            "agent": scope.agent,
            "wire_version": facts.wire_version,
            "request": facts.request,
            "metadata": write.metadata,
            "number": write.last,
            "state": write.state,
            "timestamp_ms": append.timestamp_ms,
            "finished_ms": _finished_ms(append),
            "status": write.status,
            "fence": append.fence,
            "worker": append.worker,
            "webhooks": 0 if facts.webhook is None else 1,
        }
    )
    if facts.webhook is not None:
        row = new_row(append.task_id, facts.webhook, key=1, position=0, due_ms=append.timestamp_ms, agent=scope.agent)
        plan.webhooks.append(row)
    plan.count((scope.agent, scope.tenant, scope.owner), write.state, +1)
    _plan_log(plan, write)
    return Head(
        append.fence,
        write.last,
        write.state,
        append.timestamp_ms,
        append.worker,
        scope.agent,
        scope.tenant,
        scope.owner,
        write.metadata,
        0,  # the webhook that came with it is due already
    )


def _finished_ms(append: Append) -> int | None:
    return append.timestamp_ms if append.state in TERMINAL else None


def _plan_extend(plan: Plan, write: Write, head: Head) -> None:
    append = write.append
    if append.records:
        head.number = write.last
        _plan_log(plan, write)
        if head.webhooks:
            plan.wakes[append.task_id] = {"task": append.task_id, "due": append.timestamp_ms}
    if write.metadata is not None:
        head.metadata = _merged(head.metadata, write.metadata)
        plan.annotated[append.task_id] = {"task": append.task_id, "metadata": head.metadata}
    grown = {"task": append.task_id, "number": head.number, "status": write.status}
    after = (write.state, append.timestamp_ms, append.worker)
    if append.task_id not in plan.moved and after == (head.state, head.timestamp_ms, head.worker):
        plan.grown[append.task_id] = grown
        return
    plan.grown.pop(append.task_id, None)
    plan.moved[append.task_id] = grown | {
        "state": write.state,
        "timestamp_ms": append.timestamp_ms,
        "finished_ms": _finished_ms(append),
        "worker": append.worker,
    }
    if write.state != head.state:
        owner = (head.agent, head.tenant, head.owner)
        plan.count(owner, head.state, -1)
        plan.count(owner, write.state, +1)
    head.state, head.timestamp_ms, head.worker = after


def _merged(metadata: bytes | None, added: bytes) -> bytes:
    if metadata is None:
        return added
    return msgspec.json.encode({**msgspec.json.decode(metadata), **msgspec.json.decode(added)})


def _plan_log(plan: Plan, write: Write) -> None:
    append = write.append
    first = append.records[0].number
    plan.segments.append({"task_id": append.task_id, "last": write.last, "first": first, "payload": write.payload})
    if append.snapshot is not None:
        row = {"task_id": append.task_id, "number": write.last, "payload": append.snapshot}
        plan.snapshots[append.task_id] = row
