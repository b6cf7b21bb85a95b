"""Health: the ping machine with clocks, threads, a handler of the user's, and holds.

Theory. What changes the machine takes a lock for a few instructions; a ping never waits for it. It reads the machine's
last report, and when it has something to change itself (a hold that ran out, what the handler said) and the lock is
taken at this very moment, the change is left to the next ping. So code that is at work in other threads, also when it
holds the lock as its thread is suspended, cannot delay a ping.

Spec: AC-S-60 to AC-S-69, AC-S-73.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from math import inf

from dragoman.agentcore.holding import Hold
from dragoman.agentcore.ping import PingMachine, Report, RestoreDetector, Status
from dragoman.errors import ConfigurationError

logger = logging.getLogger("dragoman.agentcore")


class Health:
    """The health of a hosted agent; all methods may be called from any thread.

    * ``turn_age``: seconds after which a turn of the agent counts as hung, and no longer as busy; None (default): never
      (Spec: AC-S-67);
    * ``linger``: seconds that a task which waits for its caller keeps the microVM busy, default 0 (Spec: AC-S-68);
    * ``wall``, ``monotonic``: the clocks, in seconds;
    * ``restamp``: whether the stamp is renewed after a restore (rule 7).
    """

    def __init__(
        self,
        *,
        turn_age: float | None = None,
        linger: float = 0.0,
        wall: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
        restamp: bool = True,
    ) -> None:
        if turn_age is not None and turn_age <= 0:
            raise ConfigurationError("turn_age must be more than 0 seconds")
        if linger < 0:
            raise ConfigurationError("linger must be at least 0 seconds")
        self._turn_age = inf if turn_age is None else turn_age
        self._linger = linger
        self._wall = wall
        self._monotonic = monotonic
        self._restamp = restamp
        self._machine = PingMachine()
        self._lock = threading.Lock()
        self._turns: dict[object, int] = {}
        self._named: dict[int, str] = {}
        self._restores = RestoreDetector()

    # What a ping sees.

    @property
    def report(self) -> Report | None:
        """What a ping is answered with now; None: 503. Waits for nobody."""
        if self._machine.due <= self._wall() and self._lock.acquire(blocking=False):
            try:
                self._expire()
            finally:
                self._lock.release()
        return self._machine.report

    @property
    def is_busy(self) -> bool:
        """Whether something holds this process, overrides aside."""
        return self._machine.open_holds > 0

    def _moment(self) -> float:
        """Now, with what has run out by now taken away first, so that every end has its own time. Needs the lock."""
        now = self._wall()
        if self._machine.due <= now:
            self._expire()
        return now

    def _expire(self) -> None:
        for number in self._machine.expire(self._wall()):
            name = self._named.pop(number, "")
            if name:
                logger.warning("%s is not over after its time; it keeps the microVM no longer", name)

    def hear(self, status: Status | None) -> None:
        """What the user's handler said; None: nothing usable."""
        if self._lock.acquire(blocking=False):
            try:
                self._machine.hear(status, self._moment())
            finally:
                self._lock.release()

    def observe_clocks(self) -> bool:
        """Look whether the process was restored from a snapshot since the last look; True once for each restore.

        Called in one thread only.
        """
        wall = self._wall()
        if not self._restores.observe(wall, self._monotonic()):
            return False
        logger.warning("The clocks say that this process was restored from a snapshot")
        if self._restamp:
            with self._lock:
                self._machine.restored(wall)
        return True

    # Overrides.

    def force(self, status: Status | str) -> None:
        """Report this status, ``"Healthy"`` or ``"HealthyBusy"``, until :meth:`clear`. Spec: AC-S-65.

        Raises ConfigurationError for another one.
        """
        found = read_status(status)
        if found is None:
            raise ConfigurationError(f"a status is Healthy or HealthyBusy, not {status!r}")
        self._force(found)

    def clear(self) -> None:
        """End what :meth:`force` began."""
        self._force(None)

    def _force(self, status: Status | None) -> None:
        with self._lock:
            self._machine.force(status, self._moment())

    # Life.

    def ready(self) -> None:
        """The start is over: pings are answered with 200 from now on."""
        with self._lock:
            self._machine.ready(self._wall())

    def unready(self) -> None:
        """Nothing can be served any more: pings are answered with 503."""
        with self._lock:
            self._machine.unready()

    # Holds.

    def hold(self, name: str = "", *, most: float | None = None) -> Hold:
        """Work that the library cannot see: keeps the microVM while it lasts. Spec: AC-S-66.

        ``with health.hold("indexing"):``, ``async with``, or as a decorator of a function or coroutine function.
        ``most``: seconds after which it stops to count; ``name`` is for the log.
        """
        if most is not None and most <= 0:
            raise ConfigurationError("most must be more than 0 seconds")
        return Hold(lambda: self, name, most)

    def open(self, name: str = "", most: float | None = None) -> int:
        """Open a hold; returns its number, for :meth:`close`."""
        with self._lock:
            now = self._moment()
            number = self._machine.open(now, inf if most is None else now + most)
            if most is not None and name:
                self._named[number] = name
            return number

    def close(self, number: int) -> None:
        """Close a hold. No effect on one that is closed."""
        with self._lock:
            self._named.pop(number, None)
            self._machine.close(number, self._moment())

    # Work of the runtime; see dragoman.ports.observing.

    def begun(self, work: object) -> None:
        """A turn began, or goes on."""
        with self._lock:
            if work not in self._turns:
                now = self._moment()
                number = self._turns[work] = self._machine.open(now, now + self._turn_age)
                if self._turn_age != inf:
                    self._named[number] = "A turn of the agent"

    def paused(self, work: object) -> None:
        """A turn waits for its caller."""
        if self._linger:
            with self._lock:
                now = self._moment()
                self._machine.open(now, now + self._linger)
        self.ended(work)

    def ended(self, work: object) -> None:
        """A turn is over."""
        with self._lock:
            number = self._turns.pop(work, None)
            if number is not None:
                self._named.pop(number, None)
                self._machine.close(number, self._moment())


def read_status(value: object) -> Status | None:
    """A status from what a user gave; None for anything that is none."""
    if isinstance(value, Status):
        return value
    return next((status for status in Status if status.value == value), None)
