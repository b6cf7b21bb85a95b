"""The events of a stream as its bytes pass through: where each ends, how large it is. Pure.

Theory. Bytes are passed on as they come, but cut where an event ends, so that whoever passes them on can stop there.
The event that is under way is kept beside, to be looked at when it is whole. A block without data (a comment) is no
event.

Spec: AC-F-06, AC-F-10, AC-F-11.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_END = re.compile(rb"\r\n\r\n|\n\n|\r\r")
_DATA = re.compile(rb"(?:\A|[\r\n])data")


class EventTooLargeError(Exception):
    """One event is larger than the service passes on."""


class EventCutter:
    """Bytes in, pieces out, each with the event that it completes, or None. ``events`` counts those that passed."""

    def __init__(self, max_bytes: int) -> None:
        self._max = max_bytes
        self._block = bytearray()
        self.events = 0

    @property
    def at_border(self) -> bool:
        """Whether no event is under way."""
        return not self._block

    def feed(self, chunk: bytes) -> Iterator[tuple[bytes, bytes | None]]:
        """Take the next bytes. Raises EventTooLargeError in place of the piece that is too much."""
        start = 0
        while start < len(chunk):
            before = len(self._block)
            self._block += chunk[start:]
            end = _END.search(self._block, max(before - 3, 0))
            size = end.end() if end else len(self._block)
            if size > self._max:
                raise EventTooLargeError
            piece = chunk[start : start + size - before]
            start += len(piece)
            if end is None:
                yield piece, None
                continue
            block = bytes(self._block[:size])
            self._block.clear()
            is_event = _DATA.search(block) is not None
            self.events += is_event
            yield piece, block if is_event else None
