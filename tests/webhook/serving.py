"""A receiver on a real socket."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from dragoman.webhook import Receiver
from tests.bindings.parts import served


@asynccontextmanager
async def receiving(make: Callable[[str], Receiver]) -> AsyncIterator[Receiver]:
    """Serve the receiver that is made for an address, until the block ends."""
    made: list[Receiver] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await made[0](scope, receive, send)

    async with served(app) as (host, port):
        made.append(make(f"http://{host}:{port}/hook"))
        yield made[0]
        await made[0].aclose()
