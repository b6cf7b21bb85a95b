"""Read a stream of server-sent events, without I/O.

Theory. A stream is lines; a line ends with CR, LF or CRLF and with nothing else (U+0085, U+2028 and the vertical
tab are content). An empty line ends an event. Since a carriage return can be nothing but a line end, every line
end is turned into LF as the bytes come in, and one empty line is then simply two LFs: events are found with
``bytes.find``. The two shapes that nearly every event has (``data: …`` alone, or after ``id: …``) are cut out of
the buffer without splitting it into lines; all others go line by line.

Spec: §9.4.2, §11.7, AMB-97.
"""

from __future__ import annotations

import msgspec

from dragoman.errors import InvalidAgentResponseError

MAX_EVENT_BYTES = 64 * 1024 * 1024

_BOM = b"\xef\xbb\xbf"


class SseEvent(msgspec.Struct, gc=False):
    """One event. ``id`` is None when the event has no ``id`` field of its own; ``event`` is its type, or empty.

    An id with a NUL in it is to be ignored; that is left to whoever makes sense of ids.
    """

    data: bytes
    id: bytes | None = None
    event: bytes = b""


class SseReader:
    """Bytes in, events out. The borders of the bytes fed mean nothing.

    ``max_event_bytes`` bounds what is kept for one event (bytes, default 64 MiB). ``retry`` is the reconnection time
    in milliseconds that the stream asked for last, or None.
    """

    __slots__ = ("_after_cr", "_at_start", "_max", "_rest", "retry")

    def __init__(self, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        self._max = max_event_bytes
        self._rest = bytearray()
        self._after_cr = False
        self._at_start = True
        self.retry: int | None = None

    def feed(self, chunk: bytes) -> list[SseEvent]:
        """Take the next bytes, return the events that they complete.

        Raises InvalidAgentResponseError when one event is larger than the limit.
        """
        if self._after_cr or b"\r" in chunk:
            chunk = self._with_plain_line_ends(chunk)
        rest = self._rest
        if not rest and not self._at_start:
            return self._cut(chunk)
        searched = max(len(rest) - 1, 0)
        rest += chunk
        if self._at_start and not self._skip_bom():
            return []
        if rest.find(b"\n\n", searched) < 0:
            self._check_size(len(rest))
            return []
        buffer = bytes(rest)
        rest.clear()
        return self._cut(buffer)

    @property
    def pending(self) -> bool:
        """Whether the bytes so far end inside an event (a comment is none)."""
        return any(line and not line.startswith(b":") for line in self._rest.split(b"\n"))

    def close(self) -> SseEvent | None:
        """The end of the bytes: return the event that lacks its empty line, or None. It may be incomplete."""
        event = self._parse(bytes(self._rest))
        self._rest.clear()
        return event

    def _with_plain_line_ends(self, chunk: bytes) -> bytes:
        if self._after_cr and chunk.startswith(b"\n"):
            chunk = chunk[1:]
            self._after_cr = False
        if chunk:
            self._after_cr = chunk.endswith(b"\r")
        return chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _skip_bom(self) -> bool:
        """Whether it is known by now if there is a byte order mark; one is dropped."""
        rest = self._rest
        if len(rest) < len(_BOM) and _BOM.startswith(rest):
            return False
        if rest.startswith(_BOM):
            del rest[: len(_BOM)]
        self._at_start = False
        return True

    def _cut(self, buffer: bytes) -> list[SseEvent]:
        """Cut all complete events out of a buffer; keep the rest."""
        events: list[SseEvent] = []
        start, find, starts = 0, buffer.find, buffer.startswith
        while (end := find(b"\n", start)) >= 0:
            event_id, data = None, start
            if starts(b"id: ", start):
                event_id, data = buffer[start + 4 : end], end + 1
                end = find(b"\n", data)
            if starts(b"data: ", data) and starts(b"\n", end + 1) and data < end < data + self._max:
                events.append(SseEvent(buffer[data + 6 : end], event_id))
                start = end + 2
            elif (end := find(b"\n\n", start)) >= 0:
                self._cut_other(buffer[start:end], events)
                start = end + 2
            else:
                break
        self._check_size(len(buffer) - start)
        self._rest += buffer[start:]
        return events

    def _cut_other(self, block: bytes, events: list[SseEvent]) -> None:
        self._check_size(len(block))
        event = self._parse(block)
        if event is not None:
            events.append(event)

    def _parse(self, block: bytes) -> SseEvent | None:
        data: list[bytes] = []
        event_id: bytes | None = None
        event = b""
        for line in block.split(b"\n"):
            name, _, value = line.partition(b":")
            value = value.removeprefix(b" ")
            if name == b"data":
                data.append(value)
            elif name == b"id":
                event_id = value
            elif name == b"event":
                event = value
            elif name == b"retry" and value.isdigit():
                self.retry = int(value[:9])
        return SseEvent(b"\n".join(data), event_id, event) if data else None

    def _check_size(self, size: int) -> None:
        if size > self._max:
            raise InvalidAgentResponseError(f"An event of the stream is larger than {self._max} bytes")
