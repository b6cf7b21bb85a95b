"""What the runtime and the code of an agent know of each other."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Literal, Protocol

from dragoman.model import (
    Message,
    SendMessageRequest,
    Task,
    TaskArtifactUpdateEvent,
    TaskStatusUpdateEvent,
    Timestamp,
)
from dragoman.ports.operations import CallContext

Opening = Literal["task", "reply", "decide"]


class Grant:
    """What was handed in for an authorization that a task waited for. Kept in memory only; its ``repr`` hides it."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __repr__(self) -> str:
        return "Grant(…)"


class Turn(ABC):
    """One run of an agent's code: what it was asked, and the verbs with which it answers.

    Used by one run only. A turn of an agent that decides (``Handler.opening``) has no task before :meth:`open`.
    """

    request: SendMessageRequest
    """The message that began this run, with its configuration and metadata."""
    call: CallContext
    """Caller, tenant, service parameters and active extensions of that call."""
    task_id: str
    """Empty as long as there is no task."""
    context_id: str
    """Always set. Spec: DATA-21, CTX-01."""
    recovered: bool
    """True when an earlier run of the same task was lost with its process, or parked."""

    @abstractmethod
    async def open(self) -> None:
        """Create the task, if there is none yet. Spec: SEND-02, STREAM-06."""

    @property
    @abstractmethod
    def task(self) -> Task:
        """A copy of the task with all that this run has published so far."""

    @property
    @abstractmethod
    def answers(self) -> Sequence[Message]:
        """The user's messages of this task after the first, in order."""

    @abstractmethod
    def publish(self, event: TaskStatusUpdateEvent | TaskArtifactUpdateEvent) -> None:
        """Add an event to the task's log. It is seen by others once it is stored.

        Raises InvalidAgentResponseError, and changes nothing, when the event breaks a rule of the protocol.
        """

    @abstractmethod
    async def settle(self) -> None:
        """Wait while more than a bounded number of published events are not stored yet; usually returns at once."""

    @abstractmethod
    async def answer(self, number: int, timeout: float | None = None) -> Message:
        """Wait for the ``number``-th of ``answers`` (from 1). Raises builtin TimeoutError after ``timeout`` s."""

    @abstractmethod
    async def authorization(self, number: int | None, *, fresh: bool, timeout: float | None = None) -> Message | Grant:
        """Wait for what is handed in out of band, or for the ``number``-th answer (None: for no answer).

        ``fresh``: what was handed in before this call does not count. Raises builtin TimeoutError after ``timeout`` s.
        Spec: INTASK-03, INTASK-05.
        """

    @abstractmethod
    async def heard(self, number: int) -> Message:
        """Wait for the ``number``-th of ``answers`` while the work goes on: unlike :meth:`answer`, this is no pause."""

    @abstractmethod
    async def memo(self, key: str) -> bytes | None:
        """What :meth:`remember` kept under this key of the task, or None."""

    @abstractmethod
    async def remember(self, key: str, value: bytes) -> bytes:
        """Keep a value for later runs of this task; the first one wins and is returned."""

    @abstractmethod
    def now(self) -> Timestamp:
        """The moment, by the runtime's clock."""

    @abstractmethod
    def new_id(self) -> str:
        """A fresh unique id."""


class Handler(Protocol):
    """An agent's code, as the runtime runs it.

    * ``opening``: ``"task"`` opens the task before the run, ``"reply"`` never, ``"decide"`` leaves it to the run;
    * ``resident``: True when one run takes all messages of its task (by :meth:`Turn.answer`), False when each
      message starts a run of its own;
    * ``rerun``: True when a run that was lost with its process may be started again. Spec: design, invariant 7.
    """

    opening: Opening
    resident: bool
    rerun: bool

    async def run(self, turn: Turn) -> Message | None:
        """Do the work. A Message is a direct reply and allowed only where no task was opened.

        CancelledError means: the task was canceled, or the process is going down. Other exceptions fail the task.
        """
        ...
