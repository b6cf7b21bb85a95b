"""The lives of sessions by the ping contract, and what the contract watcher sees."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from dragoman.testing.agentcore_front import FrontSettings, Lifecycle
from dragoman.testing.agentcore_front.contract import Contract
from dragoman.testing.agentcore_front.pings import Life, Ping, Verdict, check_ping, judge, read_ping
from tests.agentcore.front.parts import (
    OTHER,
    SESSION,
    START,
    Caller,
    Container,
    ManualClock,
    event,
    rehearsal,
    rpc,
    until,
)

RULES = Lifecycle(idle_s=900, max_lifetime_s=28_800)
STAMP = int(START) - 100


def says(status: Any = "Healthy", stamp: Any = STAMP) -> tuple[int, dict[str, Any]]:
    return 200, {"status": status, "time_of_last_update": stamp}


def life(**known: Any) -> Life:
    return Life(**{"created": START, "last_invocation": START, **known})


@pytest.mark.req("AC-F-12")
@pytest.mark.parametrize(
    ("life", "after", "verdict"),
    [
        (life(), 899, Verdict.KEEP),
        (life(), 900, Verdict.IDLE),
        (life(in_flight=1), 20_000, Verdict.KEEP),
        (life(in_flight=1), 28_800, Verdict.LIFETIME),
        (life(ping=Ping(http=200, status="Healthy", stamp=int(START) + 500)), 1_399, Verdict.KEEP),
        (life(ping=Ping(http=200, status="Healthy", stamp=int(START) + 500)), 1_400, Verdict.IDLE),
        (life(ping=Ping(http=200, status="HealthyBusy", stamp=STAMP)), 28_799, Verdict.KEEP),
        (life(ping=Ping(http=200, status="HealthyBusy", stamp=STAMP)), 28_800, Verdict.LIFETIME),
        (life(ping=Ping(http=200, status="HealthyBusy")), 900, Verdict.IDLE),
        (life(ping=Ping(http=200, status="HealthyBusy", stamp="2026-06-11T10:00:00Z")), 900, Verdict.IDLE),
        (life(ping=Ping(http=200, status="HealthyBusy", stamp=True)), 900, Verdict.IDLE),
        (life(ping=Ping(http=200, status="HealthyBusy", stamp=1.5)), 900, Verdict.IDLE),
        (life(failing=2), 1, Verdict.KEEP),
        (life(failing=3), 1, Verdict.FAILED),
    ],
)
def test_what_becomes_of_a_session(life: Life, after: float, verdict: Verdict) -> None:
    assert judge(life, START + after, RULES) is verdict


@pytest.mark.req("AC-F-12")
def test_the_documented_rule_keeps_a_busy_session_without_a_stamp() -> None:
    documented = Lifecycle(busy_rule="documented")

    assert judge(life(ping=Ping(http=200, status="HealthyBusy")), START + 9_000, documented) is Verdict.KEEP


@pytest.mark.req("AC-F-12", "AC-F-15")
def test_times_of_a_life_are_scaled() -> None:
    assert judge(life(), START + 0.89, RULES, 0.001) is Verdict.KEEP
    assert judge(life(), START + 0.9, RULES, 0.001) is Verdict.IDLE


def test_a_good_ping_forgives_the_failing_ones_before_it() -> None:
    known = life(failing=2)
    known.take(Ping(http=200, status="Healthy", stamp=STAMP))
    known.take(Ping(http=503))

    assert (known.failing, known.ping and known.ping.http) == (1, 200)


@pytest.mark.req("AC-F-12", "AC-F-02")
async def test_an_idle_session_is_reclaimed_and_a_busy_one_is_not(container: Container, clock: ManualClock) -> None:
    async with rehearsal(container, clock=clock) as caller:
        await caller.post()
        clock.advance(899)
        await caller.front.look()
        kept = set(caller.front.sessions)
        await caller.post(session=OTHER)
        clock.advance(1)
        await caller.front.look()
        left = set(caller.front.sessions)
        container.ping = says("HealthyBusy", int(START) + 900)
        clock.advance(5_000)
        await caller.front.look()
        busy = set(caller.front.sessions)

    assert (kept, left, busy) == ({SESSION}, {OTHER}, {OTHER})
    assert [(ending.session, ending.why) for ending in caller.front.ends][:1] == [(SESSION, "idle")]


@pytest.mark.req("AC-F-12")
async def test_a_call_in_flight_keeps_its_session_until_the_end_of_its_lifetime(
    container: Container, clock: ManualClock
) -> None:
    go_on = asyncio.Event()
    container.answers = container.stream(event(1), go_on, event(2))
    async with rehearsal(container, clock=clock) as caller, caller.stream() as answer:
        await anext(answer.aiter_bytes())
        clock.advance(28_799)
        await caller.front.look()
        kept = set(caller.front.sessions)
        clock.advance(1)
        await caller.front.look()
        left = set(caller.front.sessions)
        go_on.set()

    assert (kept, left) == ({SESSION}, set())
    assert caller.front.ends[0].why == "lifetime"


@pytest.mark.req("AC-F-12")
async def test_three_failing_pings_in_a_row_fail_a_session(container: Container) -> None:
    async with rehearsal(container) as caller:
        await caller.post()
        for ping in ((503, {}), (503, {}), says(), (503, {}), (500, {}), (503, {})):
            container.ping = ping
            await caller.front.look()

    assert [ending.why for ending in caller.front.ends] == ["failed"]


@pytest.mark.req("AC-F-12")
async def test_the_watcher_pings_by_itself(container: Container) -> None:
    settings = FrontSettings(lifecycle=Lifecycle(ping_s=2, idle_s=900), time_scale=0.005)
    container.ping = says("HealthyBusy")
    async with rehearsal(container, settings=settings, watch=True) as caller:
        await caller.post()
        await until(lambda: container.pings >= 5)
        assert set(caller.front.sessions) == {SESSION}


# The contract.


def rules_broken(*pings: Ping, now: float = START, was_called: bool = False) -> list[str]:
    before, found = None, []
    for ping in pings:
        found += [violation.rule for violation in check_ping(ping, before, now, was_called=was_called)]
        before = ping
    return found


def ping(status: Any = "Healthy", stamp: Any = STAMP, took: float = 0.01) -> Ping:
    return Ping(http=200, status=status, stamp=stamp, took=took)


@pytest.mark.req("AC-F-13")
def test_pings_within_the_contract_break_no_rule() -> None:
    quiet = [ping(), ping(), ping("HealthyBusy", STAMP + 5), ping("HealthyBusy", STAMP + 5), ping("Healthy", STAMP + 9)]

    assert rules_broken(*quiet) == []
    assert rules_broken(ping(), ping(stamp=STAMP + 7), was_called=True) == []


@pytest.mark.req("AC-F-13")
@pytest.mark.parametrize(
    ("pings", "rule"),
    [
        ([ping(), ping(stamp=STAMP + 2)], "stamp-moved"),
        ([ping(), ping("HealthyBusy", STAMP - 1)], "stamp-decreased"),
        ([ping(stamp=int(START) + 60)], "stamp-in-future"),
        ([ping(stamp=None)], "stamp-no-integer"),
        ([ping(stamp=float(STAMP))], "stamp-no-integer"),
        ([ping(stamp=True)], "stamp-no-integer"),
        ([ping(stamp="2026-06-11T10:00:00Z")], "stamp-no-integer"),
        ([ping("Healthy_Busy")], "unknown-status"),
        ([ping("healthy")], "unknown-status"),
        ([ping(took=1.2)], "slow-ping"),
    ],
)
def test_each_way_to_break_the_contract_of_pings_is_seen(pings: list[Ping], rule: str) -> None:
    assert rules_broken(*pings) == [rule]


def test_a_ping_that_is_no_json_has_nothing_to_say() -> None:
    assert (read_ping(200, b"pong", 0.1).status, read_ping(200, b"[]", 0.1).stamp) == (None, None)


async def watched(caller: Caller, *calls: bytes) -> list[str]:
    for body in calls:
        await caller.post(body)
        await caller.front.look()
    return [violation.rule for violation in caller.front.violations]


@pytest.mark.req("AC-F-13")
async def test_a_container_that_keeps_the_contract_is_told_nothing(container: Container, clock: ManualClock) -> None:
    async with rehearsal(container, clock=clock) as caller:
        assert await watched(caller, rpc(), rpc(), rpc("GetTask")) == []


@pytest.mark.req("AC-F-13")
async def test_other_statuses_and_codes_of_the_front_are_seen(container: Container, clock: ManualClock) -> None:
    async with rehearsal(container, clock=clock) as caller:
        container.answers = container.say(status=500)
        assert await watched(caller, rpc()) == ["status"]
        container.answers = container.say(b'{"jsonrpc":"2.0","id":1,"error":{"code": -32054,"message":"x"}}')
        assert await watched(caller, rpc()) == ["status", "own-code"]
        container.answers = container.stream(
            event(1), b'id: 1\ndata: {"jsonrpc":"2.0","error":{"code":-32051,"message":"x"}}\n\n'
        )
        assert await watched(caller, rpc()) == ["status", "own-code", "own-code"]
        container.answers = container.say(b'{"jsonrpc":"2.0","id":1,"result":{"data":{"code":-32054}}}')
        assert await watched(caller, rpc()) == ["status", "own-code", "own-code"]


@pytest.mark.req("AC-F-13")
async def test_a_healthy_ping_before_there_is_a_card_is_seen(container: Container, clock: ManualClock) -> None:
    container.card = 503
    async with rehearsal(container, clock=clock) as caller:
        assert await watched(caller, rpc()) == ["early-ping"]


@pytest.mark.req("AC-F-13")
async def test_a_stamp_that_moves_by_itself_is_seen_over_the_wire(container: Container, clock: ManualClock) -> None:
    async with rehearsal(container, clock=clock) as caller:
        await caller.post()
        await caller.front.look()
        container.ping = says(stamp=STAMP + 2)
        await caller.front.look()
        container.ping = says(stamp=STAMP + 4)
        moved = await watched(caller, rpc())

    assert moved == ["stamp-moved"]


@pytest.mark.req("AC-F-13")
def test_tokens_in_the_output_of_a_container_are_seen() -> None:
    contract = Contract()
    contract.note_token("opaque-token-value")
    contract.note_token("")
    contract.read_output("nothing here")
    contract.read_output("INFO token=opaque-token-value")

    assert [violation.rule for violation in contract.violations] == ["token-in-output"]
    assert "opaque" not in str(contract.violations[0])
