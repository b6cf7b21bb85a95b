"""The operations of a hosted agent: what the profile adds to each call.

An interceptor, outermost of all. It takes extensions as named where the front dropped the header, keeps the codes of
the front to the front, gives unknown failures a number to find them by, and bounds events and streams.

Spec: AC-S-16, AC-S-17, AC-S-23, AC-S-24, AC-S-32, AC-S-45, AC-S-53, AC-S-54.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

import msgspec

from dragoman.agentcore.headers import REQUEST_ID, SESSION_ID
from dragoman.errors import A2AError, InternalError
from dragoman.model import AgentCard, Operation, SendMessageRequest
from dragoman.ports.operations import CallContext, Event, EventStream, Operations

logger = logging.getLogger("dragoman.agentcore")

FRONT_CODES = range(-32055, -32050)
"""What the front of AgentCore alone may say."""

EVENT_ENVELOPE = 4_096
"""Bytes of a stream's event beyond its JSON: the JSON-RPC object with the caller's id, and the framing."""

REQUEST_INFO = "type.googleapis.com/google.rpc.RequestInfo"

_HINT = (
    "Calls come without A2A-Version: the version is taken from the method name. Allow A2A-Version and A2A-Extensions "
    "in the request headers of the runtime's configuration to have them passed on"
)


class CallSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What the profile does to calls.

    * ``extensions``: taken as named by a caller without ``A2A-Extensions``;
    * ``context_from_session``: a message without ``contextId`` belongs to a context named as the session;
    * ``most_event_bytes``: size of one event on a stream; ``most_stream_seconds``: age of a stream;
    * ``present``: makes the card for others of one that the agent gave.
    """

    extensions: tuple[str, ...] = ()
    context_from_session: bool = False
    most_event_bytes: int = 10_000_000
    most_stream_seconds: float = 3_300.0
    present: Callable[[AgentCard], AgentCard]


class HostedOperations:
    """Implements :class:`~dragoman.ports.operations.Operations` over those of the agent."""

    def __init__(self, operations: Operations, settings: CallSettings) -> None:
        self._operations = operations
        self._settings = settings
        self._hinted = False

    async def call(self, op: Operation, request: msgspec.Struct, context: CallContext) -> msgspec.Struct:
        """Run a unary operation."""
        request = self._prepare(request, context)
        try:
            response = await self._operations.call(op, request, context)
        except Exception as error:
            raise told(error, context) from error
        return self._settings.present(response) if isinstance(response, AgentCard) else response

    async def stream(self, op: Operation, request: msgspec.Struct, context: CallContext) -> EventStream:
        """Open a streaming operation."""
        request = self._prepare(request, context)
        try:
            stream = await self._operations.stream(op, request, context)
        except Exception as error:
            raise told(error, context) from error
        return HostedStream(stream, context, self._settings)

    def _prepare(self, request: msgspec.Struct, context: CallContext) -> msgspec.Struct:
        settings = self._settings
        if not self._hinted and not context.parameters.get("a2a-version"):
            self._hinted = True
            logger.info(_HINT)
        if settings.extensions and not context.extensions:
            context.extensions = settings.extensions
        if settings.context_from_session and isinstance(request, SendMessageRequest):
            return _in_session(request, context)
        return request


def _in_session(request: SendMessageRequest, context: CallContext) -> SendMessageRequest:
    message = request.message
    session_id = context.parameters.get(SESSION_ID)
    if not session_id or message.context_id or message.task_id:
        return request
    return msgspec.structs.replace(request, message=msgspec.structs.replace(message, context_id=session_id))


def told(error: Exception, context: CallContext) -> A2AError:
    """The error that the caller is told: no code of the front, and unknown failures by the number of the request."""
    request_id = context.parameters.get(REQUEST_ID, "")
    if isinstance(error, A2AError) and error.code not in FRONT_CODES:
        if type(error) is not InternalError or error.extra_details:
            return error
        text = error.message
    elif isinstance(error, A2AError):
        text = "The agent failed"
        logger.error("An error of the agent has the code %d, which is for the front of AgentCore only", error.code)
    else:
        text = InternalError.default_message
    logger.error("Request %s failed", request_id, exc_info=error)
    details = [{"@type": REQUEST_INFO, "requestId": request_id}] if request_id else []
    return InternalError(text, extra_details=details)


class HostedStream(EventStream):
    """A stream within the limits of the front: no event is too large, and it ends before the front ends it."""

    def __init__(self, stream: EventStream, context: CallContext, settings: CallSettings) -> None:
        self._stream = stream
        self._context = context
        self._most = settings.most_event_bytes - EVENT_ENVELOPE
        self._ends = asyncio.get_running_loop().time() + settings.most_stream_seconds
        self._error: A2AError | None = None

    async def next_batch(self) -> list[Event]:
        """The next events. Ends when the stream is too old; raises InternalError for an event that is too large."""
        if self._error is not None:
            raise self._error
        if asyncio.get_running_loop().time() >= self._ends:
            return []
        try:
            async with asyncio.timeout_at(self._ends) as bound:
                batch = await self._stream.next_batch()
        except TimeoutError as error:
            if bound.expired():
                return []
            raise told(error, self._context) from error
        except Exception as error:
            raise told(error, self._context) from error
        return self._within(batch)

    def _within(self, batch: list[Event]) -> list[Event]:
        for place, event in enumerate(batch):
            if len(event.json) > self._most:
                logger.error(
                    "An event of %d bytes is larger than the front passes on; its stream ends", len(event.json)
                )
                self._error = InternalError("An event is too large to be streamed; get the task instead")
                if not place:
                    raise self._error
                return batch[:place]
        return batch

    async def aclose(self) -> None:
        """Let go of the stream."""
        await self._stream.aclose()
