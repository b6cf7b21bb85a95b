"""Authorization: how a handler's question for one ended, and what it needs of another agent to pass one on.

Spec: §7.6, INTASK-03 to INTASK-06, INTASK-10.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from dragoman.model import Message, Part, Role, Task, TaskStatus, TaskStatusUpdateEvent
from dragoman.ports.agent import Grant
from dragoman.server.content import data_of, files_of, text_of


class Answer:
    """What the caller said to a question."""

    __slots__ = ("message",)

    def __init__(self, message: Message) -> None:
        self.message = message

    @property
    def text(self) -> str:
        """Its text."""
        return text_of(self.message)

    @property
    def data(self) -> Any:
        """Its first data part, or None."""
        return data_of(self.message)

    @property
    def files(self) -> list[Part]:
        """Its files."""
        return list(files_of(self.message))

    def __str__(self) -> str:
        return self.text


class Authorization(Answer):
    """What came when an authorization was asked for: it was ``granted`` out of band, with a ``value``, or the caller
    sent a message, which grants nothing by itself and may be anything: a refusal, a question, a correction.

    ``value`` is what the application handed in (see :meth:`App.grant <dragoman.App.grant>`), such as a token. It is for
    this question only (Spec: INTASK-11), is kept nowhere, and ``repr`` hides it.
    """

    __slots__ = ("granted", "value")

    def __init__(self, came: Message | Grant) -> None:
        granted = isinstance(came, Grant)
        super().__init__(_NOTHING_SAID if isinstance(came, Grant) else came)
        self.granted = granted
        self.value: Any = came.value if isinstance(came, Grant) else None

    def __bool__(self) -> bool:
        return self.granted

    def __repr__(self) -> str:
        return f"Authorization(granted={self.granted})"


_NOTHING_SAID = Message(message_id="", role=Role.USER, parts=[])


class OtherAgent(Protocol):
    """What :meth:`Context.follow` needs of a client; :class:`dragoman.Client` has it."""

    async def wait(self, task: Task | str, /, *, on_event: Callable[[Any], object] | None = None) -> Any:
        """Follow a task until it is over or asks for input, through AUTH_REQUIRED."""
        ...

    async def send(self, content: Any, /, *, wait: bool, task_id: str, message_id: str) -> Any:
        """Send a message to a task."""
        ...


def status_of(event: Any) -> TaskStatus | None:
    """The status that an event of a client tells of."""
    return event.status if isinstance(event, Task | TaskStatusUpdateEvent) else None
