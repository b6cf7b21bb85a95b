"""Server-sent events, the writing half. Sans-I/O.

One event is one ``data:`` line of JSON text (which has no line breaks outside of its escapes), preceded by its
number where it has one, and closed by a blank line. Spec: AMB-97, JRPC-05, HTTP-09.
"""

from __future__ import annotations

CONTENT_TYPE = b"text/event-stream"

#: A comment: keeps idle connections open, readers skip it.
HEARTBEAT = b": \n\n"


def encode_sse(data: bytes, number: int | None = None) -> bytes:
    """One event. ``data`` is a single line; ``number`` becomes its ``id:``, None leaves that out."""
    if number is None:
        return b"data: %b\n\n" % data
    return b"id: %d\ndata: %b\n\n" % (number, data)


class SseFraming:
    """What surrounds the data of every event of one stream, computed once for the stream.

    ``before`` and ``after`` are bytes on the data line around the event's own JSON.
    """

    __slots__ = ("_after", "_before")

    def __init__(self, before: bytes = b"", after: bytes = b"") -> None:
        self._before = b"data: " + before
        self._after = after + b"\n\n"

    def encode(self, data: bytes, number: int | None = None) -> bytes:
        """One event: ``data`` spliced in as it is."""
        if number is None:
            return b"%b%b%b" % (self._before, data, self._after)
        return b"id: %d\n%b%b%b" % (number, self._before, data, self._after)
