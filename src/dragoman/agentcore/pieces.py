"""Large content in pieces that pass the front: one event of a stream may have 10 MB.

Spec: AC-S-53.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from dragoman.errors import ConfigurationError
from dragoman.server.context import Context

MOST = 1_000_000
"""Bytes or characters of one piece. A character takes six bytes of JSON at worst, a byte one and a third."""

T = TypeVar("T", str, bytes)


def split(content: T, most: int = MOST) -> Iterator[T]:
    """Text or bytes in pieces of at most ``most`` characters or bytes, which make the whole when joined.

    Gives one piece also of what is empty. Raises ConfigurationError for a size below 1.
    """
    if most < 1:
        raise ConfigurationError("most must be at least 1")
    yield content[:most]
    for start in range(most, len(content), most):
        yield content[start : start + most]


async def publish(
    ctx: Context, content: str | bytes, *, name: str = "", description: str = "", media_type: str = "", most: int = MOST
) -> str:
    """Publish an artifact in pieces, each an event of its own that is appended to it; returns its id. Spec: DATA-26."""
    stream = ctx.artifact_stream(name=name, description=description, media_type=media_type)
    for start in range(0, max(len(content), 1), most):
        await stream.write(content[start : start + most], last=start + most >= len(content))
    return stream.artifact_id
