"""Timestamp: ``google.protobuf.Timestamp`` as a Python datetime.

On the wire it is text in UTC with milliseconds, ``2026-03-12T09:30:00.125Z``. A reader takes any
RFC 3339 text. Spec: §5.6.1, DATA-07 to DATA-11, AMB-47.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone

MILLISECOND = timedelta(milliseconds=1)

_RFC3339 = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?(?:[Zz]|([+-])(\d\d):(\d\d))",
    re.ASCII,
)


class Timestamp(datetime):
    """A moment, to the millisecond on the wire.

    The constructors below give UTC and whole milliseconds; use them instead of the inherited ones. A plain
    aware datetime that is put into a message field is turned into a Timestamp.

    Spec: §5.6.1, DATA-07 to DATA-11.
    """

    __slots__ = ()

    @classmethod
    def from_ms(cls, ms: int) -> Timestamp:
        """The moment ``ms`` milliseconds after the epoch. OverflowError outside of the years 1 to 9999."""
        return EPOCH + timedelta(0, 0, 0, ms)

    @classmethod
    def of(cls, moment: datetime) -> Timestamp:
        """The same moment, cut to milliseconds. ValueError when ``moment`` has no time zone."""
        if not isinstance(moment, datetime):
            raise TypeError("a timestamp must be a datetime")
        if moment.tzinfo is None:
            raise ValueError("a timestamp must have a time zone")
        return EPOCH + (moment - EPOCH) // MILLISECOND * MILLISECOND

    @classmethod
    def parse(cls, text: str) -> Timestamp:
        """Read RFC 3339 text, cut to milliseconds. ValueError for anything else. Spec: DATA-09, AMB-47."""
        try:
            # The form that is written: what fromisoformat reads of this shape is RFC 3339, and it is fast.
            if len(text) == 24 and text[4] == text[7] == "-" and text[10] == "T" and text[19::4] == ".Z":
                return cls.fromisoformat(text)
            return _parse_any(text)
        except (ValueError, OverflowError):
            raise ValueError(f"must be RFC 3339 text such as {EPOCH.rfc3339()}") from None

    @property
    def ms(self) -> int:
        """Milliseconds since the epoch."""
        return (self - EPOCH) // MILLISECOND

    def rfc3339(self) -> str:
        """The text on the wire. ValueError when the timestamp was made without a time zone. Spec: DATA-07."""
        global _written
        last, text = _written
        if last is self:
            return text
        if self.tzinfo is not UTC:
            return Timestamp.of(self).rfc3339()
        text = self.isoformat("T", "milliseconds")[:-6] + "Z"
        _written = (self, text)
        return text


def _parse_any(text: str) -> Timestamp:
    found = _RFC3339.fullmatch(text)
    if found is None:
        raise ValueError("not RFC 3339")
    year, month, day, hour, minute, second = (int(digits) for digits in found.group(1, 2, 3, 4, 5, 6))
    ms = int((found[7] or "").ljust(3, "0")[:3])
    # A leap second, which datetime does not have, is read as the moment after second 59.
    leap = second == 60
    moment = datetime(year, month, day, hour, minute, second - leap, ms * 1000, _zone(found))
    return Timestamp.of(moment + timedelta(seconds=leap))


def _zone(found: re.Match[str]) -> timezone:
    if found[8] is None:
        return UTC
    offset = timedelta(hours=int(found[9]), minutes=int(found[10]))
    return timezone(-offset if found[8] == "-" else offset)


EPOCH = Timestamp(1970, 1, 1, tzinfo=UTC)

_written: tuple[Timestamp, str] = (EPOCH, "1970-01-01T00:00:00.000Z")
"""The timestamp that was written last and its text: the status of a task is written several times in a row."""
