"""Runtime: the eleven operations of a served agent.

The order of every call: admission (version, extensions, capability, fields), then the look-up within the caller's
scope, then the state machine's verdict, then the work. Nothing is shown that is not stored.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, cast

import msgspec

from dragoman.errors import (
    A2AError,
    ExtendedAgentCardNotConfiguredError,
    FieldViolation,
    InternalError,
    InvalidAgentResponseError,
    InvalidParamsError,
    PushNotificationNotSupportedError,
    RateLimitedError,
    StoreError,
    UnavailableError,
)
from dragoman.model import (
    CANCEL_TASK,
    GET_EXTENDED_AGENT_CARD,
    GET_TASK,
    LIST_TASKS,
    SEND_MESSAGE,
    SEND_STREAMING_MESSAGE,
    SUBSCRIBE_TO_TASK,
    AgentCapabilities,
    AgentCard,
    CancelTaskRequest,
    GetTaskRequest,
    ListTasksRequest,
    ListTasksResponse,
    Message,
    Operation,
    SendMessageRequest,
    SendMessageResponse,
    SubscribeToTaskRequest,
    Task,
    TaskState,
)
from dragoman.ports.agent import Handler
from dragoman.ports.clock import Clock, SystemClock
from dragoman.ports.deadlines import Deadlines, OverrunError
from dragoman.ports.operations import CallContext, Caller, EventStream
from dragoman.ports.store import Scope, TaskQuery, TaskStore
from dragoman.protocol.admission import Admission
from dragoman.protocol.contexts import is_sealed_context, seal_context
from dragoman.protocol.extensions import RESUMABLE_STREAMS
from dragoman.protocol.lifecycle import (
    ACTIVE,
    SETTLED,
    STATES,
    TERMINAL,
    Command,
    check_agent_message,
    check_command,
    copy_task,
    with_history,
)
from dragoman.protocol.paging import decode_page_token, encode_page_token
from dragoman.protocol.validation import DEFAULT_PAGE_SIZE, RequestRules
from dragoman.runtime.beginning import begin_again, encode_beginning
from dragoman.runtime.committer import Committer
from dragoman.runtime.janitor import Janitor
from dragoman.runtime.limits import Limits
from dragoman.runtime.live import LiveTask
from dragoman.runtime.recent import RecentTasks
from dragoman.runtime.registry import Registry, not_found
from dragoman.runtime.runs import Runs
from dragoman.runtime.streams import MessageStream, TaskStream
from dragoman.runtime.turn import LiveTurn

logger = logging.getLogger("dragoman.runtime")

STOPPING_TEXT = "The server is shutting down; the task is kept, come back later"

STREAM_ENDS_AT = frozenset({TaskState.INPUT_REQUIRED})
"""Where a SendStreamingMessage stream closes although the task goes on (Spec: AMB-05)."""

Method = Callable[[Any, CallContext], Awaitable[Any]]


class Runtime:
    """An agent's operations over a store; implements :class:`~dragoman.ports.operations.Operations`.

    * ``handler``: the agent's code; ``agent``: its name in the store;
    * ``capabilities``, ``rules``: what its card declares and which requests it takes;
    * ``infer_version``: take a request without ``A2A-Version`` as 1.0 (Spec: AMB-17);
    * ``known_contexts_only``: refuse a ``contextId`` that none of the caller's tasks has (Spec: CTX-04, AMB-45);
    * ``stream_ends_at``: interrupted states at which a SendStreamingMessage stream closes (Spec: AMB-05).
    """

    def __init__(
        self,
        handler: Handler,
        store: TaskStore,
        *,
        agent: str = "",
        capabilities: AgentCapabilities | None = None,
        rules: RequestRules | None = None,
        limits: Limits | None = None,
        clock: Clock | None = None,
        infer_version: bool = False,
        known_contexts_only: bool = False,
        stream_ends_at: frozenset[TaskState] = STREAM_ENDS_AT,
    ) -> None:
        self.limits = limits or Limits()
        self._handler = handler
        self._store = store
        self._agent = agent
        self._clock = clock or SystemClock()
        self._admission = Admission(
            capabilities or AgentCapabilities(streaming=True),
            rules or RequestRules(max_parts=self.limits.max_parts),
            infer_version=infer_version,
        )
        self._known_contexts_only = known_contexts_only
        self._stream_ends_at = stream_ends_at
        self._committer = Committer(store)
        self._registry = Registry(store, self._committer, self._clock, self._clock.new_id())
        self._runs = Runs(handler, self.limits, self._next_turn)
        self._recent = RecentTasks(int(self.limits.lease * 1000))
        self._janitor = Janitor(
            self._registry, store, self._clock, self.limits, rerun=self._rerun, purged=self._recent.clear
        )
        self._stream_deadlines = Deadlines(self.limits.stream_idle)
        self._reply_deadlines = Deadlines(self.limits.reply_time)
        self._page_key = self._context_key = b""
        self._methods: dict[Operation, Method] = {
            SEND_MESSAGE: self._send_message,
            GET_TASK: self._get_task,
            LIST_TASKS: self._list_tasks,
            CANCEL_TASK: self._cancel_task,
            GET_EXTENDED_AGENT_CARD: self._get_extended_card,
        }
        self._streams: dict[Operation, Method] = {
            SEND_STREAMING_MESSAGE: self._send_streaming_message,
            SUBSCRIBE_TO_TASK: self._subscribe,
        }

    # Operations.

    async def call(self, op: Operation, request: msgspec.Struct, context: CallContext) -> msgspec.Struct:
        """Run a unary operation. See :class:`~dragoman.ports.operations.Operations`."""
        context.activated = self._admission.admit(op, request, context.version, context.extensions)
        method = self._methods.get(op, _no_push)
        try:
            return cast(msgspec.Struct, await method(request, context))
        except StoreError as error:
            raise _store_failed(op, error) from error

    async def stream(self, op: Operation, request: msgspec.Struct, context: CallContext) -> EventStream:
        """Open a streaming operation. See :class:`~dragoman.ports.operations.Operations`."""
        context.activated = self._admission.admit(op, request, context.version, context.extensions)
        try:
            return cast(EventStream, await self._streams[op](request, context))
        except StoreError as error:
            raise _store_failed(op, error) from error

    # Life.

    async def start(self) -> None:
        """Open the store, take over what a lost process left, begin to serve."""
        await self._store.open()
        self._page_key = await self._store.secret("page-token")
        self._context_key = await self._store.secret("context")
        self._committer.start()
        await self._janitor.start()

    @property
    def is_stopping(self) -> bool:
        """Whether new work is refused."""
        return self._runs.stopping

    def begin_stop(self) -> None:
        """Refuse new work and end the streams of tasks that nobody works on. Spec: ERR-11."""
        self._runs.stopping = True
        self._janitor.leaving = True
        for live in self._registry.all():
            live.wake_watchers()

    async def stop(self) -> None:
        """Refuse new work, give handlers their grace, interrupt and record the rest, close the store."""
        self.begin_stop()
        await self._runs.stop(self.limits.shutdown_grace)
        await self._committer.stop()  # before those who wait are told, since their task may just have ended
        for live in self._registry.all():
            live.abandon(UnavailableError(STOPPING_TEXT, retry_after=5))
        await self._janitor.stop()
        await self._store.close()

    @property
    def live_tasks(self) -> int:
        """How many tasks are held in memory now."""
        return len(self._registry)

    # SendMessage and SendStreamingMessage.

    async def _send_message(self, request: SendMessageRequest, context: CallContext) -> SendMessageResponse:
        if self._handler.opening == "reply" and not request.message.task_id:
            return SendMessageResponse(message=await self._reply(request, context))
        begun = await self._begin(request, context)
        if isinstance(begun, Message):
            return SendMessageResponse(message=begun)
        live, number = begun
        configuration = request.configuration
        immediately = configuration is not None and configuration.return_immediately
        waiting = live.wait(number, STATES if immediately else SETTLED)
        live.unhold()
        task = await waiting
        return SendMessageResponse(task=with_history(task, _history_length(request)))

    async def _send_streaming_message(self, request: SendMessageRequest, context: CallContext) -> EventStream:
        if self._handler.opening == "reply" and not request.message.task_id:
            return MessageStream(await self._reply(request, context))
        begun = await self._begin(request, context)
        if isinstance(begun, Message):
            return MessageStream(begun)
        live, number = begun
        stream = self._open_stream(
            live,
            position=number if request.message.task_id else 0,
            first=live.staged_task() if request.message.task_id else None,
            ends_at=self._stream_ends_at,
            history=_history_length(request),
        )
        live.unhold()
        try:
            await live.wait(number)
        except BaseException:
            await stream.aclose()
            raise
        return stream

    def _open_stream(
        self,
        live: LiveTask,
        *,
        position: int = 0,
        first: Task | None = None,
        ends_at: frozenset[TaskState] = frozenset(),
        history: int | None = None,
    ) -> TaskStream:
        return TaskStream(
            live,
            self._store,
            self.limits,
            position=position,
            first=first,
            ends_at=ends_at,
            history=history,
            stopping=self._is_left_alone,
            idle=self._stream_deadlines,
        )

    def _is_left_alone(self, live: LiveTask) -> bool:
        return self._runs.stopping and not self._runs.is_worked_on(live) and not live.backlog

    async def _begin(self, request: SendMessageRequest, context: CallContext) -> Message | tuple[LiveTask, int]:
        """Start or continue a task; a direct reply, or the task, held, and the record that has the message."""
        if self._runs.stopping:
            raise UnavailableError("The server is shutting down", retry_after=5)
        if request.message.task_id:
            return await self._continue(request, context)
        context_id = await self._context_id(request, context)
        if self._handler.opening != "decide":
            live = self._open_task(self._new_turn(request, context, context_id))
            live.hold()
            return live, 1
        return await self._let_decide(request, context, context_id)

    async def _context_id(self, request: SendMessageRequest, context: CallContext) -> str:
        context_id = request.message.context_id
        if not self._known_contexts_only:
            return context_id or self._clock.new_id()
        scope = _scope(request, context)
        seal = {"tenant": scope.tenant, "owner": scope.owner}
        if not context_id:
            return seal_context(self._context_key, self._clock.new_id(), **seal)
        if not is_sealed_context(self._context_key, context_id, **seal):
            query = TaskQuery(scope=scope, context_id=context_id, page_size=1)
            if not (await self._store.page(query)).total:
                raise _bad_context("is not known here; leave it out to begin a new context")
        return context_id

    def _new_turn(self, request: SendMessageRequest, context: CallContext, context_id: str) -> LiveTurn:
        return LiveTurn(
            request,
            context,
            context_id,
            live=None,
            create=self._create_for if self._handler.opening == "decide" else None,
            store=self._store,
            now=self._registry.now,
            new_id=self._registry.new_id,
            most_unsaved=self.limits.unsaved_events,
        )

    def _open_task(self, turn: LiveTurn) -> LiveTask:
        """Create a task for a turn and start, or queue, its run."""
        if not self._runs.is_full:
            return self._start_task(turn)
        if not self._runs.has_room:
            raise UnavailableError("Too many tasks are waiting; try again later", retry_after=5)
        live = self._create(turn, TaskState.SUBMITTED)
        self._runs.enqueue(turn, live)
        return live

    def _start_task(self, turn: LiveTurn) -> LiveTask:
        live = self._new_live(turn)
        self._runs.start(turn, live)  # before the record is staged, so that a quick handler shares its write
        self._begin_log(live, turn, TaskState.WORKING)
        return live

    def _create(self, turn: LiveTurn, state: TaskState) -> LiveTask:
        live = self._new_live(turn)
        self._begin_log(live, turn, state)
        return live

    def _begin_log(self, live: LiveTask, turn: LiveTurn, state: TaskState) -> None:
        live.begin(turn.request.message, state, self._agent, encode_beginning(turn.request, turn.call))

    def _new_live(self, turn: LiveTurn) -> LiveTask:
        scope = _scope(turn.request, turn.call)
        live = LiveTask(self._registry, self._clock.new_id(), turn.context_id, scope)
        turn.attach(live)
        self._registry.add(live)
        return live

    async def _create_for(self, turn: LiveTurn) -> LiveTask:
        """The task of a run that decided for one."""
        live = self._create(turn, TaskState.WORKING)
        run = turn.run
        if run is None:
            raise InvalidAgentResponseError("The handler has ended and can open no task")
        run.live, live.run = live, run
        if run.decision is not None and not run.decision.done():
            live.hold()
            run.decision.set_result(live)
        return live

    async def _let_decide(
        self, request: SendMessageRequest, context: CallContext, context_id: str
    ) -> Message | tuple[LiveTask, int]:
        if self._runs.is_full:
            raise UnavailableError("Too many messages are being handled; try again later", retry_after=5)
        turn = self._new_turn(request, context, context_id)
        run = self._runs.start(turn, None)
        run.decision = asyncio.get_running_loop().create_future()
        try:
            begun = await run.decision
        except asyncio.CancelledError:
            if run.decision.cancelled() and not _is_cancelled():
                raise InternalError("The agent was interrupted") from None
            _leave_decision(run.decision)
            raise
        except Exception as error:
            raise _agent_failed(error) from error
        return self._checked_reply(begun, context_id) if isinstance(begun, Message) else (begun, 1)

    async def _reply(self, request: SendMessageRequest, context: CallContext) -> Message:
        """The direct message of an agent that never opens tasks."""
        if self._runs.stopping:
            raise UnavailableError("The server is shutting down", retry_after=5)
        context_id = await self._context_id(request, context)
        turn = self._new_turn(request, context, context_id)
        try:
            reply = await self._reply_deadlines.bound(self._handler.run(turn))
        except asyncio.CancelledError:
            if _is_cancelled():
                raise
            raise InternalError("The agent was interrupted") from None
        except OverrunError as error:
            logger.error("The agent took more than %g s for a reply", self.limits.reply_time)
            raise InternalError("The agent took too long to reply") from error
        except (Exception, SystemExit) as error:
            raise _agent_failed(error) from error
        if reply is None:
            raise InvalidAgentResponseError("The agent gave no reply")
        return self._checked_reply(reply, context_id)

    def _checked_reply(self, reply: Message, context_id: str) -> Message:
        if not reply.context_id:
            reply = msgspec.structs.replace(reply, context_id=context_id)
        try:
            check_agent_message(reply)
            if reply.context_id != context_id or reply.task_id:
                raise InvalidAgentResponseError("A direct reply names another context, or a task")
        except InvalidAgentResponseError as error:
            logger.error("The agent broke a rule: %s", error)
            raise
        return reply

    # Messages to existing tasks.

    async def _continue(self, request: SendMessageRequest, context: CallContext) -> tuple[LiveTask, int]:
        message = request.message
        live = await self._registry.hold(message.task_id, _scope(request, context))
        try:
            if message.context_id and message.context_id != live.context_id:
                raise _bad_context("is not the context of the task")
            check_command(Command.MESSAGE, live.state, live.task_id)
            await self._registry.lease(live)
            check_command(Command.MESSAGE, live.state, live.task_id)
            self._check_alive(live)
            return live, self._deliver(live, request, context)
        except BaseException:
            live.unhold()
            raise

    def _check_alive(self, live: LiveTask) -> None:
        """A task whose run was lost is the janitor's to decide on; a message must not start the work again."""
        if live.state in ACTIVE and live.run is None and not self._runs.is_waiting(live):
            raise UnavailableError("The task is being recovered; try again", retry_after=self.limits.lease / 3)

    def _deliver(self, live: LiveTask, request: SendMessageRequest, context: CallContext) -> int:
        """Record a message and see that a run takes it."""
        if self._unread(live) >= self.limits.queued_messages:
            raise RateLimitedError("Too many messages wait for this task; try again later", retry_after=1)
        number = live.accept(request.message)
        if live.run is None and live.state is not TaskState.SUBMITTED:
            self._runs.start(self._turn_for(live, request, context), live)
        elif not self._handler.resident:
            live.queue.append((request, context))
        return number

    def _unread(self, live: LiveTask) -> int:
        """Messages that the task has taken and no run has."""
        if live.run is None or not self._handler.resident:
            return len(live.queue)
        return len(live.user_messages) - 1 - live.run.turn.answered

    def _turn_for(self, live: LiveTask, request: SendMessageRequest, context: CallContext) -> LiveTurn:
        """The turn of a run on a task that exists. A resident handler begins with the task's first message again."""
        if self._handler.resident:
            request, context = begin_again(live.kept, live.user_messages[0], context)
        return LiveTurn(
            request,
            context,
            live.context_id,
            live=live,
            create=None,
            store=self._store,
            now=self._registry.now,
            new_id=self._registry.new_id,
            most_unsaved=self.limits.unsaved_events,
            recovered=self._handler.resident,
        )

    def _next_turn(self, live: LiveTask) -> LiveTurn:
        """The turn for the next message that waits, or for the last one again."""
        if live.queue:
            return self._turn_for(live, *live.queue.pop(0))
        return self._turn_for(live, *self._asked_again(live, len(live.user_messages) - 1))

    def _asked_again(self, live: LiveTask, number: int) -> tuple[SendMessageRequest, CallContext]:
        """A message of the task's history as it may have come; of the first one more is known."""
        caller = Caller(id=live.scope.owner)
        kept = b"" if number else live.kept
        return begin_again(kept, live.user_messages[number], CallContext(caller=caller, tenant=live.scope.tenant))

    def _rerun(self, live: LiveTask) -> bool:
        """Start a run for an orphan if that is safe; False when it is not. Invariant 7."""
        fresh = live.state is TaskState.SUBMITTED
        if not (fresh or self._handler.rerun) or not live.user_messages:
            return False
        if fresh and not self._handler.resident:
            live.queue = [self._asked_again(live, number) for number in range(len(live.user_messages))]
        turn = self._next_turn(live)
        turn.recovered = not fresh
        if fresh and self._runs.is_full:
            self._runs.enqueue(turn, live)
            return True
        if fresh:
            live.move(TaskState.WORKING)
        self._runs.start(turn, live)
        return True

    # The other operations.

    async def _get_task(self, request: GetTaskRequest, context: CallContext) -> Task:
        scope = _scope(request, context)
        live = self._registry.find(request.id, scope)
        if live is not None:
            return with_history(live.task, request.history_length)
        now_ms = self._clock.now_ms()
        recent = self._recent.find(request.id, scope, now_ms)
        if recent is None:
            stored = await self._store.task(request.id, scope)
            if stored is None:
                raise not_found(request.id)
            self._recent.keep(stored, now_ms)
            recent = stored.task
        return with_history(recent, request.history_length)

    async def _list_tasks(self, request: ListTasksRequest, context: CallContext) -> ListTasksResponse:
        scope = _scope(request, context)
        since = request.status_timestamp_after
        state = _state_filter(request.status)
        since_ms = None if since is None else since.ms
        filters: dict[str, Any] = {
            "tenant": scope.tenant,
            "owner": scope.owner,
            "context_id": request.context_id,
            "state": state,
            "since_ms": since_ms,
        }
        length = request.history_length or 0
        query = TaskQuery(
            scope=scope,
            context_id=request.context_id,
            state=state,
            since_ms=since_ms,
            page_size=DEFAULT_PAGE_SIZE if request.page_size is None else request.page_size,
            after=decode_page_token(self._page_key, request.page_token, **filters) if request.page_token else None,
            with_artifacts=bool(request.include_artifacts),
            with_history=length > 0,
        )
        page = await self._store.page(query)
        return ListTasksResponse(
            tasks=[with_history(task, length) for task in page.tasks],
            next_page_token="" if page.next is None else encode_page_token(self._page_key, page.next, **filters),
            page_size=query.page_size,
            total_size=page.total,
        )

    async def _cancel_task(self, request: CancelTaskRequest, context: CallContext) -> Task:
        live = await self._registry.hold(request.id, _scope(request, context))
        try:
            check_command(Command.CANCEL, live.state, live.task_id)
            if live.state is not TaskState.CANCELED:
                await self._registry.lease(live)
                check_command(Command.CANCEL, live.state, live.task_id)
            return await self._cancel(live)
        finally:
            live.unhold()

    async def _cancel(self, live: LiveTask) -> Task:
        if live.state is not TaskState.CANCELED:
            live.canceling = True
            if live.run is None:
                self._runs.dequeue(live)
                live.move(TaskState.CANCELED)
            elif not live.run.canceled:  # a repeat would break into what the first one made the handler do (CANCEL-04)
                live.run.canceled = True
                self._runs.cancel(live.run)
        task = await self._wait_for_end(live)
        if task is None:
            return await live.wait(1)
        if task.status.state is not TaskState.CANCELED:
            check_command(Command.CANCEL, cast(TaskState, task.status.state), live.task_id)
        return task

    async def _wait_for_end(self, live: LiveTask) -> Task | None:
        ended = live.wait(1, TERMINAL)
        try:
            done, _ = await asyncio.wait({ended}, timeout=self.limits.cancel_wait)
            return ended.result() if done else None
        finally:
            ended.cancel()

    async def _subscribe(self, request: SubscribeToTaskRequest, context: CallContext) -> EventStream:
        live = await self._registry.hold(request.id, _scope(request, context))
        try:
            resume = context.last_event_id if RESUMABLE_STREAMS in context.activated else None
            if resume is not None and resume < live.number:
                return self._open_stream(live, position=resume)
            if live.is_stored:
                check_command(Command.SUBSCRIBE, cast(TaskState, live.task.status.state), live.task_id)
            if resume is not None and resume == live.number:
                return self._open_stream(live, position=resume)
            if live.is_stored:
                return self._open_stream(live, position=live.number, first=copy_task(live.task))
            return self._open_stream(live, position=live.staged_number, first=live.staged_task())
        finally:
            live.unhold()

    async def _get_extended_card(self, request: msgspec.Struct, context: CallContext) -> AgentCard:
        raise ExtendedAgentCardNotConfiguredError


