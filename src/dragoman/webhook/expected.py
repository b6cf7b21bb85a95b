"""A task whose notifications are expected, by a token of its own.

Spec: PUSH-13, PUSH-17, PUSH-21.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from types import TracebackType

from msgspec.structs import replace

from dragoman.model import Task, TaskArtifactUpdateEvent, TaskPushNotificationConfig
from dragoman.webhook.notification import Notification


class Expected:
    """One task that a receiver takes notifications of. Comes from :meth:`Receiver.expect`.

    ``config`` is the webhook to give to the agent: with a message (``push=``), or later for a task that is there. Its
    token is random, secret, and for this one task: where the id of the task is not known yet, that of the first
    notification with the token is taken, and from then on no other. ``latest`` is the last notification.

    Notifications are taken until :meth:`close`, which a ``with`` block calls at its end.
    """

    def __init__(self, config: TaskPushNotificationConfig, task_id: str, forget: Callable[[], None]) -> None:
        self._config = config
        self._forget = forget
        self._news = asyncio.Event()
        self.task_id = task_id
        self.latest: Notification | None = None

    def __repr__(self) -> str:
        return f"Expected(task_id={self.task_id!r})"

    @property
    def config(self) -> TaskPushNotificationConfig:
        """The webhook, with its secrets, as a new object."""
        info = self._config.authentication
        return replace(self._config, authentication=None if info is None else replace(info))

    def bind(self, task: Task | str) -> None:
        """Say which task it is, once it is known from the agent's answer. What came before for another is no more."""
        self.task_id = task if isinstance(task, str) else task.id

    def takes(self, task_id: str) -> bool:
        """Whether a notification may be about this task."""
        return not self.task_id or self.task_id == task_id

    def tell(self, notification: Notification) -> None:
        """Take a genuine notification."""
        self.task_id = self.task_id or notification.task_id
        self.latest = notification
        if not isinstance(notification.event, TaskArtifactUpdateEvent):
            self._news.set()

    async def news(self, within: float | None = None) -> bool:
        """Wait until the task is told to have another status, for so many seconds at most (None: without end).

        False when the time ran out. What came since the last call counts. One caller at a time.
        """
        try:
            async with asyncio.timeout(within):
                await self._news.wait()
        except TimeoutError:
            return False
        self._news.clear()
        return True

    def close(self) -> None:
        """Take no more notifications of it."""
        self._forget()

    def __enter__(self) -> Expected:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def new_token() -> str:
    """A secret that nobody guesses."""
    return secrets.token_urlsafe(32)
