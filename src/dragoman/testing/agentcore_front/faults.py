"""Faults by order: what the next calls are answered with.

Spec: AC-F-10.
"""

from __future__ import annotations

import msgspec

from dragoman.testing.agentcore_front.refusals import Fault


class Truncate(msgspec.Struct, frozen=True):
    """The connection breaks after so many events of the answer."""

    after_events: int


class Delay(msgspec.Struct, frozen=True):
    """The call is passed on so many seconds later."""

    seconds: float


AnyFault = Fault | Truncate | Delay


class Order(msgspec.Struct):
    """A fault, how often it comes yet, and for which calls: empty means any."""

    fault: AnyFault
    times: int
    method: str = ""
    session: str = ""
    path: str = ""

    def fits(self, method: str, session: str, target: str) -> bool:
        """Whether a call is meant: the JSON-RPC method, the session id, a part of the raw target."""
        wanted = (not self.method or self.method == method) and (not self.session or self.session == session)
        return self.times > 0 and wanted and self.path in target


class FaultQueue:
    """Orders, oldest first; each call takes one of the first order that it fits."""

    def __init__(self) -> None:
        self._orders: list[Order] = []

    def add(self, order: Order) -> None:
        """Put an order behind those that there are."""
        self._orders.append(order)

    def take(self, *, method: str, session: str, target: str) -> AnyFault | None:
        """The fault of a call, and one less of it."""
        found = next((order for order in self._orders if order.fits(method, session, target)), None)
        if found is None:
            return None
        found.times -= 1
        self._orders = [order for order in self._orders if order.times]
        return found.fault

    def clear(self) -> None:
        """No more faults."""
        self._orders.clear()

    def __len__(self) -> int:
        return sum(order.times for order in self._orders)
