"""Waiters: callers who are answered when a task has come far enough."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from dragoman.errors import A2AError
from dragoman.model import Task, TaskState
from dragoman.protocol.lifecycle import TERMINAL, copy_task

_Waiter = tuple[int, frozenset[TaskState], "asyncio.Future[Task]"]


class Waiters:
    """Futures of one task, each with the record and the states that it waits for."""

    __slots__ = ("_left", "_waiters")

    def __init__(self, left: Callable[[], None]) -> None:
        self._left = left
        self._waiters: list[_Waiter] = []

    def __len__(self) -> int:
        return len(self._waiters)

    def add(self, future: asyncio.Future[Task], number: int, states: frozenset[TaskState]) -> None:
        """Wait until record ``number`` is stored and the task is in one of ``states``.

        ``left`` is called when a caller gives up.
        """
        self._waiters.append((number, states, future))
        future.add_done_callback(self._drop_if_cancelled)

    def _drop_if_cancelled(self, future: asyncio.Future[Task]) -> None:
        if future.cancelled():
            self._waiters = [waiter for waiter in self._waiters if waiter[2] is not future]
            self._left()

    def resolve(self, task: Task, number: int) -> None:
        """The task stands at ``number`` now: answer those who waited for that."""
        left = []
        for waiter in self._waiters:
            wanted, states, future = waiter
            if number < wanted or task.status.state not in states:
                left.append(waiter)
            elif not future.done():
                future.set_result(task if task.status.state in TERMINAL else copy_task(task))
        self._waiters = left

    def fail(self, error: A2AError) -> None:
        """Nobody will be answered."""
        waiters, self._waiters = self._waiters, []
        for _, _, future in waiters:
            if not future.done():
                future.set_exception(error)
