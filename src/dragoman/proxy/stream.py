"""A stream of the agent as a stream of ours.

Theory. Whoever reads our stream may be cancelled while it waits, and come back (a heartbeat is sent so); a read from
the network cannot. So the read is a task of its own, one at a time, begun when somebody asks: what nobody reads here is
not read there either. A cut is mended below, by the client's stream.

Spec: STRM-04, STREAM-10, AMB-03, AMB-10.
"""

from __future__ import annotations

import asyncio

from dragoman.client import ClientStream
from dragoman.errors import A2AError, DragomanError
from dragoman.model import Operation
from dragoman.ports.operations import Event, EventStream
from dragoman.proxy.failures import told
from dragoman.proxy.link import Upstream
from dragoman.proxy.open_work import OpenWork, leaving


class ProxiedStream(EventStream):
    """An open stream of the agent, which holds on to the connection it came by."""

    def __init__(self, op: Operation, stream: ClientStream, upstream: Upstream, work: OpenWork) -> None:
        self._op = op
        self._stream = stream
        self._upstream = upstream
        self._work = work
        self._reading: asyncio.Task[list[Event]] | None = None
        self._failure: A2AError | None = None
        self._closed = False
        upstream.__enter__()
        work.begin(self, self._end)

    async def next_batch(self) -> list[Event]:
        """See :class:`~dragoman.ports.operations.EventStream`."""
        if self._failure is not None:
            raise self._failure
        if self._closed:
            return []
        if self._reading is None:
            self._reading = asyncio.create_task(self._stream.next_batch())
        reading = self._reading
        await asyncio.wait((reading,))
        self._reading = None
        try:
            return reading.result()
        except DragomanError as error:
            raise told(error, self._op) from error
        except asyncio.CancelledError:
            if self._failure is not None:
                raise self._failure from None
            raise

    async def aclose(self) -> None:
        """See :class:`~dragoman.ports.operations.EventStream`."""
        if self._closed:
            return
        self._closed = True
        try:
            await self._stop_reading()
            await self._stream.aclose()
        finally:
            self._work.finish(self)
            self._upstream.__exit__()

    async def _stop_reading(self) -> None:
        reading, self._reading = self._reading, None
        if reading is not None:
            reading.cancel()
            await asyncio.wait((reading,))
            if not reading.cancelled():
                reading.exception()  # nobody is left to be told

    def _end(self) -> None:
        """The server ends: its reader is told so, now or at its next read."""
        self._failure = leaving()
        if self._reading is not None:
            self._reading.cancel()
