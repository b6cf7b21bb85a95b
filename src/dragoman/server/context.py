"""Context: the verbs of a handler."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from copy import copy
from types import TracebackType
from typing import Any

import msgspec

from dragoman.errors import DragomanError
from dragoman.extensions import Trace, trace_of
from dragoman.model import (
    Artifact,
    Message,
    Part,
    Role,
    Task,
    TaskArtifactUpdateEvent,
    TaskState,
    TaskStatus,
    TaskStatusUpdateEvent,
)
from dragoman.ports.agent import Turn
from dragoman.ports.operations import Caller
from dragoman.protocol.lifecycle import copy_artifact, is_terminal
from dragoman.server.authorization import Answer, Authorization, OtherAgent
from dragoman.server.content import Content, data_of, files_of, text_of, to_artifacts, to_data, to_parts
from dragoman.server.following import Following


class Reject(DragomanError):
    """Raised by a handler: the agent declines. The task becomes REJECTED with this message."""


class Fail(DragomanError):
    """Raised by a handler: the work failed, and the caller may know why. The task becomes FAILED with this message."""


class Reply:
    """A direct answer without a task: for ``@agent.message`` and ``@agent.reply``. Spec: SEND-02, DATA-21."""

    __slots__ = ("content", "extensions", "metadata")

    def __init__(
        self, content: Content, *, metadata: Mapping[str, Any] | None = None, extensions: Sequence[str] = ()
    ) -> None:
        self.content = content
        self.metadata = metadata
        self.extensions = extensions


def filled_message(message: Message, turn: Turn) -> Message:
    """A copy of a message that an author wrote, with the ids and the role that it lacks. Spec: DATA-19, DATA-21."""
    own = copy(message)
    own.message_id = message.message_id or turn.new_id()
    own.task_id = message.task_id or turn.task_id
    own.context_id = message.context_id or turn.context_id
    if message.role is Role.UNSPECIFIED:
        own.role = Role.AGENT
    return own


class Context:
    """What a handler is given: the message, the task, and the verbs with which it works on the task.

    One context serves one run of the handler, in its own asyncio task.
    """

    __slots__ = ("_artifacts", "_asked", "_authorized", "_over", "_recorded", "_turn")

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._asked = 0
        self._authorized = 0
        self._over = False
        self._artifacts = 0
        self._recorded = len(turn.answers) if turn.recovered else 0

    # What came.

    @property
    def message(self) -> Message:
        """The message that began this run."""
        return self._turn.request.message

    @property
    def text(self) -> str:
        """The text of that message."""
        return text_of(self._turn.request.message)

    @property
    def data(self) -> Any:
        """The first data part of that message, or None."""
        return data_of(self._turn.request.message)

    @property
    def files(self) -> Sequence[Part]:
        """The parts of that message that are files (``raw`` or ``url``)."""
        return files_of(self._turn.request.message)

    @property
    def task(self) -> Task:
        """A copy of the task as this run has made it so far."""
        return self._turn.task

    @property
    def task_id(self) -> str:
        """The task's id; empty before a task is open."""
        return self._turn.task_id

    @property
    def context_id(self) -> str:
        """The conversation this belongs to."""
        return self._turn.context_id

    @property
    def history(self) -> Sequence[Message]:
        """The exchange so far, oldest first; before a task is open, the message alone."""
        return self._turn.task.history if self._turn.task_id else [self.message]

    @property
    def caller(self) -> Caller:
        """Who called."""
        return self._turn.call.caller

    @property
    def tenant(self) -> str:
        """The tenant that the call named, or empty."""
        return self._turn.call.tenant or self._turn.request.tenant

    @property
    def metadata(self) -> Mapping[str, Any]:
        """Metadata of the request, else that of the message."""
        return self._turn.request.metadata or self._turn.request.message.metadata or {}

    @property
    def extensions(self) -> Sequence[str]:
        """URIs of the extensions that are active for this call."""
        return self._turn.call.activated

    @property
    def parameters(self) -> Mapping[str, str]:
        """What came beside the call: headers, or metadata of gRPC, keys in lower case. Its ``repr`` hides values.

        Of a run after a crash they are those of the call that began it anew, if there was one.
        """
        return self._turn.call.parameters

    @property
    def trace(self) -> Trace | None:
        """The trace that the call belongs to, if the extension for trace context is active for it."""
        return trace_of(self._turn.call)

    @property
    def accepted_output_modes(self) -> Sequence[str]:
        """Media types that the caller takes; empty: any. Spec: SEND-16."""
        configuration = self._turn.request.configuration
        return configuration.accepted_output_modes if configuration is not None else ()

    @property
    def recovered(self) -> bool:
        """True when this task was begun by an earlier run, which was lost with its process or put aside."""
        return self._turn.recovered

    # What is done.

    async def update(self, content: Content = None, *, metadata: Mapping[str, Any] | None = None) -> None:
        """Report progress: the task is WORKING, with ``content`` as its status message. Spec: STREAM-07.

        A run that repeats an earlier one does not report again what came before questions that are answered already.
        """
        if self._asked < self._recorded:
            return
        await self.status(TaskState.WORKING, content, metadata=metadata)

    async def status(
        self, state: TaskState, content: Content = None, *, metadata: Mapping[str, Any] | None = None
    ) -> None:
        """Move the task to ``state``. Raises InvalidAgentResponseError when that state may not follow."""
        await self._turn.open()
        self._publish_status(state, content, metadata)
        await self._turn.settle()

    def _publish_status(
        self, state: TaskState, content: Content = None, metadata: Mapping[str, Any] | None = None
    ) -> None:
        turn = self._turn
        message = None if content is None else self.agent_message(content)
        turn.publish(
            TaskStatusUpdateEvent(
                task_id=turn.task_id,
                context_id=turn.context_id,
                status=TaskStatus(state=state, message=message, timestamp=turn.now()),
                metadata=None if metadata is None else dict(metadata),
            )
        )
        self._over = is_terminal(state)

    def agent_message(self, content: Content) -> Message:
        """A message of the agent with fresh id and the ids of this task and context. Spec: DATA-19, DATA-21.

        A Message is copied, and gets what it lacks of these.
        """
        if isinstance(content, Message):
            return filled_message(content, self._turn)
        return Message(
            message_id=self._turn.new_id(),
            context_id=self._turn.context_id,
            task_id=self._turn.task_id,
            role=Role.AGENT,
            parts=to_parts(content),
        )

    async def artifact(
        self,
        content: Content,
        *,
        name: str = "",
        description: str = "",
        media_type: str = "",
        filename: str = "",
        artifact_id: str = "",
        metadata: Mapping[str, Any] | None = None,
        extensions: Sequence[str] = (),
        append: bool = False,
        last_chunk: bool = True,
    ) -> str:
        """Publish an artifact, or with ``append`` a further piece of one; returns its id. Spec: DATA-24, DATA-26.

        ``content`` as for ``return``; ``media_type`` and ``filename`` describe it when it is not made of Parts. Without
        ``artifact_id`` the artifacts of a run are numbered, so that a repeated run replaces what it made before.
        """
        await self._turn.open()
        if isinstance(content, Artifact):
            self._publish_artifact(copy_artifact(content), append, last_chunk)
            await self._turn.settle()
            return content.artifact_id
        artifact = Artifact(
            artifact_id=artifact_id or self.next_artifact_id(),
            name=name,
            description=description,
            parts=to_parts(content, media_type=media_type, filename=filename),
            metadata=None if metadata is None else dict(metadata),
            extensions=list(extensions),
        )
        self._publish_artifact(artifact, append, last_chunk)
        await self._turn.settle()
        return artifact.artifact_id

    async def append_text(self, artifact_id: str, text: str) -> None:
        """Publish a further piece of text of an artifact; what ``yield`` does, and nothing more."""
        turn = self._turn
        turn.publish(
            TaskArtifactUpdateEvent(
                task_id=turn.task_id,
                context_id=turn.context_id,
                artifact=Artifact(artifact_id=artifact_id, parts=[Part(text=text)]),
                append=True,
            )
        )
        await turn.settle()

    def next_artifact_id(self) -> str:
        """The id of the run's next artifact: the same in every run."""
        self._artifacts += 1
        return f"artifact-{self._artifacts}"

    def _publish_artifact(self, artifact: Artifact, append: bool, last_chunk: bool) -> None:
        turn = self._turn
        turn.publish(
            TaskArtifactUpdateEvent(
                task_id=turn.task_id,
                context_id=turn.context_id,
                artifact=artifact,
                append=append,
                last_chunk=last_chunk,
            )
        )

    def artifact_stream(
        self, *, name: str = "", description: str = "", media_type: str = "", artifact_id: str = ""
    ) -> ArtifactStream:
        """An artifact that is written in pieces: ``async with ctx.artifact_stream(name="report") as out``."""
        return ArtifactStream(self, name, description, media_type, artifact_id or self.next_artifact_id())

    async def ask(self, question: Content, *, timeout: float | None = None) -> Answer:
        """Ask the caller: the task is INPUT_REQUIRED until the next message comes, which is the answer.

        Raises the builtin TimeoutError after ``timeout`` seconds (default: no limit). Survives a restart: the handler
        is then run again from its beginning, and the n-th ``ask`` of that run returns the answer recorded for it at
        once. A message that came before it was asked for is taken as the answer. Spec: STRM-12, CTX-16.
        """
        await self._turn.open()
        number = self._asked + 1
        if len(self._turn.answers) < number:
            self._publish_status(TaskState.INPUT_REQUIRED, question)
        answer = await self._turn.answer(number, timeout)
        self._asked = number
        return Answer(answer)

    async def authorize(self, content: Content, *, timeout: float | None = None) -> Authorization:
        """Ask for an authorization: the task is AUTH_REQUIRED; ``content`` says what is needed and where to give it.

        Ends when the application hands it in (:meth:`App.grant <dragoman.App.grant>`), and then is ``granted``; or with
        the caller's next message, which grants nothing: ask again, or give up. Streams stay open. What was handed in is
        not kept: a handler that is run again asks for it anew. Raises the builtin TimeoutError after ``timeout``
        seconds. Spec: INTASK-01 to INTASK-05, INTASK-10, INTASK-11.
        """
        turn = self._turn
        await turn.open()
        self._authorized += 1
        key, number = f"dragoman.granted.{self._authorized}", self._asked + 1
        lost = turn.recovered and await turn.memo(key) is not None  # it was granted to an earlier run
        if lost or len(turn.answers) < number:
            self._publish_status(TaskState.AUTH_REQUIRED, content)
        came = await turn.authorization(None if lost else number, fresh=lost, timeout=timeout)
        if isinstance(came, Message):
            self._asked = number
        elif not lost:
            await turn.remember(key, b"true")
        return Authorization(came)

    async def follow(self, client: OtherAgent, task: Task | str) -> Any:
        """Follow a task that another agent does for this one; returns what ``client.wait(task)`` does.

        When that task waits for an authorization, this one does, with the same words, and goes on when the other does;
        what the caller says meanwhile is passed on to the other agent, and no credential passes through here.
        Spec: INTASK-06, INTASK-07.
        """
        await self._turn.open()
        following = Following(self._turn, client, task, self._publish_status, self._asked)
        try:
            return await following.run()
        finally:
            self._asked = following.asked
            await self._turn.settle()

    async def once(self, key: str, function: Callable[[], Awaitable[Any]]) -> Any:
        """Do something that must not be done twice for this task: its result is kept under ``key``.

        A later run gets the kept result and ``function`` is not called. The result must be JSON data and comes back as
        such, the first time too. A crash between the end of ``function`` and the keeping repeats it.
        """
        await self._turn.open()
        kept = await self._turn.memo(key)
        if kept is None:
            result = await function()
            kept = await self._turn.remember(key, msgspec.json.encode(to_data(result)))
        return msgspec.json.decode(kept)

    # How it ends (called by the handler's adapter).

    async def finish(self, result: Content) -> None:
        """Publish what the handler returned and complete the task, unless the handler has ended it itself."""
        if self._over and result is None:
            return
        if result is not None:
            for item in to_artifacts(result):
                artifact = copy_artifact(item) if isinstance(item, Artifact) else self._whole(item)
                self._publish_artifact(artifact, append=False, last_chunk=True)
        self._publish_status(TaskState.COMPLETED)
        await self._turn.settle()

    def _whole(self, parts: list[Part]) -> Artifact:
        return Artifact(artifact_id=self.next_artifact_id(), parts=parts)

    async def end(self, state: TaskState, text: str) -> None:
        """End the task in ``state`` with a message for the caller."""
        await self.status(state, text or None)


class ArtifactStream:
    """One artifact, written in pieces; each :meth:`write` is seen at once. Spec: DATA-26, STREAM-07."""

    __slots__ = ("_context", "_description", "_media_type", "_name", "_written", "artifact_id")

    def __init__(self, context: Context, name: str, description: str, media_type: str, artifact_id: str) -> None:
        self.artifact_id = artifact_id
        self._context = context
        self._name = name
        self._description = description
        self._media_type = media_type
        self._written = False

    async def write(self, content: Content, *, last: bool = False) -> None:
        """Add a piece (text, bytes, Part …); ``last`` marks the end of the artifact."""
        first, self._written = not self._written, True
        await self._context.artifact(
            content,
            artifact_id=self.artifact_id,
            name=self._name if first else "",
            description=self._description if first else "",
            media_type=self._media_type,
            append=not first,
            last_chunk=last,
        )

    async def __aenter__(self) -> ArtifactStream:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing to close: an artifact without a last chunk is complete when its task is (AMB-57)."""
