"""What makes requests acceptable to whoever guards an agent: a seam between the HTTP client and its credentials.

An authenticator is asked last, when nothing else will change a request any more, and again for every attempt; it sees
every answer, and may have a refused request made once more.

Spec: AC-C-12, AC-C-22, AC-C-23, AC-C-88, AC-C-89, AC-C-94.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import msgspec


class Outgoing(msgspec.Struct, frozen=True):
    """A request as it will be sent. Names of headers are in lower case; ``url`` is escaped as on the wire."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes


class Reply(msgspec.Struct, frozen=True):
    """The head of its answer; the ``body`` (its first MiB) only when the status is 400 or more.

    ``repeated``: the request was made for the second time, and will not be made again.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes = b""
    repeated: bool = False


class Authenticator(Protocol):
    """Authenticates requests. Calls may run together without limit."""

    async def sign(self, request: Outgoing) -> Mapping[str, str]:
        """The headers to set on a request that is about to be sent. Raises DragomanError to keep it from being sent."""
        ...

    async def review(self, request: Outgoing, reply: Reply) -> bool:
        """Look at an answer; True has the request made again, once. ``request`` is what was signed.

        Raises DragomanError in place of the answer.
        """
        ...
