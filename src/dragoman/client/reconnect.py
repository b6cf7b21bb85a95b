"""How a client comes back after a failure that may pass."""

from __future__ import annotations

import random

import msgspec

from dragoman.errors import (
    A2AError,
    ConnectError,
    ConnectionLostError,
    DragomanError,
    RateLimitedError,
    RequestTimeoutError,
    UnavailableError,
)

PASSING = (ConnectError, ConnectionLostError, RequestTimeoutError, UnavailableError, RateLimitedError)
"""Failures after which a repeat makes sense. Spec: AMB-38."""


class Reconnect(msgspec.Struct, frozen=True, kw_only=True):
    """How often and how fast to come back to a stream that was cut.

    ``attempts`` in a row without a new event (default 8; 0 turns it off), the ``first`` wait in seconds (0.2),
    doubled each time up to the ``longest`` (10), each shortened by a random part of up to one half.
    """

    attempts: int = 8
    first: float = 0.2
    longest: float = 10.0

    def wait(self, failures: int, cause: BaseException | None) -> float | None:
        """Seconds to wait after so many failures in a row (0: the first), None when it is enough."""
        if failures >= self.attempts:
            return None
        wait = backoff(failures, self.first, self.longest)
        return max(wait, min(asked_wait(cause), self.longest))


def backoff(count: int, first: float, longest: float, factor: float = 2.0) -> float:
    """The wait before attempt ``count`` (from 0): growing, bounded, and shortened at random by up to one half."""
    wait = min(first * factor ** min(count, 64), longest)
    return wait * (1 - random.random() / 2)


def asked_wait(cause: BaseException | None) -> float:
    """The seconds that the peer asked for, 0 when it did not."""
    return cause.retry_after or 0.0 if isinstance(cause, A2AError) else 0.0


def is_passing(error: DragomanError) -> bool:
    """Whether a repeat makes sense."""
    return isinstance(error, PASSING)
