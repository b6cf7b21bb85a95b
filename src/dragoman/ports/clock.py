"""Time and ids: the two things that pure code must be given."""

from __future__ import annotations

import os
import time
from typing import Protocol


class Clock(Protocol):
    """Wall clock and id source of a runtime."""

    def now_ms(self) -> int:
        """Milliseconds since the epoch, UTC."""
        ...

    def new_id(self) -> str:
        """A fresh unique id, without ``/`` and ``:`` (Spec: AMB-90)."""
        ...


class SystemClock:
    """The machine's clock, and random ids of 128 bits that sort by time of creation."""

    def now_ms(self) -> int:
        """Milliseconds since the epoch, UTC."""
        return time.time_ns() // 1_000_000

    def new_id(self) -> str:
        """48 bits of milliseconds and 80 random bits in hex, as a UUID of version 7 has them."""
        h = f"{time.time_ns() // 1_000_000:012x}{os.urandom(10).hex()}"
        return f"{h[:8]}-{h[8:12]}-7{h[13:16]}-{'89ab'[int(h[16], 16) & 3]}{h[17:20]}-{h[20:]}"
