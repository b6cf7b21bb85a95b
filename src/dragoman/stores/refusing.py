"""When an append is refused: one rule for every store."""

from __future__ import annotations

from dragoman.errors import StaleLeaseError, StoreError
from dragoman.ports.store import Append


def find_fault(append: Append) -> StoreError | None:
    """What is wrong with the append by itself, whatever is stored."""
    records = append.records
    if records and records[-1].number - records[0].number != len(records) - 1:
        return StoreError(f"The records for task {append.task_id} are not consecutive")
    if append.new is None:
        return None
    if not records or records[0].number != 1 or records[0].event.task is None:
        return StoreError(f"The new task {append.task_id} does not begin with record 1 and a task in it")
    return None


def find_conflict(append: Append, fence: int, number: int) -> StoreError | None:
    """Why the append does not go on from a stored task with this fence and last record number, or None."""
    if append.new is not None:
        return StoreError(f"Task {append.task_id} exists already")
    if append.fence != fence:
        return StaleLeaseError(f"Task {append.task_id} has fence {fence}, the write came with {append.fence}")
    if append.records and append.records[0].number != number + 1:
        text = f"Task {append.task_id} is at record {number}, the write begins with {append.records[0].number}"
        return StaleLeaseError(text)
    return None


def unknown_task(task_id: str) -> StaleLeaseError:
    """The refusal for a task that is not stored, or no longer: nobody holds its lease."""
    return StaleLeaseError(f"Task {task_id} is not in the store")
