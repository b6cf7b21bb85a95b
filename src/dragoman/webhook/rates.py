"""A limit on how often each sender may come: buckets of tokens that fill up with time. Pure.

Spec: PUSH-15.
"""

from __future__ import annotations

MOST_SENDERS = 10_000


class Rates:
    """``rate`` requests a second for each sender, ``burst`` at once. Of senders beyond ten thousand, the one that came
    last longest ago is forgotten."""

    def __init__(self, rate: float, burst: int) -> None:
        self._rate = rate
        self._burst = float(burst)
        self._left: dict[str, tuple[float, float]] = {}

    def take(self, sender: str, now: float) -> float:
        """0 when a request of the sender may come now, by any clock in seconds; else how long it has to wait."""
        tokens, since = self._left.pop(sender, (self._burst, now))
        tokens = min(self._burst, tokens + max(0.0, now - since) * self._rate)
        wait = 0.0 if tokens >= 1 else (1 - tokens) / self._rate
        self._left[sender] = (tokens if wait else tokens - 1, now)
        if len(self._left) > MOST_SENDERS:
            del self._left[next(iter(self._left))]
        return wait
