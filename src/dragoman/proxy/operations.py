"""The operations of a remote agent, to be served again. A proxy is a client served again: nothing is kept here.

Requests and answers pass as they are, with what belongs beside them; only what would be untrue in our mouth is changed
(the extended card) or refused (webhooks that are not passed on).

Spec: §3.1, PARAM-01, EXT-02, EXT-09, VER-07, PCFG-10, STRM-04, XCARD-01.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import msgspec
from msgspec.structs import replace

from dragoman.client import ClientStream, Reconnect
from dragoman.client.line import Line
from dragoman.client.progress import Progress
from dragoman.errors import (
    A2AError,
    ConnectError,
    DragomanError,
    InvalidAgentResponseError,
    PushNotificationNotSupportedError,
)
from dragoman.extensions import trace_headers
from dragoman.model import (
    GET_TASK,
    SEND_MESSAGE,
    SUBSCRIBE_TO_TASK,
    AgentCard,
    GetTaskRequest,
    Operation,
    SendMessageRequest,
    SubscribeToTaskRequest,
    Task,
    encode_json,
)
from dragoman.ports.operations import CallContext, EventStream
from dragoman.protocol.extensions import RESUMABLE_STREAMS, TRACE_CONTEXT
from dragoman.protocol.versions import check_version
from dragoman.proxy.failures import told
from dragoman.proxy.headers import Beside, activated
from dragoman.proxy.link import Link, Upstream
from dragoman.proxy.open_work import OpenWork, leaving
from dragoman.proxy.stream import ProxiedStream


class ProxySettings(msgspec.Struct, frozen=True, kw_only=True):
    """How calls are passed on.

    ``timeout``: seconds that a call may take at most, unless it waits for a task; ``opening``: seconds until a stream
    is open; ``push``: whether webhooks are passed on; ``infer_version``: take a call without a version as one of 1.0.
    """

    timeout: float | None = 60.0
    opening: float | None = 300.0
    reconnect: Reconnect = Reconnect()
    push: bool = True
    infer_version: bool = False


class ProxyOperations:
    """Operations over a link. ``derive`` makes of the agent's extended card one that is true of us."""

    def __init__(
        self,
        link: Link,
        beside: Beside,
        settings: ProxySettings,
        work: OpenWork,
        derive: Callable[[AgentCard], AgentCard],
    ) -> None:
        self._link = link
        self._beside = beside
        self._settings = settings
        self._work = work
        self._derive = derive

    async def call(self, op: Operation, request: msgspec.Struct, context: CallContext) -> msgspec.Struct:
        """See :class:`~dragoman.ports.operations.Operations`."""
        self._admit(op, request, context)
        request = _for_tenant(request, context)
        with self._link.current as upstream:
            outgoing = self._context(context, upstream, self._time_for(op, request, context))
            try:
                response = await self._work.run(upstream.operations.call(op, request, outgoing))
            except DragomanError as error:
                raise self._told(error, op) from error
            finally:
                context.activated = activated(context.extensions, outgoing.activated)
        if not isinstance(response, AgentCard):
            return response
        card = self._derive(response)
        context.etag = hashlib.sha256(encode_json(card)).hexdigest()[:32]  # made for this caller: XCARD-11
        return card

    async def stream(self, op: Operation, request: msgspec.Struct, context: CallContext) -> EventStream:
        """See :class:`~dragoman.ports.operations.Operations`."""
        self._admit(op, request, context)
        request = _for_tenant(request, context)
        with self._link.current as upstream:
            outgoing = self._context(context, upstream, _least(context.timeout, self._settings.opening), streaming=True)
            stream = self._client_stream(op, request, outgoing, upstream)
            try:
                await self._work.run(stream.open())
            except DragomanError as error:
                raise self._told(error, op) from error
            finally:
                context.activated = activated(context.extensions, outgoing.activated)
            return ProxiedStream(op, stream, upstream, self._work)

    def _admit(self, op: Operation, request: msgspec.Struct, context: CallContext) -> None:
        if self._work.leaving:
            raise leaving()
        if context.version != "1.0":
            check_version(context.version, infer=self._settings.infer_version)
        if not self._settings.push and (op.capability == "push_notifications" or _asks_for_push(request)):
            raise PushNotificationNotSupportedError(
                "This server does not pass push notifications on", metadata={"operation": op.name}
            )

    def _context(
        self, given: CallContext, upstream: Upstream, timeout: float | None, *, streaming: bool = False
    ) -> CallContext:
        """What goes beside the call. The streams that we read are resumed where they can be, whoever reads ours."""
        more = (RESUMABLE_STREAMS,) if streaming and upstream.resumable else ()
        headers = self._beside.headers(given.parameters, trusted=upstream.trusted)
        if TRACE_CONTEXT in given.extensions:
            headers = {**trace_headers(given.parameters), **headers}
        return CallContext(
            extensions=self._beside.extensions(given.extensions, more),
            parameters=headers,
            last_event_id=given.last_event_id if RESUMABLE_STREAMS in given.extensions else None,
            caller=given.caller,
            timeout=timeout,
        )

    def _time_for(self, op: Operation, request: msgspec.Struct, context: CallContext) -> float | None:
        """A message that waits for its task may take as long as that takes."""
        waits = op is SEND_MESSAGE and isinstance(request, SendMessageRequest) and not _returns_at_once(request)
        return context.timeout if waits else _least(context.timeout, self._settings.timeout)

    def _client_stream(
        self, op: Operation, request: msgspec.Struct, outgoing: CallContext, upstream: Upstream
    ) -> ClientStream:
        """A stream that begins with this request, and comes back by subscribing to the task."""
        tenant = getattr(request, "tenant", "")
        again = replace(outgoing, timeout=self._settings.opening, activated=())
        operations = upstream.operations

        async def subscribe(task_id: str, number: int | None) -> EventStream:
            context = replace(again, last_event_id=number)
            return await operations.stream(
                SUBSCRIBE_TO_TASK, SubscribeToTaskRequest(tenant=tenant, id=task_id), context
            )

        async def get_task(task_id: str) -> Task:
            context = replace(again, timeout=self._settings.timeout)
            found = await operations.call(GET_TASK, GetTaskRequest(tenant=tenant, id=task_id), context)
            if not isinstance(found, Task):
                raise InvalidAgentResponseError()
            return found

        line = Line(
            subscribe=subscribe,
            get_task=get_task,
            reconnect=self._settings.reconnect,
            resumable=upstream.resumable,
            later=upstream.later,
        )
        progress = Progress(request.id if isinstance(request, SubscribeToTaskRequest) else "")
        progress.number = outgoing.last_event_id
        return ClientStream(line, lambda: operations.stream(op, request, outgoing), progress)

    def _told(self, error: DragomanError, op: Operation) -> A2AError:
        if isinstance(error, ConnectError):
            self._link.doubt()
        return told(error, op)


def _for_tenant(request: msgspec.Struct, context: CallContext) -> msgspec.Struct:
    """The request for the tenant that the edge knows better. Spec: TEN-05."""
    return replace(request, tenant=context.tenant) if context.tenant else request


def _least(one: float | None, other: float | None) -> float | None:
    """The shorter of two times; None is no limit."""
    return other if one is None else one if other is None else min(one, other)


def _returns_at_once(request: SendMessageRequest) -> bool:
    return request.configuration is not None and request.configuration.return_immediately


def _asks_for_push(request: msgspec.Struct) -> bool:
    configuration = getattr(request, "configuration", None)
    return configuration is not None and configuration.task_push_notification_config is not None
