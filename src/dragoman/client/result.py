"""What came of a run: :class:`Result`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import UNSET

from dragoman.model import Artifact, Message, Part, Task, TaskState
from dragoman.protocol.lifecycle import INTERRUPTED


def text_of(parts: Iterable[Part]) -> str:
    """The text parts, joined as they are."""
    return "".join(part.text for part in parts if part.text is not None)


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of ``Client.run`` or ``Client.wait``.

    * ``task``: the task as it is now, None when the agent answered with a message only;
    * ``message``: the agent's direct answer, None when there is a task;
    * ``messages``: messages that came beside a task, which no agent should send but some do (Spec: AMB-04).
    """

    task: Task | None = None
    message: Message | None = None
    messages: tuple[Message, ...] = ()

    @property
    def state(self) -> TaskState | int | None:
        """The task's state, None when there is no task."""
        return self.task.status.state if self.task is not None else None

    @property
    def ok(self) -> bool:
        """Whether the agent did it: the task is COMPLETED, or the answer was a message."""
        return self.message is not None if self.task is None else self.task.status.state is TaskState.COMPLETED

    @property
    def waiting(self) -> bool:
        """Whether the task waits for the caller: INPUT_REQUIRED or AUTH_REQUIRED."""
        return self.task is not None and self.task.status.state in INTERRUPTED

    @property
    def artifacts(self) -> list[Artifact]:
        """The task's artifacts, empty when there is no task."""
        return self.task.artifacts if self.task is not None else []

    @property
    def parts(self) -> list[Part]:
        """The content: of all artifacts, else of what the agent said."""
        found = [part for artifact in self.artifacts for part in artifact.parts]
        if found:
            return found
        said = self.message or (self.task.status.message if self.task is not None else None)
        return said.parts if said is not None else []

    @property
    def text(self) -> str:
        """The text of the artifacts, one to a paragraph; without any, the text of what the agent said."""
        texts = [text_of(artifact.parts) for artifact in self.artifacts]
        return "\n\n".join(text for text in texts if text) or self.question

    @property
    def question(self) -> str:
        """The text of the answer, or of the status: what the agent asks for, or why it failed."""
        said = self.message or (self.task.status.message if self.task is not None else None)
        return text_of(said.parts) if said is not None else ""

    @property
    def data(self) -> Any:
        """The first data part's value, None when there is none."""
        return next((part.data for part in self.parts if part.data is not UNSET), None)

    @property
    def files(self) -> list[Part]:
        """The parts that are bytes or addresses."""
        return [part for part in self.parts if part.raw is not None or part.url is not None]

    @property
    def task_id(self) -> str:
        """Id of the task, or empty."""
        return self.task.id if self.task is not None else ""

    @property
    def context_id(self) -> str:
        """Id of the conversation, or empty when the agent named none."""
        if self.task is not None:
            return self.task.context_id
        return self.message.context_id if self.message is not None else ""
