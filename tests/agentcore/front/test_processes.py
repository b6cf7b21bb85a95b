"""A process for each session."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from dragoman.testing.agentcore_front import FrontSettings, Lifecycle, PerSession
from tests.agentcore.front.parts import OTHER, SESSION, Caller, ManualClock, rehearsal, rpc

PROGRAM = Path(__file__).with_name("process_agent.py")


def processes(*options: str) -> PerSession:
    return PerSession([sys.executable, str(PROGRAM), "--port", "{port}", *options])


async def ask(caller: Caller, word: str = "", session: str = SESSION) -> dict[str, Any]:
    answer = await caller.post(rpc(word=word), session=session)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()["result"]
    return found


@pytest.mark.req("AC-F-02", "B169")
async def test_each_session_has_a_process_and_a_memory_of_its_own() -> None:
    async with rehearsal("", upstream=processes()) as caller:
        answers = [await ask(caller), await ask(caller), await ask(caller, session=OTHER)]
        pids = {answer["pid"] for answer in answers}

    assert [answer["calls"] for answer in answers] == [1, 2, 1]
    assert len(pids) == 2
    assert answers[0]["url"] == caller.front.invocation_url
    assert not any(psutil.pid_exists(pid) for pid in pids)
    assert [(ending.why, ending.exit_status) for ending in caller.front.ends] == [("closed", 0)] * 2
    assert caller.front.violations == []


@pytest.mark.req("AC-F-02", "AC-F-12")
async def test_a_stopped_and_a_reclaimed_session_come_back_with_an_empty_memory() -> None:
    lines: list[str] = []
    clock = ManualClock(time.time())
    async with rehearsal(
        "", upstream=processes(), clock=clock, output=lambda session, line: lines.append(line)
    ) as caller:
        await ask(caller)
        await caller.stop()
        again = await ask(caller)
        clock.advance(901)
        await caller.front.look()
        last = await ask(caller)

    assert (again["calls"], last["calls"]) == (1, 1)
    assert [ending.why for ending in caller.front.ends] == ["stopped", "idle", "closed"]
    assert lines == ["stopped in order"] * 3


@pytest.mark.req("AC-F-02")
async def test_a_process_that_does_not_end_is_killed() -> None:
    settings = FrontSettings(lifecycle=Lifecycle(stop_s=15), time_scale=0.01)
    async with rehearsal("", upstream=processes(), settings=settings) as caller:
        await ask(caller, "stubborn")
        await caller.stop()

    assert [ending.exit_status for ending in caller.front.ends] == [-9]


@pytest.mark.req("AC-F-02", "AC-F-06")
async def test_a_process_that_died_is_a_failed_agent_and_the_next_call_has_a_new_one() -> None:
    async with rehearsal("", upstream=processes()) as caller:
        await ask(caller)
        died = await caller.post(rpc(word="die"))
        after = await ask(caller)

    assert (died.status_code, died.json()["error"]["code"]) == (424, -32055)
    assert after["calls"] == 1
    assert caller.front.ends[0].why == "crashed"
    assert caller.front.ends[0].exit_status == 3


@pytest.mark.req("AC-F-02", "AC-F-06")
async def test_a_process_that_cannot_begin_is_a_failed_agent(caplog: pytest.LogCaptureFixture) -> None:
    for upstream, words in (
        (processes("--fail"), "cannot begin"),
        (PerSession(["./no-such-program"]), "no-such-program"),
    ):
        async with rehearsal("", upstream=upstream) as caller:
            answer = await caller.post()
            assert (answer.status_code, answer.json()["error"]["code"]) == (424, -32055)
            assert caller.front.sessions == {}
        assert words in caplog.text


@pytest.mark.req("AC-F-13")
async def test_a_token_in_the_output_is_a_violation() -> None:
    async with rehearsal("", upstream=processes()) as caller:
        await ask(caller, "token")
        await caller.stop()

    assert [violation.rule for violation in caller.front.violations] == ["token-in-output"]
