"""What a ping said, and what the front makes of it: when a session ends, and what breaks the contract. Pure.

Spec: AC-F-12, AC-F-13; agentcore 5.
"""

from __future__ import annotations

import enum
from typing import Any

import msgspec

from dragoman.testing.agentcore_front.settings import Lifecycle

HEALTHY, BUSY = "Healthy", "HealthyBusy"
SLOW_S = 1.0
AHEAD_S = 1.0
"""How far in the future a stamp may be, for clocks that are read one after the other."""


class Ping(msgspec.Struct, frozen=True, kw_only=True):
    """One answer to ``GET /ping``: the HTTP status (0: none came), the members as they were, the seconds it took."""

    http: int
    status: Any = None
    stamp: Any = None
    took: float = 0.0

    @property
    def seconds(self) -> int | None:
        """The stamp, if it is an integer."""
        return self.stamp if type(self.stamp) is int else None


class _Body(msgspec.Struct):
    status: Any = None
    time_of_last_update: Any = None


def read_ping(http: int, body: bytes, took: float) -> Ping:
    """The ping that an answer is."""
    try:
        said = msgspec.json.decode(body, type=_Body)
    except msgspec.MsgspecError:
        return Ping(http=http, took=took)
    return Ping(http=http, status=said.status, stamp=said.time_of_last_update, took=took)


class Verdict(enum.StrEnum):
    """What becomes of a session."""

    KEEP = "keep"
    IDLE = "idle"
    LIFETIME = "lifetime"
    FAILED = "failed"


class Life(msgspec.Struct):
    """What is known of a session's life, in seconds since the epoch: kept by the session, judged by :func:`judge`."""

    created: float
    last_invocation: float
    in_flight: int = 0
    ping: Ping | None = None
    failing: int = 0

    def take(self, ping: Ping) -> None:
        """Note a ping; one that is not 200 is counted, and leaves the last good one in place."""
        if ping.http == 200:
            self.ping, self.failing = ping, 0
        else:
            self.failing += 1


def judge(life: Life, now: float, rules: Lifecycle, scale: float = 1.0) -> Verdict:
    """Whether a session is kept, by the front's clock ``now``; the times of ``rules`` are multiplied by ``scale``."""
    if now - life.created >= rules.max_lifetime_s * scale:
        return Verdict.LIFETIME
    if life.failing >= rules.failing_pings:
        return Verdict.FAILED
    if life.in_flight or _keeps_busy(life.ping, rules):
        return Verdict.KEEP
    stamp = life.ping.seconds if life.ping is not None else None
    return Verdict.IDLE if now - max(life.last_invocation, stamp or 0) >= rules.idle_s * scale else Verdict.KEEP


def _keeps_busy(ping: Ping | None, rules: Lifecycle) -> bool:
    if ping is None or ping.status != BUSY:
        return False
    return ping.seconds is not None or rules.busy_rule == "documented"


class Violation(msgspec.Struct, frozen=True):
    """Something that a container must not do. ``rule`` is a word, ``detail`` what was seen."""

    rule: str
    detail: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.detail}"


def check_ping(ping: Ping, before: Ping | None, now: float, *, was_called: bool) -> list[Violation]:
    """What is wrong with a ping of status 200. ``was_called``: a call was in flight or ended since the one before."""
    found = []
    if ping.took > SLOW_S:
        found.append(Violation("slow-ping", f"it took {ping.took:.2f} s"))
    if ping.status not in (HEALTHY, BUSY):
        found.append(Violation("unknown-status", repr(ping.status)))
    stamp, last = ping.seconds, before.seconds if before is not None else None
    if stamp is None:
        return [*found, Violation("stamp-no-integer", repr(ping.stamp))]
    if stamp > now + AHEAD_S:
        found.append(Violation("stamp-in-future", f"{stamp} at {now:.0f}"))
    if last is not None and stamp < last:
        found.append(Violation("stamp-decreased", f"{last} → {stamp}"))
    if last is not None and before is not None and stamp > last and before.status == ping.status and not was_called:
        found.append(Violation("stamp-moved", f"{last} → {stamp} with {ping.status} and no call"))
    return found