async def _no_push(request: msgspec.Struct, context: CallContext) -> msgspec.Struct:
    raise PushNotificationNotSupportedError("This agent does not send push notifications")


def _scope(request: Any, context: CallContext) -> Scope:
    return Scope(tenant=context.tenant or request.tenant, owner=context.caller.id)


def _history_length(request: SendMessageRequest) -> int | None:
    return None if request.configuration is None else request.configuration.history_length


def _state_filter(status: TaskState | int) -> TaskState | None:
    return status if isinstance(status, TaskState) and status is not TaskState.UNSPECIFIED else None


def _bad_context(text: str) -> InvalidParamsError:
    return InvalidParamsError("Invalid parameters", violations=[FieldViolation("message.contextId", text)])


def _agent_failed(error: BaseException) -> A2AError:
    """What the caller of a direct reply is told: a protocol error as the agent raised it, anything else neutrally."""
    if isinstance(error, InvalidAgentResponseError):
        logger.error("The agent broke a rule: %s", error)
    if isinstance(error, A2AError):
        return error
    logger.error("The agent raised instead of replying", exc_info=error)
    return InternalError("The agent failed")


def _store_failed(op: Operation, error: StoreError) -> A2AError:
    logger.error("The store failed in %s", op.name, exc_info=error)
    return InternalError("The store failed")


def _leave_decision(decision: asyncio.Future[Message | LiveTask]) -> None:
    """The caller left at the very moment of the decision: what it was given is not needed."""
    if decision.cancelled() or not decision.done() or decision.exception() is not None:
        return
    begun = decision.result()
    if isinstance(begun, LiveTask):
        begun.unhold()


def _is_cancelled() -> bool:
    """Whether it is this very coroutine that is being canceled."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
