"""What was taken already, within bounds. Pure.

Theory. The same notification has the same id each time, so ids tell repetitions. Numbers tell more: those of one
webhook come in order, so a lower one than the last is out of date, even when its id was forgotten. Of both, the ones
that were used last longest ago are forgotten first.

Spec: PUSH-12, PUSH-18.
"""

from __future__ import annotations

Webhook = tuple[str, str]
"""What tells one webhook of a task from others: the secret that it came with (a digest), and the task."""


class Memory:
    """Remembers ``most`` notifications, and the numbers of as many webhooks."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._ids: dict[tuple[str, str, str], None] = {}
        self._numbers: dict[Webhook, int] = {}

    def has(self, webhook: Webhook, id: str) -> bool:
        """Whether a notification was taken."""
        return (*webhook, id) in self._ids

    def is_past(self, webhook: Webhook, sequence: int | None) -> bool:
        """Whether a later one of the same webhook was taken."""
        return sequence is not None and sequence < self._numbers.get(webhook, 0)

    def learn(self, webhook: Webhook, id: str, sequence: int | None) -> None:
        """Remember that a notification was taken."""
        self._ids[(*webhook, id)] = None
        if len(self._ids) > self._most:
            del self._ids[next(iter(self._ids))]
        if sequence is None:
            return
        self._numbers[webhook] = max(sequence, self._numbers.pop(webhook, 0))
        if len(self._numbers) > self._most:
            del self._numbers[next(iter(self._numbers))]
