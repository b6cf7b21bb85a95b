"""How many calls each caller may make. Spec: SEC-10, SEC-11, AMB-38."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable

import msgspec

from dragoman.auth.server.throttle import place_of
from dragoman.errors import ConfigurationError, RateLimitedError
from dragoman.model import Operation
from dragoman.ports.operations import CallContext, Caller, EventStream, Operations

_MOST_CALLERS = 10_000


class RateLimit(msgspec.Struct, frozen=True):
    """``calls`` in ``per`` seconds, all operations together; ``burst`` of them may come at once, default all.

    Raises ConfigurationError for values out of range.
    """

    calls: float
    per: float = 60.0
    burst: float | None = None

    def __post_init__(self) -> None:
        if self.calls <= 0 or self.per <= 0 or (self.burst is not None and self.burst < 1):
            raise ConfigurationError("RateLimit: calls and per must be more than 0, and burst at least 1")

    @property
    def size(self) -> float:
        """How many may come at once."""
        return max(1.0, self.calls if self.burst is None else self.burst)


RateLimits = RateLimit | Callable[[Caller, str], RateLimit | None]
"""One limit for every caller; or a function of the caller and the name of the operation, None for no limit. Calls with
limits that are equal are counted together."""

_Key = tuple[str, RateLimit]


class LimitedOperations:
    """Operations with a limit for each caller, or for the address of one who is anonymous (the network of 64 bits that
    an address of version 6 is one of); implements :class:`~dragoman.ports.operations.Operations`."""

    def __init__(
        self, operations: Operations, *, limits: RateLimits, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._operations = operations
        self._limits = limits
        self._now = now
        self._left: OrderedDict[_Key, tuple[float, float]] = OrderedDict()

    async def call(self, op: Operation, request: msgspec.Struct, context: CallContext) -> msgspec.Struct:
        """See :class:`~dragoman.ports.operations.Operations`. Raises RateLimitedError."""
        self._count(op, context.caller)
        return await self._operations.call(op, request, context)

    async def stream(self, op: Operation, request: msgspec.Struct, context: CallContext) -> EventStream:
        """See :class:`~dragoman.ports.operations.Operations`. Raises RateLimitedError."""
        self._count(op, context.caller)
        return await self._operations.stream(op, request, context)

    def _count(self, op: Operation, caller: Caller) -> None:
        limit = self._limits(caller, op.name) if callable(self._limits) else self._limits
        if limit is None:
            return
        key = (caller.id or f"\0{place_of(caller.address)}", limit)
        now, pause = self._now(), limit.per / limit.calls
        left, since = self._left.get(key, (limit.size, now))
        left = min(limit.size, left + (now - since) / pause)
        if left < 1:
            raise RateLimitedError(retry_after=(1 - left) * pause)
        self._left[key] = (left - 1, now)
        self._left.move_to_end(key)
        if len(self._left) > _MOST_CALLERS:
            self._left.popitem(last=False)
