"""The life of a task as a pure state machine.

Theory. A task is in one of eight states. Three classes: *active* (SUBMITTED, WORKING), *interrupted*
(INPUT_REQUIRED, AUTH_REQUIRED: the next move is the client's) and *terminal* (COMPLETED, FAILED, CANCELED, REJECTED).
Two kinds of input meet it:

* events of the agent move it: any state that is not terminal may lead to any other, except back to SUBMITTED and
  to UNSPECIFIED; a terminal state has no successor;
* commands of a client are allowed or refused by the state alone (table ``REFUSALS``).

What an event does to the task is the fold :class:`TaskFold`; the same fold serves the runtime, the stores and
the client, so that all of them end with the same task.

Spec: §4.1.3, STRM-09, STRM-10, DATA-24 to DATA-26, SEND-06, CANCEL-02, SUB-03, AMB-11, AMB-12, AMB-57.
"""

from __future__ import annotations

import enum
from typing import Protocol

from msgspec import UNSET

from dragoman.errors import (
    A2AError,
    InvalidAgentResponseError,
    TaskNotCancelableError,
    UnsupportedOperationError,
)
from dragoman.model import (
    Artifact,
    Message,
    Part,
    Role,
    StreamResponse,
    Task,
    TaskArtifactUpdateEvent,
    TaskState,
    TaskStatus,
    TaskStatusUpdateEvent,
)

ACTIVE = frozenset({TaskState.SUBMITTED, TaskState.WORKING})
INTERRUPTED = frozenset({TaskState.INPUT_REQUIRED, TaskState.AUTH_REQUIRED})
TERMINAL = frozenset({TaskState.COMPLETED, TaskState.FAILED, TaskState.CANCELED, TaskState.REJECTED})
SETTLED = INTERRUPTED | TERMINAL
STATES = ACTIVE | SETTLED


def is_terminal(state: TaskState | int) -> bool:
    """Whether nothing can follow. An unknown number is not terminal (Spec: AMB-42)."""
    return state in TERMINAL


def is_settled(state: TaskState | int) -> bool:
    """Whether a blocking caller gets its answer: terminal or interrupted. Spec: SEND-08."""
    return state in SETTLED


def may_follow(state: TaskState, successor: TaskState | int) -> bool:
    """Whether an event of the agent may lead from ``state`` to ``successor``. Spec: STRM-09."""
    if state in TERMINAL or successor not in STATES:
        return False
    return successor is not TaskState.SUBMITTED or state is TaskState.SUBMITTED


class Command(enum.Enum):
    """What a client may ask of an existing task, as far as the state matters."""

    MESSAGE = "message"
    CANCEL = "cancel"
    SUBSCRIBE = "subscribe"


REFUSALS: dict[tuple[Command, TaskState], type[A2AError]] = {
    **{(Command.MESSAGE, state): UnsupportedOperationError for state in TERMINAL},
    **{(Command.SUBSCRIBE, state): UnsupportedOperationError for state in TERMINAL},
    **{(Command.CANCEL, state): TaskNotCancelableError for state in TERMINAL - {TaskState.CANCELED}},
}
"""Commands that a state refuses, and with what. Canceling a CANCELED task is no error (AMB-12)."""

_REFUSAL_TEXTS = {
    Command.MESSAGE: "The task is {state} and takes no more messages; start a new one in the same context",
    Command.SUBSCRIBE: "The task is {state}; there is nothing to subscribe to, use GetTask",
    Command.CANCEL: "The task is {state} and cannot be canceled",
}


def check_command(command: Command, state: TaskState, task_id: str) -> None:
    """Raise the error with which ``state`` refuses ``command``, if it does."""
    refusal = REFUSALS.get((command, state))
    if refusal is not None:
        text = _REFUSAL_TEXTS[command].format(state=state.value)
        raise refusal(text, metadata={"taskId": task_id, "state": state.value})


