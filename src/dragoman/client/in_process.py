"""Operations of an agent in this process, as a wire would carry them.

Requests and answers go through JSON, so that nothing is shared between the two sides and what cannot be sent cannot
be used here either. A failure that is no error of the protocol is logged and becomes InternalError, as at an endpoint.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeVar

import msgspec

from dragoman.errors import A2AError, InternalError, InvalidAgentResponseError, InvalidParamsError, RequestTimeoutError
from dragoman.model import EncodingError, Operation, WireMessage, decode_json, encode_json
from dragoman.ports.operations import CallContext, Caller, Event, EventStream, Operations

logger = logging.getLogger("dragoman.client")

T = TypeVar("T")
Identify = Callable[[MutableMapping[str, Any]], Awaitable[Caller]]


class InProcess:
    """Operations over other Operations of the same process. ``context.timeout`` is kept as on a wire.

    ``identify``: how the agent identifies its callers, as on a wire: by what they send as headers (Spec: AUTH-05).
    """

    def __init__(self, operations: Operations, identify: Identify | None = None) -> None:
        self._operations = operations
        self._identify = identify

    async def call(self, op: Operation, request: msgspec.Struct, context: CallContext) -> msgspec.Struct:
        """See :class:`~dragoman.ports.operations.Operations`."""
        sent = _carry_request(op, request)
        await asyncio.sleep(0)  # as a wire would: a loop of calls must not keep the agent from its work
        await self._introduce(op, context)
        response = await _answered(op, self._operations.call(op, sent, context), context.timeout)
        return _carry_response(op.response, response)

    async def stream(self, op: Operation, request: msgspec.Struct, context: CallContext) -> EventStream:
        """See :class:`~dragoman.ports.operations.Operations`."""
        sent = _carry_request(op, request)
        await self._introduce(op, context)
        return _Carried(op, await _answered(op, self._operations.stream(op, sent, context), context.timeout))

    async def _introduce(self, op: Operation, context: CallContext) -> None:
        if self._identify is not None:
            context.caller = await _answered(op, self._identify(_scope(context)), context.timeout)


def _scope(context: CallContext) -> MutableMapping[str, Any]:
    """A call in the form of an ASGI scope; its ``type`` is ``"in process"``."""
    pairs = [(name.lower(), value) for name, value in context.parameters.items()]
    return {
        "type": "in process",
        "method": "POST",
        "scheme": "https",
        "path": "/",
        "query_string": b"",
        "headers": [(name.encode("latin-1", "replace"), value.encode("latin-1", "replace")) for name, value in pairs],
        "client": None,
    }


class _Carried(EventStream):
    """A stream whose events are read anew from their JSON."""

    def __init__(self, op: Operation, stream: EventStream) -> None:
        self._op = op
        self._stream = stream

    async def next_batch(self) -> list[Event]:
        batch = await _answered(self._op, self._stream.next_batch(), None)
        return [Event(json=_json(event), number=event.number) for event in batch]

    async def aclose(self) -> None:
        await self._stream.aclose()


async def _answered(op: Operation, answer: Awaitable[T], timeout: float | None) -> T:
    limit = asyncio.timeout(timeout)
    try:
        async with limit:
            return await answer
    except A2AError:
        raise
    except Exception as error:
        if limit.expired():
            raise RequestTimeoutError(f"{op.name} took longer than {timeout:g} s") from error
        logger.exception("%s failed", op.name)
        raise InternalError() from error


def _carry_request(op: Operation, request: msgspec.Struct) -> msgspec.Struct:
    try:
        return decode_json(_kind(op.request), encode_json(request))
    except EncodingError as error:
        raise InvalidParamsError(f"The request cannot be written: {error}") from error


def _carry_response(kind: type[msgspec.Struct], response: msgspec.Struct) -> msgspec.Struct:
    try:
        return decode_json(_kind(kind), encode_json(response), lenient_required=True)
    except (EncodingError, InvalidParamsError) as error:
        raise InvalidAgentResponseError(f"The agent's answer cannot be sent: {error}") from error


def _json(event: Event) -> bytes:
    try:
        return event.json
    except EncodingError as error:
        raise InvalidAgentResponseError(f"The agent's event cannot be sent: {error}") from error


def _kind(kind: type[msgspec.Struct]) -> type[WireMessage]:
    assert issubclass(kind, WireMessage)
    return kind
