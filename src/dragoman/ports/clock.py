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
    """The machine's clock, and random ids that sort by the time at which they were made."""

    def now_ms(self) -> int:
        """Milliseconds since the epoch, UTC."""
        return time.time_ns() // 1_000_000

    def new_id(self) -> str:
        """A UUID of version 7: 48 bits of milliseconds and 74 bits from the system's source of randomness."""
        random = _take_random()
        ms = f"{time.time_ns() // 1_000_000:012x}"
        return f"{ms[:8]}-{ms[8:]}-7{random[:3]}-{_VARIANT[random[3]]}{random[4:7]}-{random[7:]}"


_DIGITS = 19
_POOL: list[str] = []
"""Random digits for the next ids: one call to the system for 64 of them. A child process must not inherit it."""

_VARIANT = {digit: "89ab"[int(digit, 16) & 3] for digit in "0123456789abcdef"}


def _take_random() -> str:
    try:
        return _POOL.pop()
    except IndexError:
        digits = os.urandom(64 * _DIGITS // 2 + 1).hex()
        _POOL.extend(digits[i : i + _DIGITS] for i in range(0, 63 * _DIGITS, _DIGITS))
        return _POOL.pop()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_POOL.clear)