def state_after_message(state: TaskState) -> TaskState:
    """The state of a task once it has taken a client's message: it goes on, unless it never started."""
    return TaskState.SUBMITTED if state is TaskState.SUBMITTED else TaskState.WORKING


# What an agent may publish.


def check_event(event: StreamResponse, *, task_id: str, context_id: str, state: TaskState) -> TaskState:
    """Check an event that the agent wants to publish on a task; return the state after it.

    Raises InvalidAgentResponseError that names the violation: an event after the end, a foreign task or context id, an
    artifact or message without parts, a part without exactly one content, a state that may not follow.
    Spec: AMB-37, DATA-12, DATA-14, DATA-24, DATA-25, STRM-09, STREAM-02.
    """
    if state in TERMINAL:
        raise InvalidAgentResponseError(f"An event came after the task had ended ({state.value})")
    if event.artifact_update is not None:
        _check_ids(event.artifact_update, task_id, context_id)
        _check_artifact(event.artifact_update.artifact)
        return state
    if event.status_update is not None:
        _check_ids(event.status_update, task_id, context_id)
        _check_status_message(event.status_update.status.message, task_id, context_id)
        return _check_status(event.status_update.status, state)
    raise InvalidAgentResponseError("A task's stream takes status and artifact updates only")


def _check_ids(event: TaskStatusUpdateEvent | TaskArtifactUpdateEvent, task_id: str, context_id: str) -> None:
    if event.task_id != task_id:
        raise InvalidAgentResponseError(f"An event names another task than {task_id}")
    if event.context_id != context_id:
        raise InvalidAgentResponseError(f"An event names another context than that of task {task_id}")


def _check_artifact(artifact: Artifact) -> None:
    if not artifact.artifact_id:
        raise InvalidAgentResponseError("An artifact has no artifactId")
    check_parts(artifact.parts, "An artifact")


def _check_status(status: TaskStatus, state: TaskState) -> TaskState:
    successor = status.state
    if not isinstance(successor, TaskState) or not may_follow(state, successor):
        name = successor.value if isinstance(successor, TaskState) else successor
        raise InvalidAgentResponseError(f"State {name} may not follow {state.value}")
    return successor


def _check_status_message(message: Message | None, task_id: str, context_id: str) -> None:
    if message is None:
        return
    check_agent_message(message)
    if message.context_id != context_id or message.task_id not in ("", task_id):
        raise InvalidAgentResponseError(f"A message of task {task_id} names another task, or not its context")


def check_agent_message(message: Message) -> None:
    """Check a message that the agent wants to send. Raises InvalidAgentResponseError. Spec: DATA-19, DATA-20."""
    if not message.message_id:
        raise InvalidAgentResponseError("A message of the agent has no messageId")
    if message.role is not Role.AGENT:
        raise InvalidAgentResponseError("A message of the agent must have the role ROLE_AGENT")
    check_parts(message.parts, "A message of the agent")


def check_parts(parts: list[Part], what: str) -> None:
    """Check that there are parts, each with exactly one content. Spec: DATA-14, DATA-17, AMB-41."""
    if not parts:
        raise InvalidAgentResponseError(f"{what} has no parts")
    for part in parts:
        if content_count(part) != 1:
            raise InvalidAgentResponseError(f"{what} has a part without exactly one of text, raw, url, data")


def content_count(part: Part) -> int:
    """How many of the four contents a part has; ``data: null`` is one. Spec: DATA-17, AMB-48."""
    return (part.text is not None) + (part.raw is not None) + (part.url is not None) + (part.data is not UNSET)


# What an event does to a task.


class LogRecord(Protocol):
    """What the fold needs of a record: the event, and the message that joined the history with it."""

    @property
    def event(self) -> StreamResponse: ...

    @property
    def message(self) -> Message | None: ...


