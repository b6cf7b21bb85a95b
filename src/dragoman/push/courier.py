"""The courier: tells one claimed webhook what it has not been told, in order.

Theory. The courier reads the log from where the webhook is, and makes one request after the other. How far it came is
written down once in a while and at the end; after a crash the last second's notifications are made once more, with
the same ids. A failure ends its walk until the pause is over. When there were too many in a row, all that waits becomes
one dead letter, and the next update is an attempt again.

Each write tells whether the claim still holds; if it does not, somebody else goes on, and the courier leaves.

Spec: PUSH-04 to PUSH-07, AMB-65, B115.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Mapping

from dragoman.http.guard import shown
from dragoman.ports.clock import Clock
from dragoman.ports.push import DeadLetter, DueWebhook, Encoder, Settlement, WebhookStore
from dragoman.ports.store import Record, TaskStore
from dragoman.push.calling import Caller, Notification
from dragoman.push.pauses import Outcome, pause_after
from dragoman.push.sealing import Address, Secrets, open_address
from dragoman.push.settings import PushSettings
from dragoman.push.updates import Updates, state_of

logger = logging.getLogger("dragoman.push")

SAVE_EVERY_MS = 1_000
MARGIN_MS = 3_000
MOST_IN_ONE_WALK = 1_000
"""Updates after which the others have their turn."""


def claim_ms(settings: PushSettings) -> int:
    """How long a claim holds: an attempt, and time to write down what came of it."""
    return int(settings.timeout * 1000) + 3 * MARGIN_MS


class Post:
    """What all couriers of a process work with."""

    __slots__ = ("agent", "caller", "clock", "encoders", "secrets", "settings", "store", "tasks")

    def __init__(
        self,
        store: WebhookStore,
        tasks: TaskStore,
        caller: Caller,
        clock: Clock,
        settings: PushSettings,
        encoders: Mapping[str, Encoder],
        secrets: Secrets | None = None,
        agent: str = "",
    ) -> None:
        self.agent = agent
        self.store = store
        self.tasks = tasks
        self.caller = caller
        self.clock = clock
        self.settings = settings
        self.encoders = encoders
        self.secrets = secrets


class Courier:
    """One walk of one webhook."""

    def __init__(self, post: Post, due: DueWebhook, until_ms: int) -> None:
        self._post = post
        self._due = due
        self._address: Address = open_address(due.webhook, post.secrets)
        encoder = post.encoders.get(due.webhook.wire_version)
        self._updates = Updates(post.tasks, due.task_id, encoder, post.settings.updates)
        self._position = due.position
        self._state = due.state
        self._failures = due.failures
        self._snapshot = due.snapshot
        self._until_ms = until_ms
        self._saved_ms = post.clock.now_ms()
        self.failed = False
        """Whether the walk ended with a failed attempt."""

    async def walk(self) -> int | None:
        """Tell what there is. When the webhook is due again by its own failure, in ms since the epoch; else None.

        Raises StoreError.
        """
        if self._snapshot and self._position and not await self._tell_whole():
            return self._next_ms
        told = 0
        while records := await self._updates.after(self._position):
            for record in records:
                if told >= MOST_IN_ONE_WALK:
                    await self._settle(due_ms=self._post.clock.now_ms())
                    return None
                if not await self._tell(record):
                    return self._next_ms
                told += 1
        await self._settle()
        return None

    _next_ms: int | None = None

    async def release(self) -> None:
        """Leave it to the next: the webhook is due at once."""
        await self._settle(due_ms=self._post.clock.now_ms())

    # Telling.

    async def _tell_whole(self) -> bool:
        """Tell of the task as it was when the webhook was set. Whether to go on."""
        found = await self._updates.whole(self._position)
        if found is None:
            await self._settle(gone=True)
            return False
        return await self._attempt(*found)

    async def _tell(self, record: Record) -> bool:
        state = state_of(record)
        number = self._state if state is None else state.number
        if not self._updates.is_worth_telling(record, self._state):
            self._position, self._state = record.number, number
            return True
        return await self._attempt(await self._updates.notification(record), number)

    async def _attempt(self, said: Notification, state: int) -> bool:
        """Make one attempt and take note of what came of it. Whether to go on."""
        now_ms = self._post.clock.now_ms()
        if not await self._still_mine(now_ms):
            return False
        due = self._due
        if await self._post.store.webhook(due.task_id, due.webhook.id) != due.webhook:
            return False  # it was deleted, after which nothing is sent, or replaced: PCFG-08
        outcome = await self._post.caller.post(due.task_id, due.webhook.id, self._address, said, now_ms // 1000)
        if outcome.kind == "delivered":
            self._failures = 0
        elif outcome.kind == "refused":
            return await self._refused(said, state, outcome)
        else:
            return await self._failed(said, outcome)
        self._step(said.number, state)
        return True

    def _step(self, position: int, state: int) -> None:
        self._position = max(position, self._position)
        self._state = state
        self._snapshot = False

    async def _still_mine(self, now_ms: int) -> bool:
        """Write down progress when it is time, and prolong the claim when it would run out."""
        needed = now_ms + int(self._post.settings.timeout * 1000) + MARGIN_MS
        if now_ms - self._saved_ms < SAVE_EVERY_MS and needed <= self._until_ms:
            return True
        self._until_ms = now_ms + claim_ms(self._post.settings)
        self._saved_ms = now_ms
        return await self._settle(due_ms=self._until_ms)

    # Failing.

    async def _refused(self, said: Notification, state: int, outcome: Outcome) -> bool:
        """The webhook will not take this one update; the next one may be another matter."""
        letter = self._letter(said.number, said.number, outcome)
        self._step(said.number, state)
        self._until_ms = self._post.clock.now_ms() + claim_ms(self._post.settings)
        return await self._settle(due_ms=self._until_ms, letters=[letter])

    async def _failed(self, said: Notification, outcome: Outcome) -> bool:
        self.failed = True
        self._failures += 1
        settings = self._post.settings
        if outcome.kind == "gone" or self._failures >= settings.attempts:
            await self._give_up(said, outcome)
            return False
        pause = pause_after(
            self._failures, settings.first_pause, settings.longest_pause, random.random(), outcome.retry_after
        )
        self._next_ms = self._post.clock.now_ms() + int(pause * 1000)
        logger.info("The webhook %s failed (%s); again in %.1f s", shown(self._address.url), outcome.reason, pause)
        await self._settle(due_ms=self._next_ms)
        return False

    async def _give_up(self, said: Notification, outcome: Outcome) -> None:
        """All that waits is a dead letter."""
        stored = await self._post.tasks.task(self._due.task_id, None)
        last = said.number if stored is None else max(stored.number, said.number)
        letter = self._letter(said.number, last, outcome)
        logger.warning("The webhook %s is given up for now: %s", shown(self._address.url), outcome.reason)
        self._step(last, self._state)
        await self._settle(letters=[letter], gone=outcome.kind == "gone")

    def _letter(self, first: int, last: int, outcome: Outcome) -> DeadLetter:
        clock = self._post.clock
        return DeadLetter(
            id=clock.new_id(),
            task_id=self._due.task_id,
            webhook_id=self._due.webhook.id,
            url=shown(self._address.url),
            first=first,
            last=last,
            reason=outcome.reason,
            attempts=max(self._failures, 1),
            failed_ms=clock.now_ms(),
            agent=self._post.agent,
        )

    async def _settle(
        self, *, due_ms: int | None = None, gone: bool = False, letters: list[DeadLetter] | None = None
    ) -> bool:
        due = self._due
        settlement = Settlement(
            task_id=due.task_id,
            webhook_id=due.webhook.id,
            claim=due.claim,
            position=self._position,
            state=self._state,
            failures=self._failures,
            snapshot=self._snapshot,
            due_ms=due_ms,
            gone=gone,
            letters=letters or (),
        )
        (held,) = await self._post.store.settle_webhooks([settlement], self._post.clock.now_ms())
        return held
