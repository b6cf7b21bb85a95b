"""The ping machine: what ``GET /ping`` says, as a pure function of what happened.

Theory. The platform polls the ping every couple of seconds and reads two things: a status, and the second at which that
status was last taken on. ``HealthyBusy`` with a stamp that stands still keeps the microVM; ``Healthy`` lets it go one
idle timeout after the stamp. A stamp that moves for any other reason than a change of status looks like endless
change and keeps an idle microVM for hours. So the stamp belongs to causes, not to polls: it is set when a hold opens
or closes, when an override is set or cleared, when a handler says something else; and once after a restore.

    not ready ──ready──▶ Healthy ◀──last hold closes── HealthyBusy
                            └─────first hold opens─────────▲

What is reported is a new :class:`Report` for each change, kept in one attribute: whoever only reads it needs no lock.
Holds with a deadline end at it, whenever that is noticed: the stamp is the deadline, not the moment of the look.

No clock in here: ``now`` is the wall clock, in seconds. Calls that change something must not run together.

Spec: AC-S-60 to AC-S-63, AC-S-65 to AC-S-68, AC-S-73; section 5 of the register.
"""

from __future__ import annotations

from enum import Enum
from math import floor, inf
from typing import NamedTuple


class Status(Enum):
    """What a container may say of itself; exactly these spellings. Spec: AC-S-60."""

    HEALTHY = "Healthy"
    BUSY = "HealthyBusy"


class Report(NamedTuple):
    """A status and the Unix second at which it was taken on. Spec: AC-S-61."""

    status: Status
    since: int

    def encode(self) -> bytes:
        """The body of the answer."""
        return b'{"status":"%b","time_of_last_update":%d}' % (self.status.value.encode(), self.since)


class PingMachine:
    """The state of section 5.1; one for each process."""

    __slots__ = ("_due", "_forced", "_heard", "_holds", "_is_ready", "_next", "_since", "_status", "report")

    def __init__(self) -> None:
        self.report: Report | None = None
        """What a ping is answered with; None: not able to serve."""
        self._is_ready = False
        self._forced: Status | None = None
        self._heard: Status | None = None
        self._holds: dict[int, float] = {}
        self._next = 0
        self._due = inf
        self._status = Status.HEALTHY
        self._since = 0

    @property
    def due(self) -> float:
        """When the next hold may run out; call :meth:`expire` then."""
        return self._due

    @property
    def open_holds(self) -> int:
        """How many holds are open."""
        return len(self._holds)

    def ready(self, now: float) -> None:
        """The start is over. Rule 6."""
        if not self._is_ready:
            self._is_ready = True
            self._status, self._since = Status.HEALTHY, max(self._since, floor(now))
            self._settle(now)

    def unready(self) -> None:
        """Nothing can be served any more."""
        self._is_ready = False
        self.report = None

    def open(self, now: float, until: float = inf) -> int:
        """Open a hold, which runs out at ``until``; returns its number. Rules 3 and 8."""
        self._next += 1
        self._holds[self._next] = until
        self._due = min(self._due, until)
        self._settle(now)
        return self._next

    def close(self, number: int, now: float) -> None:
        """Close a hold. No effect on one that is closed or has run out. Rule 8."""
        if self._holds.pop(number, None) is not None:
            self._settle(now)

    def expire(self, now: float) -> list[int]:
        """End the holds that have run out, each at its own time; returns their numbers."""
        ended = sorted((until, number) for number, until in self._holds.items() if until <= now)
        for until, number in ended:
            del self._holds[number]
            self._settle(until)
        self._due = min(self._holds.values(), default=inf)
        return [number for _, number in ended]

    def force(self, status: Status | None, now: float) -> None:
        """Report this, whatever happens; None ends that. Holds are counted all the same. Rules 2 and 9."""
        self._forced = status
        self._settle(now)

    def hear(self, status: Status | None, now: float) -> None:
        """What the user's handler said, in force until it is asked again; None: nothing usable. Rule 3."""
        self._heard = status
        self._settle(now)

    def restored(self, now: float) -> None:
        """The process was restored from a snapshot: everything is as of now, once. Rule 7."""
        self._since = max(self._since, floor(now))
        self._show()

    def _settle(self, now: float) -> None:
        """Rules 1, 2, 4 and 5."""
        automatic = Status.BUSY if self._holds else Status.HEALTHY
        status = self._forced or self._heard or automatic
        if status is not self._status and self._is_ready:
            self._status, self._since = status, max(self._since, floor(now))
        self._show()

    def _show(self) -> None:
        if self._is_ready:
            self.report = Report(self._status, self._since)


class RestoreDetector:
    """Tells that the process was restored from a snapshot: the wall clock ran on, the monotonic one did not.

    ``jump``: how much further the wall clock must have come, in seconds. Spec: AC-S-73.
    """

    __slots__ = ("_jump", "_offset")

    def __init__(self, jump: float = 60.0) -> None:
        self._jump = jump
        self._offset: float | None = None

    def observe(self, wall: float, monotonic: float) -> bool:
        """Look at both clocks; whether there was a restore since the last look."""
        before, self._offset = self._offset, wall - monotonic
        return before is not None and self._offset - before > self._jump