class TaskFold:
    """The fold of a log: apply events in order, read ``task``.

    It owns ``task`` and changes it in place; messages and parts that it is given are taken as they are and never
    changed, artifacts are copied, since they grow. An artifact update costs the same however large the task is.
    """

    __slots__ = ("_artifacts", "_said", "task")

    def __init__(self, task: Task) -> None:
        self._start(task)

    def _start(self, task: Task) -> None:
        self.task = task
        self._artifacts = {artifact.artifact_id: artifact for artifact in task.artifacts}
        self._said = {message.message_id for message in task.history if message.role is Role.AGENT}

    def apply(self, record: LogRecord) -> None:
        """Apply one record of a log. Record 1, which brings the task itself, is where a fold starts."""
        self.apply_event(record.event)
        if record.message is not None:
            self.task.history.append(record.message)

    def apply_event(self, event: StreamResponse) -> None:
        """Apply one event of a stream; a Task replaces everything, a Message changes nothing. Spec: AMB-04."""
        if event.artifact_update is not None:
            self._apply_artifact(event.artifact_update)
        elif event.status_update is not None:
            self._apply_status(event.status_update)
        elif event.task is not None:
            self._start(copy_task(event.task))

    def _apply_status(self, update: TaskStatusUpdateEvent) -> None:
        task = self.task
        said = task.status.message
        if said is not None and said.message_id not in self._said:
            self._said.add(said.message_id)
            task.history.append(said)
        task.status = update.status
        if update.metadata:
            task.metadata = {**(task.metadata or {}), **update.metadata}

    def _apply_artifact(self, update: TaskArtifactUpdateEvent) -> None:
        piece = update.artifact
        known = self._artifacts.get(piece.artifact_id)
        if known is None:
            self._artifacts[piece.artifact_id] = artifact = copy_artifact(piece)
            self.task.artifacts.append(artifact)
        elif update.append:
            _extend_artifact(known, piece)
        else:
            _replace_artifact(known, piece)


def _extend_artifact(known: Artifact, piece: Artifact) -> None:
    known.parts.extend(piece.parts)
    known.name = piece.name or known.name
    known.description = piece.description or known.description
    if piece.metadata:
        known.metadata = {**(known.metadata or {}), **piece.metadata}
    if piece.extensions:
        known.extensions = [*known.extensions, *(e for e in piece.extensions if e not in known.extensions)]


def _replace_artifact(known: Artifact, piece: Artifact) -> None:
    known.parts = list(piece.parts)
    known.name = piece.name
    known.description = piece.description
    known.metadata = piece.metadata
    known.extensions = list(piece.extensions)


def apply_record(task: Task, record: LogRecord) -> None:
    """Apply one record to a task in place. For many records keep a :class:`TaskFold`."""
    TaskFold(task).apply(record)


def apply_event(task: Task, event: StreamResponse) -> None:
    """Apply one event that is not a Task to a task in place. For many events keep a :class:`TaskFold`."""
    TaskFold(task).apply_event(event)


def copy_artifact(artifact: Artifact) -> Artifact:
    """A copy with lists of its own; the parts are shared, since nobody changes them."""
    return Artifact(
        artifact_id=artifact.artifact_id,
        name=artifact.name,
        description=artifact.description,
        parts=list(artifact.parts),
        metadata=artifact.metadata,
        extensions=list(artifact.extensions),
    )


def copy_task(task: Task) -> Task:
    """A copy that later events of the original do not reach; messages and parts are shared."""
    return Task(
        id=task.id,
        context_id=task.context_id,
        status=task.status,
        artifacts=[copy_artifact(artifact) for artifact in task.artifacts],
        history=list(task.history),
        metadata=task.metadata,
    )


def with_history(task: Task, length: int | None) -> Task:
    """The task with the ``length`` most recent messages (None: all). Spec: SEND-13 to SEND-15, GET-02."""
    if length is None or len(task.history) <= length:
        return task
    return Task(
        id=task.id,
        context_id=task.context_id,
        status=task.status,
        artifacts=task.artifacts,
        history=task.history[-length:] if length else [],
        metadata=task.metadata,
    )
