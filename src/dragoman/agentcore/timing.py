"""Time and chance of a client, so that tests can bring their own."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable

import msgspec


def _chance() -> float:
    return random.uniform(-1.0, 1.0)


class Timing(msgspec.Struct, frozen=True, kw_only=True):
    """Where a client takes time and chance from.

    ``wall``: seconds since the epoch; ``monotonic``: seconds that never go back; ``sleep``: waits for seconds;
    ``chance``: a number from -1 to 1.
    """

    wall: Callable[[], float] = time.time
    monotonic: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    chance: Callable[[], float] = _chance
