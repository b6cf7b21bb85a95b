"""What a receiver can be told."""

from __future__ import annotations

import msgspec

from dragoman.errors import ConfigurationError

MIB = 1024 * 1024


class ReceiverSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of a receiver. Times are in seconds.

    * ``max_body_bytes`` (10 MiB): largest notification; beyond it 413;
    * ``max_age`` (300): how old a notification may be that says when it was sent; beyond it 401 (Spec: PUSH-18);
    * ``max_ahead`` (60): how far the sender's clock may be ahead;
    * ``rate`` (500), ``burst`` (1000): requests a second from one address, and at once; beyond it 429 (Spec: PUSH-15);
    * ``running`` (100): calls of the function at the same time; beyond it 503;
    * ``remembered`` (10,000): notifications that are known again (Spec: PUSH-12);
    * ``read_timeout`` (30): how long a body may take to arrive; beyond it 408.

    Raises ConfigurationError for a value out of range.
    """

    max_body_bytes: int = 10 * MIB
    max_age: float = 300.0
    max_ahead: float = 60.0
    rate: float = 500.0
    burst: int = 1_000
    running: int = 100
    remembered: int = 10_000
    read_timeout: float = 30.0

    def __post_init__(self) -> None:
        for name in ("max_body_bytes", "burst", "running", "remembered"):
            if getattr(self, name) < 1:
                raise ConfigurationError(f"webhook: {name} must be at least 1")
        for name in ("max_age", "rate", "read_timeout"):
            if getattr(self, name) <= 0:
                raise ConfigurationError(f"webhook: {name} must be more than 0")
        if self.max_ahead < 0:
            raise ConfigurationError("webhook: max_ahead must be 0 seconds or more")
