"""Each notification once, and none that is out of date."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from dragoman.webhook import Notification, Receiver, ReceiverSettings
from dragoman.webhook.memory import Memory
from tests.webhook.deliveries import NOW, TOKEN, Inbox, chunk, headers, status, text


@pytest.mark.req("PUSH-12", "PUSH-18")
async def test_what_comes_twice_is_handed_over_once_and_confirmed_twice() -> None:
    inbox = Inbox()
    sent = headers(Id="n-1", Timestamp=str(NOW), Sequence="3")

    assert [await inbox.post(status(), sent) for _ in range(3)] == [204] * 3
    assert [(n.id, n.sequence, n.sent_ms) for n in inbox.taken] == [("n-1", 3, NOW * 1000)]


@pytest.mark.req("PUSH-12")
async def test_without_ids_the_content_tells_repetitions_but_chunks_may_be_equal() -> None:
    inbox = Inbox()

    for body in (status(), status(), status("COMPLETED"), chunk("ha"), chunk("ha"), status()):
        assert await inbox.post(body) == 204

    assert len(inbox.taken) == 4


@pytest.mark.req("PUSH-12", "PUSH-18")
async def test_a_lower_number_than_the_last_of_the_task_is_out_of_date() -> None:
    inbox = Inbox()

    for number in (1, 3, 2, 3, 4):
        assert await inbox.post(status(), headers(Id=f"n-{number}", Sequence=str(number))) == 204
    await inbox.post(status(task="task-2"), headers(Id="m-1", Sequence="1"))

    assert [(n.task_id, n.sequence) for n in inbox.taken] == [
        ("task-1", 1),
        ("task-1", 3),
        ("task-1", 4),
        ("task-2", 1),
    ]


@pytest.mark.req("PUSH-18")
@pytest.mark.parametrize(
    ("sent", "expected"),
    [(NOW - 301, 401), (NOW - 299, 204), (NOW + 59, 204), (NOW + 61, 401), (0, 401), ("9" * 40, 400)],
)
async def test_what_was_sent_too_long_ago_or_in_the_future_is_turned_down(sent: Any, expected: int) -> None:
    assert await Inbox().post(status(), headers(Timestamp=str(sent))) == expected


@pytest.mark.req("PUSH-18")
async def test_the_age_that_is_allowed_is_a_setting() -> None:
    inbox = Inbox(settings=ReceiverSettings(max_age=10, max_ahead=0))

    assert await inbox.post(status(), headers(Timestamp=str(NOW - 11))) == 401
    assert await inbox.post(status(), headers(Timestamp=str(NOW + 1))) == 401
    assert await inbox.post(status(), headers(Timestamp=str(NOW - 9))) == 204


@pytest.mark.req("PUSH-11", "PUSH-12")
async def test_what_the_function_did_not_take_comes_again_and_the_sender_is_not_told_why(
    caplog: pytest.LogCaptureFixture,
) -> None:
    calls: list[Notification] = []

    async def handle(notification: Notification) -> None:
        calls.append(notification)
        if len(calls) == 1:
            raise RuntimeError("the secret of the database")

    receiver = Receiver(handle, token=TOKEN, tasks="any")

    first = await receiver.receive(headers(Id="n"), text(status()))
    then = [(await receiver.receive(headers(Id="n"), text(status()))).status for _ in range(2)]

    assert first.status == 503
    assert dict(first.headers)["Retry-After"] == "1"
    assert b"database" not in first.body
    assert then == [204, 204]
    assert len(calls) == 2
    assert "the secret of the database" in caplog.text


@pytest.mark.req("PUSH-12")
@pytest.mark.parametrize("works", [True, False])
async def test_the_same_notification_twice_at_once_is_one_call_with_one_answer_for_both(works: bool) -> None:
    begun, go, calls = asyncio.Event(), asyncio.Event(), 0

    async def handle(notification: Notification) -> None:
        nonlocal calls
        calls += 1
        begun.set()
        await go.wait()
        if not works:
            raise RuntimeError

    receiver = Receiver(handle, token=TOKEN, tasks="any")
    posts = [asyncio.create_task(receiver.receive(headers(Id="n"), text(status()))) for _ in range(3)]
    async with asyncio.timeout(5):
        await begun.wait()
        go.set()
        answers = await asyncio.gather(*posts)

    assert [answer.status for answer in answers] == [204 if works else 503] * 3
    assert calls == 1


@pytest.mark.req("PUSH-12")
async def test_a_request_that_is_broken_off_was_not_taken() -> None:
    begun, calls = asyncio.Event(), 0

    async def handle(notification: Notification) -> None:
        nonlocal calls
        calls += 1
        if calls == 1:
            begun.set()
            await asyncio.Event().wait()

    receiver = Receiver(handle, token=TOKEN, tasks="any")
    post = asyncio.create_task(receiver.receive(headers(Id="n"), text(status())))
    async with asyncio.timeout(5):
        await begun.wait()
        post.cancel()
        with pytest.raises(asyncio.CancelledError):
            await post
        again = await receiver.receive(headers(Id="n"), text(status()))

    assert (again.status, calls) == (204, 2)


@pytest.mark.req("PUSH-12")
def test_the_memory_is_bounded_and_forgets_the_oldest() -> None:
    memory = Memory(100)

    for number in range(1_000):
        memory.learn(("", f"t{number}"), f"n{number}", number)

    assert memory.has(("", "t999"), "n999")
    assert memory.has(("", "t900"), "n900")
    assert not memory.has(("", "t899"), "n899")
    assert len(memory._ids) == len(memory._numbers) == 100


async def test_two_webhooks_with_tokens_of_their_own_are_each_told() -> None:
    inbox = Inbox(token=(), tasks=None)
    one, other = inbox.receiver.expect("task-1"), inbox.receiver.expect("task-1")

    for expected in (one, other):
        await inbox.post(status(), headers(expected.config.token, Id="n", Sequence="5"))

    assert len(inbox.taken) == 2
    assert one.latest is not None
    assert other.latest is not None
