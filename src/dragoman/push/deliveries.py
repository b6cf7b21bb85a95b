"""Deliveries: finds webhooks that are due, and sends couriers to them.

Theory. A round looks when the next webhook is due and sleeps until then, or until this process writes something that is
due. What is due is claimed, in no greater number than there are couriers free, so a webhook of another process, or of
one that died, is taken by whoever looks next. Webhooks that failed have half of the couriers at most: however many are
slow or dead, the others do not wait for them.

Spec: PUSH-04, PUSH-19, B115, AC-S-55.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging

from dragoman.errors import StoreError
from dragoman.ports.observing import WorkObserver
from dragoman.ports.push import DueWebhook, Settlement
from dragoman.push.courier import Courier, Post, claim_ms

logger = logging.getLogger("dragoman.push")

_AFTER_TROUBLE = 1.0
_MOST_AT_ONCE = 64
_POSTPONED_MS = 500
_HOUSEKEEPING_MS = 60_000
_OVERDUE_MS = 10_000


class Deliveries:
    """The couriers of one process. ``observer`` is told while something is to be delivered."""

    def __init__(self, post: Post, observer: WorkObserver | None = None) -> None:
        self._post = post
        self._observer = observer
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._walks: dict[tuple[str, str], asyncio.Task[None]] = {}
        self._suspects: set[tuple[str, str]] = set()
        self._waiting: dict[tuple[str, str], int] = {}
        self._cleaned_ms = 0
        self._is_idle = asyncio.Event()

    def start(self) -> None:
        """Begin. Must run inside the event loop."""
        self._task = asyncio.create_task(self._work(), name="dragoman-push")

    def notice(self) -> None:
        """Something is due."""
        self._is_idle.clear()
        self._wake.set()
        if self._observer is not None:
            self._observer.begun(self)

    def dismiss(self, task_id: str, webhook_id: str) -> None:
        """The webhook is deleted or replaced: whoever is on the way to it turns back. Spec: PCFG-08."""
        walk = self._walks.get((task_id, webhook_id))
        if walk is not None:
            walk.cancel()

    async def stop(self, wait: float) -> None:
        """Give what is due its time, then release what is claimed."""
        if self._task is None:
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(wait):
                await self._is_idle.wait()
                await asyncio.gather(*self._walks.values(), return_exceptions=True)
        self._task.cancel()
        walks = list(self._walks.values())
        for walk in walks:
            walk.cancel()
        await asyncio.gather(self._task, *walks, return_exceptions=True)
        self._task = None

    # Rounds.

    async def _work(self) -> None:
        while True:
            try:
                pause = await self._round()
            except StoreError:
                logger.exception("The store failed while webhooks were looked for; it will be tried again")
                pause = _AFTER_TROUBLE
            except Exception:
                logger.exception("Webhooks could not be looked for; it will be tried again")
                pause = _AFTER_TROUBLE
            if pause > 0:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(pause):
                        await self._wake.wait()

    async def _round(self) -> float:
        """Send couriers to what is due; seconds until the next round."""
        self._wake.clear()
        post = self._post
        free = min(post.settings.concurrency - len(self._walks), _MOST_AT_ONCE)
        now_ms = post.clock.now_ms()
        await self._clean(now_ms)
        if free <= 0:
            return post.settings.poll
        due_ms = await post.store.next_due(post.agent)
        if due_ms is None or due_ms > now_ms:
            self._rest(now_ms)
            wait = post.settings.poll if due_ms is None else (due_ms - now_ms) / 1000
            return min(wait + 0.001, post.settings.poll)
        until_ms = now_ms + claim_ms(post.settings)
        for due in await post.store.claim_webhooks(now_ms, until_ms, free, post.agent):
            await self._take(due, until_ms, now_ms)
        return 0.0

    def _rest(self, now_ms: int) -> None:
        """Nothing is due now."""
        if self._wake.is_set():
            return
        self._is_idle.set()
        for key in [key for key, due_ms in self._waiting.items() if due_ms + _OVERDUE_MS < now_ms]:
            if key not in self._walks:  # deleted, or another process has it
                self._settled(key)
        if self._observer is not None:
            self._observer.ended(self)

    async def _clean(self, now_ms: int) -> None:
        keep = self._post.settings.keep_dead_letters
        if keep is not None and now_ms - self._cleaned_ms > _HOUSEKEEPING_MS:
            self._cleaned_ms = now_ms
            await self._post.store.remove_dead_letters(now_ms - int(keep * 1000), 1_000, self._post.agent)

    # Couriers.

    async def _take(self, due: DueWebhook, until_ms: int, now_ms: int) -> None:
        key = (due.task_id, due.webhook.id)
        suspect = due.failures > 0
        if suspect and len(self._suspects) >= max(self._post.settings.concurrency // 2, 1):
            await self._postpone(due, now_ms)
            return
        before = self._walks.get(key)
        if suspect:
            self._suspects.add(key)
        if self._observer is not None:
            self._observer.begun(key)
        walk = asyncio.create_task(self._walk(due, until_ms, before), name="dragoman-courier")
        self._walks[key] = walk
        walk.add_done_callback(lambda done: self._ended(key, done))

    async def _postpone(self, due: DueWebhook, now_ms: int) -> None:
        settlement = Settlement(
            task_id=due.task_id,
            webhook_id=due.webhook.id,
            claim=due.claim,
            position=due.position,
            state=due.state,
            failures=due.failures,
            snapshot=due.snapshot,
            due_ms=now_ms + _POSTPONED_MS,
        )
        await self._post.store.settle_webhooks([settlement], now_ms)

    async def _walk(self, due: DueWebhook, until_ms: int, before: asyncio.Task[None] | None) -> None:
        key = (due.task_id, due.webhook.id)
        if before is not None:  # its claim was ended by a new configuration, and order is kept all the same
            await asyncio.gather(before, return_exceptions=True)
        courier = None
        try:
            courier = Courier(self._post, due, until_ms)
            next_ms = await courier.walk()
        except asyncio.CancelledError:
            if courier is not None:
                await self._release(courier)
            self._settled(key)
            raise
        except StoreError:
            logger.exception("The store failed while the webhook %s of task %s was told", due.webhook.id, due.task_id)
            next_ms = until_ms
        except Exception:
            logger.exception("The webhook %s of task %s could not be told", due.webhook.id, due.task_id)
            next_ms = until_ms
        if next_ms is None:
            self._settled(key)
        else:
            self._waiting[key] = next_ms

    async def _release(self, courier: Courier) -> None:
        try:
            await courier.release()
        except StoreError:
            logger.warning("A webhook could not be released; it is due when its claim has run out")

    def _settled(self, key: tuple[str, str]) -> None:
        self._waiting.pop(key, None)
        if self._observer is not None:
            self._observer.ended(key)

    def _ended(self, key: tuple[str, str], walk: asyncio.Task[None]) -> None:
        if self._walks.get(key) is walk:
            del self._walks[key]
            self._suspects.discard(key)
        self._wake.set()
