"""What webhooks that were set by callers of 0.3 are told: the whole task. Spec: 0.3 register, sections 6 and 7.7."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from dragoman.compat.v03.downward import down_task
from dragoman.compat.v03.kinds import write_kind
from dragoman.model import Task


class V03Notifications:
    """See :class:`~dragoman.ports.push.Encoder`."""

    content_type = "application/json"
    headers: Mapping[str, str] = {"A2A-Version": "0.3"}

    def encode(self, task: Task) -> bytes:
        """The task in the JSON of 0.3, with its ``kind``."""
        return msgspec.json.encode(write_kind(down_task(task)))
