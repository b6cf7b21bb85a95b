"""The client: the eleven operations as methods, and what is made of them.

Spec: §3.1, CARD-10, CARD-13, SEND-11, STREAM-13, AMB-12, XCARD-10.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from datetime import datetime
from typing import Any, Unpack

from msgspec.structs import replace

from dragoman.card import SignatureReport
from dragoman.client.calls import Calls, without_timeout
from dragoman.client.content import Content, compose, without_waiting
from dragoman.client.conversation import Conversation
from dragoman.client.progress import Progress
from dragoman.client.result import Result
from dragoman.client.running import Follower, OnEvent, Pushed
from dragoman.client.settings import CallOptions, MessageOptions
from dragoman.client.streams import ClientStream
from dragoman.errors import InvalidAgentResponseError, RequestTimeoutError, TaskNotCancelableError
from dragoman.extensions import method_operation
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
    AgentCard,
    AgentInterface,
    CancelTaskRequest,
    DeleteTaskPushNotificationConfigRequest,
    Empty,
    GetExtendedAgentCardRequest,
    GetTaskPushNotificationConfigRequest,
    GetTaskRequest,
    ListTaskPushNotificationConfigsRequest,
    ListTaskPushNotificationConfigsResponse,
    ListTasksRequest,
    ListTasksResponse,
    Message,
    OpenMessage,
    SendMessageRequest,
    SendMessageResponse,
    SubscribeToTaskRequest,
    Task,
    TaskPushNotificationConfig,
    TaskState,
    Timestamp,
)
from dragoman.ports.operations import Operations
from dragoman.protocol.lifecycle import INTERRUPTED

TaskRef = Task | str
"""A task, or its id."""

_ASKING = frozenset({TaskState.INPUT_REQUIRED})


class Client:
    """An agent, to be called. Comes from :func:`dragoman.connect`; calls may run together without limit.

    Every method takes ``timeout``, ``headers`` and ``extensions`` (see :class:`CallOptions`), those with a message
    also what :class:`SendOptions` lists. They raise the A2AError that the agent answers, or a ClientError:
    ConnectError, RequestTimeoutError, ConnectionLostError. What the card does not offer is refused without a
    request (Spec: CARD-13). No argument is ever changed.
    """

    def __init__(self, calls: Calls, interface: Callable[[], AgentInterface]) -> None:
        self._calls = calls
        self._interface = interface
        self.check_further_card: Callable[[AgentCard, str], Awaitable[None]] | None = None
        """Verifies another card of the agent, in a version of the protocol, by the policy of the connection."""

    @property
    def card(self) -> AgentCard:
        """The agent's card; the extended one once it was fetched. Spec: XCARD-10."""
        return self._calls.card

    @property
    def signatures(self) -> SignatureReport:
        """What was found of the signatures on the card that the client began with. Spec: SIGN-16, AMB-87."""
        return self._calls.signatures

    @property
    def interface(self) -> AgentInterface:
        """The interface in use."""
        return self._interface()

    @property
    def operations(self) -> Operations:
        """What the calls go through, interceptors included."""
        return self._calls.operations

    # Messages.

    async def send(self, content: Content, *, wait: bool = True, **options: Unpack[MessageOptions]) -> Task | Message:
        """Send a message. Returns the Task, or the agent's direct Message.

        With ``wait`` (default) the answer comes when the task is over or waits for input, however long that takes,
        unless ``timeout`` is given; else at once, whatever its state (Spec: SEND-08, SEND-10, AMB-02): see
        :meth:`wait`.
        """
        request = self._compose(content, options)
        return await self._send(request if wait else without_waiting(request), options, wait=wait)

    def stream(self, content: Content, **options: Unpack[MessageOptions]) -> ClientStream:
        """Send a message and iterate over what comes of it: ``async for event in client.stream("…")``.

        See :class:`ClientStream` for what it yields and how it comes back after a cut. Ends when the task is over
        or asks for input. ``timeout`` bounds the time until the agent begins to answer. Raises
        UnsupportedOperationError when the agent does not stream: :meth:`run` works with every agent.
        """
        return self._stream(self._compose(content, options), options, _ASKING)

    async def run(
        self,
        content: Content,
        *,
        on_event: OnEvent | None = None,
        pushed: Pushed | None = None,
        **options: Unpack[MessageOptions],
    ) -> Result:
        """Send a message and follow the task until it is over or waits for the caller, by whatever the agent offers.

        ``on_event`` sees every event on the way. ``timeout`` bounds all of it (default: no limit). Also raises
        StreamInterruptedError when the agent could not be reached again. Cancelling it leaves the task running.

        With ``pushed``, what a webhook receiver expects (:meth:`dragoman.webhook.Receiver.expect`), no connection is
        kept: the webhook goes with the message, and the task is asked for when there is news of it (Spec: PUSH-21).
        Only a further message to a task waits for its answer.
        """
        if pushed is not None:
            options["push"] = pushed.config
        request = self._compose(content, options)
        follower = self._follower(INTERRUPTED, options, on_event, pushed)
        return await self._within(
            options.get("timeout"), follower, self._run(request, without_timeout(options), follower)
        )

    async def wait(
        self,
        task: TaskRef,
        *,
        on_event: OnEvent | None = None,
        pushed: Pushed | None = None,
        **options: Unpack[CallOptions],
    ) -> Result:
        """Follow an existing task until it is over or asks for input. Spec: SEND-11, SUB-07, INTASK-07.

        A task in AUTH_REQUIRED is waited for: it goes on by itself once it is authorized. ``timeout`` bounds all of it
        (default: no limit). With ``pushed``, whose webhook the agent was given before, no connection is kept, as in
        :meth:`run`.
        """
        follower = self._follower(_ASKING, options, on_event, pushed)
        followed = self._wait(_id(task), without_timeout(options), follower)
        return await self._within(options.get("timeout"), follower, followed)

    def conversation(self, *, context_id: str = "", task_id: str = "") -> Conversation:
        """Turns that belong together; ids are kept for you. Give those of an earlier conversation to take it up."""
        return Conversation(self, context_id=context_id, task_id=task_id)

    # Tasks.

    async def get_task(
        self, task: TaskRef, *, history_length: int | None = None, **options: Unpack[CallOptions]
    ) -> Task:
        """The task as it is now, with the ``history_length`` latest messages (None: as the agent likes)."""
        request = GetTaskRequest(id=_id(task), history_length=history_length)
        return await self._calls.call(GET_TASK, Task, request, options)

    async def list_tasks(
        self,
        *,
        context_id: str = "",
        status: TaskState = TaskState.UNSPECIFIED,
        page_size: int | None = None,
        page_token: str = "",
        history_length: int | None = None,
        status_timestamp_after: datetime | None = None,
        include_artifacts: bool | None = None,
        **options: Unpack[CallOptions],
    ) -> ListTasksResponse:
        """One page of tasks, newest status first. ``next_page_token`` of the answer leads to the next, empty on the
        last.

        Filters narrow together; ``status_timestamp_after`` is inclusive. See :meth:`tasks` for all pages.
        """
        request = ListTasksRequest(
            context_id=context_id,
            status=status,
            page_size=page_size,
            page_token=page_token,
            history_length=history_length,
            status_timestamp_after=_timestamp(status_timestamp_after),
            include_artifacts=include_artifacts,
        )
        return await self._calls.call(LIST_TASKS, ListTasksResponse, request, options)

    async def tasks(
        self,
        *,
        context_id: str = "",
        status: TaskState = TaskState.UNSPECIFIED,
        page_size: int | None = None,
        history_length: int | None = None,
        status_timestamp_after: datetime | None = None,
        include_artifacts: bool | None = None,
        **options: Unpack[CallOptions],
    ) -> AsyncIterator[Task]:
        """All tasks, page after page, with the filters of :meth:`list_tasks`. Spec: LIST-08."""
        token = ""
        while True:
            page = await self.list_tasks(
                context_id=context_id,
                status=status,
                page_size=page_size,
                page_token=token,
                history_length=history_length,
                status_timestamp_after=status_timestamp_after,
                include_artifacts=include_artifacts,
                **options,
            )
            for task in page.tasks:
                yield task
            if page.next_page_token and page.next_page_token == token:
                raise InvalidAgentResponseError("ListTasks leads back to the same page")
            token = page.next_page_token
            if not token:
                return

    async def cancel(
        self, task: TaskRef, *, metadata: Mapping[str, Any] | None = None, **options: Unpack[CallOptions]
    ) -> Task:
        """Ask for a task to be canceled. Read the state of the answer: success is not promised (Spec: CANCEL-01,
        AMB-13).

        A task that was canceled before counts as success (Spec: AMB-12). Raises TaskNotCancelableError otherwise.
        """
        request = CancelTaskRequest(id=_id(task), metadata=dict(metadata) if metadata is not None else None)
        try:
            return await self._calls.call(CANCEL_TASK, Task, request, options)
        except TaskNotCancelableError:
            found = await self.get_task(task, **options)
            if found.status.state is not TaskState.CANCELED:
                raise
            return found

    def subscribe(
        self, task: TaskRef, *, last_event_id: str | None = None, **options: Unpack[CallOptions]
    ) -> ClientStream:
        """Follow a task: first the Task as it is, then its events, until it is over or the agent ends the stream.

        A task that is over already is yielded as the only event (Spec: AMB-08). With ``last_event_id`` (that of an
        earlier stream) and an agent whose streams are resumable, the events after that one come instead.
        """
        progress = Progress(_id(task))
        if last_event_id is not None and last_event_id.isascii() and last_event_id.isdecimal():
            progress.number = int(last_event_id)
        return self._subscribe(progress, options, frozenset())

    # Push notification configurations.

    async def create_push_config(
        self, task: TaskRef, config: TaskPushNotificationConfig | str, **options: Unpack[CallOptions]
    ) -> TaskPushNotificationConfig:
        """Register a webhook (or just its address) for a task. Returns it as stored, with its id. Spec: PCFG-03."""
        if isinstance(config, str):
            config = TaskPushNotificationConfig(url=config)
        request = replace(config, task_id=_id(task))
        return await self._calls.call(
            CREATE_TASK_PUSH_NOTIFICATION_CONFIG, TaskPushNotificationConfig, request, options
        )

    async def get_push_config(
        self, task: TaskRef, config_id: str, **options: Unpack[CallOptions]
    ) -> TaskPushNotificationConfig:
        """A webhook of a task."""
        request = GetTaskPushNotificationConfigRequest(task_id=_id(task), id=config_id)
        return await self._calls.call(GET_TASK_PUSH_NOTIFICATION_CONFIG, TaskPushNotificationConfig, request, options)

    async def list_push_configs(
        self, task: TaskRef, *, page_size: int = 0, page_token: str = "", **options: Unpack[CallOptions]
    ) -> ListTaskPushNotificationConfigsResponse:
        """The webhooks of a task, one page."""
        request = ListTaskPushNotificationConfigsRequest(task_id=_id(task), page_size=page_size, page_token=page_token)
        kind = ListTaskPushNotificationConfigsResponse
        return await self._calls.call(LIST_TASK_PUSH_NOTIFICATION_CONFIGS, kind, request, options)

    async def delete_push_config(self, task: TaskRef, config_id: str, **options: Unpack[CallOptions]) -> None:
        """Remove a webhook of a task. Removing it again is fine (Spec: PCFG-09)."""
        request = DeleteTaskPushNotificationConfigRequest(task_id=_id(task), id=config_id)
        await self._calls.call(DELETE_TASK_PUSH_NOTIFICATION_CONFIG, Empty, request, options)

    # The card.

    async def get_extended_card(self, **options: Unpack[CallOptions]) -> AgentCard:
        """The fuller card for authenticated callers. It becomes :attr:`card`. Spec: XCARD-01, XCARD-10.

        Its signatures are subject to the policy of the connection: raises CardSignatureError.
        """
        request = GetExtendedAgentCardRequest()
        card = await self._calls.call(GET_EXTENDED_AGENT_CARD, AgentCard, request, options)
        if self.check_further_card is not None:
            await self.check_further_card(card, self.interface.protocol_version)
        self._calls.card = card
        return card

    # Extensions.

    async def call_method(
        self, name: str, params: Mapping[str, Any] | None = None, *, path: str = "", **options: Unpack[CallOptions]
    ) -> dict[str, Any]:
        """Call a method that an extension of the agent adds; ``extensions`` has to name it, if the client does not.

        ``path`` is where HTTP+JSON has it, default ``/extensions/`` and the name. Spec: EXT-13.
        """
        op = method_operation(name, path or f"/extensions/{name}")
        response = await self._calls.call(op, OpenMessage, OpenMessage(members=dict(params or {})), options)
        return response.members

    # How.

    def _compose(self, content: Content, options: MessageOptions) -> SendMessageRequest:
        if options.get("push") is not None:
            self._calls.check("push_notifications", SEND_MESSAGE.name)
        return compose(content, options, new_id=self._calls.settings.clock.new_id)

    async def _send(self, request: SendMessageRequest, options: CallOptions, *, wait: bool) -> Task | Message:
        default = None if wait else self._calls.settings.timeout
        response = await self._calls.call(SEND_MESSAGE, SendMessageResponse, request, options, timeout=default)
        answer = response.task or response.message
        if answer is None:
            raise InvalidAgentResponseError("SendMessage was answered with neither a task nor a message")
        return answer

    def _stream(self, request: SendMessageRequest, options: CallOptions, until: frozenset[TaskState]) -> ClientStream:
        progress = Progress(known=bool(request.message.task_id))
        return self._calls.stream(SEND_STREAMING_MESSAGE, request, options, progress, until=until)

    def _subscribe(self, progress: Progress, options: CallOptions, until: frozenset[TaskState]) -> ClientStream:
        request = SubscribeToTaskRequest(id=progress.task_id)
        return self._calls.stream(SUBSCRIBE_TO_TASK, request, options, progress, until=until)

    async def _run(self, request: SendMessageRequest, options: CallOptions, follower: Follower) -> Result:
        streams = self._calls.offers("streaming") and not follower.is_pushed
        if not (streams and await follower.stream(self._stream(request, options, INTERRUPTED))):
            # An immediate answer about a task that was there before may show the state before the message.
            wait = bool(request.message.task_id)
            answer = await self._send(request if wait else without_waiting(request), options, wait=wait)
            await follower.take_answer(answer)
        return await follower.finish()

    async def _wait(self, task_id: str, options: CallOptions, follower: Follower) -> Result:
        streams = self._calls.offers("streaming") and not follower.is_pushed
        if not (streams and await follower.stream(self._subscribe(Progress(task_id), options, _ASKING))):
            await follower.poll(task_id)
        return await follower.finish()

    def _follower(
        self,
        until: frozenset[TaskState],
        options: CallOptions,
        on_event: OnEvent | None,
        pushed: Pushed | None,
    ) -> Follower:
        settings = self._calls.settings
        return Follower(
            until=until,
            get_task=self._calls.get_task(options),
            poll=settings.poll,
            reconnect=settings.reconnect,
            on_event=on_event,
            pushed=pushed,
        )

    async def _within(self, timeout: float | None, follower: Follower, followed: Awaitable[Result]) -> Result:
        limit = asyncio.timeout(timeout)
        try:
            async with limit:
                return await followed
        except TimeoutError as error:
            if not limit.expired():
                raise
            which = f"the task {follower.task_id} goes on" if follower.task_id else "no task is known"
            raise RequestTimeoutError(f"The run took longer than {timeout:g} s; {which}") from error


def _id(task: TaskRef) -> str:
    return task if isinstance(task, str) else task.id


def _timestamp(moment: datetime | None) -> Timestamp | None:
    if moment is None or isinstance(moment, Timestamp):
        return moment
    if moment.tzinfo is None:
        raise ValueError("a moment needs a time zone")
    return Timestamp.from_ms(round(moment.timestamp() * 1000))
