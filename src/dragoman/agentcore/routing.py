"""Calls find their session, and what comes back is remembered.

Spec: AC-C-13, AC-C-16, AC-C-26, AC-C-31, AC-C-43, AC-C-44.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from msgspec.structs import replace

from dragoman.agentcore.custom_headers import without_long_traces
from dragoman.agentcore.failures import note, service_error
from dragoman.agentcore.headers import SESSION_ID
from dragoman.agentcore.repeating import SAFE
from dragoman.agentcore.sessions import Sessions, check_session_id
from dragoman.errors import A2AError, DragomanError, TaskNotFoundError, VersionNotSupportedError
from dragoman.model import (
    CancelTaskRequest,
    GetTaskRequest,
    ListTasksRequest,
    ListTasksResponse,
    Message,
    Operation,
    SendMessageRequest,
    SendMessageResponse,
    StreamResponse,
    SubscribeToTaskRequest,
    Task,
)
from dragoman.ports.operations import CallContext, Event, EventStream, Operations
from dragoman.protocol.lifecycle import is_terminal

VERSION_HINT = (
    "A2A-Version was sent; AgentCore drops it on the way unless the runtime's request-header configuration lists it"
)
MEMORY_HINT = "on AgentCore, a task without a durable store lives in the memory of its session"


class SessionRouting:
    """Operations that add the session of their task or context, and learn from every answer."""

    def __init__(self, inner: Operations, sessions: Sessions, new_id: Callable[[], str]) -> None:
        self._inner = inner
        self._sessions = sessions
        self._new_id = new_id

    async def call(self, op: Operation, request: msgspec.Struct, context: CallContext) -> msgspec.Struct:
        """See :class:`~dragoman.ports.operations.Operations`."""
        request = self._prepare(request, context)
        try:
            response = await self._inner.call(op, request, context)
        except A2AError as error:
            raise self._explained(error, request, context) from error
        self._learn(self._session(context), response)
        return response

    async def stream(self, op: Operation, request: msgspec.Struct, context: CallContext) -> EventStream:
        """See :class:`~dragoman.ports.operations.Operations`."""
        request = self._prepare(request, context)
        try:
            stream = await self._inner.stream(op, request, context)
        except A2AError as error:
            raise self._explained(error, request, context) from error
        return _Learning(stream, self, self._session(context), safe=op in SAFE)

    def learn_event(self, session_id: str, response: StreamResponse) -> None:
        """Remember what an event tells."""
        status, update = response.status_update, response.status_update or response.artifact_update
        if update is None:
            self._learn(session_id, response.task or response.message)
            return
        over = status is not None and is_terminal(status.status.state)
        self._sessions.learn(session_id, task_id=update.task_id, context_id=update.context_id, over=over)

    def _prepare(self, request: msgspec.Struct, context: CallContext) -> msgspec.Struct:
        """Choose the session of a call. A message that begins a context is given one, when sessions depend on it."""
        if isinstance(request, SendMessageRequest) and self._sessions.derivation is not None:
            message = request.message
            if not message.context_id and not message.task_id:
                request = replace(request, message=replace(message, context_id=self._new_id()))
        headers = without_long_traces(context.parameters)
        if SESSION_ID in headers:
            check_session_id(headers[SESSION_ID])
        else:
            session_id = self._sessions.choose(_task_of(request), _context_of(request))
            if session_id:
                headers[SESSION_ID] = session_id
        context.parameters = headers
        return request

    def _session(self, context: CallContext) -> str:
        """The session that a call was made in, as the service named it in the end."""
        return self._sessions.resolve(context.parameters.get(SESSION_ID, ""))

    def _learn(self, session_id: str, response: msgspec.Struct | None) -> None:
        if isinstance(response, SendMessageResponse):
            response = response.task or response.message
        if isinstance(response, Task):
            over = is_terminal(response.status.state)
            self._sessions.learn(session_id, task_id=response.id, context_id=response.context_id, over=over)
        elif isinstance(response, Message):
            self._sessions.learn(session_id, task_id=response.task_id, context_id=response.context_id)
        elif isinstance(response, ListTasksResponse):
            for task in response.tasks:
                self._learn(session_id, task)

    def _explained(self, error: A2AError, request: msgspec.Struct, context: CallContext) -> A2AError:
        """The error, with what helps to understand it here."""
        if isinstance(error, VersionNotSupportedError):
            return rephrase(error, VERSION_HINT)
        task_id = _task_of(request)
        if isinstance(error, TaskNotFoundError) and task_id:
            return rephrase(error, self._where_tasks_live(task_id, self._session(context)))
        return error

    def _where_tasks_live(self, task_id: str, session_id: str) -> str:
        own = self._sessions.of_task(task_id)
        if self._sessions.was_stopped(session_id):
            return f"{MEMORY_HINT}, and session {session_id} was stopped"
        if own and own != session_id:
            return f"{MEMORY_HINT}; this one was made in session {own}, and asked for in {session_id}"
        if not own:
            return f"{MEMORY_HINT}; this client has not seen it in session {session_id}"
        return f"{MEMORY_HINT}, which ends when it is idle for long"


class _Learning(EventStream):
    """A stream that teaches where its task is."""

    def __init__(self, inner: EventStream, routing: SessionRouting, session_id: str, *, safe: bool) -> None:
        self._inner = inner
        self._routing = routing
        self._session_id = session_id
        self._safe = safe

    async def next_batch(self) -> list[Event]:
        """See :class:`~dragoman.ports.operations.EventStream`."""
        try:
            batch = await self._inner.next_batch()
        except DragomanError as error:
            failure = service_error(error, safe=self._safe) or error
            note(failure, session_id=self._session_id, attempts=1)
            raise failure from (None if failure is error else error)
        finally:
            self.concluded = self._inner.concluded
        for event in batch:
            self._routing.learn_event(self._session_id, event.response)
        return batch

    async def aclose(self) -> None:
        """See :class:`~dragoman.ports.operations.EventStream`."""
        await self._inner.aclose()


def rephrase(error: A2AError, hint: str) -> A2AError:
    """The same error with a hint behind its message."""
    return type(error)(
        f"{error.message} ({hint})",
        metadata=error.metadata,
        violations=error.violations,
        extra_details=error.extra_details,
        retry_after=error.retry_after,
        origin=error.origin,
    )


def _task_of(request: msgspec.Struct) -> str:
    if isinstance(request, SendMessageRequest):
        return request.message.task_id
    if isinstance(request, GetTaskRequest | CancelTaskRequest | SubscribeToTaskRequest):
        return request.id
    return getattr(request, "task_id", "")


def _context_of(request: msgspec.Struct) -> str:
    if isinstance(request, SendMessageRequest):
        return request.message.context_id
    return request.context_id if isinstance(request, ListTasksRequest) else ""
