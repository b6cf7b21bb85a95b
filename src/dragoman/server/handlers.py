"""Handlers: from a user's function to what the runtime runs.

Four shapes. A *task* handler works on a task that is open from the first moment; a *reply* handler answers with a
direct message; a *message* handler decides by what it does first; an *events* handler yields the protocol's own
events and is run once for each message.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator
from contextlib import aclosing
from copy import copy
from typing import Any

from dragoman.errors import (
    ConfigurationError,
    InternalError,
    InvalidAgentResponseError,
    UnsupportedOperationError,
)
from dragoman.extensions import current_trace, trace_of, tracing
from dragoman.model import (
    Artifact,
    Message,
    StreamResponse,
    Task,
    TaskArtifactUpdateEvent,
    TaskState,
    TaskStatus,
    TaskStatusUpdateEvent,
)
from dragoman.ports.agent import Opening, Turn
from dragoman.protocol.lifecycle import copy_artifact
from dragoman.server.context import Context, Fail, Reject, Reply, filled_message
from dragoman.server.threads import call_in_thread

Function = Callable[[Context], Any]
_END = object()


async def _traced(turn: Turn, work: Callable[[Turn], Awaitable[Message | None]]) -> Message | None:
    """Do the work of a turn within the trace of its call."""
    trace = trace_of(turn.call)
    if trace is current_trace():  # none, for most
        return await work(turn)
    with tracing(trace):
        return await work(turn)


class FunctionHandler:
    """Runs a task, reply or message function; implements :class:`~dragoman.ports.agent.Handler`."""

    resident = True

    def __init__(self, function: Function, opening: Opening, *, rerun: bool = False) -> None:
        self.opening: Opening = opening
        self.rerun = rerun
        self._function = function
        self._run = _adapter(function)

    async def run(self, turn: Turn) -> Message | None:
        """Call the function and publish what it gives."""
        return await _traced(turn, self._work)

    async def _work(self, turn: Turn) -> Message | None:
        context = Context(turn)
        try:
            result = await self._run(self._function, context)
            if isinstance(result, Reply) or self.opening == "reply":
                return _reply(context, result)
            await turn.open()
            await context.finish(result)
        except Reject as rejection:
            await self._end(context, TaskState.REJECTED, str(rejection))
        except Fail as failure:
            await self._end(context, TaskState.FAILED, str(failure))
        return None

    async def _end(self, context: Context, state: TaskState, text: str) -> None:
        if self.opening == "reply":
            raise UnsupportedOperationError(text) if state is TaskState.REJECTED else InternalError(text)
        await context.end(state, text)


def _adapter(function: Function) -> Callable[[Function, Context], Any]:
    """How to call this kind of function; its result is what the handler returned, if anything."""
    if inspect.isasyncgenfunction(function):
        return _stream
    if inspect.iscoroutinefunction(function):
        return _call
    if inspect.isgeneratorfunction(function):
        return _stream_in_thread
    return _call_in_thread


async def _call(function: Function, context: Context) -> Any:
    return await function(context)


async def _call_in_thread(function: Function, context: Context) -> Any:
    result = await call_in_thread(function, context)
    return await result if inspect.isawaitable(result) else result


async def _stream(function: Function, context: Context) -> None:
    async with aclosing(function(context)) as values:
        await _publish_pieces(values, context)


async def _stream_in_thread(function: Function, context: Context) -> None:
    async with aclosing(_iterate_in_thread(function(context))) as values:
        await _publish_pieces(values, context)


async def _iterate_in_thread(values: Iterator[Any]) -> AsyncGenerator[Any, None]:
    while (value := await call_in_thread(next, values, _END)) is not _END:
        yield value


async def _publish_pieces(values: AsyncIterator[Any], context: Context) -> None:
    """Pieces of text become chunks of one artifact, anything else an artifact of its own."""
    text_id = ""
    async for value in values:
        if not isinstance(value, str):
            await context.artifact(value)
        elif text_id:
            await context.append_text(text_id, value)
        else:
            text_id = await context.artifact(value, last_chunk=False)


def _reply(context: Context, result: Any) -> Message:
    """The direct message that a result stands for. Raises InvalidAgentResponseError where a task is open."""
    if context.task_id:
        raise InvalidAgentResponseError("The agent gave a direct reply although it had opened a task")
    if isinstance(result, Message):
        return context.agent_message(result)
    if not isinstance(result, Reply):
        result = Reply("" if result is None else result)
    message = context.agent_message(result.content)
    if result.metadata is not None:
        message.metadata = dict(result.metadata)
    message.extensions = list(result.extensions)
    return message


class EventsHandler:
    """Runs an async generator of protocol events, once for each message of a task.

    It may yield TaskStatusUpdateEvent, TaskArtifactUpdateEvent, Artifact, Message, Task and StreamResponse. Ids that
    are left empty are filled in. A Message before anything else is a direct reply; later it becomes a status message,
    since the stream of a task carries no bare messages (Spec: STREAM-02, B063).
    """

    opening: Opening = "decide"
    resident = False

    def __init__(self, function: Function, *, rerun: bool = False) -> None:
        if not inspect.isasyncgenfunction(function):
            raise ConfigurationError("@agent.events takes an async generator function")
        self.rerun = rerun
        self._function = function

    async def run(self, turn: Turn) -> Message | None:
        """Publish what the generator yields."""
        return await _traced(turn, self._work)

    async def _work(self, turn: Turn) -> Message | None:
        context = Context(turn)
        async with aclosing(self._function(context)) as events:
            async for event in events:
                if isinstance(event, Message) and not turn.task_id:
                    return filled_message(event, turn)
                await turn.open()
                _publish(_unwrapped(event), turn)
                await turn.settle()
        return None


def _unwrapped(event: Any) -> Any:
    if not isinstance(event, StreamResponse):
        return event
    return event.task or event.message or event.status_update or event.artifact_update


# What an author yields is the author's: ids are filled into copies, since the same object may be yielded again.


def _publish(event: Any, turn: Turn) -> None:
    if isinstance(event, TaskStatusUpdateEvent | TaskArtifactUpdateEvent):
        turn.publish(_filled(event, turn))
    elif isinstance(event, Artifact):
        turn.publish(_artifact_event(event, turn))
    elif isinstance(event, Message):
        _publish_message(event, turn)
    elif isinstance(event, Task):
        _publish_task(event, turn)
    else:
        raise InvalidAgentResponseError(f"The agent yielded {type(event).__name__}, which is no event of the protocol")


def _filled(
    event: TaskStatusUpdateEvent | TaskArtifactUpdateEvent, turn: Turn
) -> TaskStatusUpdateEvent | TaskArtifactUpdateEvent:
    own = copy(event)
    own.task_id = event.task_id or turn.task_id
    own.context_id = event.context_id or turn.context_id
    if isinstance(own, TaskArtifactUpdateEvent):
        own.artifact = copy_artifact(own.artifact)
    else:
        own.status = _filled_status(own.status, turn)
    return own


def _filled_status(status: TaskStatus, turn: Turn) -> TaskStatus:
    message = None if status.message is None else filled_message(status.message, turn)
    return TaskStatus(state=status.state, message=message, timestamp=status.timestamp or turn.now())


def _artifact_event(artifact: Artifact, turn: Turn) -> TaskArtifactUpdateEvent:
    return TaskArtifactUpdateEvent(task_id=turn.task_id, context_id=turn.context_id, artifact=copy_artifact(artifact))


def _publish_message(message: Message, turn: Turn) -> None:
    status = turn.task.status
    state = TaskState.WORKING if status.state is TaskState.SUBMITTED else status.state
    status = TaskStatus(state=state, message=filled_message(message, turn), timestamp=turn.now())
    turn.publish(TaskStatusUpdateEvent(task_id=turn.task_id, context_id=turn.context_id, status=status))


def _publish_task(task: Task, turn: Turn) -> None:
    """A whole task that the agent yields: its artifacts and its status, as updates of the real one."""
    if task.id not in ("", turn.task_id) or task.context_id not in ("", turn.context_id):
        raise InvalidAgentResponseError("The agent yielded a Task with another id or context than its own")
    for artifact in task.artifacts:
        turn.publish(_artifact_event(artifact, turn))
    if task.status.state not in (TaskState.SUBMITTED, turn.task.status.state) or task.status.message is not None:
        event = TaskStatusUpdateEvent(task_id=turn.task_id, context_id=turn.context_id, status=task.status)
        turn.publish(_filled(event, turn))
