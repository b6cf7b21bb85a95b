"""Webhooks of tasks, how far each was told, and what could not be delivered."""

from __future__ import annotations

import asyncio
from functools import partial

from dragoman.ports.push import DeadLetter, DueWebhook, Settlement, Webhook, WebhookStore
from dragoman.ports.store import Scope, TaskStore
from dragoman.testing.sample_task import START_MS, SampleTask
from dragoman.testing.store_contract.asking import DONE, proves, put

NOW = START_MS + 1_000
LATER = NOW + 60_000


def _hook(name: str = "hook-1", payload: bytes = b"payload", wire: str = "1.0") -> Webhook:
    return Webhook(id=name, payload=payload, wire_version=wire)


def _keeper(store: TaskStore) -> WebhookStore:
    assert isinstance(store, WebhookStore)
    return store


def _told(due: DueWebhook, position: int, due_ms: int | None = None, **more: bool) -> Settlement:
    return Settlement(
        task_id=due.task_id,
        webhook_id=due.webhook.id,
        claim=due.claim,
        position=position,
        state=3,
        failures=0,
        due_ms=due_ms,
        gone=more.get("gone", False),
    )


async def _claim(store: TaskStore, now_ms: int = NOW, until_ms: int = LATER, limit: int = 10) -> list[DueWebhook]:
    return await _keeper(store).claim_webhooks(now_ms, until_ms, limit)


async def _add(store: TaskStore, sample: SampleTask, *names: str) -> None:
    for name in names:
        kept = await _keeper(store).keep_webhook(sample.id, _hook(name), most=9, now_ms=NOW)
        assert kept == "kept"


