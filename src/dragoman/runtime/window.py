"""The window: events of a watched task that stay in memory for its streams.

Bounded by number and by bytes; a stream that is behind its beginning reads from the store. In both cases up to twice as
much is kept for a while, so that trimming costs little.
"""

from __future__ import annotations

from collections.abc import Iterable

from dragoman.ports.operations import Event
from dragoman.ports.store import Record

WINDOW = 1024
"""Events that are kept."""

WINDOW_BYTES = 4 * 1024 * 1024
"""The same as a size in JSON, for tasks with large events."""

BATCH_BYTES = 1024 * 1024
"""What a stream takes at once, if it is more than one event: a reader that stops reading holds on to it."""


class Window:
    """Published events in order, each encoded once for every reader. ``base`` is the number before the first."""

    __slots__ = ("_bytes", "_events", "base")

    def __init__(self) -> None:
        self.base = 0
        self._events: list[Event] = []
        self._bytes = 0

    def clear(self, number: int) -> None:
        """Forget everything up to event ``number``."""
        self._events.clear()
        self.base, self._bytes = number, 0

    def extend(self, records: Iterable[Record]) -> None:
        """Add what was published."""
        events = self._events
        for record in records:
            json = record.event_json
            self._bytes += len(json)
            events.append(Event(record.event, number=record.number, json=json))
        if len(events) > 2 * WINDOW or self._bytes > 2 * WINDOW_BYTES:
            self._trim()

    def _trim(self) -> None:
        events = self._events
        dropped = 0
        while len(events) - dropped > WINDOW or (self._bytes > WINDOW_BYTES and dropped < len(events) - 1):
            self._bytes -= len(events[dropped].json)
            dropped += 1
        del events[:dropped]
        self.base += dropped

    def after(self, position: int) -> list[Event] | None:
        """The next events above ``position``; None when these are in the store only."""
        start = position - self.base
        if start < 0:
            return None
        return self._events[start:] if self._bytes <= BATCH_BYTES else self._part(start)

    def _part(self, start: int) -> list[Event]:
        end, size = start, 0
        while end < len(self._events) and (size := size + len(self._events[end].json)) <= BATCH_BYTES:
            end += 1
        return self._events[start : max(end, start + 1)]
