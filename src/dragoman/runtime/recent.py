"""Finished tasks that were read a moment ago.

A finished task never changes (Spec: STRM-09), so it may be kept; a client that polls, or many that look at one result,
do not go to the store each time. Small tasks only, few of them, and not for long: a task that is removed elsewhere is
gone here too within the time that an entry lives.
"""

from __future__ import annotations

from collections import OrderedDict

from dragoman.model import Task, encode_json
from dragoman.ports.store import Scope, StoredTask
from dragoman.protocol.lifecycle import TERMINAL

MOST = 256
MOST_BYTES = 64 * 1024


class RecentTasks:
    """At most ``MOST`` finished tasks of at most ``MOST_BYTES`` each, for ``ttl_ms`` milliseconds."""

    def __init__(self, ttl_ms: int) -> None:
        self._ttl_ms = ttl_ms
        self._tasks: OrderedDict[str, tuple[Scope, Task, int]] = OrderedDict()

    def keep(self, stored: StoredTask, now_ms: int) -> None:
        """Keep a task that was read, if it is finished and small. The caller gives it away."""
        task = stored.task
        if task.status.state not in TERMINAL or len(encode_json(task)) > MOST_BYTES:
            return
        self._tasks[task.id] = (stored.scope, task, now_ms + self._ttl_ms)
        self._tasks.move_to_end(task.id)
        if len(self._tasks) > MOST:
            self._tasks.popitem(last=False)

    def find(self, task_id: str, scope: Scope, now_ms: int) -> Task | None:
        """The task, if it is here and the caller's. Not to be changed."""
        found = self._tasks.get(task_id)
        if found is None or not scope.covers(found[0]):
            return None
        if found[2] <= now_ms:
            del self._tasks[task_id]
            return None
        return found[1]

    def clear(self) -> None:
        """Forget all, since tasks were removed from the store."""
        self._tasks.clear()