class WebhookContract:
    """What :class:`~dragoman.ports.push.WebhookStore` adds to a store."""

    async def test_a_webhook_that_comes_with_a_task_is_due_from_the_first_record_on(self, store: TaskStore) -> None:
        """In the same write as the task."""
        noticed: list[int] = []
        _keeper(store).watch_webhooks(lambda: noticed.append(1))
        append = SampleTask().take()
        assert append.new is not None
        append.new.webhook = _hook(wire="0.3")
        await put(store, append)

        (due,) = await _claim(store)

        assert (due.task_id, due.position, due.last, due.failures, due.snapshot) == ("task-1", 0, 1, 0, False)
        assert due.webhook == _hook(wire="0.3")
        assert noticed

    async def test_a_webhook_that_is_added_later_is_due_with_the_next_record(self, store: TaskStore) -> None:
        """What came before is not for it."""
        sample = SampleTask()
        await put(store, sample.take())
        await _add(store, sample, "hook-1")

        assert await _claim(store) == []
        assert await _keeper(store).next_due() is None
        await put(store, sample.chunk("more").take())
        (due,) = await _claim(store)
        assert (due.position, due.last) == (1, 2)

    async def test_a_webhook_of_a_task_that_is_over_is_due_for_the_whole_task(self, store: TaskStore) -> None:
        """In the states that are asked for."""
        sample = SampleTask(state=DONE, worker=None)
        await put(store, sample.take())

        states = [DONE.number]
        await _keeper(store).keep_webhook(sample.id, _hook(), most=9, now_ms=NOW, snapshot_in=states)

        (due,) = await _claim(store)
        assert (due.position, due.last, due.snapshot) == (1, 1, True)

    async def test_webhooks_are_found_listed_replaced_and_removed(self, store: TaskStore) -> None:
        """In the order in which they were added; a removal that finds nothing is fine."""
        sample, keeper = SampleTask(), _keeper(store)
        await put(store, sample.take())
        await _add(store, sample, "b", "a", "c")
        await keeper.keep_webhook(sample.id, _hook("a", b"new", "0.3"), most=3, now_ms=NOW)

        first = await keeper.webhooks(sample.id, 0, 2)
        rest = await keeper.webhooks(sample.id, first[-1][0], 2)
        assert [webhook.id for _, webhook in [*first, *rest]] == ["b", "a", "c"]
        assert await keeper.webhook(sample.id, "a") == _hook("a", b"new", "0.3")
        for _ in range(2):
            await keeper.remove_webhook(sample.id, "a")
        assert await keeper.webhook(sample.id, "a") is None
        assert await keeper.webhook("nobody", "a") is None

    async def test_a_task_has_so_many_webhooks_and_no_more(self, store: TaskStore) -> None:
        """A replacement and a removal make room; a task that is not there has none."""
        sample, keeper = SampleTask(), _keeper(store)
        await put(store, sample.take())
        outcomes = [await keeper.keep_webhook(sample.id, _hook(n), most=2, now_ms=NOW) for n in ("a", "b", "c", "b")]
        await keeper.remove_webhook(sample.id, "a")

        assert outcomes == ["kept", "kept", "full", "kept"]
        assert await keeper.keep_webhook(sample.id, _hook("c"), most=2, now_ms=NOW) == "kept"
        assert await keeper.keep_webhook("nobody", _hook(), most=2, now_ms=NOW) == "unknown"

    async def test_of_two_claims_one_gets_the_webhook(self, store: TaskStore) -> None:
        """Until the claim runs out."""
        sample = SampleTask()
        await put(store, sample.take())
        await _add(store, sample, "hook-1")
        await put(store, sample.chunk("more").take())

        claims = await asyncio.gather(_claim(store), _claim(store))

        assert sorted(map(len, claims)) == [0, 1]
        assert await _keeper(store).next_due() == LATER
        assert await _claim(store, LATER - 1) == []
        (again,) = await _claim(store, LATER, LATER + 1)
        assert again.claim > max(due.claim for due, *_ in filter(None, claims))

    async def test_a_settlement_says_when_the_webhook_is_due_again(self, store: TaskStore) -> None:
        """By its own time, or when there is more to tell."""
        sample, keeper = SampleTask(), _keeper(store)
        await put(store, sample.take())
        await _add(store, sample, "hook-1")
        await put(store, sample.chunk("one").take())
        (due,) = await _claim(store)
        await put(store, sample.chunk("two").take())

        assert list(await keeper.settle_webhooks([_told(due, 2)], NOW)) == [True]
        (due,) = await _claim(store)
        assert (due.position, due.last, due.state) == (2, 3, 3)
        assert list(await keeper.settle_webhooks([_told(due, 2, NOW + 5)], NOW)) == [True]
        assert await _claim(store, NOW + 4) == []
        (due,) = await _claim(store, NOW + 5)
        await keeper.settle_webhooks([_told(due, 3)], NOW)
        assert await keeper.next_due() is None

    async def test_a_settlement_counts_only_while_its_claim_does(self, store: TaskStore) -> None:
        """Not after another claim, a new configuration, or a removal."""
        sample, keeper = SampleTask(), _keeper(store)
        await put(store, sample.take())
        await _add(store, sample, "hook-1")
        await put(store, sample.chunk("one").take())
        (old,) = await _claim(store)
        (new,) = await _claim(store, LATER)
        assert list(await keeper.settle_webhooks([_told(old, 2)], NOW)) == [False]

        await keeper.keep_webhook(sample.id, _hook(payload=b"new"), most=9, now_ms=NOW)
        assert list(await keeper.settle_webhooks([_told(new, 2)], NOW)) == [False]
        (due,) = await _claim(store)
        assert (due.position, due.webhook.payload) == (1, b"new")

        await keeper.remove_webhook(sample.id, "hook-1")
        assert list(await keeper.settle_webhooks([_told(due, 2)], NOW)) == [False]

    async def test_a_webhook_that_is_gone_is_removed_and_leaves_room(self, store: TaskStore) -> None:
        """With its settlement."""
        sample, keeper = SampleTask(), _keeper(store)
        await put(store, sample.take())
        await keeper.keep_webhook(sample.id, _hook("a"), most=1, now_ms=NOW)
        await put(store, sample.chunk("one").take())
        (due,) = await _claim(store)

        await keeper.settle_webhooks([_told(due, 2, gone=True)], NOW)

        assert await keeper.webhooks(sample.id, 0, 9) == []
        assert await keeper.keep_webhook(sample.id, _hook("b"), most=1, now_ms=NOW) == "kept"

    async def test_dead_letters_are_kept_with_the_settlement_and_listed_in_order(self, store: TaskStore) -> None:
        """Until they are old; a settlement that does not count leaves none."""
        sample, keeper = SampleTask(), _keeper(store)
        await put(store, sample.take())
        await _add(store, sample, "hook-1")
        await put(store, sample.chunk("one").take())
        (due,) = await _claim(store)
        letters = [_letter(f"letter-{number}", NOW + number) for number in range(3)]
        settlement = _told(due, 2)
        settlement.letters = letters
        await keeper.settle_webhooks([settlement], NOW)
        settlement.claim = 77
        await keeper.settle_webhooks([settlement], NOW)

        assert await keeper.dead_letters("", 2) == letters[:2]
        assert await keeper.dead_letters("letter-1", 9) == letters[2:]
        assert await keeper.remove_dead_letters(NOW + 2, 9) == 2
        assert await keeper.dead_letters("", 9) == letters[2:]

    async def test_webhooks_leave_with_their_task(self, store: TaskStore) -> None:
        """Nobody is told of a task that is purged."""
        sample = SampleTask(state=DONE, worker=None)
        append = sample.take()
        assert append.new is not None
        append.new.webhook = _hook()
        await put(store, append)

        assert await store.purge(LATER, 10) == 1

        assert await _claim(store) == []
        assert await _keeper(store).webhooks(sample.id, 0, 9) == []

    @proves("TEN-03", "TEN-04")
    async def test_webhooks_and_dead_letters_are_those_of_one_agent(self, store: TaskStore) -> None:
        """Who delivers for one agent claims nothing of another's."""
        keeper = _keeper(store)
        noticed: list[str] = []
        for agent in ("ours", "theirs"):
            keeper.watch_webhooks(partial(noticed.append, agent), agent)
            append = SampleTask(agent, scope=Scope("", "", agent)).take()
            assert append.new is not None
            append.new.webhook = _hook()
            await put(store, append)
        assert set(noticed) == {"ours", "theirs"}

        assert await keeper.claim_webhooks(NOW, LATER, 10) == []
        assert await keeper.next_due() is None
        assert await keeper.next_due("ours") is not None
        (due,) = await keeper.claim_webhooks(NOW, LATER, 10, "ours")
        assert due.task_id == "ours"
        settlement = _told(due, 1)
        settlement.letters = [_letter("letter-1", NOW, "ours")]
        assert await keeper.settle_webhooks([settlement], NOW) == [True]
        assert await keeper.dead_letters("", 9) == await keeper.dead_letters("", 9, "theirs") == []
        assert await keeper.dead_letters("", 9, "ours") == settlement.letters
        assert await keeper.remove_dead_letters(LATER, 9, "theirs") == 0
        assert await keeper.remove_dead_letters(LATER, 9, "ours") == 1


def _letter(name: str, failed_ms: int, agent: str = "") -> DeadLetter:
    return DeadLetter(
        id=name,
        task_id="task-1",
        webhook_id="hook-1",
        url="https://hooks.example/h",
        first=2,
        last=2,
        reason="HTTP 500",
        attempts=3,
        failed_ms=failed_ms,
        agent=agent,
    )
