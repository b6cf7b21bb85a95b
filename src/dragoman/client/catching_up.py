"""Bring a snapshot and the events around it together. Pure.

Theory. Some agents of version 0.3 answer a subscription with live events only. The task is then asked for when the
first of them came, and what the stream brought before, and perhaps a little after, is in that snapshot already. A
status that the snapshot has is left out. Chunks are found in it: those that came before it are a run of its parts, the
one nearest to the end, and what the snapshot has after that run will be brought by the stream, too. A snapshot that is
a little late ends within the run.

Spec: SUB-07, AMB-04, AC-C-72.
"""

from __future__ import annotations

from collections.abc import Sequence

from dragoman.model import Part, StreamResponse, Task, TaskArtifactUpdateEvent


class CatchUp:
    """Tells which events a snapshot holds. ``early`` are those that came before it was asked for."""

    def __init__(self, snapshot: Task, early: Sequence[StreamResponse]) -> None:
        self._status = snapshot.status
        parts = {artifact.artifact_id: artifact.parts for artifact in snapshot.artifacts}
        self._expected: dict[str, list[Part]] = {}
        for artifact_id, chunks in _chunks(early).items():
            found = parts.get(artifact_id, [])
            self._expected[artifact_id] = list(found[_last_run(found, chunks) :])

    def news(self, events: Sequence[StreamResponse]) -> list[StreamResponse]:
        """The events that tell something that is not known."""
        return [event for event in events if not self._is_known(event)]

    def _is_known(self, event: StreamResponse) -> bool:
        if event.status_update is not None:
            return event.status_update.status == self._status
        update = event.artifact_update
        return update is not None and self._is_known_chunk(update)

    def _is_known_chunk(self, update: TaskArtifactUpdateEvent) -> bool:
        artifact_id, parts = update.artifact.artifact_id, update.artifact.parts
        expected = self._expected.get(artifact_id)
        if not expected:
            return False
        if update.append and expected[: len(parts)] == parts:
            del expected[: len(parts)]
            return True
        del self._expected[artifact_id]
        return False


def _chunks(events: Sequence[StreamResponse]) -> dict[str, list[Part]]:
    """The parts that were appended to each artifact, since it was last begun anew."""
    found: dict[str, list[Part]] = {}
    for event in events:
        update = event.artifact_update
        if update is None:
            continue
        if update.append:
            found.setdefault(update.artifact.artifact_id, []).extend(update.artifact.parts)
        else:
            found[update.artifact.artifact_id] = []
    return {artifact_id: parts for artifact_id, parts in found.items() if parts}


def _last_run(parts: Sequence[Part], run: Sequence[Part]) -> int:
    """Where a run of parts begins, as near to the end as can be; the end may cut it off. The end: nowhere."""
    for start in range(len(parts) - len(run), -1, -1):
        if list(parts[start : start + len(run)]) == list(run):
            return start
    for start in range(max(len(parts) - len(run) + 1, 0), len(parts)):
        if list(parts[start:]) == list(run[: len(parts) - start]):
            return start
    return len(parts)
