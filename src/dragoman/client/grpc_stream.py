"""The events of one gRPC call.

Theory. gRPC breaks a call whose read is cancelled. So one task reads, ahead of whoever takes the events and up to a
bound, and ``next_batch`` only waits for it: cancelling that loses nothing.

Spec: GRPC-02, STREAM-10, AMB-09, AMB-10.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

from dragoman.bindings.grpc.client_form import EventReader
from dragoman.bindings.grpc.library import aio
from dragoman.bindings.grpc.metadata import has_version
from dragoman.errors import ConnectionLostError, DragomanError, InvalidAgentResponseError, InvalidParamsError
from dragoman.ports.operations import Event, EventStream

MOST_MESSAGES = 256
MOST_BYTES = 1024 * 1024
"""What is read ahead."""

_PATIENCE = 1.0
"""Seconds after the head until a stream that has neither an event nor an end counts as open."""


class GrpcEventStream(EventStream):
    """A stream over a call that was begun. ``translate`` makes errors of those of gRPC; ``url`` is for messages."""

    def __init__(
        self, call: Any, reader: EventReader, translate: Callable[[aio.AioRpcError], DragomanError], url: str
    ) -> None:
        self._call = call
        self._events = reader
        self._translate = translate
        self._url = url
        self._ready: list[bytes] = []
        self._size = 0
        self._failure: Exception | None = None
        self._ended = False
        self._arrived = asyncio.Event()
        self._room = asyncio.Event()
        self._reader: asyncio.Task[None] | None = None

    async def opened(self) -> Any:
        """Wait until the stream is open; gives the head of the answer. Raises the error that came instead (AMB-09)."""
        head = await self._call.initial_metadata()
        self._reader = asyncio.create_task(self._read())
        if not has_version(head):
            # A refusal looks like this, too. Other servers send the head with the first event, or long before it.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_PATIENCE):
                    await self._arrived.wait()
        if self._failure is not None and not self._ready:
            raise self._failure
        return head

    async def next_batch(self) -> list[Event]:
        """See :class:`~dragoman.ports.operations.EventStream`. Raises ConnectionLostError when the stream broke."""
        while True:
            while not self._ready:
                if self.concluded:
                    await self.aclose()
                if self._failure is not None:
                    raise self._failure
                if self._ended:
                    return []
                self._arrived.clear()
                await self._arrived.wait()
            messages, self._ready, self._size = self._ready, [], 0
            self._room.set()
            events = self._decode(messages)
            if events:
                return events

    async def aclose(self) -> None:
        """End the call. Safe to call twice."""
        self._ended, self._failure = True, None
        self._ready.clear()
        self._call.cancel()
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.cancel()
            await asyncio.wait((reader,))
        self._arrived.set()

    async def _read(self) -> None:
        read = self._call.read
        try:
            while (data := await read()) is not aio.EOF:
                self._ready.append(data)
                self._size += len(data)
                self._arrived.set()
                if len(self._ready) >= MOST_MESSAGES or self._size >= MOST_BYTES:
                    self._room.clear()
                    await self._room.wait()
            self._ended = True
        except aio.AioRpcError as error:
            self._fail(self._translate(error), error)
        except asyncio.CancelledError:
            self._fail(ConnectionLostError("The stream was closed", url=self._url), None)
        finally:
            self._arrived.set()

    def _fail(self, failure: Exception, cause: BaseException | None) -> None:
        if not self._ended:
            failure.__cause__ = cause
            self._failure, self._ended = failure, True

    def _decode(self, messages: list[bytes]) -> list[Event]:
        """Decode messages; a failure waits until those before it were taken."""
        events: list[Event] = []
        try:
            for message in messages:
                if self.concluded:
                    break
                events += self._events.read(message)
                self.concluded = self._events.over
        except InvalidParamsError as error:
            self._ended = False  # the end that was read ahead is none
            self._fail(InvalidAgentResponseError(f"The agent's answer cannot be understood: {error}"), None)
            self._call.cancel()
        return events
