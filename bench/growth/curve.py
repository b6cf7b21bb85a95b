"""What a curve is."""

from __future__ import annotations

import msgspec


class Curve(msgspec.Struct):
    """A small table, and what it should show."""

    title: str
    goal: str
    headings: tuple[str, ...]
    rows: list[list[str]]


class Sizes(msgspec.Struct, frozen=True):
    """How far the curves go."""

    chunks: tuple[int, ...] = (1_000, 3_000, 10_000)
    sdk_chunks: tuple[int, ...] = (100, 300, 1_000)
    sdk_durable_chunks: tuple[int, ...] = (100, 300)
    subscribers: tuple[int, ...] = (50, 200, 1_000)
    sdk_subscribers: tuple[int, ...] = (50, 200)
    finished: tuple[int, ...] = (1_000, 4_000, 10_000)
    listed: tuple[int, ...] = (100, 10_000, 100_000)
    sdk_listed: tuple[int, ...] = (100, 10_000)
    imports: int = 5
    streams_read: int = 30
    seconds: float = 1.0


SMALL = Sizes(
    chunks=(10,),
    sdk_chunks=(10,),
    sdk_durable_chunks=(10,),
    subscribers=(3,),
    sdk_subscribers=(3,),
    finished=(20, 40),
    listed=(120,),
    sdk_listed=(120,),
    imports=1,
    streams_read=2,
    seconds=0.2,
)
"""Just enough to see that each works."""
