"""A clock whose ids are unique in every copy of a process.

The platform may take a snapshot of a started process and restore it many times. Randomness that was fetched before, to
be used up later, would be the same in all copies; this clock asks the system each time.

Spec: AC-S-72.
"""

from __future__ import annotations

import time
import uuid


class SnapshotClock:
    """Implements :class:`~dragoman.ports.clock.Clock`."""

    def now_ms(self) -> int:
        """Milliseconds since the epoch, UTC."""
        return time.time_ns() // 1_000_000

    def new_id(self) -> str:
        """A random UUID of version 4, from the system's source of randomness at this moment."""
        return str(uuid.uuid4())
