"""A rate limiter: a bucket of calls that fills up again with time.

Spec: AC-F-11.
"""

from __future__ import annotations

from collections.abc import Callable


class RateLimiter:
    """Lets ``rate`` calls through in a second, and as many at once; None: all."""

    def __init__(self, rate: float | None, now: Callable[[], float]) -> None:
        self._rate = rate
        self._now = now
        self._left = rate or 0.0
        self._at = now()

    def admit(self) -> bool:
        """Whether one more call may pass now."""
        if self._rate is None:
            return True
        now = self._now()
        self._left = min(self._rate, self._left + max(0.0, now - self._at) * self._rate)
        self._at = now
        if self._left < 1:
            return False
        self._left -= 1
        return True
