"""Runtime: the eleven operations of a served agent.

The order of every call: admission (version, extensions, capability, fields), then the look-up within the caller's
scope, then the state machine's verdict, then the work. Nothing is shown that is not stored.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import msgspec
from msgspec.structs import replace

from dragoman.errors import (
    A2AError,
    ExtendedAgentCardNotConfiguredError,
    InternalError,
    StoreError,
    UnavailableError,
)
from dragoman.model import (
    CANCEL_TASK,
    CREATE_TASK_PUSH_NOTIFICATION_CONFIG,
    DELETE_TASK_PUSH_NOTIFICATION_CONFIG,
    GET_EXTENDED_AGENT_CARD,
    GET_TASK,
    GET_TASK_PUSH_NOTIFICATION_CONFIG,
    LIST_TASK_PUSH_NOTIFICATION_CONFIGS,
    LIST_TASKS,
    SEND_MESSAGE,
    SEND_STREAMING_MESSAGE,
    SUBSCRIBE_TO_TASK,
    AgentCapabilities,
    AgentCard,
    Message,
    Operation,
    SendMessageRequest,
    SendMessageResponse,
    TaskState,
)
from dragoman.ports.agent import Handler
from dragoman.ports.clock import Clock, SystemClock
from dragoman.ports.extending import Extending
from dragoman.ports.observing import WorkObserver
from dragoman.ports.operations import CallContext, EventStream, Operations
from dragoman.ports.push import Push
from dragoman.ports.scoping import Authorize
from dragoman.ports.store import TaskStore
from dragoman.protocol.admission import NO_DEPENDENCIES, Admission
from dragoman.protocol.lifecycle import SETTLED, STATES, with_history
from dragoman.protocol.validation import RequestRules
from dragoman.runtime.canceling import Canceling
from dragoman.runtime.committer import Committer
from dragoman.runtime.contexts import Contexts
from dragoman.runtime.continuing import Continuing
from dragoman.runtime.granting import Granting
from dragoman.runtime.guarding import Guard
from dragoman.runtime.janitor import Janitor
from dragoman.runtime.limits import Limits
from dragoman.runtime.live import LiveTask
from dragoman.runtime.looking import Looking
from dragoman.runtime.opening import Opening
from dragoman.runtime.recent import RecentTasks
from dragoman.runtime.registry import Registry
from dragoman.runtime.replying import Replying
from dragoman.runtime.runs import Runs
from dragoman.runtime.scoping import Scoping
from dragoman.runtime.streams import MessageStream
from dragoman.runtime.turns import Turns
from dragoman.runtime.watching import Watching
from dragoman.runtime.webhooks import Webhooks
from dragoman.runtime.work import Step, Work, methods_of

logger = logging.getLogger("dragoman.runtime")

STOPPING_TEXT = "The server is shutting down; the task is kept, come back later"

STREAM_ENDS_AT = frozenset({TaskState.INPUT_REQUIRED})
"""Where a SendStreamingMessage stream closes although the task goes on (Spec: AMB-05)."""


class Runtime:
    """An agent's operations over a store; implements :class:`~dragoman.ports.operations.Operations`.

    * ``handler``: the agent's code; ``agent``: its name in the store, whose tasks of other names it does not see;
    * ``capabilities``, ``rules``: what its card declares and which requests it takes;
    * ``infer_version``: take a request without ``A2A-Version`` as 1.0 (Spec: AMB-17);
    * ``known_contexts_only``: refuse a ``contextId`` that this agent did not make (Spec: CTX-04, AMB-45);
    * ``stream_ends_at``: interrupted states at which a SendStreamingMessage stream closes (Spec: AMB-05);
    * ``observer``: is told when the agent's code is at work;
    * ``push``: keeps webhooks and tells them of tasks; without it every use of them is refused (Spec: PCFG-10);
    * ``extending``: the code of extensions, which calls pass through once they are admitted;
    * ``authorize``: lets callers reach further than what is their own, see :data:`~dragoman.ports.scoping.Authorize`;
    * ``extended_card``: answers GetExtendedAgentCard.
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
        observer: WorkObserver | None = None,
        push: Push | None = None,
        extending: Extending | None = None,
        authorize: Authorize | None = None,
        extended_card: Step | None = None,
    ) -> None:
        self.limits = limits = limits or Limits()
        self.owns_store = True
        """Whether the store is closed with the runtime; it is not when others use it, too."""
        clock = clock or SystemClock()
        self._handler = handler
        self._scoping = Scoping(agent, authorize)
        self._store = store
        self._admission = Admission(
            capabilities or AgentCapabilities(streaming=True),
            rules or RequestRules(max_parts=limits.max_parts),
            infer_version=infer_version,
            depends=extending.depends if extending is not None else NO_DEPENDENCIES,
        )
        self._committer = Committer(store)
        self._registry = registry = Registry(store, self._committer, clock, clock.new_id())
        turns = Turns(handler, registry, store, limits)
        self._runs = runs = Runs(handler, limits, turns.following, observer)
        recent = RecentTasks(int(limits.lease * 1000))
        self._janitor = Janitor(registry, store, clock, limits, agent=agent, rerun=self._rerun, purged=recent.clear)
        self._contexts = Contexts(store, clock, known_only=known_contexts_only)
        self._turns = turns
        self._webhooks = webhooks = Webhooks(push, registry, store)
        self._opening = Opening(registry, runs, turns, webhooks)
        self._continuing = Continuing(handler, registry, runs, turns, limits, self._janitor.recover, webhooks)
        self._granting = Granting(handler, registry, runs, turns, self._continuing)
        self._replying = Replying(handler, limits, observer)
        self._looking = Looking(registry, store, clock, recent)
        self._watching = Watching(registry, runs, store, limits, stream_ends_at)
        self._calls: dict[Operation, Step] = {
            SEND_MESSAGE: self._send_message,
            GET_TASK: self._looking.get_task,
            LIST_TASKS: self._looking.list_tasks,
            CANCEL_TASK: Canceling(registry, runs, limits).cancel_task,
            GET_EXTENDED_AGENT_CARD: extended_card or _no_extended_card,
            CREATE_TASK_PUSH_NOTIFICATION_CONFIG: webhooks.create,
            GET_TASK_PUSH_NOTIFICATION_CONFIG: webhooks.get,
            LIST_TASK_PUSH_NOTIFICATION_CONFIGS: webhooks.list,
            DELETE_TASK_PUSH_NOTIFICATION_CONFIG: webhooks.delete,
        }
        self._streams: dict[Operation, Step] = {
            SEND_STREAMING_MESSAGE: self._send_streaming_message,
            SUBSCRIBE_TO_TASK: self._watching.subscribe,
        }
        if authorize is not None:
            guard = Guard(self._scoping, clock, limits.authorized_for)
            self._streams = {op: guard.around(op, step) for op, step in self._streams.items()}
        self._work: Operations = Work(self._calls, self._streams)
        if extending is not None:
            self._calls.update(methods_of(extending.methods))
            self._work = extending.over(self._work)

    def _rerun(self, live: LiveTask) -> bool:
        return self._continuing.rerun(live)

    # Operations.

    async def call(self, op: Operation, request: msgspec.Struct, context: CallContext) -> msgspec.Struct:
        """Run a unary operation. See :class:`~dragoman.ports.operations.Operations`."""
        context.activated = self._admission.admit(op, request, context.version, context.extensions)
        context.scope = own = self._scoping.narrow(request, context)
        if self._scoping.authorize is not None:
            context.scope = await self._scoping.widen(op, own, context)
        try:
            return await self._work.call(op, request, context)
        except StoreError as error:
            raise _store_failed(op, error) from error

    async def stream(self, op: Operation, request: msgspec.Struct, context: CallContext) -> EventStream:
        """Open a streaming operation. See :class:`~dragoman.ports.operations.Operations`."""
        context.activated = self._admission.admit(op, request, context.version, context.extensions)
        context.scope = own = self._scoping.narrow(request, context)
        if self._scoping.authorize is not None:
            context.scope = await self._scoping.widen(op, own, context)
        try:
            return await self._work.stream(op, request, context)
        except StoreError as error:
            raise _store_failed(op, error) from error

    # Life.

    async def start(self) -> None:
        """Open the store, take over what a lost process left, begin to serve."""
        await self._store.open()
        await self._looking.start()
        await self._contexts.start()
        self._committer.start()
        await self._janitor.start()
        await self._webhooks.start()

    async def renew(self) -> None:
        """Take a new name in the store, since a copy of this process may have been made; tasks go on. Spec: AC-S-72."""
        await self._janitor.renew()

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
        grace = self.limits.shutdown_grace
        await asyncio.gather(self._runs.stop(grace), self._replying.stop(grace))
        await self._committer.stop()  # before those who wait are told, since their task may just have ended
        for live in self._registry.all():
            live.abandon(UnavailableError(STOPPING_TEXT, retry_after=5))
        await self._janitor.stop()
        await self._webhooks.stop()
        if self.owns_store:
            await self._store.close()

    async def grant(self, task_id: str, value: Any, *, tenant: str = "") -> None:
        """Hand in what a task of a tenant waits for in AUTH_REQUIRED; it goes on.

        For the application, which has to know that whoever gave the value may: no caller is looked at here. Raises
        TaskNotFoundError, UnsupportedOperationError when the task waits for no authorization, UnavailableError.
        Spec: INTASK-03, INTASK-04.
        """
        if self._runs.stopping:
            raise UnavailableError("The server is shutting down", retry_after=5)
        own = self._scoping.narrow(None, CallContext(tenant=tenant))
        try:
            await self._granting.grant(task_id, value, replace(own, everybody=True))
        except StoreError as error:
            raise InternalError("The store failed") from error

    @property
    def live_tasks(self) -> int:
        """How many tasks are held in memory now."""
        return len(self._registry)

    # SendMessage and SendStreamingMessage.

    async def _send_message(self, request: SendMessageRequest, context: CallContext) -> SendMessageResponse:
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
        begun = await self._begin(request, context)
        if isinstance(begun, Message):
            return MessageStream(begun)
        live, number = begun
        is_new = not request.message.task_id
        stream = self._watching.follow(live, number, is_new=is_new, history=_history_length(request))
        live.unhold()
        try:
            await live.wait(number)
        except BaseException:
            await stream.aclose()
            raise
        return stream

    async def _begin(self, request: SendMessageRequest, context: CallContext) -> Message | tuple[LiveTask, int]:
        """Start or continue a task; a direct reply, or the task, held, and the record that has the message."""
        if self._runs.stopping:
            raise UnavailableError("The server is shutting down", retry_after=5)
        if request.configuration is not None:
            await self._webhooks.check(request)
        if request.message.task_id:
            return await self._continuing.accept(request, context)
        context_id = await self._contexts.choose(request, context)
        opening = self._handler.opening
        if opening == "reply":
            return await self._replying.reply(self._turns.begin(request, context, context_id))
        if opening == "task":
            return self._opening.open(request, context, context_id), 1
        begun = await self._opening.decide(request, context, context_id)
        return begun if isinstance(begun, Message) else (begun, 1)


async def _no_extended_card(request: msgspec.Struct, context: CallContext) -> AgentCard:
    raise ExtendedAgentCardNotConfiguredError


def _history_length(request: SendMessageRequest) -> int | None:
    return None if request.configuration is None else request.configuration.history_length


def _store_failed(op: Operation, error: StoreError) -> A2AError:
    logger.error("The store failed in %s", op.name, exc_info=error)
    return InternalError("The store failed")
