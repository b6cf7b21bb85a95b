"""Failed attempts slowed down, by the address that they come from.

A failure takes a token out of a bucket of the address, which fills again with time. While it is empty, credentials
from there are not looked at, unless they were found good before: so a guesser learns nothing, and those who share its
address and are known go on. Pure: time is passed in.

Spec: SEC-07.
"""

from __future__ import annotations

import ipaddress
from collections import OrderedDict

import msgspec

from dragoman.errors import ConfigurationError

_MOST_ADDRESSES = 4096
_MOST_GOOD = 4096


class Throttle(msgspec.Struct, frozen=True):
    """``attempts`` that may fail in a row, from one address, and one more every ``per / attempts`` seconds; default 10
    in 60 seconds."""

    attempts: int = 10
    per: float = 60.0

    def __post_init__(self) -> None:
        if self.attempts < 1 or self.per <= 0:
            raise ConfigurationError("Throttle: attempts must be at least 1, and per more than 0 seconds")


class Failures:
    """The failures at one server."""

    def __init__(self, throttle: Throttle) -> None:
        self._throttle = throttle
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._good: OrderedDict[bytes, None] = OrderedDict()

    def wait(self, address: str, credential: bytes, now: float) -> float:
        """Seconds until a credential from an address is looked at, 0 for at once. ``credential`` is its fingerprint."""
        if not self._left or credential in self._good:
            return 0.0
        left = self._at(place_of(address), now)
        return 0.0 if left >= 1 else (1 - left) * self._pause

    def failed(self, address: str, now: float) -> None:
        """A credential from an address was no good."""
        if not address:  # a socket of this machine, which does not tell one from another
            return
        place = place_of(address)
        left = self._at(place, now) - 1
        self._left[place] = (max(left, 0.0), now)
        self._left.move_to_end(place)
        if len(self._left) > _MOST_ADDRESSES:
            self._left.popitem(last=False)

    def succeeded(self, credential: bytes) -> None:
        """A credential was good."""
        self._good[credential] = None
        self._good.move_to_end(credential)
        if len(self._good) > _MOST_GOOD:
            self._good.popitem(last=False)

    @property
    def _pause(self) -> float:
        return self._throttle.per / self._throttle.attempts

    def _at(self, place: str, now: float) -> float:
        left, since = self._left.get(place, (float(self._throttle.attempts), now))
        filled = left + (now - since) / self._pause
        if filled >= self._throttle.attempts:
            self._left.pop(place, None)
        return min(filled, float(self._throttle.attempts))


def place_of(address: str) -> str:
    """An address, or the network of 64 bits that an address of version 6 is one of."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return address
    if found.version == 4 or found.ipv4_mapped is not None:
        return address
    return str(ipaddress.ip_network((found, 64), strict=False))
