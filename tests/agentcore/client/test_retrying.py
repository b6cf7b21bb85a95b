"""The retry machine by itself, and its effect over a socket."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from dragoman.agentcore import AgentFailed, Retry, ServiceError, SessionBusy, SessionConflict, Throttled
from dragoman.agentcore.retrying import Attempts, Passing
from dragoman.errors import ConnectError, ConnectionLostError, InternalError
from tests.agentcore.client.front import (
    CALLS,
    CARD,
    FakeTime,
    busy,
    call,
    choose,
    done,
    empty,
    refusal,
    runtime_card,
)
from tests.client.words import task
from tests.http.peer import BOUND, Answer, Peer, Received, as_json, error, free_url, peer, reset, result


@pytest.fixture
async def front() -> AsyncIterator[Peer]:
    async with peer() as made:
        yield made


def waits(
    kind: Passing, *, safe: bool = True, deadline: float | None = None, retry: Retry | None = None
) -> list[float]:
    """All waits after failures of one kind, on a clock that only the waits move."""
    attempts, now, found = Attempts(retry or Retry(), safe=safe, started=0.0, deadline=deadline), 0.0, []
    while (wait := attempts.wait(kind, now)) is not None:
        found.append(wait)
        now += wait
    return found


@pytest.mark.req("AC-C-50")
def test_waits_for_a_busy_session_double_up_to_four_seconds_within_twenty() -> None:
    assert waits(Passing.BUSY) == [0.5, 1.0, 2.0, 4.0, 4.0, 4.0, 4.0]


@pytest.mark.req("AC-C-50")
def test_waits_are_up_to_a_fifth_longer_or_shorter() -> None:
    def first(chance: float) -> float | None:
        return Attempts(Retry(), safe=False, started=0.0).wait(Passing.BUSY, 0.0, chance=chance)

    assert (first(-1.0), first(0.0), first(1.0)) == (0.4, 0.5, 0.6)


@pytest.mark.req("AC-C-50")
def test_every_number_can_be_set() -> None:
    retry = Retry(busy_first=1, busy_factor=3, busy_longest=5, busy_window=10, throttled_tries=1, failed_tries=0)

    assert waits(Passing.BUSY, retry=retry) == [1, 3, 5]
    assert waits(Passing.THROTTLED, retry=retry) == [1.0]
    assert waits(Passing.FAILED, retry=retry) == []


@pytest.mark.req("AC-C-53")
def test_throttling_is_waited_for_three_times_ever_slower() -> None:
    assert waits(Passing.THROTTLED, safe=False) == [1.0, 2.0, 4.0]


@pytest.mark.req("AC-C-53")
def test_a_wait_that_the_service_asks_for_wins_if_it_is_longer() -> None:
    def wait(asked: float) -> float | None:
        return Attempts(Retry(), safe=False, started=0.0).wait(Passing.THROTTLED, 0.0, asked=asked)

    assert (wait(0.2), wait(7.0), wait(3600.0)) == (1.0, 7.0, None)


@pytest.mark.req("AC-C-54")
def test_failures_are_repeated_only_without_side_effects_unless_the_user_opts_in() -> None:
    assert waits(Passing.FAILED) == [0.5, 1.0]
    assert waits(Passing.FAILED, safe=False) == []
    assert waits(Passing.FAILED, safe=False, retry=Retry(repeat_sends=True)) == [0.5, 1.0]


@pytest.mark.req("AC-C-55")
def test_a_wait_beyond_the_deadline_is_not_begun() -> None:
    assert waits(Passing.BUSY, deadline=1.6) == [0.5, 1.0]
    assert waits(Passing.BUSY, deadline=0.4) == []


@pytest.mark.req("AC-C-50", "AC-C-52")
@pytest.mark.parametrize("refusals", range(6))
async def test_a_busy_session_is_tried_again_until_it_stands(front: Peer, refusals: int) -> None:
    front.on("POST", CALLS, *(busy() for _ in range(refusals)), done())
    time = FakeTime()

    async with call(front, timing=time.timing) as client:
        answer = await client.send("hi")

    assert answer.id == "t1"
    assert time.waits == [0.5, 1.0, 2.0, 4.0, 4.0][:refusals]
    assert len({request.body for request in front.received}) == 1
    assert len(front.received) == refusals + 1
    assert len({request.headers["authorization"] for request in front.received}) > refusals / 3


@pytest.mark.req("AC-C-52", "AC-C-88")
async def test_a_repeated_message_keeps_its_ids_and_is_signed_anew(front: Peer) -> None:
    front.on("POST", CALLS, busy(), busy(), busy(), done())

    async with call(front) as client:
        await client.send("hi")

    sent = [request.json for request in front.received]
    assert {(body["id"], body["params"]["message"]["messageId"]) for body in sent} == {
        (sent[0]["id"], sent[0]["params"]["message"]["messageId"])
    }
    dates = [request.headers["x-amz-date"] for request in front.received]
    signatures = {request.headers["authorization"] for request in front.received}
    assert dates == ["20260102T030405Z", "20260102T030405Z", "20260102T030406Z", "20260102T030408Z"]
    assert len(signatures) == 3


@pytest.mark.req("AC-C-50", "AC-C-43")
async def test_a_session_that_stays_busy_is_an_error_with_the_count_of_attempts(front: Peer) -> None:
    front.on("POST", CALLS, busy())
    time = FakeTime()

    async with call(front, timing=time.timing) as client:
        with pytest.raises(SessionBusy) as caught:
            await client.send("hi")

    assert (caught.value.attempts, caught.value.retryable) == (8, True)
    assert time.now <= 20.0


@pytest.mark.req("AC-C-51")
@pytest.mark.parametrize("text", ["Resource conflict - Resource already exists", "Something else", ""])
async def test_a_plain_conflict_is_never_repeated(front: Peer, text: str) -> None:
    front.on("POST", CALLS, refusal(409, -32054, text))

    async with call(front) as client:
        with pytest.raises(SessionConflict) as caught:
            await client.send("hi")

    assert (caught.value.attempts, caught.value.retryable, len(front.received)) == (1, False, 1)


@pytest.mark.req("AC-C-51")
@pytest.mark.parametrize(
    "first",
    [
        refusal(409, -32054, "SESSION OPERATION IN PROGRESS; come back"),
        refusal(409, -32054, "Conflict", x_amzn_errortype="RetryableConflictException:http://x"),
        as_json({"message": "Busy"}, 409, x_amzn_errortype="RetryableConflictException"),
    ],
    ids=["text", "type", "no JSON-RPC"],
)
async def test_a_busy_session_is_known_by_its_text_or_its_type(front: Peer, first: Answer) -> None:
    front.on("POST", CALLS, first, done())

    async with call(front) as client:
        await client.send("hi")

    assert len(front.received) == 2


@pytest.mark.req("AC-C-53")
async def test_throttling_is_repeated_three_times(front: Peer) -> None:
    front.on("POST", CALLS, refusal(429, -32053, "Rate limit exceeded - Too many requests"))
    time = FakeTime()

    async with call(front, timing=time.timing) as client:
        with pytest.raises(Throttled) as caught:
            await client.send("hi")

    assert time.waits == [1.0, 2.0, 4.0]
    assert caught.value.attempts == 4


@pytest.mark.req("AC-C-53")
async def test_retry_after_of_an_answer_is_waited_for(front: Peer) -> None:
    front.on("POST", CALLS, refusal(429, -32053, "Rate limit exceeded", retry_after="9"), done())
    time = FakeTime()

    async with call(front, timing=time.timing) as client:
        await client.send("hi")

    assert time.waits == [9.0]


FAILURES = {
    "agent": (refusal(424, -32055, "Runtime client error"), AgentFailed),
    "service": (refusal(500, -32603, "Internal error"), ServiceError),
    "connection": (reset, ConnectionLostError),
}


@pytest.mark.req("AC-C-54")
@pytest.mark.parametrize("kind", FAILURES)
async def test_reads_are_repeated_twice_after_a_failure_and_messages_never(front: Peer, kind: str) -> None:
    answer, expected = FAILURES[kind]
    front.on("POST", CALLS, answer)

    counts = {}
    async with call(front) as client:
        for name, use in {
            "send": lambda: client.send("hi"),
            "cancel": lambda: client.cancel("t1"),
            "get": lambda: client.get_task("t1"),
            "list": lambda: client.list_tasks(),
            "push": lambda: client.create_push_config("t1", "https://hook.example"),
        }.items():
            before = len(front.received)
            with pytest.raises(expected):
                await use()
            counts[name] = len(front.received) - before

    assert counts == {"send": 1, "cancel": 1, "get": 3, "list": 3, "push": 1}


@pytest.mark.req("AC-C-54")
async def test_the_card_and_a_subscription_count_as_reads(front: Peer) -> None:
    failed = refusal(424, -32055, "Runtime client error")
    front.on("GET", CARD, failed, failed, as_json(runtime_card(front)))
    front.on("POST", CALLS, failed, failed, result({"task": task("COMPLETED")}))

    async with call(front, card=True) as client:
        events = [event async for event in client.subscribe("t1")]

    assert len(events) == 1
    assert len(front.received) == 6


@pytest.mark.req("AC-C-54")
async def test_messages_are_repeated_when_the_user_opts_in(front: Peer) -> None:
    front.on("POST", CALLS, empty(502), done())

    async with call(front, retry=Retry(repeat_sends=True)) as client:
        await client.send("hi")

    assert len({request.body for request in front.received}) == 1
    assert len(front.received) == 2


@pytest.mark.req("AC-C-54")
async def test_an_error_of_the_agent_itself_is_an_answer(front: Peer) -> None:
    front.on("POST", CALLS, error(-32603, "Internal error"))

    async with call(front) as client:
        with pytest.raises(InternalError) as caught:
            await client.get_task("t1")

    assert len(front.received) == 1
    assert caught.value.origin is not None
    assert caught.value.origin.session_id == client.session_id


@pytest.mark.req("AC-C-55")
async def test_a_deadline_that_is_near_raises_at_once(front: Peer) -> None:
    front.on("POST", CALLS, busy())
    time = FakeTime()

    async with call(front, timing=time.timing) as client:
        with pytest.raises(SessionBusy) as caught:
            await client.send("hi", timeout=1.2)

    assert time.waits == [0.5]
    assert caught.value.attempts == 2


@pytest.mark.req("AC-C-55")
async def test_a_wait_can_be_cancelled(front: Peer) -> None:
    front.on("POST", CALLS, busy())

    async with call(front, timing=None, retry=Retry(busy_first=15, busy_longest=15)) as client:
        sending = asyncio.create_task(client.send("hi"))
        await asyncio.wait_for(front.arrived.wait(), BOUND)
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(sending, BOUND)


@pytest.mark.req("AC-C-54")
async def test_a_front_that_cannot_be_reached_is_tried_three_times_for_reads() -> None:
    async with call(Peer(url=free_url())) as client:
        with pytest.raises(ConnectError) as caught:
            await client.get_task("t1")

    assert caught.value.origin is not None
    assert caught.value.origin.attempts == 3


class ColdSession:
    """Takes a moment to stand, and refuses what comes meanwhile."""

    def __init__(self) -> None:
        self.state = "none"
        self.refused = 0
        self.second = asyncio.Event()

    def answer(self, request: Received) -> Answer:
        if self.state == "creating":
            self.refused += 1
            self.second.set()
            return busy()
        if self.state == "standing":
            return done()
        self.state = "creating"
        return self._create

    async def _create(self, request: Received, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.second.wait(), 0.2)
        self.state = "standing"
        await done()(request, writer)


@pytest.mark.req("AC-C-56")
@pytest.mark.parametrize(("hold", "most"), [(15.0, 1), (0.0, 20)])
async def test_of_parallel_first_calls_one_goes_first(front: Peer, hold: float, most: int) -> None:
    session = ColdSession()
    front.on("POST", CALLS, choose(session.answer))

    async with call(front, hold=hold, timing=None, retry=Retry(busy_first=0.3)) as client:
        answers = await asyncio.gather(*(client.send(f"{n}") for n in range(20)))

    assert len(answers) == 20
    assert session.refused <= most
    assert (session.refused > 1) == (hold == 0.0)


@pytest.mark.req("AC-C-56")
async def test_after_a_first_call_that_failed_the_next_goes_first(front: Peer) -> None:
    front.on("POST", CALLS, reset, done())

    async with call(front) as client:
        answers = await asyncio.gather(*(client.send(f"{n}") for n in range(5)), return_exceptions=True)

    assert [type(answer).__name__ for answer in answers] == ["ConnectionLostError", *["Task"] * 4]
