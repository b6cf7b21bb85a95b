"""When a call is made again. Pure: time and chance are passed in.

Four kinds of failure pass by themselves. *Busy*: the session is being set up or taken down, nothing was done, and
every call may be repeated within a window. *Throttled*: likewise, but slower and only a few times. *Failed* (the
agent's process, the service, the connection): something may have been done, so that only calls without side effects
are repeated, unless the user wants more. Everything else is an answer.

Spec: AC-C-50 to AC-C-55; section 6.7 of the register.
"""

from __future__ import annotations

from enum import Enum

import msgspec


class Passing(Enum):
    """Kinds of failures that may pass."""

    BUSY = "busy"
    THROTTLED = "throttled"
    FAILED = "failed"


class Retry(msgspec.Struct, frozen=True, kw_only=True):
    """How often and how fast calls are made again. Times are in seconds.

    * ``busy_first``, ``busy_factor``, ``busy_longest``: waits for a busy session (0.5, times 2, at most 4), within
      ``busy_window`` (20; 0 for no retries);
    * ``throttled_tries``: further tries when throttled (3), after ``throttled_first`` (1) times ``throttled_factor``
      (2);
    * ``failed_tries``: further tries of calls without side effects after a failure (2), after ``failed_first`` (0.5)
      times ``failed_factor`` (2);
    * ``repeat_sends``: whether messages count as such calls. They may then reach the agent twice;
    * ``jitter``: the part by which a wait may be longer or shorter at random (0.2);
    * ``longest_asked``: a wait that the service asks for and that is longer is not waited for (60).
    """

    busy_first: float = 0.5
    busy_factor: float = 2.0
    busy_longest: float = 4.0
    busy_window: float = 20.0
    throttled_tries: int = 3
    throttled_first: float = 1.0
    throttled_factor: float = 2.0
    failed_tries: int = 2
    failed_first: float = 0.5
    failed_factor: float = 2.0
    repeat_sends: bool = False
    jitter: float = 0.2
    longest_asked: float = 60.0


class Attempts:
    """The attempts of one call. ``safe``: it has no side effects; ``deadline``: the moment to be done by, or None."""

    def __init__(self, retry: Retry, *, safe: bool, started: float, deadline: float | None = None) -> None:
        self._retry = retry
        self._safe = safe or retry.repeat_sends
        self._started = started
        self._deadline = deadline
        self._failures = dict.fromkeys(Passing, 0)
        self.made = 0

    def begin(self) -> None:
        """Count an attempt."""
        self.made += 1

    def left(self, now: float) -> float | None:
        """The seconds until the deadline, None when there is none."""
        return None if self._deadline is None else max(self._deadline - now, 0.0)

    def wait(self, kind: Passing | None, now: float, *, asked: float = 0.0, chance: float = 0.0) -> float | None:
        """Seconds to wait after a failure, None when it is the end.

        ``asked`` are seconds that the service asks for, ``chance`` a number from -1 to 1 for the jitter. A wait that
        would not end before the deadline is not begun (Spec: AC-C-55).
        """
        if kind is None:
            return None
        wait = self._wait(kind, self._failures[kind])
        self._failures[kind] += 1
        if wait is None or asked > self._retry.longest_asked:
            return None
        wait = max(wait * (1 + self._retry.jitter * chance), asked)
        if kind is Passing.BUSY and now + wait - self._started > self._retry.busy_window:
            return None
        left = self.left(now)
        return None if left is not None and wait >= left else wait

    def _wait(self, kind: Passing, failures: int) -> float | None:
        retry = self._retry
        if kind is Passing.BUSY:
            return min(retry.busy_first * retry.busy_factor ** min(failures, 64), retry.busy_longest)
        if kind is Passing.THROTTLED:
            wait = retry.throttled_first * retry.throttled_factor**failures
            return wait if failures < retry.throttled_tries else None
        wait = retry.failed_first * retry.failed_factor**failures
        return wait if self._safe and failures < retry.failed_tries else None
