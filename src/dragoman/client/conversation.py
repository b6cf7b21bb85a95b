"""A conversation: turns that belong together, without keeping ids by hand.

The first turn names no context, since the agent makes it (Spec: CTX-05, B161). A task that is open, above all one
that asked for input, is gone on with: same task, same context (Spec: CTX-16, B095). After the end of a task only
the context is kept.
"""

from __future__ import annotations

from typing import Protocol, Unpack

from dragoman.client.content import Content
from dragoman.client.result import Result
from dragoman.client.running import OnEvent
from dragoman.client.settings import MessageOptions
from dragoman.client.streams import ClientStream
from dragoman.model import Message, StreamResponse, Task, TaskState
from dragoman.protocol.lifecycle import is_terminal


class Speaker(Protocol):
    """What a conversation needs of a client."""

    async def send(
        self, content: Content, *, wait: bool = True, **options: Unpack[MessageOptions]
    ) -> Task | Message: ...

    def stream(self, content: Content, **options: Unpack[MessageOptions]) -> ClientStream: ...

    async def run(
        self, content: Content, *, on_event: OnEvent | None = None, **options: Unpack[MessageOptions]
    ) -> Result: ...


class Conversation:
    """Turns with one agent. One turn at a time.

    ``context_id`` is that of the conversation, ``task_id`` the task that the next turn goes on with; both are empty
    as long as the agent has not named them, and may be set to take up an earlier conversation.
    """

    def __init__(self, client: Speaker, *, context_id: str = "", task_id: str = "") -> None:
        self._client = client
        self.context_id = context_id
        self.task_id = task_id

    async def send(self, content: Content, *, wait: bool = True, **options: Unpack[MessageOptions]) -> Task | Message:
        """The next turn, as ``Client.send``."""
        answer = await self._client.send(content, wait=wait, **self._placed(options))
        if isinstance(answer, Task):
            self._note_task(answer)
        else:
            self._note_message(answer)
        return answer

    def stream(self, content: Content, **options: Unpack[MessageOptions]) -> ClientStream:
        """The next turn, as ``Client.stream``; read it to its end."""
        stream = self._client.stream(content, **self._placed(options))
        stream.watch(self._note)
        return stream

    async def run(
        self, content: Content, *, on_event: OnEvent | None = None, **options: Unpack[MessageOptions]
    ) -> Result:
        """The next turn, as ``Client.run``."""
        result = await self._client.run(content, on_event=on_event, **self._placed(options))
        if result.task is not None:
            self._note_task(result.task)
        elif result.message is not None:
            self._note_message(result.message)
        return result

    def _placed(self, options: MessageOptions) -> MessageOptions:
        """The options with the conversation's ids, where the caller names none."""
        if options.get("task") is not None or options.get("task_id") or options.get("context_id"):
            return options
        placed = options.copy()
        placed["task_id"] = self.task_id
        placed["context_id"] = self.context_id
        return placed

    def _note(self, response: StreamResponse) -> None:
        if response.task is not None:
            self._note_task(response.task)
        elif response.message is not None:
            self._note_message(response.message)
        elif response.status_update is not None:
            update = response.status_update
            self._note_state(update.task_id, update.context_id, update.status.state)

    def _note_task(self, task: Task) -> None:
        self._note_state(task.id, task.context_id, task.status.state)

    def _note_message(self, message: Message) -> None:
        self.context_id = message.context_id or self.context_id

    def _note_state(self, task_id: str, context_id: str, state: TaskState | int) -> None:
        self.context_id = context_id or self.context_id
        self.task_id = "" if is_terminal(state) else task_id
