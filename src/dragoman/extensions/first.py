"""Calls that go on without their caller until it is known what they begin.

A caller that is lost comes back with the same message, and must find what its first call began, and not begin it again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from dragoman.ports.operations import EventStream

T = TypeVar("T")


class FirstCalls:
    """The calls of one agent that are under way, and those that lost their callers."""

    def __init__(self) -> None:
        self._left: set[asyncio.Task[None]] = set()

    async def run(self, work: Coroutine[Any, Any, T], known: asyncio.Event) -> T:
        """Run a call. When it is cancelled before ``known`` is set, it goes on alone until then."""
        call = asyncio.get_running_loop().create_task(work)
        try:
            return await asyncio.shield(call)
        except asyncio.CancelledError:
            left = asyncio.get_running_loop().create_task(_let_go(call, known))
            self._left.add(left)
            left.add_done_callback(self._left.discard)
            raise


async def _let_go(call: asyncio.Task[T], known: asyncio.Event) -> None:
    knowing = asyncio.get_running_loop().create_task(known.wait())
    await asyncio.wait({call, knowing}, return_when=asyncio.FIRST_COMPLETED)
    knowing.cancel()
    call.cancel()
    (outcome,) = await asyncio.gather(call, return_exceptions=True)
    if isinstance(outcome, EventStream):
        await outcome.aclose()
