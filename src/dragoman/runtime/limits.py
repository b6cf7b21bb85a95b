"""Limits of a runtime, with their defaults."""

from __future__ import annotations

import msgspec

from dragoman.errors import ConfigurationError

_AT_LEAST_ONE = ("running_tasks", "waiting_tasks", "queued_messages", "unsaved_events", "stream_lag", "max_parts")


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What one runtime takes on, and how long it waits. Times are in seconds. Spec: SEC-03.

    * ``running_tasks`` (1,000): handlers that run at the same time; further new tasks wait as SUBMITTED (a message to a
      task that waits for it, and a run after a crash, begin at once);
    * ``waiting_tasks`` (10,000): tasks that wait so; beyond it a send is refused with UnavailableError;
    * ``suspended_tasks`` (1,000): handlers kept in memory while they wait for an answer; the longest waiting ones
      beyond it are stopped, and run again when the answer comes;
    * ``queued_messages`` (100): messages that one task has taken and its handler has not;
    * ``unsaved_events`` (256): events of one task that are published and not yet stored, before its handler waits;
    * ``stream_lag`` (10,000): events that a stream's reader may be behind, before it is cut off with an error;
    * ``max_parts`` (1,000): parts of one message;
    * ``run_time`` (3,600): how long a handler may run until it ends or waits for an answer; None: no limit;
    * ``reply_time`` (300): the same for handlers that answer with a direct message;
    * ``cancel_wait`` (5): how long CancelTask waits for the handler to end (Spec: AMB-13);
    * ``stream_idle`` (3,600): how long a stream may be without an event;
    * ``shutdown_grace`` (10): how long running handlers have when the process is asked to stop;
    * ``interrupt_wait`` (None): how long they then have to react to their interruption; None: as long again, and 5 s at
      least;
    * ``authorized_for`` (60): how long a stream goes on by what ``authorize`` said, before it is asked again;
    * ``retention`` (None): how long a finished task is kept; None: for ever;
    * ``lease`` (10): how long after its death a worker's tasks are taken over at the latest, twice this time.
    """

    running_tasks: int = 1_000
    waiting_tasks: int = 10_000
    suspended_tasks: int = 1_000
    queued_messages: int = 100
    unsaved_events: int = 256
    stream_lag: int = 10_000
    max_parts: int = 1_000
    run_time: float | None = 3_600.0
    reply_time: float | None = 300.0
    cancel_wait: float = 5.0
    stream_idle: float = 3_600.0
    shutdown_grace: float = 10.0
    interrupt_wait: float | None = None
    authorized_for: float = 60.0
    retention: float | None = None
    lease: float = 10.0

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if value is not None and (value < 1 if name in _AT_LEAST_ONE else value < 0):
                raise ConfigurationError(f"limits.{name} must be {1 if name in _AT_LEAST_ONE else 0} or more")
        if self.lease <= 0:
            raise ConfigurationError("limits.lease must be more than 0")
